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
const Kernel kResizeBytes{kProgram, "resize_u8"};

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

// `specs` are of the forward direction; `from` and `to` have the layout asked for.
void run(const Tensor& from, const Tensor& to, const Specs& specs, bool backward,
         bool channels_last, const char* name) {
  const ScalarType dtype = from.scalar_type();
  const Kernel& kernel = dtype == kByte ? kResizeBytes : kResize[cuda::floating_slot(dtype, name)];
  const ScalarType compute = dtype == kDouble ? kDouble : kFloat;
  ResizePointers a{};
  Tables tables[3];
  bool copies = true;
  int64_t plane = 1;
  for (int i = 0; i < 3; ++i) {
    const AxisSpec& spec = specs.axis[i];
    tables[i] = tables_of(spec, backward, compute, from.device());
    copies = copies && tables[i].single;
    ResizedAxisPointers& axis = a.axis[i];
    axis.first = static_cast<const int32_t*>(tables[i].first.const_data_ptr());
    axis.place = static_cast<const int32_t*>(tables[i].place.const_data_ptr());
    axis.weight = tables[i].weight.const_data_ptr();
    axis.from = backward ? spec.out : spec.in;
    axis.to = backward ? spec.in : spec.out;
    axis.by_to = device::Divider(static_cast<uint32_t>(axis.to));
    plane *= axis.to;
  }
  a.samples = to.size(0);
  a.channels = to.size(1);
  a.channels_last = channels_last;
  a.copies = copies;
  constexpr int64_t kLimit = std::numeric_limits<int32_t>::max() / 2;
  a.small = from.numel() < kLimit && to.numel() < kLimit;
  if (a.small) {
    a.by_channels = device::Divider(static_cast<uint32_t>(a.channels));
    a.by_plane = device::Divider(static_cast<uint32_t>(plane));
  }
  const void* source = from.const_data_ptr();
  cuda::launch(kernel, cuda::blocks_for(to.numel(), 256), 256, 0, cuda::current_stream(), source,
               to.mutable_data_ptr(), a);
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
