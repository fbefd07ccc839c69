// segment_reduce: a dimension is cut into segments, given by their lengths or by the offsets of
// their borders, and each segment is reduced by itself. Borders are checked even when the caller
// asks for the unsafe form: a border outside the data is an error, never a read outside the tensor.
#include <ATen/native/reduce/Native.h>

#include <vector>

#include <ATen/core/EmptyTensor.h>
#include <ATen/native/DTypeSwitch.h>
#include <ATen/native/reduce/Segments.h>
#include <ATen/native/shape/Geometry.h>
#include <ATen/parallel/Stretches.h>
#include <ATen/vec/VecIO.h>
#include <c10/util/NumericLimits.h>

namespace at::native {

SegmentOp segment_op(std::string_view name) {
  if (name == "sum") return SegmentOp::Sum;
  if (name == "mean") return SegmentOp::Mean;
  if (name == "max" || name == "amax") return SegmentOp::Max;
  if (name == "min" || name == "amin") return SegmentOp::Min;
  TORCH_CHECK(name == "prod", "reduce argument must be either sum, prod, mean, amax or amin, got ",
              name);
  return SegmentOp::Prod;
}

namespace {
std::vector<int64_t> integers(const Tensor& t, const char* name) {
  TORCH_CHECK_NOT_IMPLEMENTED(t.scalar_type() == kLong || t.scalar_type() == kInt, "\"", name,
                              "\" not implemented for '", t.scalar_type(), "'");
  const Tensor list = at::detail::empty(t.sizes(), kLong); // on the CPU, wherever they come from
  list.copy_(t);
  const int64_t* p = list.data_ptr<int64_t>();
  return std::vector<int64_t>(p, p + list.numel());
}

void check_border_shape(const Tensor& data, const Tensor& borders, int64_t axis, const char* name) {
  TORCH_CHECK(borders.dim() - 1 == axis,
              "segment_reduce(): Expected axis to be the last dimension of ", name, " but got ",
              axis, ".");
  for (int64_t d = 0; d < axis; ++d)
    TORCH_CHECK(borders.sizes()[d] == data.sizes()[d], "segment_reduce(): ", name, " has size ",
                borders.sizes(), ", which does not match the data of size ", data.sizes());
}

} // namespace

Segments segments_of(const Tensor& data, const std::optional<Tensor>& lengths,
                     const std::optional<Tensor>& offsets, int64_t axis, bool unsafe) {
  TORCH_CHECK(lengths || offsets, "segment_reduce(): Either lengths or offsets must be defined.");
  Segments s;
  const Tensor& borders = lengths ? *lengths : *offsets;
  check_border_shape(data, borders, axis, lengths ? "lengths" : "offsets");
  for (int64_t d = 0; d < axis; ++d) s.outer *= data.sizes()[d];
  for (int64_t d = axis + 1; d < data.dim(); ++d) s.inner *= data.sizes()[d];
  s.size = data.sizes()[axis];
  const int64_t width = borders.sizes()[axis];
  TORCH_CHECK(lengths || width > 0, "segment_reduce(): offsets must have at least one border");
  s.count = lengths ? width : width - 1;
  s.shape = borders.sizes();
  s.shape[axis] = s.count;
  for (int64_t d = axis + 1; d < data.dim(); ++d) s.shape.push_back(data.sizes()[d]);
  if (data.is_meta()) return s;
  const std::vector<int64_t> list =
      integers(borders, lengths ? "_segment_reduce_lengths_cpu_kernel1"
                                : "_segment_reduce_offsets_cpu_kernel1");
  for (int64_t o = 0; o < s.outer; ++o) {
    int64_t position = 0;
    for (int64_t i = 0; i < s.count; ++i) {
      const int64_t value = list[o * width + i];
      TORCH_CHECK(!lengths || value >= 0, "lengths contains negative value!");
      const int64_t begin = lengths ? position : value;
      const int64_t end = lengths ? position + value : list[o * width + i + 1];
      TORCH_CHECK(begin >= 0 && begin <= end && end <= s.size && end - begin <= s.size,
                  lengths ? "segment_reduce(): Expected all rows of lengths along axis to sum to "
                            "data.size(lengths.dim()-1) when !unsafe."
                          : "segment_reduce(): offsets must ascend and lie inside the data");
      s.begin.push_back(begin);
      s.end.push_back(end);
      position = end;
    }
    TORCH_CHECK(!lengths || unsafe || position == s.size,
                "segment_reduce(): Expected all rows of lengths along axis to sum to "
                "data.size(lengths.dim()-1) when !unsafe.");
  }
  return s;
}

namespace {

template <class A> A identity(SegmentOp op) {
  switch (op) {
  case SegmentOp::Max:
    return -c10::numeric_limits<A>::infinity();
  case SegmentOp::Min:
    return c10::numeric_limits<A>::infinity();
  case SegmentOp::Prod:
    return A(1);
  default:
    return A(0);
  }
}

template <class A> A fold(SegmentOp op, A a, A x) {
  switch (op) {
  case SegmentOp::Max:
    return x > a || x != x ? x : a;
  case SegmentOp::Min:
    return x < a || x != x ? x : a;
  case SegmentOp::Prod:
    return a * x;
  default:
    return a + x;
  }
}

// acc[k] = the fold of acc[k] and column k of `rows` rows of `inner` elements, in order. The
// columns stand side by side, so that the compiler makes registers of them.
template <SegmentOp kOp, class T>
__attribute__((optimize("O3"))) void fold_rows(vec::opmath_t<T>* __restrict acc,
                                               const T* __restrict data, int64_t inner,
                                               int64_t width, int64_t rows) {
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t k = 0; k < width; ++k)
      acc[k] = fold(kOp, acc[k], static_cast<vec::opmath_t<T>>(data[r * inner + k]));
}

template <class T> void reduce_segments(const Segments& s, SegmentOp op,
                                        const std::optional<Scalar>& initial, const T* data,
                                        T* out) {
  using A = vec::opmath_t<T>;
  constexpr int64_t kColumns = 512, kRows = 256; // between two questions whether to stop
  const A start = initial ? initial->to<A>() : identity<A>(op);
  const auto fold_block = op == SegmentOp::Max    ? &fold_rows<SegmentOp::Max, T>
                          : op == SegmentOp::Min  ? &fold_rows<SegmentOp::Min, T>
                          : op == SegmentOp::Prod ? &fold_rows<SegmentOp::Prod, T>
                                                  : &fold_rows<SegmentOp::Sum, T>;
  at::parallel_for(0, s.outer * s.count, 64, [&](int64_t b, int64_t e) {
    Steps steps;
    A acc[kColumns];
    for (int64_t i = b; i < e; ++i) {
      const T* lines = data + i / s.count * s.size * s.inner;
      const int64_t length = s.end[i] - s.begin[i];
      for (int64_t k = 0; k < s.inner; k += kColumns) {
        const int64_t width = std::min(kColumns, s.inner - k);
        std::fill(acc, acc + width, start);
        for (int64_t r = s.begin[i]; r < s.end[i]; r += kRows) {
          const int64_t rows = std::min(kRows, s.end[i] - r);
          fold_block(acc, lines + r * s.inner + k, s.inner, width, rows);
          steps.add(rows * width);
        }
        for (int64_t j = 0; j < width; ++j) {
          if (op == SegmentOp::Mean) {
            if (length > 0)
              acc[j] = acc[j] / static_cast<A>(length);
            else if (!initial)
              acc[j] = c10::numeric_limits<A>::quiet_NaN();
          }
          out[i * s.inner + k + j] = static_cast<T>(acc[j]);
        }
      }
    }
  });
}

// The gradient of one line of one segment.
template <class T> void segment_gradient(SegmentOp op, const std::optional<Scalar>& initial,
                                         vec::opmath_t<T> grad, vec::opmath_t<T> output,
                                         const T* data, T* out, int64_t begin, int64_t end,
                                         int64_t step) {
  using A = vec::opmath_t<T>;
  const auto value = [&](int64_t r) { return static_cast<A>(data[r * step]); };
  Steps steps;
  if (op == SegmentOp::Sum || op == SegmentOp::Mean) {
    const A share = op == SegmentOp::Sum ? grad : grad / static_cast<A>(end - begin);
    for (int64_t r = begin; r < end; ++r, steps.add(1)) out[r * step] = static_cast<T>(share);
    return;
  }
  if (op == SegmentOp::Prod) {
    // The product of all the others, so that a zero needs no division.
    for (int64_t r = begin; r < end; ++r) {
      A others = initial ? initial->to<A>() : A(1);
      for (int64_t q = begin; q < end; ++q, steps.add(2))
        others = q == r ? others : others * value(q);
      out[r * step] = static_cast<T>(grad * others);
    }
    return;
  }
  const auto chosen = [&](int64_t r) { return value(r) == output || value(r) != value(r); };
  int64_t ties = 0;
  for (int64_t r = begin; r < end; ++r, steps.add(1)) ties += chosen(r);
  for (int64_t r = begin; r < end; ++r, steps.add(2))
    out[r * step] = static_cast<T>(chosen(r) ? grad / static_cast<A>(ties) : A(0));
}

} // namespace

Tensor segment_reduce_cpu(const Tensor& data, std::string_view reduce,
                          const std::optional<Tensor>& lengths,
                          const std::optional<Tensor>& indices,
                          const std::optional<Tensor>& offsets, int64_t axis, bool unsafe,
                          const std::optional<Scalar>& initial) {
  TORCH_CHECK(!indices, "segment_reduce(): indices based reduction is not supported yet.");
  TORCH_CHECK(data.dim() > 0, "segment_reduce(): Expected a tensor with at least one dimension");
  const int64_t d = wrap_dim(axis, data.dim());
  const SegmentOp op = segment_op(reduce);
  const Segments s = segments_of(data, lengths, offsets, d, unsafe);
  const Tensor input = data.contiguous();
  const Tensor out = at::detail::empty(s.shape, data.scalar_type(), data.device());
  if (out.is_meta()) return out;
  dtype_switch<FloatingTypes>(data.scalar_type(), "_segment_reduce_cpu", [&](auto tag) {
    using T = typename decltype(tag)::type;
    reduce_segments<T>(s, op, initial, static_cast<const T*>(input.const_data_ptr()),
                       static_cast<T*>(out.mutable_data_ptr()));
  });
  return out;
}

Tensor segment_reduce_backward_cpu(const Tensor& grad, const Tensor& output, const Tensor& data,
                                   std::string_view reduce, const std::optional<Tensor>& lengths,
                                   const std::optional<Tensor>& offsets, int64_t axis,
                                   const std::optional<Scalar>& initial) {
  TORCH_CHECK(data.dim() > 0, "segment_reduce(): Expected a tensor with at least one dimension");
  const int64_t d = wrap_dim(axis, data.dim());
  const SegmentOp op = segment_op(reduce);
  const Segments s = segments_of(data, lengths, offsets, d, true);
  TORCH_CHECK(grad.sizes() == IntArrayRef(s.shape) && output.sizes() == IntArrayRef(s.shape) &&
                  grad.scalar_type() == data.scalar_type() &&
                  output.scalar_type() == data.scalar_type(),
              "segment_reduce(): grad and output must have size ", IntArrayRef(s.shape),
              " and dtype ", data.scalar_type());
  const Tensor g = grad.contiguous(), y = output.contiguous(), x = data.contiguous();
  const Tensor out = at::detail::empty(data.sizes(), data.scalar_type(), data.device());
  if (out.is_meta()) return out;
  out.zero_();
  dtype_switch<FloatingTypes>(data.scalar_type(), "_segment_reduce_cpu", [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T *gp = g.data_ptr<T>(), *yp = y.data_ptr<T>(), *xp = x.data_ptr<T>();
    T* to = out.data_ptr<T>();
    for (int64_t i = 0; i < s.outer * s.count; ++i) {
      const int64_t base = i / s.count * s.size * s.inner;
      for (int64_t k = 0; k < s.inner; ++k)
        segment_gradient<T>(op, initial, gp[i * s.inner + k], yp[i * s.inner + k], xp + base + k,
                            to + base + k, s.begin[i], s.end[i], s.inner);
    }
  });
  return out;
}

} // namespace at::native
