// Registration of operators and kernels from C++:
//   TORCH_LIBRARY(myops, m) { m.def("scale(Tensor x, float by) -> Tensor"); }
//   TORCH_LIBRARY_IMPL(myops, CPU, m) { m.impl("scale", &scale_cpu); }
// A kernel is any function or captureless lambda whose types fit the schema.
#pragma once
#include <memory>
#include <string>

#include <ATen/core/Boxing.h>
#include <ATen/core/FunctionSchema.h>

namespace torch {

namespace detail {
// The argument types a user's kernel may declare, mapped to those the boxing layer reads. By-value
// and by-reference forms mean the same.
template <class T> struct KernelArg { using type = T; };
template <> struct KernelArg<at::Tensor> { using type = const at::Tensor&; };
template <> struct KernelArg<at::Scalar> { using type = const at::Scalar&; };
template <> struct KernelArg<std::string> { using type = std::string_view; };
template <> struct KernelArg<const std::string&> { using type = std::string_view; };
template <> struct KernelArg<std::vector<at::Tensor>> { using type = at::TensorList; };
template <> struct KernelArg<const std::vector<at::Tensor>&> { using type = at::TensorList; };
template <> struct KernelArg<std::vector<int64_t>> { using type = at::IntArrayRef; };
template <> struct KernelArg<const std::vector<int64_t>&> { using type = at::IntArrayRef; };
template <class T> struct KernelArg<const std::optional<T>&> { using type = std::optional<T>; };
// Reads a stack value as the type the kernel declared.
template <class T> decltype(auto) read(at::boxing::Arg<typename KernelArg<T>::type>& arg) {
  if constexpr (std::is_same_v<T, std::string> || std::is_same_v<T, const std::string&>)
    return std::string(arg.get());
  else if constexpr (std::is_same_v<std::decay_t<T>, std::vector<at::Tensor>> ||
                     std::is_same_v<std::decay_t<T>, std::vector<int64_t>>)
    return arg.get().vec();
  else
    return arg.get();
}

template <class F, class Ret, class... Args> struct TypedKernel final : at::BoxedKernel {
  explicit TypedKernel(F f) : f(std::move(f)) {}
  void call(const at::OperatorEntry& op, at::DispatchKeySet keys, at::Stack& stack) override {
    invoke(op, keys, stack, std::index_sequence_for<Args...>());
  }
  template <size_t... I> void invoke(const at::OperatorEntry& op, at::DispatchKeySet keys,
                                     at::Stack& stack, std::index_sequence<I...>) {
    TORCH_CHECK(stack.size() >= sizeof...(Args), op.full_name(), ": the kernel takes ",
                sizeof...(Args), " arguments");
    [[maybe_unused]] const size_t base = stack.size() - sizeof...(Args);
    std::tuple<at::boxing::Arg<typename KernelArg<Args>::type>...> holders{
        at::boxing::Arg<typename KernelArg<Args>::type>(stack[base + I])...};
    if constexpr (std::is_void_v<Ret>) {
      f(read<Args>(std::get<I>(holders))...);
      stack.resize(base);
    } else {
      at::Stack results;
      at::boxing::push(results, f(read<Args>(std::get<I>(holders))...));
      stack.resize(base);
      for (at::IValue& v : results) stack.push_back(std::move(v));
    }
  }
  F f;
};

template <class F> struct KernelTraits : KernelTraits<decltype(&F::operator())> {};
template <class R, class... A> struct KernelTraits<R (*)(A...)> {
  template <class F> static c10::intrusive_ptr<at::BoxedKernel> make(F f) {
    return c10::make_intrusive<TypedKernel<F, R, A...>>(std::move(f));
  }
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
} // namespace detail

// A kernel on its way into a library, with the dispatch key it is meant for if not the library's.
class CppFunction {
 public:
  template <class F> CppFunction(F f) : kernel(detail::KernelTraits<F>::make(std::move(f))) {}
  static CppFunction makeFallthrough() { return CppFunction(at::fallthrough_kernel(), 0); }
  static CppFunction makeFromBoxedFunction(detail::BoxedFunctionKernel::Fn fn) {
    return CppFunction(c10::make_intrusive<detail::BoxedFunctionKernel>(fn), 0);
  }
  c10::intrusive_ptr<at::BoxedKernel> kernel;
  std::optional<c10::DispatchKey> key;

 private:
  CppFunction(c10::intrusive_ptr<at::BoxedKernel> k, int) : kernel(std::move(k)) {}
};

template <class F> CppFunction dispatch(c10::DispatchKey key, F f) {
  CppFunction out(std::move(f));
  out.key = key;
  return out;
}

class TORCH_API Library {
 public:
  enum Kind { DEF, IMPL, FRAGMENT };
  Library(Kind kind, std::string ns, std::optional<c10::DispatchKey> key);

  // Defines an operator: "name.overload(args) -> returns", the namespace is the library's.
  Library& def(const std::string& schema);
  // Defines it with one implementation for every backend.
  Library& def(const std::string& schema, CppFunction f);
  Library& impl(const std::string& name, CppFunction f);
  Library& fallback(CppFunction f);

 private:
  const at::OperatorEntry* find(const std::string& name) const;
  Kind kind_;
  std::string ns_;
  std::optional<c10::DispatchKey> key_;
};

namespace detail {
// Runs a registration block when the library that holds it is loaded.
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
#define TORCH_LIBRARY(ns, m) CRESSET_TORCH_LIBRARY(DEF, ns, std::nullopt, m, __LINE__)
#define TORCH_LIBRARY_FRAGMENT(ns, m) CRESSET_TORCH_LIBRARY(FRAGMENT, ns, std::nullopt, m, __LINE__)
#define TORCH_LIBRARY_IMPL(ns, key, m)                                                             \
  CRESSET_TORCH_LIBRARY(IMPL, ns, c10::DispatchKey::key, m, __LINE__)
#define TORCH_FN(f) (&f)
