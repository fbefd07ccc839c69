// Allocation, checking and resizing of outputs. See OutputBuilder.h.
#include <ATen/native/OutputBuilder.h>

#include <ATen/core/EmptyTensor.h>
#include <ATen/core/SymbolicTensor.h>
#include <ATen/iter/TensorIterator.h>
#include <ATen/native/GeneratedSupport.h>

namespace at {

OutputBuilder::OutputBuilder(InPlaceTag, const Tensor& self, c10::DeviceType device)
    : mode_(Mode::InPlace), count_(1), device_(device) {
  new (&outputs_[0]) Tensor();
  new (&given_[0]) Tensor(self);
}

OutputBuilder::OutputBuilder(OutTag, std::initializer_list<const Tensor*> outs,
                             c10::DeviceType device)
    : mode_(Mode::Out), count_(static_cast<int>(outs.size())), device_(device) {
  TORCH_INTERNAL_ASSERT(count_ <= kMaxOutputs);
  int i = 0;
  for (const Tensor* out : outs) {
    new (&outputs_[i]) Tensor();
    new (&given_[i++]) Tensor(*out);
  }
}

const Tensor& OutputBuilder::given(int i) const {
  static const Tensor none;
  return mode_ == Mode::Functional ? none : given_[i];
}

void OutputBuilder::note(const Tensor& operand) {
  if (mode_ == Mode::Functional) return;
  for (int i = 0; operand.defined() && i < count_; ++i) {
    const Tensor& target = given_[i];
    if (!target.defined()) continue;
    shares_[i] |= operand.is_same(target) || operand.is_alias_of(target);
    overlaps_[i] |= may_overlap(operand, target);
  }
}

void OutputBuilder::updates(const Tensor& self) {
  if (self.is_same(given(0)))
    shares_[0] = true;
  else
    note(self);
}

void OutputBuilder::set(int i, IntArrayRef sizes, ScalarType dtype, OptionalIntArrayRef strides) {
  set_on(i, sizes, dtype, Device(device_), strides);
}

void OutputBuilder::set_on(int i, IntArrayRef sizes, ScalarType dtype, Device device,
                           OptionalIntArrayRef strides) {
  TORCH_INTERNAL_ASSERT(i < count_);
  if (mode_ == Mode::Functional) {
    outputs_[i] = strides ? detail::empty_strided(sizes, *strides, dtype, device)
                          : detail::empty(sizes, dtype, device);
    return;
  }
  const Tensor& target = given_[i];
  TORCH_CHECK(target.device().type() == device.type(),
              "Expected all tensors to be on the same device, but got an output on ",
              target.device(), " and an input on ", device);
  TORCH_CHECK(c10::canCast(dtype, target.scalar_type()), "result type ", dtype,
              " can't be cast to the desired output type ", target.scalar_type());
  if (mode_ == Mode::InPlace) {
    TORCH_CHECK(target.sizes() == sizes, "Bad in-place call: input tensor size ", target.sizes(),
                " and output tensor size ", sizes, " should match");
  } else if (!shares_[i]) {
    native::resize_output(target, sizes);
  }
  const bool usable = !overlaps_[i] && target.sizes() == sizes && target.scalar_type() == dtype &&
                      (!strides || target.strides() == *strides || target.numel() <= 1) &&
                      (strides || target.is_contiguous());
  if (usable) {
    outputs_[i] = target;
  } else {
    outputs_[i] = strides ? detail::empty_strided(sizes, *strides, dtype, device)
                          : detail::empty(sizes, dtype, device);
  }
}

void OutputBuilder::set_symint(int i, SymIntArrayRef sizes, ScalarType dtype,
                               OptionalSymIntArrayRef strides) {
  if (device_ != c10::kMeta || mode_ == Mode::Out)
    return set(i, c10::as_int_array(sizes), dtype, c10::as_int_array(strides));
  TORCH_INTERNAL_ASSERT(i < count_);
  if (mode_ == Mode::Functional) {
    outputs_[i] = strides ? detail::empty_strided_symint(sizes, *strides, dtype, Device(device_))
                          : detail::empty_symint(sizes, dtype, Device(device_));
    return;
  }
  const Tensor& target = given_[i];
  TORCH_CHECK(c10::canCast(dtype, target.scalar_type()), "result type ", dtype,
              " can't be cast to the desired output type ", target.scalar_type());
  TORCH_CHECK(target.sym_sizes() == sizes, "Bad in-place call: input tensor size ",
              target.sym_sizes(), " and output tensor size ", sizes, " should match");
  outputs_[i] = target; // without memory there is nothing to copy back
}

void OutputBuilder::finish() {
  if (mode_ == Mode::Functional) return;
  for (int i = 0; i < count_; ++i) {
    if (!given_[i].defined()) continue;
    if (outputs_[i].is_same(given_[i])) {
      given_[i].unsafeGetTensorImpl()->bump_version();
      continue;
    }
    if (mode_ == Mode::Out) native::resize_output(given_[i], outputs_[i].sizes());
    given_[i].copy_(outputs_[i]);
  }
}

} // namespace at
