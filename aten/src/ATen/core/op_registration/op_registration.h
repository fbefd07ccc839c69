// torch::RegisterOperators: the older way to register an operator with one implementation,
//   static auto registry = torch::RegisterOperators().op("ns::name", &function);
// The schema is written, or said by the C++ types of the function.
#pragma once
#include <ATen/core/Library.h>

namespace c10 {

class RegisterOperators {
 public:
  // What an operator may be registered with besides a plain function.
  class Options {
   public:
    Options&& schema(const std::string& text) && {
      schema_ = text;
      return std::move(*this);
    }
    template <class F> Options&& kernel(DispatchKey key, F f) && {
      kernels_.push_back(torch::dispatch(key, std::move(f)));
      return std::move(*this);
    }
    template <class F> Options&& catchAllKernel(F f) && {
      kernels_.emplace_back(std::move(f));
      return std::move(*this);
    }

   private:
    friend class RegisterOperators;
    std::string schema_;
    std::vector<torch::CppFunction> kernels_;
  };
  static Options options() { return {}; }

  RegisterOperators() = default;
  template <class F> RegisterOperators(const std::string& schema, F&& f) {
    op(schema, std::forward<F>(f));
  }
  template <class F> RegisterOperators&& op(const std::string& schema, F f) && {
    add(schema, torch::CppFunction(std::move(f)));
    return std::move(*this);
  }
  template <class F> RegisterOperators& op(const std::string& schema, F f) & {
    add(schema, torch::CppFunction(std::move(f)));
    return *this;
  }
  RegisterOperators&& op(Options options) && { return std::move(*this).op("", std::move(options)); }
  RegisterOperators&& op(const std::string& schema, Options options) && {
    const std::string& text = schema.empty() ? options.schema_ : schema;
    torch::Library library = library_of(text);
    library.def(text);
    for (torch::CppFunction& each : options.kernels_)
      library.impl(text.substr(0, text.find('(')), std::move(each));
    return std::move(*this);
  }

 private:
  static torch::Library library_of(const std::string& schema) {
    const size_t colons = schema.find("::");
    TORCH_CHECK(colons != std::string::npos, "RegisterOperators: the operator '", schema,
                "' has no namespace; write \"ns::name\"");
    return torch::Library(torch::Library::FRAGMENT, schema.substr(0, colons), std::nullopt);
  }
  static void add(const std::string& schema, torch::CppFunction f) {
    library_of(schema).def(schema, std::move(f));
  }
};

} // namespace c10

namespace torch {
using c10::RegisterOperators;
} // namespace torch
