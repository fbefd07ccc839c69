// The level of torch.func.functionalize: its wrappers as a space of the engine in ATen/functional.
#include <ATen/functional/Engine.h>
#include <ATen/functorch/Interpret.h>

namespace at::functorch {
namespace {

class LevelSpace final : public functional::Space {
 public:
  explicit LevelSpace(const LevelPtr& level) : level_(level) {}
  functional::Cell* cell(const Tensor& t) const override {
    const WrapperImpl* w = wrapper_at(t, *level_);
    return w != nullptr ? w->functional.get() : nullptr;
  }
  Tensor make(functional::Cell cell, const Tensor& like) const override {
    Tensor out = make_tensor<WrapperImpl>(cell.value, level_, -1);
    if (&like != &cell.value) take_shape(out, like);
    wrapper_at(out, *level_)->functional = std::make_shared<functional::Cell>(std::move(cell));
    return out;
  }
  void changed(const Tensor& t, functional::Cell& cell, const Tensor* like) const override {
    WrapperImpl* w = wrapper_at(t, *level_);
    w->value = cell.value;
    if (like != nullptr) take_shape(t, *like);
  }
  // Inside the level every tensor is one of it, those from outside too.
  bool wraps_results(bool, bool) const override { return true; }
  bool copies_views() const override { return level_->removes_views; }
  DispatchKeySet keys_off() const override { return DispatchKeySet(kFunctionalizeMode); }

 private:
  // The program's view of the memory, where the value may be a copy.
  static void take_shape(const Tensor& t, const Tensor& like) {
    TensorImpl* impl = t.unsafeGetTensorImpl();
    if (like.layout() == Layout::Strided)
      impl->set_geometry(like.sizes(), like.strides(), like.storage_offset());
    else
      impl->set_contiguous(like.sizes());
    impl->set_dtype(like.scalar_type());
  }

  LevelPtr level_;
};
} // namespace

Tensor wrap_functional(const Tensor& value, const LevelPtr& level) {
  return functional::wrap(value, LevelSpace(level));
}
Tensor functional_value(const Tensor& t, const LevelPtr& level) {
  const functional::Cell* cell = functional::sync(t, LevelSpace(level));
  return cell != nullptr ? cell->value : t;
}
bool was_written(const Tensor& t, const LevelPtr& level) {
  const functional::Cell* cell = LevelSpace(level).cell(t);
  return cell != nullptr && cell->alias->writes != 0;
}

void run_functional(const OperatorEntry& op, Stack& stack, size_t from, const LevelPtr& level) {
  functional::run(op, stack, from, LevelSpace(level));
}

} // namespace at::functorch
