// Where control goes, as far as types and registers depend on it. A register that nothing reads
// later is emptied by its last reader, so that tensors are freed early. Inside of loops registers
// are kept: the next round may read them.
#include <torch/csrc/api/src/jit/unit.h>

#include <algorithm>

namespace torch::jit::source {

void mark_last_uses(Function& f, size_t registers,
                    const std::vector<std::pair<size_t, size_t>>& loops) {
  std::vector<int32_t> last(registers, -1), place(registers, -1);
  for (size_t i = 0; i < f.code.size(); ++i) {
    const Instruction& in = f.code[i];
    for (uint16_t k = 0; k < in.inputs; ++k) {
      const int32_t o = f.operands[size_t(in.first) + k];
      if (o < 0) continue;
      last[size_t(o >> 1)] = static_cast<int32_t>(i);
      place[size_t(o >> 1)] = in.first + k;
    }
  }
  for (size_t r = 0; r < last.size(); ++r) {
    if (last[r] < 0) continue;
    const auto at = static_cast<size_t>(last[r]);
    const bool looped = std::any_of(loops.begin(), loops.end(), [&](const auto& loop) {
      return at >= loop.first && at < loop.second;
    });
    if (!looped) f.operands[size_t(place[r])] |= 1;
  }
}

bool leaves(const Body& steps) {
  if (steps.empty()) return false;
  const Stmt& last = *steps.back();
  switch (last.kind) {
  case Stmt::Kind::Return:
  case Stmt::Kind::Break:
  case Stmt::Kind::Continue:
    return true;
  case Stmt::Kind::If:
    return leaves(last.body) && leaves(last.other);
  case Stmt::Kind::Expr:
    return last.value->kind == Expr::Kind::Call &&
           last.value->items[0]->dotted() == "ops.prim.RaiseException";
  default:
    return false;
  }
}

std::string not_none(const Expr& test, bool holds) {
  if (test.kind != Expr::Kind::Call || test.items.size() != 3) return "";
  const std::string asked = test.items[0]->dotted();
  if (asked != (holds ? "torch.__isnot__" : "torch.__is__")) return "";
  const bool of_variable =
      test.items[1]->kind == Expr::Kind::Name && test.items[2]->kind == Expr::Kind::None;
  return of_variable ? test.items[1]->text : "";
}

} // namespace torch::jit::source
