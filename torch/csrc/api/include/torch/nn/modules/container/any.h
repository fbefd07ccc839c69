// AnyModule: a module of a type that is not known, called with values of types that are not known.
// What Sequential is made of.
#pragma once
#include <vector>

#include <torch/nn/cloneable.h>
#include <torch/nn/modules/container/any_value.h>

namespace torch::nn {

namespace detail {
// The arguments' number does not fit; `required` is smaller than `taken` with default arguments.
[[noreturn]] TORCH_API void throw_argument_count(const std::string& module, size_t required,
                                                 size_t taken, size_t received, bool has_defaults);
[[noreturn]] TORCH_API void throw_argument_type(size_t index, const std::type_info& wanted,
                                                const std::type_info& received);
[[noreturn]] TORCH_API void throw_module_cast(const std::type_info& from, const std::type_info& to);

// The types forward() takes.
template <class F> struct ForwardSignature;
template <class R, class C, class... Args> struct ForwardSignature<R (C::*)(Args...)> {
  template <template <class, class...> class To, class M> using apply = To<M, Args...>;
};
template <class R, class C, class... Args> struct ForwardSignature<R (C::*)(Args...) const>
    : ForwardSignature<R (C::*)(Args...)> {};
} // namespace detail

// The module behind an AnyModule, called through one virtual function.
struct TORCH_API AnyModulePlaceholder {
  explicit AnyModulePlaceholder(const std::type_info& type) : type(type) {}
  virtual ~AnyModulePlaceholder();
  virtual AnyValue forward(std::vector<AnyValue>&& arguments) = 0;
  virtual std::shared_ptr<Module> ptr() = 0;
  virtual std::unique_ptr<AnyModulePlaceholder> copy() const = 0;
  virtual std::unique_ptr<AnyModulePlaceholder>
  clone_module(const std::optional<Device>& device) const = 0;
  const std::type_info& type;
};

template <class M, class... Args> struct AnyModuleHolder final : AnyModulePlaceholder {
  explicit AnyModuleHolder(std::shared_ptr<M> m)
      : AnyModulePlaceholder(typeid(M)), module(std::move(m)) {}

  AnyValue forward(std::vector<AnyValue>&& arguments) override {
    Module& base = *module;
    if (base._forward_has_default_args()) {
      const size_t required = base._forward_num_required_args();
      if (arguments.size() < required || arguments.size() > sizeof...(Args))
        detail::throw_argument_count(c10::demangle(type.name()), required, sizeof...(Args),
                                     arguments.size(), true);
      arguments = base._forward_populate_default_args(std::move(arguments));
    } else if (arguments.size() != sizeof...(Args)) {
      detail::throw_argument_count(c10::demangle(type.name()), sizeof...(Args), sizeof...(Args),
                                   arguments.size(), false);
    }
    return call(arguments, std::index_sequence_for<Args...>());
  }
  std::shared_ptr<Module> ptr() override { return module; }
  std::unique_ptr<AnyModulePlaceholder> copy() const override {
    return std::make_unique<AnyModuleHolder>(*this);
  }
  std::unique_ptr<AnyModulePlaceholder>
  clone_module(const std::optional<Device>& device) const override {
    return std::make_unique<AnyModuleHolder>(
        std::dynamic_pointer_cast<M>(static_cast<const Module&>(*module).clone(device)));
  }

  std::shared_ptr<M> module;

 private:
  template <class T> static std::decay_t<T>&& take(std::vector<AnyValue>& arguments, size_t i) {
    auto* value = arguments[i].template try_get<std::decay_t<T>>();
    if (!value) detail::throw_argument_type(i, typeid(T), arguments[i].type_info());
    return std::move(*value);
  }
  template <size_t... I>
  AnyValue call([[maybe_unused]] std::vector<AnyValue>& arguments, std::index_sequence<I...>) {
    return AnyValue(module->forward(take<Args>(arguments, I)...));
  }
};

class AnyModule {
 public:
  AnyModule() = default;
  template <class M> explicit AnyModule(std::shared_ptr<M> module)
      : content_(make_holder(std::move(module))) {}
  template <class M, class = torch::detail::enable_if_module_t<M>> explicit AnyModule(M&& module)
      : AnyModule(std::make_shared<std::decay_t<M>>(std::forward<M>(module))) {}
  template <class M> explicit AnyModule(const ModuleHolder<M>& holder) : AnyModule(holder.ptr()) {}
  AnyModule(AnyModule&&) = default;
  AnyModule& operator=(AnyModule&&) = default;
  AnyModule(const AnyModule& o) : content_(o.content_ ? o.content_->copy() : nullptr) {}
  AnyModule& operator=(const AnyModule& o) {
    if (this != &o) content_ = o.content_ ? o.content_->copy() : nullptr;
    return *this;
  }
  template <class M> AnyModule& operator=(std::shared_ptr<M> module) {
    return *this = AnyModule(std::move(module));
  }
  AnyModule clone(std::optional<Device> device = std::nullopt) const {
    AnyModule out;
    if (content_) out.content_ = content_->clone_module(device);
    return out;
  }

  template <class... Args> AnyValue any_forward(Args&&... args) {
    TORCH_CHECK(!is_empty(), "Cannot call forward() on an empty AnyModule");
    std::vector<AnyValue> values;
    values.reserve(sizeof...(Args));
    (values.push_back(wrap(std::forward<Args>(args))), ...);
    return content_->forward(std::move(values));
  }
  template <class Result = Tensor, class... Args> Result forward(Args&&... args) {
    return any_forward(std::forward<Args>(args)...).template get<Result>();
  }

  template <class T, class = torch::detail::enable_if_module_t<T>> T& get() const {
    TORCH_CHECK(!is_empty(), "Cannot call get() on an empty AnyModule");
    return static_cast<T&>(*checked<T>());
  }
  template <class H, class = torch::detail::enable_if_module_holder_t<H>> H get() const {
    TORCH_CHECK(!is_empty(), "Cannot call get() on an empty AnyModule");
    return H(checked<typename H::ContainedType>());
  }
  std::shared_ptr<Module> ptr() const {
    TORCH_CHECK(!is_empty(), "Cannot call ptr() on an empty AnyModule");
    return content_->ptr();
  }
  template <class T, class = torch::detail::enable_if_module_t<T>> std::shared_ptr<T> ptr() const {
    TORCH_CHECK(!is_empty(), "Cannot call ptr() on an empty AnyModule");
    return checked<T>();
  }
  const std::type_info& type_info() const {
    TORCH_CHECK(!is_empty(), "Cannot call type_info() on an empty AnyModule");
    return content_->type;
  }
  bool is_empty() const noexcept { return content_ == nullptr; }

 private:
  static AnyValue wrap(AnyValue value) { return value; }
  template <class T, class = std::enable_if_t<!std::is_same_v<std::decay_t<T>, AnyValue>>>
  static AnyValue wrap(T&& value) {
    return AnyValue(std::forward<T>(value));
  }
  template <class M>
  static std::unique_ptr<AnyModulePlaceholder> make_holder(std::shared_ptr<M> module) {
    static_assert(torch::detail::is_module<M>::value,
                  "Can only store object derived from nn::Module into AnyModule");
    static_assert(torch::detail::has_forward<M>::value,
                  "Can only store module with a forward() method that has a non-templated return "
                  "type and non-overloaded arguments into AnyModule");
    using Holder =
        typename detail::ForwardSignature<decltype(&M::forward)>::template apply<AnyModuleHolder,
                                                                                 M>;
    return std::make_unique<Holder>(std::move(module));
  }
  template <class T> std::shared_ptr<T> checked() const {
    auto found = std::dynamic_pointer_cast<T>(content_->ptr());
    if (!found || (!std::is_same_v<T, Module> && typeid(T) != content_->type))
      detail::throw_module_cast(content_->type, typeid(T));
    return found;
  }

  std::unique_ptr<AnyModulePlaceholder> content_;
};

} // namespace torch::nn

namespace torch::nn::detail {
// The arguments that a module's forward() may do without: (position, value).
TORCH_API std::vector<AnyValue>
fill_arguments(std::vector<AnyValue>&& given,
               std::initializer_list<std::pair<unsigned, AnyValue>> defaults);
TORCH_API unsigned first_default(std::initializer_list<std::pair<unsigned, AnyValue>> defaults);
} // namespace torch::nn::detail

// Says which arguments of forward() have defaults, so that the module can be called without them
// inside a Sequential: FORWARD_HAS_DEFAULT_ARGS({1, AnyValue(2)}, {2, AnyValue(3.0)}).
#define FORWARD_HAS_DEFAULT_ARGS(...)                                                              \
  template <class M, class... Args> friend struct torch::nn::AnyModuleHolder;                      \
  bool _forward_has_default_args() override { return true; }                                       \
  unsigned int _forward_num_required_args() override {                                             \
    return torch::nn::detail::first_default({__VA_ARGS__});                                        \
  }                                                                                                \
  std::vector<torch::nn::AnyValue> _forward_populate_default_args(                                 \
      std::vector<torch::nn::AnyValue>&& arguments) override {                                     \
    return torch::nn::detail::fill_arguments(std::move(arguments), {__VA_ARGS__});                 \
  }
