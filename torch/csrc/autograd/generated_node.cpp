// See generated_node.h and ATen/core/AutogradKernels.h.
#include <torch/csrc/autograd/generated_node.h>
#include <torch/csrc/autograd/raw_saved.h>

#include <ATen/core/IValue.h>
#include <ATen/ops/real.h>

namespace torch::autograd {

Tensor GeneratedNode::for_input(size_t i, Tensor grad) const {
  if (!next_edges_[i].is_valid() || c10::isComplexType(edge_metadata(i).dtype)) return grad;
  return at::real(grad);
}

namespace {
template <class T> at::IValue to_ivalue(const T& value, Node*) { return at::IValue(value); }
at::IValue to_ivalue(const SavedVariable& value, Node* owner) {
  return at::IValue(value.unpack(owner));
}
at::IValue to_ivalue(const std::vector<SavedVariable>& value, Node* owner) {
  return at::IValue(unpack_list(value, owner));
}
at::IValue to_ivalue(const c10::DimVector& value, Node*) {
  return at::IValue(at::IntArrayRef(value));
}
at::IValue to_ivalue(const std::optional<c10::DimVector>& value, Node*) {
  return value ? at::IValue(at::IntArrayRef(*value)) : at::IValue();
}
at::IValue to_ivalue(const KeptInt& value, Node*) {
  return at::IValue(static_cast<const c10::SymInt&>(value));
}
at::IValue to_ivalue(const std::optional<KeptInt>& value, Node* owner) {
  return value ? to_ivalue(*value, owner) : at::IValue();
}
at::IValue to_ivalue(const KeptSizes& value, Node*) {
  return at::IValue(c10::SymIntArrayRef(value));
}
at::IValue to_ivalue(const std::optional<KeptSizes>& value, Node* owner) {
  return value ? to_ivalue(*value, owner) : at::IValue();
}
} // namespace

template <class T> at::IValue read_saved(const void* member, Node* owner) {
  return to_ivalue(*static_cast<const T*>(member), owner);
}
#define CRESSET_READ(...) template at::IValue read_saved<__VA_ARGS__>(const void*, Node*);
#define CRESSET_READ_BOTH(...) CRESSET_READ(__VA_ARGS__) CRESSET_READ(std::optional<__VA_ARGS__>)
CRESSET_READ(SavedVariable)
CRESSET_READ(std::vector<SavedVariable>)
CRESSET_READ(std::vector<at::Scalar>)
CRESSET_READ_BOTH(int64_t)
CRESSET_READ_BOTH(double)
CRESSET_READ_BOTH(bool)
CRESSET_READ_BOTH(at::Scalar)
CRESSET_READ_BOTH(std::string)
CRESSET_READ_BOTH(at::ScalarType)
CRESSET_READ_BOTH(at::Layout)
CRESSET_READ_BOTH(at::Device)
CRESSET_READ_BOTH(at::MemoryFormat)
CRESSET_READ_BOTH(c10::DimVector)
CRESSET_READ_BOTH(KeptInt)
CRESSET_READ_BOTH(KeptSizes)
CRESSET_READ_BOTH(std::vector<double>)
#undef CRESSET_READ
#undef CRESSET_READ_BOTH

// ---- raw_saved.h
SavedKind saved_kind(const SavedField& field) {
  if (field.read == &read_saved<SavedVariable>) return SavedKind::Tensor;
  return field.read == &read_saved<std::vector<SavedVariable>> ? SavedKind::TensorList
                                                               : SavedKind::Other;
}
namespace {
void* member_of(const SavedField& field, Node& node) {
  return reinterpret_cast<char*>(&node) + field.offset;
}
} // namespace
size_t saved_count(const SavedField& field, Node& node) {
  if (saved_kind(field) != SavedKind::TensorList) return saved_kind(field) == SavedKind::Tensor;
  return static_cast<std::vector<SavedVariable>*>(member_of(field, node))->size();
}
SavedVariable& saved_variable(const SavedField& field, Node& node, size_t i) {
  TORCH_CHECK_INDEX(i < saved_count(field, node), node.name(), " keeps no tensor ", i, " as ",
                    field.name);
  void* member = member_of(field, node);
  if (saved_kind(field) == SavedKind::Tensor) return *static_cast<SavedVariable*>(member);
  return (*static_cast<std::vector<SavedVariable>*>(member))[i];
}

namespace detail {
[[noreturn]] static void throw_missing(const std::string& op);
}
namespace {
class MissingBackward final : public Node {
 public:
  explicit MissingBackward(std::string op) : op_(std::move(op)) {}
  std::string name() const override { return "NotImplemented"; }
  TensorVec apply(TensorVec) override { detail::throw_missing(op_); }

 private:
  std::string op_;
};
} // namespace

namespace detail {
void throw_out_requires_grad(const at::OperatorEntry& op) {
  const char* plain = op.name;
  for (const char* p = op.name; *p != 0; ++p)
    if (p[0] == ':' && p[1] == ':') plain = p + 2;
  throw c10::Error(c10::str(
      plain, "(): functions with out=... arguments don't support automatic differentiation, "
             "but one of the arguments requires grad."));
}

[[noreturn]] static void throw_missing(const std::string& op) {
  throw c10::NotImplementedError(c10::str("the derivative for '", op, "' is not implemented."));
}
void throw_missing(const at::OperatorEntry& op) { throw_missing(op.full_name()); }

void mark_missing(const at::OperatorEntry& op, at::TensorList outputs) {
  auto node = c10::make_intrusive<MissingBackward>(op.full_name());
  for (const Tensor& t : outputs) finish(t, node);
}
} // namespace detail

} // namespace torch::autograd
