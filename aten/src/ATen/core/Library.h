// Registration of operators and kernels from C++:
//   TORCH_LIBRARY(myops, m) { m.def("scale(Tensor x, float by) -> Tensor"); }
//   TORCH_LIBRARY_IMPL(myops, CPU, m) { m.impl("scale", &scale_cpu); }
// A kernel is any function or captureless lambda whose types fit the schema.
#pragma once
#include <memory>
#include <string>

#include <ATen/core/Boxing.h>
#include <ATen/core/FunctionSchema.h>
#include <ATen/core/TypeTraits.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/enum_tag.h>

namespace torch {
template <class T> class class_;

namespace detail {
template <class T> struct is_tuple : std::false_type {};
template <class... Ts> struct is_tuple<std::tuple<Ts...>> : std::true_type {};

// The value of a kept argument as the kernel declared it: by value, or by reference.
template <class T, class Kept> T pass(Kept& kept) {
  if constexpr (std::is_rvalue_reference_v<T>)
    return std::move(kept);
  else
    return kept;
}

template <class F, class Ret, class... Args> struct TypedKernel final : at::BoxedKernel {
  explicit TypedKernel(F f) : f(std::move(f)) {}
  void call(const at::OperatorEntry& op, at::DispatchKeySet, at::Stack& stack) override {
    TORCH_CHECK(stack.size() >= sizeof...(Args), op.full_name(), ": the kernel takes ",
                sizeof...(Args), " arguments");
    invoke(stack, std::index_sequence_for<Args...>());
  }
  template <size_t... I> void invoke(at::Stack& stack, std::index_sequence<I...>) {
    [[maybe_unused]] const size_t base = stack.size() - sizeof...(Args);
    std::tuple<at::types::Kept<std::decay_t<Args>>...> kept{
        at::types::Type<std::decay_t<Args>>::read(stack[base + I])...};
    if constexpr (std::is_void_v<Ret>) {
      f(pass<Args>(std::get<I>(kept))...);
      stack.resize(base);
    } else {
      std::decay_t<Ret> result = f(pass<Args>(std::get<I>(kept))...);
      stack.resize(base);
      push(stack, std::move(result));
    }
  }
  // A tuple is as many results as it has values.
  template <class T> static void push(at::Stack& stack, T result) {
    if constexpr (is_tuple<T>::value)
      std::apply([&](auto&... each) { (push(stack, std::move(each)), ...); }, result);
    else
      stack.push_back(at::types::write(std::move(result)));
  }
  F f;
};

template <class F> struct KernelTraits : KernelTraits<decltype(&F::operator())> {};
template <class R, class... A> struct KernelTraits<R (*)(A...)> {
  template <class F> static c10::intrusive_ptr<at::BoxedKernel> make(F f) {
    return c10::make_intrusive<TypedKernel<F, R, A...>>(std::move(f));
  }
  static at::FunctionSchema schema() { return at::types::inferred_schema<R, A...>(""); }
};
template <class C, class R, class... A> struct KernelTraits<R (C::*)(A...) const>
    : KernelTraits<R (*)(A...)> {};
template <class C, class R, class... A> struct KernelTraits<R (C::*)(A...)>
    : KernelTraits<R (*)(A...)> {};

struct BoxedFunctionKernel final : at::BoxedKernel {
  using Fn = void (*)(const at::OperatorEntry&, at::DispatchKeySet, at::Stack*);
  explicit BoxedFunctionKernel(Fn fn) : fn(fn) {}
  void call(const at::OperatorEntry& op, at::DispatchKeySet keys, at::Stack& stack) override {
    fn(op, keys, &stack);
  }
  Fn fn;
};

// A boxed function that takes a c10::OperatorHandle, with or without the keys of the call.
template <auto fn> struct HandleKernel final : at::BoxedKernel {
  void call(const at::OperatorEntry& op, at::DispatchKeySet keys, at::Stack& stack) override {
    if constexpr (std::is_invocable_v<decltype(fn), const c10::OperatorHandle&, at::DispatchKeySet,
                                      at::Stack*>)
      fn(op, keys, &stack);
    else
      fn(op, &stack);
  }
};
} // namespace detail

// A kernel on its way into a library, with the dispatch key it is meant for if not the library's.
class CppFunction {
 public:
  template <class F, class = std::enable_if_t<std::is_class_v<F> || std::is_pointer_v<F>>>
  CppFunction(F f)
      : kernel(detail::KernelTraits<F>::make(std::move(f))),
        schema(&detail::KernelTraits<F>::schema) {}
  static CppFunction makeFallthrough() { return CppFunction(at::fallthrough_kernel(), 0); }
  static CppFunction makeFromBoxedFunction(detail::BoxedFunctionKernel::Fn fn) {
    return CppFunction(c10::make_intrusive<detail::BoxedFunctionKernel>(fn), 0);
  }
  template <auto fn> static CppFunction makeFromBoxedFunction() {
    return CppFunction(c10::make_intrusive<detail::HandleKernel<fn>>(), 0);
  }
  template <class F> static CppFunction makeFromUnboxedFunction(F f) {
    return CppFunction(std::move(f));
  }
  template <class F> static CppFunction makeUnboxedOnly(F f) { return CppFunction(std::move(f)); }
  // What lists of registrations show for this kernel.
  CppFunction&& debug(std::string text) && {
    shown = std::move(text);
    return std::move(*this);
  }
  c10::intrusive_ptr<at::BoxedKernel> kernel;
  std::string shown = "C++";
  std::optional<c10::DispatchKey> key;
  // What its C++ types say; null for boxed kernels.
  at::FunctionSchema (*schema)() = nullptr;

 private:
  CppFunction(c10::intrusive_ptr<at::BoxedKernel> k, int) : kernel(std::move(k)) {}
};

template <class F> CppFunction dispatch(c10::DispatchKey key, F f) {
  CppFunction out(std::move(f));
  out.key = key;
  return out;
}
template <class F> CppFunction dispatch(c10::DeviceType type, F f) {
  return dispatch(c10::backend_key(type), std::move(f));
}
inline std::string schema(std::string text) { return text; }

class TORCH_API Library {
 public:
  enum Kind { DEF, IMPL, FRAGMENT };
  // What is registered stays.
  Library(Kind kind, std::string ns, std::optional<c10::DispatchKey> key);
  // What is registered goes with the library: see MAKE_TORCH_LIBRARY.
  Library(Kind kind, std::string ns, std::optional<c10::DispatchKey> key, const char* file,
          uint32_t line);
  Library(Library&& from) noexcept;
  Library& operator=(Library&& from) noexcept;
  ~Library();
  // Takes back what a library that owns its registrations registered.
  void reset();

  // Defines an operator: "name.overload(args) -> returns", the namespace is the library's.
  Library& def(const std::string& schema, const std::vector<at::Tag>& tags = {});
  // Defines it with one implementation for every backend. A name without a schema gets the one that
  // the C++ types of the implementation say.
  Library& def(const std::string& schema, CppFunction f);
  Library& impl(const std::string& name, CppFunction f);
  Library& impl(const std::string& name, c10::DispatchKey key, CppFunction f) {
    f.key = key;
    return impl(name, std::move(f));
  }
  Library& impl(const std::string& name, c10::DeviceType type, CppFunction f) {
    return impl(name, c10::backend_key(type), std::move(f));
  }
  // The kernel of the library's key for every operator that has none of its own for it.
  Library& fallback(CppFunction f);
  // Registers a C++ class in the library's namespace; torch/custom_class.h has the definition.
  template <class T> torch::class_<T> class_(const std::string& name, const std::string& doc = "");

 private:
  const at::OperatorEntry* find(const std::string& name) const;
  void register_kernel(const at::OperatorEntry* op, c10::DispatchKey key, CppFunction& f);
  Kind kind_;
  std::string ns_;
  std::optional<c10::DispatchKey> key_;
  bool owns_ = false;
  std::vector<std::pair<const at::OperatorEntry*, uint64_t>> kernels_; // by the dispatcher's ids
  std::vector<const at::OperatorEntry*> defined_;
};

namespace detail {
// Runs a registration block when the library that holds it is loaded. What the block throws is
// kept and raised by the import (ATen/core/RegistrationFailures.h): an exception that leaves a
// static initialiser ends the process.
struct TORCH_API LibraryInit {
  LibraryInit(Library::Kind kind, void (*init)(Library&), const char* ns,
              std::optional<c10::DispatchKey> key);
};
} // namespace detail
} // namespace torch

#define CRESSET_TORCH_LIBRARY(kind, ns, key, m, uid)                                               \
  static void C10_CONCATENATE(TORCH_LIBRARY_init_, uid)(torch::Library&);                          \
  static const torch::detail::LibraryInit C10_CONCATENATE(TORCH_LIBRARY_static_init_, uid)(        \
      torch::Library::kind, &C10_CONCATENATE(TORCH_LIBRARY_init_, uid), #ns, key);                 \
  void C10_CONCATENATE(TORCH_LIBRARY_init_, uid)(torch::Library & m)
#define TORCH_LIBRARY(ns, m) CRESSET_TORCH_LIBRARY(DEF, ns, std::nullopt, m, __COUNTER__)
#define TORCH_LIBRARY_FRAGMENT(ns, m)                                                              \
  CRESSET_TORCH_LIBRARY(FRAGMENT, ns, std::nullopt, m, __COUNTER__)
#define TORCH_LIBRARY_IMPL(ns, key, m)                                                             \
  CRESSET_TORCH_LIBRARY(IMPL, ns, c10::DispatchKey::key, m, __COUNTER__)
// A library as an object: what it registers is taken back at the end of its life.
#define MAKE_TORCH_LIBRARY(ns)                                                                     \
  torch::Library(torch::Library::DEF, #ns, std::nullopt, __FILE__, __LINE__)
#define MAKE_TORCH_LIBRARY_IMPL(ns, key)                                                           \
  torch::Library(torch::Library::IMPL, #ns, c10::DispatchKey::key, __FILE__, __LINE__)
#define TORCH_FN(f) (&f)
#define TORCH_SELECTIVE_NAME(name) name
#define TORCH_SELECTIVE_SCHEMA(schema) schema
