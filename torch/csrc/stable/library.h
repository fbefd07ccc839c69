// Operators registered through the C interface:
//   STABLE_TORCH_LIBRARY(mylib, m) { m.def("twice(Tensor x) -> Tensor"); }
//   STABLE_TORCH_LIBRARY_IMPL(mylib, CPU, m) { m.impl("twice", TORCH_BOX(&twice)); }
// A kernel is void(StableIValue* stack, uint64_t num_args, uint64_t num_outputs); TORCH_BOX makes
// one of a function with C++ types. What a block throws becomes the error of the import.
#pragma once
#include <exception>
#include <tuple>
#include <utility>

#include <torch/csrc/stable/tensor.h>
#include <torch/headeronly/macros/Macros.h>

namespace torch::stable::detail {

using BoxedKernel = void (*)(StableIValue*, uint64_t, uint64_t);

class StableLibrary {
 public:
  enum class Kind { DEF, IMPL, FRAGMENT };
  StableLibrary(Kind kind, const char* ns, const char* key, const char* file, uint32_t line) {
    if (kind == Kind::IMPL)
      TORCH_ERROR_CODE_CHECK(aoti_torch_library_init_impl(ns, key, file, line, &handle_));
    else if (kind == Kind::DEF)
      TORCH_ERROR_CODE_CHECK(aoti_torch_library_init_def(ns, file, line, &handle_));
    else
      TORCH_ERROR_CODE_CHECK(aoti_torch_library_init_fragment(ns, file, line, &handle_));
  }
  ~StableLibrary() {
    if (handle_ != nullptr) aoti_torch_delete_library_object(handle_);
  }
  StableLibrary(const StableLibrary&) = delete;
  StableLibrary& operator=(const StableLibrary&) = delete;

  StableLibrary& def(const char* schema) {
    TORCH_ERROR_CODE_CHECK(aoti_torch_library_def(handle_, schema));
    return *this;
  }
  StableLibrary& impl(const char* name, BoxedKernel kernel) {
    TORCH_ERROR_CODE_CHECK(aoti_torch_library_impl(handle_, name, kernel));
    return *this;
  }

 private:
  TorchLibraryHandle handle_ = nullptr;
};

// Runs a block before main and keeps the library for as long as the extension is loaded. The text
// of an exception goes to the library, which raises it from the import: one that left a static
// initialiser would end the process.
class StableTorchLibraryInit {
 public:
  using Block = void(StableLibrary&);
  StableTorchLibraryInit(StableLibrary::Kind kind, Block* block, const char* ns, const char* key,
                         const char* file, uint32_t line) {
    try {
      library_ = std::make_unique<StableLibrary>(kind, ns, key, file, line);
      block(*library_);
    } catch (const std::exception& error) {
      if (&torch_note_registration_failure == nullptr) throw;
      torch_note_registration_failure(ns, reinterpret_cast<const void*>(block), error.what());
    }
  }

 private:
  std::unique_ptr<StableLibrary> library_;
};

// ---- TORCH_BOX
// What a parameter is read as: by value, and lists that the kernel only looks at as owned ones.
template <class T> struct Read { using type = std::decay_t<T>; };
template <class T> struct Read<torch::headeronly::HeaderOnlyArrayRef<T>> {
  using type = std::vector<T>;
};
template <class T> using ReadAs = typename Read<std::decay_t<T>>::type;

template <class T> void leave(StableIValue* stack, uint64_t num_outputs, const T& result) {
  STD_TORCH_CHECK(num_outputs == 1, "the kernel returns one value, the schema says ", num_outputs);
  stack[0] = from(result);
}
template <class... Ts>
void leave(StableIValue* stack, uint64_t num_outputs, const std::tuple<Ts...>& results) {
  STD_TORCH_CHECK(num_outputs == sizeof...(Ts), "the kernel returns ", sizeof...(Ts),
                  " values, the schema says ", num_outputs);
  std::apply([&](const auto&... each) { ((*stack++ = from(each)), ...); }, results);
}

template <auto kernel, class Signature> struct Boxed;
template <auto kernel, class Result, class... Args> struct Boxed<kernel, Result (*)(Args...)> {
  static void call(StableIValue* stack, uint64_t num_args, uint64_t num_outputs) {
    STD_TORCH_CHECK(num_args == sizeof...(Args), "the kernel takes ", sizeof...(Args),
                    " arguments, the schema says ", num_args);
    // Braces, so that arguments are taken over from left to right.
    call_with(stack, num_outputs, std::index_sequence_for<Args...>());
  }
  template <size_t... I>
  static void call_with(StableIValue* stack, uint64_t num_outputs, std::index_sequence<I...>) {
    std::tuple<ReadAs<Args>...> args{to<ReadAs<Args>>(stack[I])...};
    if constexpr (std::is_void_v<Result>) {
      std::apply(kernel, args);
      STD_TORCH_CHECK(num_outputs == 0, "the kernel returns nothing, the schema says ",
                      num_outputs);
    } else {
      leave(stack, num_outputs, std::apply(kernel, args));
    }
  }
};

} // namespace torch::stable::detail

#define TORCH_BOX(kernel)                                                                          \
  (&::torch::stable::detail::Boxed<(kernel), std::decay_t<decltype(kernel)>>::call)

#define CRESSET_STABLE_LIBRARY(kind, ns, key, m, uid)                                              \
  static void C10_CONCATENATE(stable_torch_library_block_,                                         \
                              uid)(::torch::stable::detail::StableLibrary&);                       \
  static const ::torch::stable::detail::StableTorchLibraryInit C10_CONCATENATE(                    \
      stable_torch_library_init_, uid)(::torch::stable::detail::StableLibrary::Kind::kind,         \
                                       &C10_CONCATENATE(stable_torch_library_block_, uid), #ns,    \
                                       key, __FILE__, __LINE__);                                   \
  void C10_CONCATENATE(stable_torch_library_block_,                                                \
                       uid)([[maybe_unused]] ::torch::stable::detail::StableLibrary & m)
#define STABLE_TORCH_LIBRARY(ns, m) CRESSET_STABLE_LIBRARY(DEF, ns, nullptr, m, __COUNTER__)
#define STABLE_TORCH_LIBRARY_FRAGMENT(ns, m)                                                       \
  CRESSET_STABLE_LIBRARY(FRAGMENT, ns, nullptr, m, __COUNTER__)
#define STABLE_TORCH_LIBRARY_IMPL(ns, key, m) CRESSET_STABLE_LIBRARY(IMPL, ns, #key, m, __COUNTER__)
