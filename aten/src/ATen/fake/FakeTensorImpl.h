// Fake tensors: geometry, dtype and a claimed device, without data. The storage is one of the meta
// device, so that sharing and sizes of memory are kept too. The key Fake brings their operators to
// the kernel in FakeKernel.cpp.
#pragma once
#include <ATen/core/NativeMode.h>

namespace at::fake {

// What a FakeTensorMode decides, above the kernel. One object per Python mode that has live fake
// tensors or is active.
struct TORCH_API FakeMode : NativeModeHandler {
  // Why the kernel cannot run an operator on the Meta backend.
  enum class Need : uint8_t {
    Data,         // the result is a value read from the data
    DynamicShape, // the shape of the result depends on data
    NoMeta,       // the operator has no Meta kernel
    Rule,         // a rule for fake tensors was registered in Python
    Lift,         // a real tensor is to become a fake one that knows its values
  };
  // The fake form of a real tensor among the arguments, or an exception.
  virtual Tensor admit(const OperatorEntry& op, const Stack& stack, const Tensor& real) = 0;
  // Runs `op` and replaces its arguments on `stack` by its results, or throws what programs expect.
  virtual void run(const OperatorEntry& op, Stack& stack, Need need) = 0;
  // A C++ kernel of the key Meta or a rule in Python runs with this mode active.
  bool handle(const OperatorEntry&, DispatchKeySet, Stack&) final { return false; }
  bool has_own_key() const final { return true; }
  void set_active(bool on) final;
};
using FakeModePtr = c10::intrusive_ptr<FakeMode>;

// Values known at trace time that share one memory; a write that is not followed spoils all.
struct TORCH_API ConstantOrigin final : c10::intrusive_ptr_target {
  bool valid = true;
};
struct Constant {
  Tensor value; // on the CPU; undefined in a view that is too large to be followed
  c10::intrusive_ptr<ConstantOrigin> origin;
};

class TORCH_API FakeTensorImpl final : public TensorImpl {
 public:
  FakeTensorImpl(Storage storage, DispatchKeySet keys, ScalarType dtype, Device claimed,
                 FakeModePtr mode);
  static void* operator new(size_t size);
  static void operator delete(void* p, size_t size) noexcept;

  const FakeModePtr& mode() const { return mode_; }
  // The values, while they are known; otherwise undefined.
  Tensor constant() const { return knows_values() ? constant_.value : Tensor(); }
  bool knows_values() const { return shares_values() && constant_.value.defined(); }
  // Whether a write may change values that are known to it or to another view.
  bool shares_values() const { return constant_.origin && constant_.origin->valid; }
  const c10::intrusive_ptr<ConstantOrigin>& origin() const { return constant_.origin; }
  void set_constant(Constant constant) { constant_ = std::move(constant); }

  void copy_metadata_from(const TensorImpl& from) override;
  c10::intrusive_ptr<TensorImpl> shallow_copy() const override;

 protected:
  void release_resources() override;

 private:
  FakeModePtr mode_;
  Constant constant_;
};

inline bool is_fake(const Tensor& t) { return t.defined() && t.key_set().has(DispatchKey::Fake); }
// Null for tensors that are not fake, and for aliases made outside of the kernel.
TORCH_API FakeTensorImpl* as_fake(const Tensor& t);
// The mode of a fake tensor, or null.
TORCH_API FakeModePtr mode_of(const Tensor& t);
// A fake tensor in the image of `meta`, whose storage it shares. A device without an index gets
// one.
TORCH_API Tensor make_fake(const Tensor& meta, Device claimed, const FakeModePtr& mode);
// The same geometry and storage on the meta device.
TORCH_API Tensor meta_image(const Tensor& fake);
// `device` with an index, without starting anything.
TORCH_API Device indexed(Device device);

// The mode that is active on this thread, or null.
TORCH_API FakeMode* active_mode();
class TORCH_API ActiveMode {
 public:
  explicit ActiveMode(FakeMode* mode);
  ~ActiveMode();
  ActiveMode(const ActiveMode&) = delete;
  ActiveMode& operator=(const ActiveMode&) = delete;

 private:
  FakeMode* saved_;
  uint64_t included_;
};

// From now on calls of `op` go to FakeMode::run with Need::Rule.
TORCH_API void add_rule(const OperatorEntry& op);
// Installs the kernel; nothing is paid for fake tensors before.
TORCH_API void enable();

} // namespace at::fake
