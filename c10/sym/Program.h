// Conditions as postfix programs over the values of symbols: what a guard costs at run time. All
// guards of a compiled program are one Program, so that shared parts are computed once a run.
#pragma once
#include <optional>

#include <c10/sym/Expr.h>

namespace c10::sym {

// A value of any sort; which one is known from the expression.
union Value {
  int64_t integer;
  double real;
};

class C10_API Program {
 public:
  // Reads the value of `inputs[i]`, a symbol, from place i. A symbol that is no input raises.
  Program(const Arena& arena, ArrayRef<Expr> inputs, ArrayRef<Expr> results);

  // Computes all results, or returns false where an integer leaves 64 bits or is divided by 0.
  bool run(const Value* inputs, Value* results) const;
  // Whether all results, which are truth values, hold. A failed computation does not hold.
  bool holds(const Value* inputs) const;
  // The first result that does not hold, or -1.
  int64_t first_failure(const Value* inputs) const;

  size_t length() const { return code_.size(); }

 private:
  struct Step {
    Kind kind;
    Sort sort; // of the operands
    uint32_t count;
    uint32_t first;    // of the operands' registers in registers_, or of coefficients
    uint32_t function; // of a Function: its place in functions_
    Value value;       // of a constant, or a Sum's constant
  };
  using RealFunction = double (*)(double);

  bool compute(const Value* inputs, Value* registers, size_t last) const;
  static bool step_integer(const Step& step, const Value* const* x, Value* out);
  static void step_real(const Step& step, const Value* const* x, Value* out);
  static bool step_compare(const Step& step, const Value* const* x);

  std::vector<Step> code_;          // step i writes register i
  std::vector<uint32_t> registers_; // operands of all steps
  std::vector<int64_t> coefs_;
  std::vector<RealFunction> functions_;
  std::vector<uint32_t> results_;
};

// The value of one expression; nothing where the computation fails.
C10_API std::optional<Value> evaluate(const Arena& arena, Expr e, ArrayRef<Expr> inputs,
                                      const Value* values);

} // namespace c10::sym
