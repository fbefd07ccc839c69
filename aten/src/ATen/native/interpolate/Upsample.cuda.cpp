// The host side of Upsample.cuh. The taps of an axis are the CPU's (Taps.h), written to the device
// once for each kind of axis and kept; the gradient takes them transposed.
#include <ATen/core/EmptyTensor.h>
#include <ATen/cuda/KernelCall.h>
#include <ATen/native/interpolate/Upsample.args.h>
#include <ATen/native/interpolate/Upsample.h>
#include <c10/core/MemoryFormat.h>

#include <algorithm>
#include <limits>
#include <map>
#include <mutex>
#include <tuple>
#include <vector>

namespace at::native::interpolate {
namespace {
using cuda::Kernel;
using device::ResizedAxisPointers;
using device::ResizePointers;

constexpr const char* kProgram = "native/interpolate/Upsample.cuh";
const Kernel kResize[4] = {{kProgram, "resize_f32"},
                           {kProgram, "resize_f64"},
                           {kProgram, "resize_f16"},
                           {kProgram, "resize_bf16"}};
// One axis, from and to float where the tensors are of a half type.
const Kernel kAxis[2] = {{kProgram, "resize_axis_f32_f32"}, {kProgram, "resize_axis_f64_f64"}};
const Kernel kAxisFromHalf[2] = {{kProgram, "resize_axis_f16_f32"},
                                 {kProgram, "resize_axis_bf16_f32"}};
const Kernel kAxisToHalf[2] = {{kProgram, "resize_axis_f32_f16"},
                               {kProgram, "resize_axis_f32_bf16"}};
// By the logarithm of the element's size.
const Kernel kCopies[4] = {{kProgram, "resize_copies_u8"},
                           {kProgram, "resize_copies_i16"},
                           {kProgram, "resize_copies_i32"},
                           {kProgram, "resize_copies_i64"}};
constexpr int kThreads = 256;
constexpr int64_t kSmallest = std::numeric_limits<int32_t>::max() / 2;

// ---- tables -------------------------------------------------------------------------------------
// An axis on the device. `single`: every result takes one element, with weight one.
struct Tables {
  Tensor first, place, weight;
  bool single = false;
};
struct Sparse {
  std::vector<int32_t> first, place;
  std::vector<double> weight;
};

// Element o of the result takes place[k], k from first[o] on.
template <class A> Sparse forward_taps(const Axis<A>& axis) {
  Sparse s;
  s.first.push_back(0);
  for (int64_t o = 0; o < axis.out; ++o) {
    for (int64_t t = 0; t < axis.taps; ++t) {
      const A weight = axis.weight.size() > 0 ? axis.weight[t * axis.out + o] : A(1);
      if (weight == A(0) && t > 0) continue;
      s.place.push_back(static_cast<int32_t>(axis.low) + axis.index[t * axis.out + o]);
      s.weight.push_back(static_cast<double>(weight));
    }
    s.first.push_back(static_cast<int32_t>(s.place.size()));
  }
  return s;
}
// The same with the roles of both sides exchanged; results stay in order.
Sparse transposed(const Sparse& s, int64_t sources) {
  Sparse t;
  t.first.assign(static_cast<size_t>(sources) + 1, 0);
  for (const int32_t p : s.place) ++t.first[static_cast<size_t>(p) + 1];
  for (size_t i = 1; i < t.first.size(); ++i) t.first[i] += t.first[i - 1];
  t.place.resize(s.place.size());
  t.weight.resize(s.place.size());
  std::vector<int32_t> next(t.first.begin(), t.first.end() - 1);
  for (size_t o = 0; o + 1 < s.first.size(); ++o) {
    for (int32_t k = s.first[o]; k < s.first[o + 1]; ++k) {
      const auto where = static_cast<size_t>(next[static_cast<size_t>(s.place[k])]++);
      t.place[where] = static_cast<int32_t>(o);
      t.weight[where] = s.weight[static_cast<size_t>(k)];
    }
  }
  return t;
}

template <class T> Tensor on_device(const std::vector<T>& values, ScalarType dtype, Device device) {
  const Tensor host = detail::empty({static_cast<int64_t>(values.size())}, dtype);
  std::copy(values.begin(), values.end(), static_cast<T*>(host.data_ptr()));
  const Tensor copy = detail::empty(host.sizes(), dtype, device);
  copy.copy_(host);
  return copy;
}

Tables make_tables(const AxisSpec& spec, bool backward, ScalarType compute, Device device) {
  const bool wide = compute == kDouble;
  Sparse s = wide ? forward_taps(make_axis<double>(spec, 0, spec.out))
                  : forward_taps(make_axis<float>(spec, 0, spec.out));
  if (backward) s = transposed(s, spec.in);
  Tables tables;
  tables.single = s.place.size() + 1 == s.first.size() &&
                  std::all_of(s.weight.begin(), s.weight.end(), [](double w) { return w == 1; });
  for (size_t o = 0; tables.single && o < s.place.size(); ++o)
    tables.single = s.first[o] == static_cast<int32_t>(o);
  tables.first = on_device(s.first, kInt, device);
  tables.place = on_device(s.place, kInt, device);
  tables.weight = on_device(s.weight, kDouble, device).to(compute);
  return tables;
}

// Most programs resize between few sizes. The copies above have ended when they return, so any
// stream may read the tables.
Tables tables_of(const AxisSpec& spec, bool backward, ScalarType compute, Device device) {
  using Key = std::tuple<int, int64_t, int64_t, bool, double, bool, int, int>;
  constexpr size_t kMostKept = 512;
  static std::mutex mutex;
  static auto* const kept = new std::map<Key, Tables>;
  const double scale = spec.scale && *spec.scale > 0 ? *spec.scale : 0;
  const Key key(static_cast<int>(spec.mode), spec.in, spec.out, spec.align_corners, scale, backward,
                static_cast<int>(compute), device.index());
  {
    const std::lock_guard<std::mutex> lock(mutex);
    const auto found = kept->find(key);
    if (found != kept->end()) return found->second;
  }
  const Tables made = make_tables(spec, backward, compute, device);
  const std::lock_guard<std::mutex> lock(mutex);
  if (kept->size() < kMostKept) kept->emplace(key, made);
  return made;
}

// ---- the call -----------------------------------------------------------------------------------
bool is_channels_last(const Tensor& t) {
  return t.dim() >= 4 && t.size(1) > 1 && c10::is_channels_last_strides(t.sizes(), t.strides());
}

// A call: tables of the three axes, and what follows from them.
struct Call {
  // `specs` are of the forward direction.
  Call(const Tensor& from, const Tensor& to, const Specs& specs, bool backward, bool last)
      : compute(from.scalar_type() == kDouble ? kDouble : kFloat), channels_last(last) {
    args.samples = to.size(0);
    args.channels = to.size(1);
    args.channels_last = channels_last;
    args.small = from.numel() < kSmallest && to.numel() < kSmallest;
    int64_t plane = 1;
    for (int i = 0; i < 3; ++i) {
      const AxisSpec& spec = specs.axis[i];
      tables[i] = tables_of(spec, backward, compute, from.device());
      copies = copies && tables[i].single;
      ResizedAxisPointers& axis = args.axis[i];
      axis.first = static_cast<const int32_t*>(tables[i].first.const_data_ptr());
      axis.place = static_cast<const int32_t*>(tables[i].place.const_data_ptr());
      axis.weight = tables[i].weight.const_data_ptr();
      axis.from = backward ? spec.out : spec.in;
      axis.to = backward ? spec.in : spec.out;
      axis.by_to = device::Divider(static_cast<uint32_t>(axis.to));
      plane *= axis.to;
      const double taps =
          static_cast<double>(tables[i].place.numel()) / static_cast<double>(axis.to);
      together *= taps;
      apart += tables[i].single ? 0 : taps;
    }
    if (!args.small) return;
    args.by_channels = device::Divider(static_cast<uint32_t>(args.channels));
    args.by_plane = device::Divider(static_cast<uint32_t>(plane));
  }

  ScalarType compute;
  bool channels_last, copies = true;
  Tables tables[3];
  ResizePointers args{};
  double together = 1, apart = 0; // taps of an element: all axes at a time, and one after the other
};

void run_copies(const Call& c, const Tensor& from, const Tensor& to) {
  int size = 0;
  while ((int64_t(1) << size) < static_cast<int64_t>(to.itemsize())) ++size;
  const int64_t pack = 16 >> size, row = c.channels_last ? c.args.channels : c.args.axis[2].to;
  const bool packed = c.args.small && row % pack == 0 &&
                      cuda::is_aligned16(from.const_data_ptr()) &&
                      cuda::is_aligned16(to.const_data_ptr());
  cuda::launch(kCopies[size], cuda::blocks_for(to.numel() / (packed ? pack : 1), kThreads),
               kThreads, 0, cuda::current_stream(), from.const_data_ptr(), to.mutable_data_ptr(),
               c.args, static_cast<int>(packed));
}

// The axes one after the other, those that shrink most first, and of those that shrink alike the
// outer one, whose neighbours lie side by side. Between them sums stay in `compute`.
void run_axes(const Call& c, const Tensor& from, const Tensor& to) {
  int order[3], count = 0;
  for (int i = 0; i < 3; ++i)
    if (!c.tables[i].single || c.args.axis[i].from != c.args.axis[i].to) order[count++] = i;
  const auto growth = [&](int i) {
    return static_cast<double>(c.args.axis[i].to) / static_cast<double>(c.args.axis[i].from);
  };
  std::stable_sort(order, order + count, [&](int i, int j) { return growth(i) < growth(j); });
  int64_t sizes[3];
  for (int i = 0; i < 3; ++i) sizes[i] = c.args.axis[i].from;
  const int64_t images = c.args.samples * (c.channels_last ? 1 : c.args.channels);
  const int64_t innermost = c.channels_last ? c.args.channels : 1;
  Tensor source = from;
  for (int step = 0; step < count; ++step) {
    const int i = order[step];
    device::ResizeAxisPointers a{};
    a.axis = c.args.axis[i];
    a.outer = images;
    a.inner = innermost;
    for (int d = 0; d < i; ++d) a.outer *= sizes[d];
    for (int d = i + 1; d < 3; ++d) a.inner *= sizes[d];
    sizes[i] = a.axis.to;
    const int64_t numel = a.outer * a.inner * a.axis.to;
    const Tensor target = step + 1 == count ? to : detail::empty({numel}, c.compute, from.device());
    a.small = source.numel() < kSmallest && numel < kSmallest;
    if (a.small) a.by_inner = device::Divider(static_cast<uint32_t>(a.inner));
    const ScalarType in = source.scalar_type(), out = target.scalar_type();
    const Kernel& kernel = in != c.compute    ? kAxisFromHalf[in == kBFloat16]
                           : out != c.compute ? kAxisToHalf[out == kBFloat16]
                                              : kAxis[c.compute == kDouble];
    cuda::launch(kernel, cuda::blocks_for(numel, kThreads), kThreads, 0, cuda::current_stream(),
                 source.const_data_ptr(), target.mutable_data_ptr(), a);
    source = target;
  }
}

// `from` and `to` have the layout asked for.
void run(const Tensor& from, const Tensor& to, const Specs& specs, bool backward,
         bool channels_last, const char* name) {
  const Call c(from, to, specs, backward, channels_last);
  if (c.copies) {
    run_copies(c, from, to);
    return;
  }
  const int slot = cuda::floating_slot(from.scalar_type(), name);
  // Each pass costs a trip through memory.
  if (c.together > 2 * c.apart) {
    run_axes(c, from, to);
    return;
  }
  cuda::launch(kResize[slot], cuda::blocks_for(to.numel(), kThreads), kThreads, 0,
               cuda::current_stream(), from.const_data_ptr(), to.mutable_data_ptr(), c.args);
}

void resize(const Tensor& from, const Tensor& to, const Specs& specs, bool backward,
            const char* name) {
  if (to.numel() == 0) return;
  const bool last = is_channels_last(from) && is_channels_last(to);
  const Tensor source = last ? from : from.contiguous();
  const Tensor target =
      last || to.is_contiguous() ? to : detail::empty(to.sizes(), to.scalar_type(), to.device());
  run(source, target, specs, backward, last, name);
  if (!target.is_same(to)) to.copy_(target);
}

} // namespace

void upsample_cuda(const Tensor& self, const Tensor& out, const Specs& specs, const char* name) {
  const Mode mode = specs.axis[2].mode;
  const bool bytes = self.scalar_type() == kByte;
  TORCH_CHECK_NOT_IMPLEMENTED(!bytes || mode == Mode::Nearest || mode == Mode::NearestExact, "\"",
                              name, "_cuda\" not implemented for 'Byte'");
  resize(self, out, specs, false, name);
}

void upsample_backward_cuda(const Tensor& grad, const Tensor& out, const Specs& specs,
                            const char* name) {
  resize(grad, out, specs, true, name);
}

} // namespace at::native::interpolate
