// Modules of the C++ front end for Python: torch::python::bind_module<M>(scope, "M") makes a class
// that is a torch.nn.Module there (torch/nn/cpp.py). It returns the class of pybind11 behind it, to
// which constructors and further methods are added.
#pragma once
#include <torch/nn/module.h>
#include <torch/python.h>

#if __has_include(<pybind11/pybind11.h>)
#include <sstream>

namespace torch::python {

namespace detail {

template <class Value> py::list pairs(const torch::OrderedDict<std::string, Value>& items) {
  py::list out;
  for (const auto& item : items) out.append(py::make_tuple(item.key(), item.value()));
  return out;
}

inline std::string text_of(const torch::nn::Module& module) {
  std::ostringstream stream;
  module.pretty_print(stream);
  return stream.str();
}

using ModuleClass = py::class_<torch::nn::Module, std::shared_ptr<torch::nn::Module>>;

// The base class, once in an extension. Each extension has its own, so that two of them can be
// loaded.
inline void bind_base(const py::module_& scope) {
  if (py::detail::get_type_info(typeid(torch::nn::Module), /*throw_if_missing=*/false)) return;
  using torch::nn::Module;
  ModuleClass(scope, "_CppModule", py::module_local())
      .def("_parameters", [](const Module& m) { return pairs(m.named_parameters(false)); })
      .def("_buffers", [](const Module& m) { return pairs(m.named_buffers(false)); })
      .def("_modules", [](const Module& m) { return pairs(m.named_children()); })
      .def("train", [](Module& m, bool mode) { m.train(mode); })
      .def("is_training", [](const Module& m) { return m.is_training(); })
      .def("clone", [](const Module& m) { return m.clone(); })
      .def("__repr__", &text_of);
}

} // namespace detail

template <class M> using PyModuleClass = py::class_<M, torch::nn::Module, std::shared_ptr<M>>;

template <class M> PyModuleClass<M> bind_module(py::module_ scope, const char* name) {
  detail::bind_base(scope);
  const std::string hidden = std::string("_Cpp") + name;
  PyModuleClass<M> made(scope, hidden.c_str(), py::module_local());
  made.def("forward", &M::forward);
  scope.attr(name) =
      py::module_::import("torch.nn.cpp").attr("_wrap_class")(made, name, scope.attr("__name__"));
  return made;
}

} // namespace torch::python
#endif
