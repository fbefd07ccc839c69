// Interning, and the leaves. The operations are in Arithmetic.cpp and Logic.cpp.
#include <c10/sym/Expr.h>

#include <algorithm>
#include <cstring>

#include <c10/util/Exception.h>

namespace c10::sym {

namespace {
constexpr size_t kChunk = size_t(1) << 16;

uint64_t mix(uint64_t h, uint64_t v) {
  h ^= v + 0x9e3779b97f4a7c15u + (h << 6) + (h >> 2);
  return h * 0xff51afd7ed558ccdu;
}

uint64_t hash_of(Kind kind, Sort sort, int64_t value, ArrayRef<Expr> args,
                 ArrayRef<int64_t> coefs) {
  uint64_t h = mix(uint64_t(kind) * 8 + uint64_t(sort), uint64_t(value));
  for (Expr a : args) h = mix(h, a->id);
  for (int64_t c : coefs) h = mix(h, uint64_t(c));
  return h ^ (h >> 29);
}

uint64_t hash_of(const Node& n) {
  return hash_of(n.kind, n.sort, n.integer, n.operands(),
                 {n.coefs, n.coefs == nullptr ? 0 : n.count});
}
} // namespace

Arena::Arena() : table_(64, nullptr) {}
Arena::~Arena() = default;

void* Arena::allocate(size_t bytes) {
  bytes = (bytes + 7) / 8 * 8;
  if (bytes > left_) {
    const size_t chunk = std::max(bytes, kChunk);
    chunks_.emplace_back(new char[chunk]);
    left_ = chunk;
  }
  // Handed out from the end, so that one number describes the chunk.
  left_ -= bytes;
  return chunks_.back().get() + left_;
}

void Arena::grow_table() {
  std::vector<Node*> old(table_.size() * 2, nullptr);
  old.swap(table_);
  const size_t mask = table_.size() - 1;
  for (Node* n : old) {
    if (n == nullptr) continue;
    size_t i = hash_of(*n) & mask;
    while (table_[i] != nullptr) i = (i + 1) & mask;
    table_[i] = n;
  }
}

Expr Arena::intern(Kind kind, Sort sort, int64_t value, ArrayRef<Expr> args,
                   ArrayRef<int64_t> coefs) {
  if (2 * (count_ + 1) > table_.size()) grow_table();
  const size_t mask = table_.size() - 1;
  size_t i = hash_of(kind, sort, value, args, coefs) & mask;
  for (; table_[i] != nullptr; i = (i + 1) & mask) {
    const Node& n = *table_[i];
    if (n.kind == kind && n.sort == sort && n.integer == value && n.count == args.size() &&
        std::equal(args.begin(), args.end(), n.args) &&
        std::equal(coefs.begin(), coefs.end(), n.coefs))
      return &n;
  }
  auto* node = static_cast<Node*>(allocate(sizeof(Node)));
  auto* operands = static_cast<Expr*>(allocate(args.size() * sizeof(Expr)));
  std::copy(args.begin(), args.end(), operands);
  int64_t* factors = nullptr;
  if (!coefs.empty()) {
    factors = static_cast<int64_t*>(allocate(coefs.size() * sizeof(int64_t)));
    std::copy(coefs.begin(), coefs.end(), factors);
  }
  new (node) Node{kind, sort, uint32_t(count_), uint32_t(args.size()), {value}, operands, factors};
  table_[i] = node;
  ++count_;
  return node;
}

Expr Arena::integer(int64_t value) { return intern(Kind::Integer, Sort::Int, value, {}); }

Expr Arena::real(double value) {
  // By its bits: zeros of both signs differ, and a NaN equals itself.
  int64_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  return intern(Kind::Real, Sort::Float, bits, {});
}

Expr Arena::truth(bool value) { return intern(Kind::Truth, Sort::Bool, value, {}); }

Expr Arena::symbol(std::string name, Sort sort) {
  const Expr e = intern(Kind::Symbol, sort, int64_t(symbols_.size()), {});
  symbols_.push_back({std::move(name), sort, e});
  return e;
}

Expr Arena::product(ArrayRef<Expr> sorted_atoms) {
  return sorted_atoms.size() == 1 ? sorted_atoms[0]
                                  : intern(Kind::Product, Sort::Int, 0, sorted_atoms);
}

Expr Arena::rebuild(Expr like, ArrayRef<Expr> x) {
  switch (like->kind) {
  case Kind::Integer:
  case Kind::Real:
  case Kind::Truth:
  case Kind::Symbol:
    return like;
  case Kind::Sum: {
    Expr out = integer(like->integer);
    for (uint32_t i = 0; i < like->count; ++i) out = add(out, scale(x[i], like->coefs[i]));
    return out;
  }
  case Kind::Product: {
    Expr out = x[0];
    for (uint32_t i = 1; i < like->count; ++i) out = mul(out, x[i]);
    return out;
  }
  case Kind::FloorDiv:
    return floordiv(x[0], x[1]);
  case Kind::FloatMod:
  case Kind::Mod:
    return mod(x[0], x[1]);
  case Kind::Min:
  case Kind::Max:
  case Kind::FloatMin:
  case Kind::FloatMax: {
    const bool smallest = like->kind == Kind::Min || like->kind == Kind::FloatMin;
    Expr out = x[0];
    for (uint32_t i = 1; i < like->count; ++i) out = smallest ? min(out, x[i]) : max(out, x[i]);
    return out;
  }
  case Kind::Power:
  case Kind::FloatPower:
    return pow(x[0], x[1]);
  case Kind::LeftShift:
  case Kind::RightShift:
  case Kind::BitAnd:
  case Kind::BitOr:
  case Kind::BitXor:
    return bits(like->kind, x[0], x[1]);
  case Kind::Trunc:
  case Kind::Floor:
  case Kind::Ceil:
  case Kind::Round:
    return to_int(like->kind, x[0]);
  case Kind::ToFloat:
    return to_float(x[0]);
  case Kind::FloatAdd:
    return add(x[0], x[1]);
  case Kind::FloatMul:
    return mul(x[0], x[1]);
  case Kind::FloatDiv:
    return truediv(x[0], x[1]);
  case Kind::Function:
    return function(function_name(like), x[0]);
  case Kind::Where:
    return where(x[0], x[1], x[2]);
  case Kind::Eq:
  case Kind::Ne:
  case Kind::Lt:
  case Kind::Le:
    return relation(like->kind, x[0], x[1]);
  case Kind::And:
  case Kind::Or: {
    Expr out = x[0];
    for (uint32_t i = 1; i < like->count; ++i) out = junction(like->kind, out, x[i]);
    return out;
  }
  case Kind::Not:
    return logical_not(x[0]);
  }
  throw InternalError("symbolic expression: unknown kind");
}

std::vector<Expr> symbols_in(Expr e) {
  std::vector<Expr> found, open{e}, seen;
  while (!open.empty()) {
    const Expr x = open.back();
    open.pop_back();
    if (x->kind == Kind::Symbol) found.push_back(x);
    for (Expr a : x->operands()) open.push_back(a);
  }
  std::sort(found.begin(), found.end(), [](Expr a, Expr b) { return a->id < b->id; });
  found.erase(std::unique(found.begin(), found.end()), found.end());
  return found;
}

} // namespace c10::sym
