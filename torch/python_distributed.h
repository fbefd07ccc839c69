// Converters of pybind11 for backends, groups, work and stores of torch.distributed. They need
// their classes only where a function that is bound takes or returns one; that one's file includes
// <torch/csrc/distributed/c10d/ProcessGroup.hpp>.
#pragma once
#include <torch/csrc/python/distributed/foreign.h>

#if __has_include(<pybind11/pybind11.h>)
#include <pybind11/pybind11.h>

namespace torch::python {

// The table of torch._c10d, which is imported at the first use.
C10_HIDDEN inline const ForeignBridge& foreign_bridge() {
  static const ForeignBridge* const table = [] {
    namespace py = pybind11;
    const py::object capsule = py::module_::import("torch._c10d").attr("_foreign");
    const auto* found =
        static_cast<const ForeignBridge*>(PyCapsule_GetPointer(capsule.ptr(), kForeignBridgeName));
    if (found == nullptr) throw py::error_already_set();
    if (found->layout != ForeignBridge::kLayout)
      throw py::import_error(
          "this extension was compiled for another version of torch; build it again");
    return found;
  }();
  return *table;
}

// Counted pointers to T, which `Read` makes of an object and `Wrap` (null: nothing does) of which
// makes one. A null pointer is None on the way out.
template <class T, auto Read, auto Wrap> struct DistributedCaster {
  bool load(pybind11::handle source, bool) {
    const int fits = (foreign_bridge().*Read)(source.ptr(), value);
    if (fits < 0) throw pybind11::error_already_set();
    return fits == 1;
  }
  static pybind11::handle cast(c10::intrusive_ptr<T> source, pybind11::return_value_policy,
                               pybind11::handle) {
    if (!source) return pybind11::none().release();
    PyObject* made = (foreign_bridge().*Wrap)(std::move(source));
    if (!made) throw pybind11::error_already_set();
    return made;
  }
  template <class U> using cast_op_type = pybind11::detail::movable_cast_op_type<U>;
  operator c10::intrusive_ptr<T>*() { return &value; }
  operator c10::intrusive_ptr<T>&() { return value; }
  operator c10::intrusive_ptr<T>&&() && { return std::move(value); }
  c10::intrusive_ptr<T> value;
};

} // namespace torch::python

namespace pybind11::detail {

template <> struct type_caster<c10::intrusive_ptr<c10d::Store>>
    : torch::python::DistributedCaster<c10d::Store, &torch::python::ForeignBridge::store_of,
                                       nullptr> {
  static constexpr auto name = const_name("torch.distributed.Store");
};
template <> struct type_caster<c10::intrusive_ptr<c10d::Work>>
    : torch::python::DistributedCaster<c10d::Work, &torch::python::ForeignBridge::work_of,
                                       &torch::python::ForeignBridge::wrap_work> {
  static constexpr auto name = const_name("torch.distributed.Work");
};
template <> struct type_caster<c10::intrusive_ptr<c10d::Backend>>
    : torch::python::DistributedCaster<c10d::Backend, &torch::python::ForeignBridge::backend_of,
                                       &torch::python::ForeignBridge::wrap_backend> {
  static constexpr auto name = const_name("torch.distributed.Backend");
};
template <> struct type_caster<c10::intrusive_ptr<c10d::ProcessGroup>>
    : torch::python::DistributedCaster<c10d::ProcessGroup, &torch::python::ForeignBridge::group_of,
                                       &torch::python::ForeignBridge::wrap_backend> {
  static constexpr auto name = const_name("torch.distributed.ProcessGroup");
};

} // namespace pybind11::detail
#endif
