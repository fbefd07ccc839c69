// See kernel_builder.h.
#include <torch/csrc/inductor/kernel_builder.h>

#include <algorithm>
#include <cstring>

#include <ATen/iter/Cast.h>

namespace torch::inductor {
namespace {

using PK = Place::Kind;

Place place(PK kind, int64_t size, int16_t index) {
  Place p;
  p.kind = kind;
  p.size = static_cast<uint8_t>(size);
  p.index = index;
  return p;
}

// A step that converts; `have` and `want` may be the same.
TileStep cast_step(at::ScalarType have, at::ScalarType want) {
  TileStep step{};
  step.loop = at::cast_loop(want, have);
  step.inputs = 1;
  step.form = TileStep::Form::Cast;
  step.from = have;
  step.to = want;
  return step;
}

bool is_lone(const Place& p) {
  return p.kind == PK::Lone || p.kind == PK::Constant || p.kind == PK::LoneTemp;
}

bool same_dims(const c10::SmallVector<Source::Dim, 4>& a,
               const c10::SmallVector<Source::Dim, 4>& b) {
  return a.size() == b.size() && std::equal(a.begin(), a.end(), b.begin(), [](auto x, auto y) {
           return same(x.size, y.size) && same(x.stride, y.stride);
         });
}

} // namespace

Place KernelBuilder::number(const char* bytes, int64_t size) {
  const auto index = static_cast<int16_t>(program_.pool.size() / 16);
  program_.pool.resize(program_.pool.size() + 16);
  std::memcpy(program_.pool.data() + 16 * int64_t(index), bytes, 16);
  return place(PK::Constant, size, index);
}

Place KernelBuilder::new_register(int64_t size) {
  register_bytes_.push_back(static_cast<int16_t>(size));
  return place(PK::Register, size, static_cast<int16_t>(register_bytes_.size() - 1));
}

int16_t KernelBuilder::pointer_of(int32_t buffer, SymInt offset, bool linear, int64_t size) {
  const auto key = std::make_pair(buffer, offset.raw());
  const auto found = pointers_.find(key);
  if (found != pointers_.end()) {
    Input& input = inputs_[static_cast<size_t>(found->second)];
    input.linear = input.linear && linear;
    return found->second;
  }
  const auto index = static_cast<int16_t>(inputs_.size());
  inputs_.push_back({{buffer, offset.raw()}, linear, static_cast<int32_t>(size)});
  pointers_[key] = index;
  return index;
}

Place KernelBuilder::load(const Source& source, SymInt numel) {
  const auto made = made_.find(source.buffer);
  if (made != made_.end()) return made->second;
  const int64_t size = c10::elementSize(source.dtype);
  const SymInt offset = source.offset * size;
  if (source.is_linear(numel))
    return place(PK::Memory, size, pointer_of(source.buffer, offset, true, size));
  const int16_t pointer = pointer_of(source.buffer, offset, false, size);
  if (source.is_lone()) return place(PK::Lone, size, pointer);
  Place p = place(PK::Rows, size, pointer);
  for (const RowKey& known : row_keys_) {
    if (known.pointer != pointer || !same_dims(known.dims, source.dims)) continue;
    p.rows = known.rows;
    return p;
  }
  p.rows = static_cast<int16_t>(program_.rows.size());
  row_keys_.push_back({pointer, source.dims, p.rows});
  RowAccess access;
  for (const Source::Dim& dim : source.dims)
    access.dims.push_back({dim.size.raw(), (dim.stride * size).raw()});
  access.scratch = new_register(size).index;
  program_.rows.push_back(std::move(access));
  return p;
}

void KernelBuilder::emit(TileStep step) { program_.steps.push_back(step); }

Place KernelBuilder::converted(Place from, at::ScalarType have, at::ScalarType want,
                               const Source* key) {
  if (have == want) return from;
  const CastKey cast_key{key ? static_cast<int>(from.kind) : -1, from.index, from.rows,
                         static_cast<int>(want)};
  if (key) {
    const auto found = casts_.find(cast_key);
    if (found != casts_.end()) return found->second;
  }
  TileStep step = cast_step(have, want);
  step.in[0] = from;
  if (is_lone(from)) {
    step.lone = true;
    step.out = place(PK::LoneTemp, c10::elementSize(want),
                     static_cast<int16_t>(program_.lone_registers++));
  } else {
    step.out = new_register(c10::elementSize(want));
  }
  emit(step);
  if (key) casts_[cast_key] = step.out;
  return step.out;
}

void KernelBuilder::add(const Item& item, bool stored, bool reduced) {
  const at::ScalarType dtype = item.result.scalar_type();
  const int64_t size = item.result.itemsize();
  const auto destination = [&]() -> Place {
    if (stored) return place(PK::Memory, size, pointer_of(item.buffer, 0, true, size));
    if (reduced) {
      if (block_pointer_ < 0) block_pointer_ = pointer_of(-1, 0, true, size);
      return place(PK::Memory, size, block_pointer_);
    }
    return new_register(size);
  };
  TileStep step{};
  Place result;
  if (item.kind == Item::Kind::Constant) {
    step = cast_step(dtype, dtype);
    step.in[0] = number(item.number.data(), size);
    step.out = result = destination();
    emit(step);
  } else {
    const Body& body = item.body;
    for (size_t k = 0; k < body.sources.size(); ++k) {
      const Source& source = body.sources[k];
      const at::ScalarType want = body.mask_first && k == 0 ? at::kBool : body.compute;
      if (source.is_number) {
        step.in[k] = number(source.number.data(), c10::elementSize(want));
        continue;
      }
      const Place from = load(source, item.numel());
      // A plain copy converts on its way to the destination.
      step.in[k] = body.loop ? converted(from, source.dtype, want, &source) : from;
    }
    step.inputs = static_cast<uint8_t>(body.sources.size());
    if (!body.loop) {
      const Source& source = body.sources[0];
      if (!stored && !reduced && !source.is_number && source.dtype == dtype) {
        made_[item.buffer] = step.in[0];
        return;
      }
      const Place from = step.in[0];
      step = cast_step(source.is_number ? dtype : source.dtype, dtype);
      step.in[0] = from;
      step.out = result = destination();
      emit(step);
    } else {
      step.loop = body.loop;
      step.form = body.spec ? TileStep::Form::Functor
                            : (body.mask_first ? TileStep::Form::Where : TileStep::Form::Other);
      step.spec = body.spec;
      step.from = body.compute;
      step.to = body.produced;
      if (body.has_params) {
        step.params = static_cast<int32_t>(program_.pool.size());
        program_.pool.insert(program_.pool.end(), body.params.begin(), body.params.end());
      }
      if (body.produced == dtype) {
        step.out = result = destination();
        emit(step);
      } else {
        step.out = new_register(c10::elementSize(body.produced));
        emit(step);
        TileStep cast = cast_step(body.produced, dtype);
        cast.in[0] = step.out;
        cast.out = result = destination();
        emit(cast);
      }
    }
  }
  if (stored) {
    outputs_.push_back(
        {item.buffer, static_cast<int32_t>(program_.steps.size()) - 1, static_cast<int32_t>(size)});
    if (reduced) {
      if (block_pointer_ < 0) block_pointer_ = pointer_of(-1, 0, true, size);
      TileStep copy = cast_step(dtype, dtype);
      copy.in[0] = result;
      copy.out = place(PK::Memory, size, block_pointer_);
      emit(copy);
    }
  }
  made_[item.buffer] = result;
}

// Values get registers in the order of the steps; a register is free again after the last step that
// reads its value. A result may take the register of an operand of its width that ends there.
void KernelBuilder::assign_registers() {
  const size_t count = register_bytes_.size();
  std::vector<int32_t> last(count, -1);
  const auto each = [&](TileStep& step, auto&& f) {
    for (int k = 0; k < step.inputs; ++k) {
      Place& p = step.in[static_cast<size_t>(k)];
      if (p.kind == PK::Register) f(p.index);
      if (p.kind != PK::Rows) continue;
      const RowAccess& access = program_.rows[static_cast<size_t>(p.rows)];
      if (!access.is_periodic()) f(access.scratch);
    }
  };
  for (size_t s = 0; s < program_.steps.size(); ++s)
    each(program_.steps[s], [&](int16_t v) { last[static_cast<size_t>(v)] = static_cast<int>(s); });
  std::vector<int16_t> physical(count, -1), spare;
  int16_t used = 0;
  const auto take = [&](int16_t v) {
    if (physical[static_cast<size_t>(v)] >= 0) return;
    if (spare.empty()) {
      physical[static_cast<size_t>(v)] = used++;
    } else {
      physical[static_cast<size_t>(v)] = spare.back();
      spare.pop_back();
    }
  };
  for (size_t s = 0; s < program_.steps.size(); ++s) {
    TileStep& step = program_.steps[s];
    c10::SmallVector<int16_t, 4> ending;
    each(step, [&](int16_t v) {
      take(v);
      if (last[static_cast<size_t>(v)] == static_cast<int>(s) &&
          std::find(ending.begin(), ending.end(), v) == ending.end())
        ending.push_back(v);
    });
    if (step.out.kind == PK::Register) {
      const int16_t v = step.out.index;
      for (auto it = ending.begin(); it != ending.end(); ++it) {
        bool plain = false;
        for (int k = 0; k < step.inputs; ++k) {
          const Place& p = step.in[static_cast<size_t>(k)];
          plain = plain || (p.kind == PK::Register && p.index == *it && p.size == step.out.size);
        }
        if (!plain) continue;
        physical[static_cast<size_t>(v)] = physical[static_cast<size_t>(*it)];
        ending.erase(it);
        break;
      }
      take(v);
      if (last[static_cast<size_t>(v)] < 0) ending.push_back(v); // never read
    }
    for (const int16_t v : ending) spare.push_back(physical[static_cast<size_t>(v)]);
  }
  for (TileStep& step : program_.steps) {
    for (int k = 0; k < step.inputs; ++k) {
      Place& p = step.in[static_cast<size_t>(k)];
      if (p.kind == PK::Register) p.index = physical[static_cast<size_t>(p.index)];
    }
    if (step.out.kind == PK::Register)
      step.out.index = physical[static_cast<size_t>(step.out.index)];
  }
  for (RowAccess& access : program_.rows)
    access.scratch = std::max<int16_t>(physical[static_cast<size_t>(access.scratch)], 0);
  program_.registers = used;
  for (const int16_t bytes : register_bytes_)
    program_.register_size = std::max<int>(program_.register_size, bytes);
}

void KernelBuilder::finish(Step& step, std::vector<int32_t>& used) {
  for (size_t s = 0; s < program_.steps.size(); ++s) {
    const TileStep& t = program_.steps[s];
    for (int k = 0; k < t.inputs; ++k) {
      const Place& p = t.in[static_cast<size_t>(k)];
      if (p.kind == PK::Memory || p.kind == PK::Lone || p.kind == PK::Rows)
        inputs_[static_cast<size_t>(p.index)].last_step = static_cast<int32_t>(s);
    }
  }
  assign_registers();
  program_.finish();
  step.program = std::move(program_);
  for (const Input& input : inputs_) {
    step.pointers.push_back(input.pointer);
    if (input.pointer.buffer >= 0) used.push_back(input.pointer.buffer);
  }
  // The block of a reduction is the last pointer, where the step expects it.
  if (block_pointer_ >= 0 && block_pointer_ + 1 != static_cast<int16_t>(inputs_.size())) {
    const auto last = static_cast<int16_t>(inputs_.size() - 1);
    std::swap(step.pointers[static_cast<size_t>(block_pointer_)], step.pointers.back());
    const auto renumber = [&](Place& p) {
      if (p.kind != PK::Memory && p.kind != PK::Lone && p.kind != PK::Rows) return;
      if (p.index == block_pointer_)
        p.index = last;
      else if (p.index == last)
        p.index = block_pointer_;
    };
    for (TileStep& t : step.program.steps) {
      renumber(t.out);
      for (int k = 0; k < t.inputs; ++k) renumber(t.in[static_cast<size_t>(k)]);
    }
  }
}

int32_t KernelBuilder::donor(const Item& item, const std::function<bool(int32_t)>& dies) {
  for (const Output& output : outputs_) {
    if (output.buffer != item.buffer) continue;
    for (size_t i = 0; i < inputs_.size(); ++i) {
      Input& input = inputs_[i];
      const int32_t buffer = input.pointer.buffer;
      if (buffer < 0 || made_.count(buffer) || input.taken || !input.linear ||
          input.pointer.offset != 0 || input.size != output.size || input.last_step > output.step)
        continue;
      int uses = 0; // by other offsets
      for (const Input& other : inputs_) uses += other.pointer.buffer == buffer;
      if (uses != 1 || !dies(buffer)) continue;
      input.taken = true;
      return buffer;
    }
  }
  return -1;
}

SymInt KernelBuilder::bytes_read(SymInt numel) const {
  SymInt bytes = 0;
  for (const Input& input : inputs_)
    if (input.pointer.buffer >= 0 && !made_.count(input.pointer.buffer))
      bytes += input.linear ? numel * input.size : SymInt(input.size);
  return bytes;
}

} // namespace torch::inductor
