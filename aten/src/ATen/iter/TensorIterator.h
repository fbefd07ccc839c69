// Walks several strided operands over one shape. Dimensions are reordered so that the innermost has
// the smallest strides, neighbours that lie flush are merged, and the range is cut into rows that a
// 1-d loop processes; large ranges are shared between threads in chunks with fixed boundaries. The
// iterator allocates nothing and checks nothing: outputs exist and all operands broadcast to the
// shape.
#pragma once
#include <type_traits>

#include <ATen/core/Tensor.h>
#include <ATen/iter/LoopTable.h>

namespace at {

// A non-owning reference to a callable.
template <class Signature> class FunctionRef;
template <class R, class... Args> class FunctionRef<R(Args...)> {
 public:
  template <class F, class = std::enable_if_t<!std::is_same_v<std::decay_t<F>, FunctionRef>>>
  FunctionRef(F&& f)
      : object_(const_cast<void*>(static_cast<const void*>(&f))),
        call_([](void* object, Args... args) -> R {
          return (*static_cast<std::remove_reference_t<F>*>(object))(std::forward<Args>(args)...);
        }) {}
  R operator()(Args... args) const { return call_(object_, std::forward<Args>(args)...); }

 private:
  void* object_;
  R (*call_)(void*, Args...);
};

// Row of n elements: data and byte strides by operand.
using RowFn = FunctionRef<void(char* const* data, const int64_t* strides, int64_t n)>;

class TORCH_API TensorIterator {
 public:
  static constexpr int kMaxOperands = 8;
  // Elements a chunk has at least; below it nothing is shared between threads.
  static constexpr int64_t kGrain = 32768;

  explicit TensorIterator(IntArrayRef shape) : shape_(shape) {}

  // Outputs first. `compute` is the dtype the loop works in; where it differs from the tensor's the
  // values are converted in a small buffer on the way (cast on the fly).
  void add_output(const Tensor& tensor, ScalarType compute);
  void add_output(const Tensor& tensor) { add_output(tensor, tensor.scalar_type()); }
  void add_input(const Tensor& tensor, ScalarType compute);
  void add_input(const Tensor& tensor) { add_input(tensor, tensor.scalar_type()); }
  // An operand given by address and byte strides (one per dimension of the shape).
  void add_raw(void* data, IntArrayRef byte_strides, ScalarType dtype, bool is_output);
  // One value for every element, at `data`, already of the compute dtype.
  void add_constant(const void* data);

  // Reorders and merges dimensions. Call once, after the operands.
  void build();

  int64_t numel() const { return numel_; }
  int ndim() const { return static_cast<int>(shape_.size()); }
  IntArrayRef shape() const { return shape_; }
  bool needs_cast() const { return needs_cast_; }

  // Runs `row` over everything.
  void for_each(RowFn row, int64_t grain = kGrain);
  // The same for a loop of a table.
  void run(native::Loop1d loop, const void* params, int64_t grain = kGrain);
  // One range [begin, end) of the linear index, on this thread.
  void for_range(RowFn row, int64_t begin, int64_t end) const;

 private:
  struct OperandInfo {
    char* data;
    DimVector strides; // bytes
    ScalarType dtype;
    ScalarType compute;
    bool is_output;
    bool needs_cast;
  };
  void add(void* data, DimVector strides, ScalarType dtype, ScalarType compute, bool is_output);
  void add_tensor(const Tensor& tensor, ScalarType compute, bool is_output);
  void reorder();
  void merge();
  void cast_row(RowFn row, char* const* data, const int64_t* strides, int64_t n) const;

  DimVector shape_;
  c10::SmallVector<OperandInfo, 4> operands_;
  int64_t numel_ = 0;
  bool needs_cast_ = false;
};

// ---- shapes -----------------------------------------------------------------------------------
// The common shape of two; Error "The size of tensor a (3) must match the size of tensor b (4) at
// non-singleton dimension 0".
TORCH_API DimVector broadcast_shapes(IntArrayRef a, IntArrayRef b);
TORCH_API DimVector broadcast_shapes(TensorList tensors);

// The strides a pointwise result gets: dense, in the order of dimensions of the operands.
// `operands` are tensors whose shapes broadcast to `shape`.
TORCH_API DimVector pointwise_output_strides(IntArrayRef shape, ArrayRef<const Tensor*> operands);

// ---- memory overlap -----------------------------------------------------------------------------
// Errors with PyTorch's text when the tensor's own elements share memory, or when `out` and `in`
// overlap without being the same elements.
TORCH_API void assert_no_internal_overlap(const Tensor& out);
TORCH_API void assert_no_partial_overlap(const Tensor& out, const Tensor& in);
TORCH_API void assert_no_overlap(const Tensor& out, const Tensor& in);
// Whether the bytes from the first to the last that each can touch intersect.
TORCH_API bool may_overlap(const Tensor& a, const Tensor& b);

// ---- dtypes -------------------------------------------------------------------------------------
// The promotion state over operands: tensors with dimensions, 0-dim tensors and numbers rank in
// that order, and a lower rank decides only when its category (bool < integer < float < complex) is
// higher.
class TORCH_API ResultType {
 public:
  void add(const Tensor& tensor);
  void add(const Scalar& scalar);
  ScalarType get() const;

 private:
  ScalarType dim_ = ScalarType::Undefined;
  ScalarType zero_ = ScalarType::Undefined;
  ScalarType wrapped_ = ScalarType::Undefined;
};
TORCH_API ScalarType result_type_of(const Tensor& a, const Tensor& b);
TORCH_API ScalarType result_type_of(const Tensor& a, const Scalar& b);
TORCH_API ScalarType result_type_of(TensorList tensors);

} // namespace at
