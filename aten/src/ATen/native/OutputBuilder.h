// Where a shape function puts its results: it says what each output looks like, and the builder
// allocates it (functional), checks it (in-place) or resizes it (out=). One shape function
// therefore serves all variants, the meta device and, later, tracing.
#pragma once
#include <initializer_list>
#include <new>

#include <ATen/core/Tensor.h>

namespace at {

class TORCH_API OutputBuilder {
 public:
  enum FunctionalTag { Functional };
  enum InPlaceTag { InPlace };
  enum OutTag { Out };
  static constexpr int kMaxOutputs = 8;

  // `count` outputs to allocate on `device` (an index of -1 is taken from the operands by the shape
  // function through options()).
  OutputBuilder(FunctionalTag, int count, c10::DeviceType device) : count_(count), device_(device) {
    for (int i = 0; i < count; ++i) new (&outputs_[i]) Tensor();
  }
  OutputBuilder(InPlaceTag, const Tensor& self, c10::DeviceType device = c10::kCPU);
  OutputBuilder(OutTag, std::initializer_list<const Tensor*> outs,
                c10::DeviceType device = c10::kCPU);
  OutputBuilder(const OutputBuilder&) = delete;
  OutputBuilder& operator=(const OutputBuilder&) = delete;
  ~OutputBuilder() {
    for (int i = 0; i < count_; ++i) outputs_[i].~Tensor();
    if (C10_UNLIKELY(mode_ != Mode::Functional)) {
      for (int i = 0; i < count_; ++i) given_[i].~Tensor();
    }
  }
  // The arguments of an in-place or out variant, before its shape function is called: a caller's
  // tensor that shares memory with one of them stays as it is until finish().
  template <class... Args> void reads(const Args&... args) { (note(args), ...); }
  // The argument that the kernel may find to be its only output, as it does in place.
  void updates(const Tensor& self);

  // ---- for shape functions
  // Output `i` has these sizes (and strides, else contiguous) and dtype. Called once per output.
  void set(int i, IntArrayRef sizes, ScalarType dtype, OptionalIntArrayRef strides = std::nullopt);
  // The same on a device other than the builder's (index included).
  void set_on(int i, IntArrayRef sizes, ScalarType dtype, Device device,
              OptionalIntArrayRef strides = std::nullopt);
  // The same with sizes that may be symbolic.
  void set_symint(int i, SymIntArrayRef sizes, ScalarType dtype,
                  OptionalSymIntArrayRef strides = std::nullopt);
  bool is_out_variant() const { return mode_ == Mode::Out; }
  bool is_inplace() const { return mode_ == Mode::InPlace; }
  // The caller's tensor of an in-place or out variant, or an undefined tensor.
  const Tensor& given(int i) const;

  // ---- for kernels
  // The tensor the kernel writes: allocated, or the caller's, or a stand-in copied back by
  // finish().
  const Tensor& operator[](int i) const { return outputs_[i]; }
  // Copies stand-ins into the caller's tensors and bumps versions. Must be called for in-place and
  // out.
  void finish();
  Tensor take(int i) { return std::move(outputs_[i]); }

 private:
  void note(const Tensor& operand);
  void note(const std::optional<Tensor>& operand) {
    if (operand) note(*operand);
  }
  void note(TensorList operands) {
    for (const Tensor& operand : operands) note(operand);
  }
  void note(OptionalTensorList operands) {
    for (const std::optional<Tensor>& operand : operands) note(operand);
  }
  template <class T> void note(const T&) {}

  enum class Mode : uint8_t { Functional, InPlace, Out };
  Mode mode_ = Mode::Functional;
  int count_;
  c10::DeviceType device_;
  // Alive are the first count_; those given, only where a caller gave some. Most operators have one
  // output and no other cost should be seen in a small call.
  union {
    Tensor outputs_[kMaxOutputs];
  };
  union {
    Tensor given_[kMaxOutputs];
  };
  // Of the caller's tensor and any argument: one storage, and the same part of it.
  bool shares_[kMaxOutputs] = {}, overlaps_[kMaxOutputs] = {};
};

} // namespace at
