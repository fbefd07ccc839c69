// Numbers of plans that are made with symbols.
//
// Note [Plans with symbols]
// Lowering and scheduling compute with c10::SymInt, so one plan can be made for all sizes under
// which the same decisions are taken: a decision about a symbol leaves a guard in the shape
// environment. What they write into a plan are raw numbers (SymInt::raw): integers, or handles of
// expressions. A plan with handles is never run; PlanTemplate (template.h) copies it and puts the
// values of a call in their place, so that running a plan knows nothing of symbols.
#pragma once
#include <c10/core/SymNumbers.h>

namespace torch::inductor {

using c10::SymInt;

// Equal for all values of the symbols. Leaves no guard: for decisions where "no" is never wrong.
inline bool same(SymInt a, SymInt b) {
  if (!a.is_symbolic() && !b.is_symbolic()) return a.raw() == b.raw();
  if (a.raw() == b.raw()) return true;
  const int64_t equal = SymInt::apply(c10::SymOp::Eq, a, b).raw();
  if (equal >= SymInt::kSymbolicBound) return equal != 0;
  return c10::symbolic_node(equal)->known().value_or(false);
}
// The value in the run that the plan is made for, for decisions about speed alone.
inline int64_t hinted(SymInt a) { return a.hint().value_or(0); }
inline int64_t hinted(int64_t raw) { return hinted(SymInt::from_raw(raw)); }

inline SymInt larger(SymInt a, SymInt b) { return SymInt::apply(c10::SymOp::Max, a, b); }
inline SymInt smaller(SymInt a, SymInt b) { return SymInt::apply(c10::SymOp::Min, a, b); }

// A list as plans keep it.
inline c10::DimVector raw_list(c10::SymIntArrayRef list) {
  c10::DimVector raw;
  for (const SymInt number : list) raw.push_back(number.raw());
  return raw;
}

} // namespace torch::inductor
