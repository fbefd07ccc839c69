// Indexing in C++ as in Python: `x.index({Slice(1, 3), None, "...", 0, mask})` for
// `x[1:3, None, ..., 0, mask]`.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

namespace at::indexing {

// The ends of a slice that is open at its upper or lower end.
constexpr int64_t INDEX_MIN = SymInt::kSymbolicBound; // the least that SymInt holds
constexpr int64_t INDEX_MAX = INT64_MAX;

inline constexpr std::nullopt_t None = std::nullopt;

struct EllipsisIndexType final {};
TORCH_API extern const EllipsisIndexType Ellipsis;

// start:stop:step, with the defaults Python has for the direction of the step.
class TORCH_API Slice final {
 public:
  Slice(std::optional<SymInt> start = std::nullopt, std::optional<SymInt> stop = std::nullopt,
        std::optional<SymInt> step = std::nullopt);
  SymInt start() const { return start_; }
  SymInt stop() const { return stop_; }
  SymInt step() const { return step_; }

 private:
  SymInt start_, stop_, step_;
};

class TORCH_API TensorIndex final {
 public:
  TensorIndex(std::nullopt_t) : kind_(Kind::None) {}
  TensorIndex(EllipsisIndexType) : kind_(Kind::Ellipsis) {}
  TensorIndex(const char* text); // "..." only
  TensorIndex(SymInt integer) : kind_(Kind::Integer), slice_(integer) {}
  template <class T, std::enable_if_t<std::is_integral_v<T> && !std::is_same_v<T, bool>, int> = 0>
  TensorIndex(T integer) : TensorIndex(SymInt(static_cast<int64_t>(integer))) {}
  template <class T, std::enable_if_t<std::is_same_v<T, bool>, int> = 0> TensorIndex(T boolean)
      : kind_(boolean ? Kind::True : Kind::False) {}
  TensorIndex(Slice slice) : kind_(Kind::Slice), slice_(slice) {}
  TensorIndex(Tensor tensor) : kind_(Kind::Tensor), tensor_(std::move(tensor)) {}

  bool is_none() const { return kind_ == Kind::None; }
  bool is_ellipsis() const { return kind_ == Kind::Ellipsis; }
  bool is_integer() const { return kind_ == Kind::Integer; }
  bool is_boolean() const { return kind_ == Kind::True || kind_ == Kind::False; }
  bool is_slice() const { return kind_ == Kind::Slice; }
  bool is_tensor() const { return kind_ == Kind::Tensor; }
  SymInt integer() const { return slice_.start(); }
  bool boolean() const { return kind_ == Kind::True; }
  const Slice& slice() const { return slice_; }
  const Tensor& tensor() const { return tensor_; }

 private:
  enum class Kind : uint8_t { None, Ellipsis, Integer, True, False, Slice, Tensor };
  Kind kind_;
  Slice slice_;
  Tensor tensor_;
};

TORCH_API void append(std::string& out, const Slice& slice);
TORCH_API void append(std::string& out, const TensorIndex& index);
TORCH_API void append(std::string& out, const std::vector<TensorIndex>& indices);
TORCH_API std::ostream& operator<<(std::ostream& out, const Slice& slice);
TORCH_API std::ostream& operator<<(std::ostream& out, const TensorIndex& index);
TORCH_API std::ostream& operator<<(std::ostream& out, const std::vector<TensorIndex>& indices);

} // namespace at::indexing
