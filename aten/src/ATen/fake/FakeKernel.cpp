// The kernel of the key Fake: an operator on fake tensors runs on the Meta backend, and its results
// claim the device that the operands agree on.
//
// The Meta kernel does not see the fake tensors, which would tell it a device whose memory they do
// not have, but images of them on the meta device with the same storages. What it writes into the
// geometry of an image goes back to the fake tensor; a view of an image becomes a view of the fake
// tensor; a returned image is the fake tensor itself.
#include <ATen/fake/FakePlan.h>

#include <c10/util/SmallVector.h>

namespace at::fake {
namespace {

struct Operand {
  Tensor fake;
  Tensor image;
  int argument;
  bool reshaped = false; // its geometry was changed in place
};

// A number of any device, as far as the place of results is concerned.
bool is_zero_dim_cpu(const Tensor& t) { return t.dim() == 0 && t.device().is_cpu(); }

// Goes on with device `found`, or fails when it contradicts what was seen before.
class CommonDevice {
 public:
  explicit CommonDevice(const OperatorEntry& op) : op_(op) {}
  void see(const Tensor& t) {
    const Device device = t.device();
    const bool zero_dim = is_zero_dim_cpu(t);
    if (!known_ || (from_zero_dim_ && !zero_dim)) {
      known_ = true;
      device_ = device;
      from_zero_dim_ = zero_dim;
    } else if (device != device_ && !zero_dim && !is_index_of_meta(t)) {
      throw c10::Error(c10::str("Unhandled FakeTensor Device Propagation for ", python_name(),
                                ", found two different devices ", device_, ", ", device));
    }
  }
  // As with real tensors, indices into a tensor of the meta device may be anywhere.
  bool is_index_of_meta(const Tensor& t) const {
    return device_.is_meta() && c10::isIntegralType(t.scalar_type(), /*includeBool=*/false);
  }
  bool known() const { return known_; }
  Device device() const { return device_; }

 private:
  std::string python_name() const {
    std::string name(op_.name);
    const size_t colons = name.find("::");
    if (colons != name.npos) name.replace(colons, 2, ".");
    return name + "." + (op_.overload[0] ? op_.overload : "default");
  }
  const OperatorEntry& op_;
  Device device_{kCPU};
  bool known_ = false;
  bool from_zero_dim_ = false;
};

class Call {
 public:
  Call(const OperatorEntry& op, const FakePlan& plan, Stack& stack)
      : op_(op), plan_(plan), stack_(stack), base_(stack.size() - plan.arguments), common_(op) {}

  void run() {
    find_mode();
    for (size_t i = 0; i < plan_.arguments; ++i) replace(static_cast<int>(i));
    Device device = place_of_results();
    Stack values;
    if (C10_UNLIKELY(knows_values_)) values.assign(stack_.begin() + offset(), stack_.end());
    use_meta_device();
    {
      c10::ExcludeDispatchKeyGuard below(kAbove);
      op_.redispatch_boxed(DispatchKeySet(DispatchKey::Meta), stack_);
    }
    if (plan_.mutates) {
      for (Operand& operand : operands_) write_back(operand);
    }
    for (size_t i = base_; i < stack_.size(); ++i) adopt_result(i, device);
    if (C10_UNLIKELY(knows_values_)) follow_values(std::move(values));
  }

  // The values an operator that reads data returns when all its operands are known; else false.
  bool run_on_values() {
    find_mode();
    Stack values(stack_.begin() + offset(), stack_.end());
    for (const IValue& value : values) {
      const FakeTensorImpl* fake = value.isTensor() ? as_fake(value.toTensor()) : nullptr;
      if (value.isTensorList() || value.isOptionalTensorList()) return false;
      if (value.isTensor() && (!fake || !fake->knows_values())) return false;
    }
    if (!real_results(values)) return false;
    stack_.resize(base_);
    for (IValue& v : values) stack_.push_back(std::move(v));
    return true;
  }

  const FakeModePtr& mode() {
    find_mode();
    return mode_;
  }

  // Real tensors among the arguments as the mode admits them, fakes as they are.
  void admit_all() {
    find_mode();
    for (size_t i = base_; i < stack_.size(); ++i) {
      if (stack_[i].isTensor()) stack_[i] = IValue(admitted(stack_[i].toTensor()));
    }
  }

 private:
  static constexpr DispatchKeySet kAbove{DispatchKey::Fake, DispatchKey::Python};
  std::ptrdiff_t offset() const { return static_cast<std::ptrdiff_t>(base_); }

  template <class F> void each_tensor(const IValue& value, F&& f) {
    if (value.isTensor()) {
      f(value.toTensor());
    } else if (value.isTensorList()) {
      for (const Tensor& t : value.toTensorList()) f(t);
    } else if (value.isOptionalTensorList()) {
      for (const auto& t : value.toOptionalTensorList())
        if (t) f(*t);
    }
  }
  void find_mode() {
    if (mode_) return;
    mode_ = FakeModePtr::unsafe_retain(active_mode());
    for (size_t i = base_; i < stack_.size() && !mode_; ++i) {
      each_tensor(stack_[i], [&](const Tensor& t) {
        if (!mode_) mode_ = mode_of(t);
      });
    }
    TORCH_CHECK(mode_, "no FakeTensorMode is active and no argument of ", op_.full_name(),
                " has one");
  }

  Tensor admitted(const Tensor& t) {
    if (!t.defined() || is_fake(t)) return t;
    if (t.unsafeGetTensorImpl()->is_wrapped_number()) return t;
    return mode_->admit(op_, stack_, t);
  }

  Tensor image_of(const Tensor& given, int argument) {
    if (!given.defined()) return given;
    Tensor fake = admitted(given);
    for (const Operand& known : operands_)
      if (known.fake.is_same(fake)) return known.image;
    if (const FakeTensorImpl* impl = as_fake(fake)) {
      if (C10_UNLIKELY(impl->mode() != mode_)) mode_->admit(op_, stack_, fake); // refuses
      knows_values_ |= impl->shares_values();
    } else if (!is_fake(fake)) {
      knows_values_ = true; // a number
    }
    Tensor image = is_fake(fake) ? meta_image(fake) : fake;
    operands_.push_back({std::move(fake), image, argument});
    return image;
  }

  void replace(int argument) {
    IValue& value = stack_[base_ + static_cast<size_t>(argument)];
    if (value.isTensor()) {
      value = IValue(image_of(value.toTensor(), argument));
    } else if (value.isTensorList()) {
      std::vector<Tensor> images;
      for (const Tensor& t : value.toTensorList()) images.push_back(image_of(t, argument));
      value = IValue(std::move(images));
    } else if (value.isOptionalTensorList()) {
      std::vector<std::optional<Tensor>> images = value.toOptionalTensorList();
      for (auto& t : images)
        if (t) t = image_of(*t, argument);
      value = IValue(std::move(images));
    }
  }

  Device place_of_results() {
    if (plan_.device_argument >= 0) {
      const IValue& asked = stack_[base_ + static_cast<size_t>(plan_.device_argument)];
      if (!asked.isNone()) return asked.toDevice();
    }
    if (plan_.per_element) return Device(kCPU); // looked up for each result
    for (const Operand& operand : operands_) {
      if (plan_.first_decides && common_.known()) break;
      common_.see(operand.fake);
    }
    return common_.known() ? common_.device() : Device(kCPU);
  }

  void use_meta_device() {
    if (plan_.device_argument >= 0) {
      IValue& device = stack_[base_ + static_cast<size_t>(plan_.device_argument)];
      if (!device.isNone() || operands_.empty()) device = IValue(Device(kMeta));
    }
    if (plan_.pin_argument >= 0) stack_[base_ + static_cast<size_t>(plan_.pin_argument)] = IValue();
  }

  // What the operator did to the image's geometry and version happens to the fake tensor.
  static void write_back(Operand& operand) {
    TensorImpl& to = *operand.fake.unsafeGetTensorImpl();
    const TensorImpl& from = *operand.image.unsafeGetTensorImpl();
    if (&to == &from) return;
    if (to.storage() != from.storage()) to.set_storage(from.storage());
    if (to.dtype() != from.dtype()) to.set_dtype(from.dtype());
    if (to.has_symbolic_sizes() || from.has_symbolic_sizes()) {
      to.set_symbolic_geometry(from.sym_sizes(), from.sym_strides(), from.sym_storage_offset());
    } else if (to.sizes() != from.sizes() || to.strides() != from.strides() ||
               to.storage_offset() != from.storage_offset()) {
      to.set_geometry(from.sizes(), from.strides(), from.storage_offset());
      operand.reshaped = true;
    }
    if (from.version() != 0) to.bump_version();
  }

  const Operand* operand_of(const TensorImpl* image) const {
    for (const Operand& operand : operands_)
      if (operand.image.unsafeGetTensorImpl() == image) return &operand;
    return nullptr;
  }

  Tensor adopt(const Tensor& result, Device device) {
    if (!result.defined() || is_fake(result)) return result;
    if (const Operand* same = operand_of(result.unsafeGetTensorImpl())) return same->fake;
    const TensorImpl& impl = *result.unsafeGetTensorImpl();
    if (!impl.is_view()) {
      Tensor out = make_fake(result, device, mode_);
      if (plan_.shares_version && !operands_.empty())
        out.unsafeGetTensorImpl()->share_version_of(*operands_[0].fake.unsafeGetTensorImpl());
      return out;
    }
    const Operand* viewed = operand_of(impl.base().get());
    if (viewed) device = viewed->fake.device();
    Tensor out = make_fake(result, device, mode_);
    TensorImpl& made = *out.unsafeGetTensorImpl();
    made.view_origin = impl.view_origin;
    if (viewed) {
      const TensorImpl& base = *viewed->fake.unsafeGetTensorImpl();
      made.set_view_of(base.is_view() ? base.base() : viewed->fake.getIntrusivePtr());
      if (base.is_view() && base.view_origin != TensorImpl::ViewOrigin::Default)
        made.view_origin = base.view_origin;
    } else {
      made.set_view_of(make_fake(Tensor(impl.base()), device, mode_).getIntrusivePtr());
    }
    return out;
  }

  // The device of element `i` of a list that a foreach operator returns.
  Device element_device(size_t i) const {
    size_t seen = 0;
    for (const Operand& operand : operands_)
      if (operand.argument == 0 && seen++ == i) return operand.fake.device();
    return Device(kCPU);
  }

  void adopt_result(size_t at, Device device) {
    IValue& value = stack_[at];
    const size_t index = at - base_;
    if (value.isTensor()) {
      const int from = index < plan_.returned.size() ? plan_.returned[index] : -1;
      const Operand* written = nullptr;
      for (const Operand& operand : operands_)
        if (operand.argument == from) written = &operand;
      const bool same = operand_of(value.toTensor().unsafeGetTensorImpl()) != nullptr;
      value = IValue(written && !same ? written->fake : adopt(value.toTensor(), device));
    } else if (value.isTensorList()) {
      std::vector<Tensor> out;
      const std::vector<Tensor>& results = value.toTensorList();
      for (size_t i = 0; i < results.size(); ++i)
        out.push_back(adopt(results[i], plan_.per_element ? element_device(i) : device));
      value = IValue(std::move(out));
    }
  }

  // ---- known values
  // Replaces `values` (arguments with images or fakes) by the results of the real operator on what
  // is known; false where something is not.
  bool real_results(Stack& values) {
    for (IValue& value : values) {
      if (value.isTensorList() || value.isOptionalTensorList()) return false;
      if (!value.isTensor()) continue;
      const Operand* operand = operand_of(value.toTensor().unsafeGetTensorImpl());
      const Tensor fake = operand ? operand->fake : value.toTensor();
      if (!is_fake(fake)) continue; // a number
      const FakeTensorImpl* impl = as_fake(fake);
      if (!impl || !impl->knows_values()) return false;
      value = IValue(impl->constant());
    }
    if (plan_.device_argument >= 0) {
      IValue& device = values[static_cast<size_t>(plan_.device_argument)];
      if (!device.isNone()) device = IValue(Device(kCPU));
    }
    ActiveMode off(nullptr);
    c10::ExcludeDispatchKeyGuard below(kAbove | c10::kAutogradKeys);
    op_.call_boxed(values);
    return true;
  }

  static constexpr int64_t kMostKnownValues = 1;

  void follow_values(Stack values) {
    bool reshaped = false; // values of a tensor that was resized are not worth following
    for (const Operand& operand : operands_) reshaped |= operand.reshaped;
    const bool followed = plan_.reads_values && !reshaped && real_results(values);
    bool few = followed;
    for (const IValue& value : values)
      few = few && value.isTensor() && value.toTensor().numel() <= kMostKnownValues;
    few = few && values.size() == stack_.size() - base_;
    if (!followed) forget_written();
    for (size_t i = base_; i < stack_.size(); ++i) {
      FakeTensorImpl* result = stack_[i].isTensor() ? as_fake(stack_[i].toTensor()) : nullptr;
      if (!result || result->origin()) continue;
      const Tensor value = few ? values[i - base_].toTensor() : Tensor();
      c10::intrusive_ptr<ConstantOrigin> origin = origin_of(*result);
      if (few && !origin) origin = c10::make_intrusive<ConstantOrigin>();
      result->set_constant({value, std::move(origin)});
    }
  }

  // Known values that share memory are spoiled together.
  c10::intrusive_ptr<ConstantOrigin> origin_of(const FakeTensorImpl& result) const {
    for (const Operand& operand : operands_) {
      const FakeTensorImpl* impl = as_fake(operand.fake);
      if (impl && impl->shares_values() && impl->storage() == result.storage())
        return impl->origin();
    }
    return {};
  }

  void forget_written() {
    if (!plan_.mutates) return;
    for (const Operand& operand : operands_) {
      if (operand.image.unsafeGetTensorImpl()->version() == 0 && !operand.reshaped) continue;
      const FakeTensorImpl* impl = as_fake(operand.fake);
      if (impl && impl->shares_values()) impl->origin()->valid = false;
    }
  }

  const OperatorEntry& op_;
  const FakePlan& plan_;
  Stack& stack_;
  const size_t base_;
  CommonDevice common_;
  FakeModePtr mode_;
  c10::SmallVector<Operand, 4> operands_;
  bool knows_values_ = false;
};

struct FakeKernel final : BoxedKernel {
  void call(const OperatorEntry& op, DispatchKeySet keys, Stack& stack) override {
    const FakePlan& plan = plan_of(op);
    switch (plan.way) {
    case FakePlan::Way::Meta:
      if (C10_UNLIKELY(plan.by_masks) && has_mask(stack))
        return run_by_mode(op, plan, stack, FakeMode::Need::DynamicShape);
      return Call(op, plan, stack).run();
    case FakePlan::Way::Parts:
      return op.redispatch_boxed(keys.remove(DispatchKey::Fake), stack);
    case FakePlan::Way::AsIs:
      return run_as_is(op, plan, stack);
    case FakePlan::Way::ByMode:
      return run_by_mode(op, plan, stack, plan.need);
    }
  }

 private:
  static void run_as_is(const OperatorEntry& op, const FakePlan& plan, Stack& stack) {
    Call call(op, plan, stack);
    call.admit_all();
    const FakeModePtr mode = call.mode();
    ActiveMode active(mode.get());
    c10::ExcludeDispatchKeyGuard below(DispatchKey::Python);
    op.redispatch_boxed(DispatchKeySet(DispatchKey::Meta), stack);
  }

  static bool has_mask(const Stack& stack) {
    for (const IValue& value : stack) {
      if (!value.isOptionalTensorList()) continue;
      for (const auto& t : value.toOptionalTensorList())
        if (t && t->defined() && (t->scalar_type() == kBool || t->scalar_type() == kByte))
          return true;
    }
    return false;
  }

  static void run_by_mode(const OperatorEntry& op, const FakePlan& plan, Stack& stack,
                          FakeMode::Need need) {
    Call call(op, plan, stack);
    const FakeModePtr mode = call.mode();
    if (need == FakeMode::Need::Data && call.run_on_values()) return;
    ActiveMode active(mode.get());
    c10::ExcludeDispatchKeyGuard below(DispatchKey::Python);
    mode->run(op, stack, need);
  }
};
} // namespace

void enable() {
  static const bool once = [] {
    Dispatcher::singleton().register_fallback(DispatchKey::Fake, c10::make_intrusive<FakeKernel>());
    return true;
  }();
  (void)once;
}

} // namespace at::fake
