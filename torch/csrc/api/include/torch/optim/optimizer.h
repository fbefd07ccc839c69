// The base of optimizers: groups of parameters with options, and a state per parameter.
//
// Options and states list their fields once (`fields`); reading, writing and comparing follow from
// that list.
#pragma once
#include <deque>
#include <functional>
#include <memory>
#include <vector>

#include <c10/util/flat_hash_map.h>
#include <torch/arg.h>
#include <torch/serialize/archive.h>
#include <torch/types.h>

namespace torch::optim {

namespace detail {
// Fields to and from archives.
class TORCH_API FieldWriter {
 public:
  explicit FieldWriter(serialize::OutputArchive& archive) : archive_(archive) {}
  void operator()(const char* name, const double& value);
  void operator()(const char* name, const int64_t& value);
  void operator()(const char* name, const bool& value);
  void operator()(const char* name, const Tensor& value);
  void operator()(const char* name, const std::tuple<double, double>& value);
  void operator()(const char* name, const std::optional<int64_t>& value);
  void operator()(const char* name, const std::optional<std::string>& value);
  void operator()(const char* name, const std::deque<Tensor>& value);
  void operator()(const char* name, const std::optional<std::vector<Tensor>>& value);

 private:
  serialize::OutputArchive& archive_;
};
class TORCH_API FieldReader {
 public:
  explicit FieldReader(serialize::InputArchive& archive) : archive_(archive) {}
  void operator()(const char* name, double& value);
  void operator()(const char* name, int64_t& value);
  void operator()(const char* name, bool& value);
  void operator()(const char* name, Tensor& value);
  void operator()(const char* name, std::tuple<double, double>& value);
  void operator()(const char* name, std::optional<int64_t>& value);
  void operator()(const char* name, std::optional<std::string>& value);
  void operator()(const char* name, std::deque<Tensor>& value);
  void operator()(const char* name, std::optional<std::vector<Tensor>>& value);

 private:
  serialize::InputArchive& archive_;
};
TORCH_API bool same_field(const Tensor& a, const Tensor& b);
TORCH_API bool same_field(const std::deque<Tensor>& a, const std::deque<Tensor>& b);
TORCH_API bool same_field(const std::optional<std::vector<Tensor>>& a,
                          const std::optional<std::vector<Tensor>>& b);
template <class T> bool same_field(const T& a, const T& b) { return a == b; }

struct NoOp {
  template <class... T> void operator()(const char*, T&&...) {}
};
template <class T, class = void> constexpr bool has_fields = false;
template <class T> constexpr bool
    has_fields<T, std::void_t<decltype(T::fields(std::declval<NoOp&>(), std::declval<T&>()))>> =
        true;
[[noreturn]] TORCH_API void throw_not_serializable();
template <class T> void write_fields(const T& self, serialize::OutputArchive& archive) {
  if constexpr (has_fields<T>) {
    FieldWriter writer(archive);
    T::fields(writer, self);
  } else {
    throw_not_serializable();
  }
}
template <class T> void read_fields(T& self, serialize::InputArchive& archive) {
  if constexpr (has_fields<T>) {
    FieldReader reader(archive);
    T::fields(reader, self);
  } else {
    throw_not_serializable();
  }
}
template <class T> bool same_fields(const T& a, const T& b) {
  bool same = true;
  const auto compare = [&](const char*, const auto& x, const auto& y) {
    same = same && same_field(x, y);
  };
  T::fields(compare, a, b);
  return same;
}
} // namespace detail

class TORCH_API OptimizerParamState {
 public:
  virtual ~OptimizerParamState();
  virtual std::unique_ptr<OptimizerParamState> clone() const = 0;
  virtual void serialize(serialize::InputArchive& archive) = 0;
  virtual void serialize(serialize::OutputArchive& archive) const = 0;
};
template <class Derived> class OptimizerCloneableParamState : public OptimizerParamState {
 public:
  std::unique_ptr<OptimizerParamState> clone() const override {
    return std::make_unique<Derived>(static_cast<const Derived&>(*this));
  }
  void serialize(serialize::InputArchive& archive) override {
    detail::read_fields(static_cast<Derived&>(*this), archive);
  }
  void serialize(serialize::OutputArchive& archive) const override {
    detail::write_fields(static_cast<const Derived&>(*this), archive);
  }
  friend bool operator==(const Derived& a, const Derived& b) { return detail::same_fields(a, b); }
};

class TORCH_API OptimizerOptions {
 public:
  virtual ~OptimizerOptions();
  virtual std::unique_ptr<OptimizerOptions> clone() const = 0;
  virtual void serialize(serialize::InputArchive& archive) = 0;
  virtual void serialize(serialize::OutputArchive& archive) const = 0;
  virtual double get_lr() const;
  virtual void set_lr(const double lr);
};
template <class Derived> class OptimizerCloneableOptions : public OptimizerOptions {
 public:
  std::unique_ptr<OptimizerOptions> clone() const override {
    return std::make_unique<Derived>(static_cast<const Derived&>(*this));
  }
  void serialize(serialize::InputArchive& archive) override {
    detail::read_fields(static_cast<Derived&>(*this), archive);
  }
  void serialize(serialize::OutputArchive& archive) const override {
    detail::write_fields(static_cast<const Derived&>(*this), archive);
  }
  double get_lr() const override { return static_cast<const Derived&>(*this).lr(); }
  void set_lr(const double lr) override { static_cast<Derived&>(*this).lr(lr); }
  friend bool operator==(const Derived& a, const Derived& b) { return detail::same_fields(a, b); }
};

// Parameters with options of their own, or those of the optimizer.
class TORCH_API OptimizerParamGroup {
 public:
  OptimizerParamGroup(std::vector<Tensor> params) : params_(std::move(params)) {}
  OptimizerParamGroup(std::vector<Tensor> params, std::unique_ptr<OptimizerOptions> options)
      : params_(std::move(params)), options_(std::move(options)) {}
  OptimizerParamGroup(const OptimizerParamGroup& o)
      : params_(o.params_), options_(o.options_ ? o.options_->clone() : nullptr) {}
  OptimizerParamGroup(OptimizerParamGroup&&) = default;
  OptimizerParamGroup& operator=(const OptimizerParamGroup& o) {
    params_ = o.params_;
    options_ = o.options_ ? o.options_->clone() : nullptr;
    return *this;
  }
  OptimizerParamGroup& operator=(OptimizerParamGroup&&) = default;
  bool has_options() const { return options_ != nullptr; }
  OptimizerOptions& options();
  const OptimizerOptions& options() const;
  void set_options(std::unique_ptr<OptimizerOptions> options) { options_ = std::move(options); }
  std::vector<Tensor>& params() { return params_; }
  const std::vector<Tensor>& params() const { return params_; }

 private:
  std::vector<Tensor> params_;
  std::unique_ptr<OptimizerOptions> options_;
};

class TORCH_API Optimizer {
 public:
  using LossClosure = std::function<Tensor()>;
  using State = ska::flat_hash_map<void*, std::unique_ptr<OptimizerParamState>>;

  explicit Optimizer(const std::vector<OptimizerParamGroup>& param_groups,
                     std::unique_ptr<OptimizerOptions> defaults);
  explicit Optimizer(std::vector<Tensor> parameters, std::unique_ptr<OptimizerOptions> defaults)
      : Optimizer({OptimizerParamGroup(std::move(parameters))}, std::move(defaults)) {}
  Optimizer(const Optimizer&) = delete;
  Optimizer(Optimizer&&) = default;
  virtual ~Optimizer();

  void add_param_group(const OptimizerParamGroup& param_group);
  // One step; the closure, where given, computes the loss again and fills the gradients.
  virtual Tensor step(LossClosure closure = nullptr) = 0;
  void add_parameters(const std::vector<Tensor>& parameters);
  void zero_grad(bool set_to_none = true);
  const std::vector<Tensor>& parameters() const noexcept;
  std::vector<Tensor>& parameters() noexcept;
  size_t size() const noexcept;
  OptimizerOptions& defaults() noexcept { return *defaults_; }
  const OptimizerOptions& defaults() const noexcept { return *defaults_; }
  std::vector<OptimizerParamGroup>& param_groups() noexcept { return param_groups_; }
  const std::vector<OptimizerParamGroup>& param_groups() const noexcept { return param_groups_; }
  State& state() noexcept { return state_; }
  const State& state() const noexcept { return state_; }
  virtual void save(serialize::OutputArchive& archive) const;
  virtual void load(serialize::InputArchive& archive);

 protected:
  // A fresh state, to be filled from a file. Null where the class keeps none.
  virtual std::unique_ptr<OptimizerParamState> make_state() const { return nullptr; }
  // The loss of the closure, computed with gradients.
  static Tensor loss_of(const LossClosure& closure);
  // The state of `parameter`, made where it is missing.
  template <class S> S& state_of(const Tensor& parameter, bool& is_new) {
    auto& slot = state_[parameter.unsafeGetTensorImpl()];
    is_new = slot == nullptr;
    if (is_new) slot = std::make_unique<S>();
    return static_cast<S&>(*slot);
  }

  std::vector<OptimizerParamGroup> param_groups_;
  State state_;
  std::unique_ptr<OptimizerOptions> defaults_;
};

TORCH_API serialize::OutputArchive& operator<<(serialize::OutputArchive& archive,
                                               const Optimizer& optimizer);
TORCH_API serialize::InputArchive& operator>>(serialize::InputArchive& archive,
                                              Optimizer& optimizer);

} // namespace torch::optim
