// The dispatcher as C++ programs call it: c10::Dispatcher finds operators by name, and a
// c10::OperatorHandle calls one with a stack of values or with C++ types. Handles are one pointer;
// operators live to the end of the program. The dispatcher itself is ATen/core/Dispatcher.h.
#pragma once
#include <string>
#include <type_traits>
#include <utility>

#include <ATen/core/Dispatcher.h>
#include <ATen/core/function_schema.h>
#include <ATen/core/stack.h>

namespace c10 {

template <class Signature> class TypedOperatorHandle;

class OperatorHandle {
 public:
  OperatorHandle(const at::OperatorEntry& entry) : entry_(&entry) {}
  const at::OperatorEntry& entry() const { return *entry_; }
  FunctionSchema schema() const { return FunctionSchema(entry_->schema()); }
  OperatorName operator_name() const { return {entry_->name, entry_->overload}; }
  bool hasSchema() const { return true; }
  bool hasKernelForDispatchKey(DispatchKey key) const { return entry_->has_kernel(key); }
  bool hasComputedKernelForDispatchKey(DispatchKey key) const {
    return entry_->has_kernel_for(key);
  }
  void callBoxed(at::Stack& stack) const { entry_->call_boxed(stack); }
  void callBoxed(at::Stack* stack) const { entry_->call_boxed(*stack); }
  void redispatchBoxed(DispatchKeySet keys, at::Stack* stack) const {
    entry_->redispatch_boxed(keys, *stack);
  }
  template <class Signature> TypedOperatorHandle<Signature> typed() const {
    return TypedOperatorHandle<Signature>(*entry_);
  }
  friend bool operator==(const OperatorHandle& a, const OperatorHandle& b) {
    return a.entry_ == b.entry_;
  }

 private:
  const at::OperatorEntry* entry_;
};

// Calls through the stack, so that any C++ types which fit the schema will do.
template <class Ret, class... Args> class TypedOperatorHandle<Ret(Args...)>
    : public OperatorHandle {
 public:
  using OperatorHandle::OperatorHandle;
  Ret call(Args... args) const {
    at::Stack stack = stack_of(args...);
    callBoxed(stack);
    return result(stack, args...);
  }
  Ret redispatch(DispatchKeySet keys, Args... args) const {
    at::Stack stack = stack_of(args...);
    redispatchBoxed(keys, &stack);
    return result(stack, args...);
  }

 private:
  static at::Stack stack_of(const std::remove_reference_t<Args>&... args) {
    at::Stack stack;
    stack.reserve(sizeof...(Args));
    (stack.push_back(at::types::write<std::decay_t<Args>>(args)), ...);
    return stack;
  }
  // An operator that writes to an argument returns it: the caller's own tensor.
  template <class T> static void find_same(at::Tensor*& found, const at::Tensor& out, T& arg) {
    if constexpr (std::is_same_v<std::decay_t<T>, at::Tensor>)
      if (found == nullptr && arg.is_same(out)) found = const_cast<at::Tensor*>(&arg);
  }
  template <size_t... I, class Tuple>
  static Tuple read_all(const at::Stack& stack, std::index_sequence<I...>, Tuple*) {
    return Tuple(at::types::Type<std::decay_t<std::tuple_element_t<I, Tuple>>>::read(stack[I])...);
  }
  template <class T> struct is_tuple : std::false_type {};
  template <class... Ts> struct is_tuple<std::tuple<Ts...>> : std::true_type {};

  Ret result(const at::Stack& stack, std::remove_reference_t<Args>&... args) const {
    if constexpr (std::is_void_v<Ret>) {
      return;
    } else if constexpr (std::is_reference_v<Ret>) {
      at::Tensor* found = nullptr;
      TORCH_CHECK(stack.size() == 1, toString(operator_name()), ": returns ", stack.size(),
                  " values, not one tensor");
      const at::Tensor out = stack[0].toTensor();
      (find_same(found, out, args), ...);
      TORCH_CHECK(found != nullptr, toString(operator_name()),
                  ": the result is none of the arguments; a reference to it does not exist");
      return *found;
    } else if constexpr (is_tuple<Ret>::value) {
      TORCH_CHECK(stack.size() == std::tuple_size_v<Ret>, toString(operator_name()), ": returns ",
                  stack.size(), " values, not ", std::tuple_size_v<Ret>);
      return read_all(stack, std::make_index_sequence<std::tuple_size_v<Ret>>(),
                      static_cast<Ret*>(nullptr));
    } else {
      TORCH_CHECK(stack.size() == 1, toString(operator_name()), ": returns ", stack.size(),
                  " values, not one");
      return Ret(at::types::Type<std::decay_t<Ret>>::read(stack[0]));
    }
  }
};

class Dispatcher {
 public:
  static Dispatcher& singleton() {
    static Dispatcher dispatcher;
    return dispatcher;
  }
  std::optional<OperatorHandle> findSchema(const OperatorName& name) const {
    const at::OperatorEntry* op = at::Dispatcher::singleton().find(name.name, name.overload_name);
    if (op == nullptr) return std::nullopt;
    return OperatorHandle(*op);
  }
  std::optional<OperatorHandle> findOp(const OperatorName& name) const { return findSchema(name); }
  OperatorHandle findSchemaOrThrow(const char* name, const char* overload_name) const {
    const std::optional<OperatorHandle> op = findSchema({name, overload_name});
    TORCH_CHECK(op, "Could not find schema for ", toString(OperatorName{name, overload_name}));
    return *op;
  }
  void callBoxed(const OperatorHandle& op, at::Stack* stack) const { op.callBoxed(stack); }
};

} // namespace c10
