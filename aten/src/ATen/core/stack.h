// torch::jit::Stack: the arguments and results of boxed kernels, and the functions they use on it.
#pragma once
#include <initializer_list>
#include <tuple>
#include <utility>
#include <vector>

#include <ATen/core/TypeTraits.h>

namespace torch::jit {

using Stack = at::Stack;

// The i-th of the N topmost values.
inline at::IValue& peek(Stack& stack, size_t i, size_t N) {
  TORCH_CHECK(i < N && N <= stack.size(), "peek(): value ", i, " of the last ", N,
              " of a stack of ", stack.size());
  return stack[stack.size() - N + i];
}
inline at::IValue& peek(Stack* stack, size_t i, size_t N) { return peek(*stack, i, N); }
inline const at::IValue& peek(const Stack& stack, size_t i, size_t N) {
  return peek(const_cast<Stack&>(stack), i, N);
}
inline c10::ArrayRef<at::IValue> last(const Stack& stack, size_t N) {
  TORCH_CHECK(N <= stack.size(), "last(): ", N, " values of a stack of ", stack.size());
  return c10::ArrayRef<at::IValue>(stack.data() + (stack.size() - N), N);
}
inline c10::ArrayRef<at::IValue> last(const Stack* stack, size_t N) { return last(*stack, N); }
inline void drop(Stack& stack, size_t n) {
  TORCH_CHECK(n <= stack.size(), "drop(): ", n, " values of a stack of ", stack.size());
  stack.resize(stack.size() - n);
}
inline void drop(Stack* stack, size_t n) { drop(*stack, n); }
inline at::IValue pop(Stack& stack) {
  TORCH_CHECK(!stack.empty(), "pop(): the stack is empty");
  at::IValue top = std::move(stack.back());
  stack.pop_back();
  return top;
}
inline at::IValue pop(Stack* stack) { return pop(*stack); }
inline std::vector<at::IValue> pop(Stack& stack, size_t n) {
  TORCH_CHECK(n <= stack.size(), "pop(): ", n, " values of a stack of ", stack.size());
  std::vector<at::IValue> out(std::make_move_iterator(stack.end() - static_cast<int64_t>(n)),
                              std::make_move_iterator(stack.end()));
  drop(stack, n);
  return out;
}
// The topmost values, in the order of the arguments.
template <class... Ts> void pop(Stack& stack, Ts&... values) {
  size_t i = 0;
  ((values = at::types::Type<Ts>::read(peek(stack, i++, sizeof...(Ts)))), ...);
  drop(stack, sizeof...(Ts));
}
template <class... Ts> void pop(Stack* stack, Ts&... values) { pop(*stack, values...); }
template <class... Ts> void push(Stack& stack, Ts&&... values) {
  (stack.push_back(at::types::write<std::decay_t<Ts>>(std::forward<Ts>(values))), ...);
}
template <class... Ts> void push(Stack* stack, Ts&&... values) {
  push(*stack, std::forward<Ts>(values)...);
}
inline void push_one(Stack& stack, at::IValue value) { stack.push_back(std::move(value)); }

} // namespace torch::jit
