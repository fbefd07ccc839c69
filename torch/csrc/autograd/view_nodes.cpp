// See view_nodes.h.
#include <torch/csrc/autograd/view_nodes.h>

#include <utility>

#include <ATen/ops/_neg_view.h>
#include <ATen/ops/as_strided.h>
#include <ATen/ops/clone.h>
#include <ATen/ops/conj.h>
#include <ATen/ops/new_empty_strided.h>
#include <ATen/ops/new_zeros.h>
#include <ATen/ops/view_as_real.h>
#include <ATen/ops/zero.h>
#include <torch/csrc/autograd/variable.h>

namespace torch::autograd {
namespace {

// Where a view lies in its base, relative to the base's first element. A view of the real numbers
// in a complex base (view_as_real, .real, .imag) counts in real numbers.
struct ViewGeometry {
  c10::DimVector sizes, strides, base_sizes, base_strides;
  int64_t offset;
  at::ScalarType dtype;
  at::Device device;
  bool real_of_complex, conj, neg;

  ViewGeometry(const Tensor& view, const Tensor& base)
      : sizes(view.sizes()), strides(view.strides()), base_sizes(base.sizes()),
        base_strides(base.strides()), dtype(base.scalar_type()), device(base.device()),
        real_of_complex(base.is_complex() &&
                        view.scalar_type() == c10::toRealValueType(base.scalar_type())),
        conj(view.is_conj()), neg(view.is_neg()) {
    TORCH_CHECK_NOT_IMPLEMENTED((view.scalar_type() == base.scalar_type() || real_of_complex) &&
                                    !base.is_conj() && !base.is_neg(),
                                "an in-place write to a view of another dtype (",
                                view.scalar_type(), " of ", base.scalar_type(),
                                ") cannot be differentiated");
    offset = view.storage_offset() - base.storage_offset() * (real_of_complex ? 2 : 1);
  }

  // A zeroed tensor with the base's layout (dense where the base has gaps), as the home of `grad`,
  // which may be a batch of gradients.
  Tensor zeros_like_base(const Tensor& grad) const {
    const c10::DimVector dense = c10::infer_dense_strides(base_sizes, base_strides);
    Tensor out = at::_ops::new_zeros::call(grad, c10::as_symint_array(base_sizes), dtype,
                                           at::kStrided, device, std::nullopt);
    return dense == c10::contiguous_strides(base_sizes) ? out
                                                        : at::as_strided(out, base_sizes, dense);
  }
  // A copy of `grad` with that layout.
  Tensor copy_like_base(const Tensor& grad) const {
    const c10::DimVector dense = c10::infer_dense_strides(base_sizes, base_strides);
    Tensor out = at::_ops::new_empty_strided::call(grad, c10::as_symint_array(base_sizes),
                                                   c10::as_symint_array(dense), dtype, at::kStrided,
                                                   device, std::nullopt);
    return out.copy_(grad);
  }
  // The part of a tensor laid out like the base that the view covers.
  Tensor part_of(const Tensor& whole) const {
    TORCH_CHECK_NOT_IMPLEMENTED(whole.strides() == at::IntArrayRef(base_strides) ||
                                    whole.numel() <= 1,
                                "the base of a differentiated in-place view must be dense");
    const Tensor numbers = real_of_complex ? at::view_as_real(whole) : whole;
    Tensor part = at::as_strided(numbers, sizes, strides, numbers.storage_offset() + offset);
    if (conj) part = at::conj(part);
    return neg ? at::_neg_view(part) : part;
  }
};

class ViewReplayBackward final : public Node {
 public:
  explicit ViewReplayBackward(ViewGeometry geometry) : geometry_(std::move(geometry)) {}
  std::string name() const override { return "AsStridedBackward0"; }
  TensorVec apply(TensorVec grads) override {
    if (!grads[0].defined()) return {Tensor()};
    Tensor whole = geometry_.zeros_like_base(grads[0]);
    geometry_.part_of(whole).copy_(grads[0]);
    return {whole};
  }

 private:
  ViewGeometry geometry_;
};

class CopySlices;
// The one whose write runs on this thread.
thread_local CopySlices* running_write = nullptr;

class CopySlices final : public Node {
 public:
  CopySlices(const Tensor& base, const Tensor& view, c10::intrusive_ptr<Node> write)
      : geometry_(view, base), write_(std::move(write)) {
    add_next_edge(gradient_edge(base));
    // The write's other operands follow; its first edge, the view's former history, is replaced by
    // the base's.
    for (size_t i = 1; i < write_->num_outputs(); ++i) add_next_edge(write_->next_edge(i));
  }
  std::string name() const override { return "CopySlices"; }
  void release_variables() override { write_->release_variables(); }

  TensorVec apply(TensorVec grads) override {
    TensorVec out;
    for (size_t i = 0; i < num_outputs(); ++i) out.push_back(Tensor());
    if (!grads[0].defined()) return out;
    const Tensor whole = geometry_.copy_like_base(grads[0]);
    const Tensor slice = geometry_.part_of(whole);
    TensorVec entering;
    entering.push_back(at::clone(slice));
    TensorVec through;
    {
      const Running scope(this);
      through = write_->apply(std::move(entering));
    }
    for (size_t i = 0; i < through.size() && i < out.size(); ++i) {
      if (i > 0) {
        out[i] = std::move(through[i]);
      } else if (through[0].defined()) {
        slice.copy_(through[0]);
      } else {
        slice.zero_();
      }
    }
    out[0] = whole;
    return out;
  }

  // The history of the view that was written, as the base has it now.
  c10::intrusive_ptr<Node> history_of_view(const Node* write, const Tensor& view) {
    if (write != write_.get()) return nullptr;
    auto node = c10::make_intrusive<ViewReplayBackward>(geometry_);
    node->add_next_edge({c10::intrusive_ptr<Node>::unsafe_retain(this), 0});
    node->add_input_metadata(view);
    return node;
  }

 private:
  struct Running {
    explicit Running(CopySlices* now) : before(std::exchange(running_write, now)) {}
    ~Running() { running_write = before; }
    CopySlices* before;
  };
  ViewGeometry geometry_;
  c10::intrusive_ptr<Node> write_;
};
} // namespace

c10::intrusive_ptr<Node> history_of_written_view(const Node* write, const Tensor& view) {
  return running_write ? running_write->history_of_view(write, view) : nullptr;
}

c10::intrusive_ptr<Node> make_view_replay(const Tensor& view, const Tensor& base) {
  auto node = c10::make_intrusive<ViewReplayBackward>(ViewGeometry(view, base));
  node->add_next_edge(gradient_edge(base));
  return node;
}

c10::intrusive_ptr<Node> make_copy_slices(const Tensor& base, const Tensor& view,
                                          c10::intrusive_ptr<Node> write) {
  return c10::make_intrusive<CopySlices>(base, view, std::move(write));
}

} // namespace torch::autograd
