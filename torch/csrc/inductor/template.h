// One plan for many sizes. The first sizes that a program meets get a plan of their own; when
// others come, the numbers that changed become symbols and the program is planned once more (Note
// [Plans with symbols]). What was decided about the symbols are the guards of the template; for
// sizes that pass them a plan is a copy with numbers put in, computed by one flat program.
#pragma once
#include <memory>
#include <vector>

#include <c10/shapes/ShapeEnv.h>
#include <torch/csrc/inductor/plan.h>

namespace torch::inductor {

class PlanTemplate {
 public:
  // `known`: what inputs looked like that the program has plans for. Null where nothing but
  // integers from 2 on would be symbols, or where the program cannot be planned with them.
  static std::shared_ptr<const PlanTemplate>
  make(const Program& program, const std::vector<std::vector<Plan::InputKey>>& known,
       c10::ArrayRef<at::IValue> inputs);
  // The plan for these inputs, or null where the template is not for them.
  std::shared_ptr<Plan> at(const Program& program, c10::ArrayRef<at::IValue> inputs) const;

 private:
  using Expr = c10::sym::Expr;
  PlanTemplate() = default;
  bool name_symbols(const std::vector<std::vector<int64_t>>& rows);
  Expr symbol_of(const std::vector<int64_t>& values, size_t position);
  std::vector<at::IValue> symbolic_inputs(c10::ArrayRef<at::IValue> inputs) const;
  void compile();

  std::shared_ptr<c10::shapes::ShapeEnv> env_;
  std::shared_ptr<Plan> plan_;       // with handles
  std::vector<Plan::InputKey> keys_; // of the inputs that it was made for
  std::vector<Expr> numbers_;        // of all inputs, one after the other
  std::vector<Expr> symbols_;
  std::vector<size_t> places_; // of each symbol: where in `numbers_` its value is read
  std::map<std::vector<int64_t>, Expr> by_values_;
  std::optional<c10::sym::Program> expected_, guards_, results_;
  std::vector<uint32_t> order_; // which result each handle of the plan becomes
  size_t result_count_ = 0;
};

} // namespace torch::inductor
