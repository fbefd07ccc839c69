// From items to steps. Calls keep the order of the program. Loops wait until a call, a reduction or
// an output needs them; then everything that leads there element by element goes into one kernel,
// with what else can be computed from the same elements at that moment. A reduction takes the loops
// that only it needs into itself.
#include <torch/csrc/inductor/ir.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <set>

#include <torch/csrc/inductor/kernel_builder.h>

namespace torch::inductor {
namespace {

using Kind = Item::Kind;

constexpr size_t kMostMembers = 48;
// A kernel of CUDA takes all numbers and addresses as arguments, of which 4,096 bytes are allowed.
constexpr size_t kMostCudaMembers = 16;

class Scheduler {
 public:
  Scheduler(Lowered& lowered, Plan& plan)
      : in_(lowered), plan_(plan), live_(lowered.items.size()), done_(lowered.items.size()),
        users_(lowered.buffers.size()), versions_(lowered.buffers.size()),
        most_(lowered.device.is_cuda() ? kMostCudaMembers : kMostMembers) {}

  void run() {
    mark_live();
    for (size_t i = 0; i < in_.items.size(); ++i) {
      if (!live_[i]) continue;
      if (in_.items[i].kind == Kind::Call) emit_call(static_cast<int32_t>(i));
      if (in_.items[i].kind == Kind::Reduce) emit_reduce(static_cast<int32_t>(i));
    }
    for (const Plan::Output& output : in_.outputs)
      if (output.view >= 0) require(plan_.views[static_cast<size_t>(output.view)].buffer);
    mark_frees();
    plan_.bytes_read = bytes_read_.raw();
    plan_.bytes_written = bytes_written_.raw();
  }

 private:
  Item& item(int32_t i) { return in_.items[static_cast<size_t>(i)]; }
  Buffer& buffer(int32_t b) { return in_.buffers[static_cast<size_t>(b)]; }

  void mark_live() {
    std::vector<bool> needed(in_.buffers.size());
    for (size_t b = 0; b < needed.size(); ++b) needed[b] = in_.buffers[b].is_output;
    for (size_t i = in_.items.size(); i-- > 0;) {
      const Item& it = in_.items[i];
      bool live = it.has_effect || (it.buffer >= 0 && needed[static_cast<size_t>(it.buffer)]);
      for (const CallResult& result : it.results)
        live = live || needed[static_cast<size_t>(view(result.view).buffer)];
      live_[i] = live;
      if (!live) continue;
      for (const int32_t b : it.reads) needed[static_cast<size_t>(b)] = true;
    }
    for (size_t i = 0; i < in_.items.size(); ++i) {
      if (!live_[i]) continue;
      for (const int32_t b : in_.items[i].reads) {
        std::vector<int32_t>& users = users_[static_cast<size_t>(b)];
        if (users.empty() || users.back() != static_cast<int32_t>(i))
          users.push_back(static_cast<int32_t>(i));
      }
    }
  }
  const View& view(int32_t v) const { return plan_.views[static_cast<size_t>(v)]; }

  bool is_pending(int32_t i) const {
    return i >= 0 && live_[static_cast<size_t>(i)] && !done_[static_cast<size_t>(i)];
  }
  bool is_pending_loop(int32_t i) { return is_pending(i) && item(i).kind == Kind::Loop; }

  // Whether `source` of a loop over `numel` elements is, element by element, what `maker` computes.
  bool joins(const Source& source, SymInt numel, int32_t maker) {
    const Item& made = item(maker);
    return made.kind == Kind::Loop && same(source.offset, 0) && same(made.numel(), numel) &&
           source.dtype == made.result.scalar_type() && source.is_linear(numel);
  }

  void require(int32_t b) {
    const int32_t maker = buffer(b).item;
    if (!is_pending(maker)) return;
    if (item(maker).kind == Kind::Constant)
      emit_kernel({maker}, -1);
    else
      emit_kernel(group_of(maker), -1);
  }

  // ---- calls
  void emit_call(int32_t i) {
    Item& it = item(i);
    for (const int32_t b : it.reads) require(b);
    for (const int32_t b : it.writes) {
      // Loops that read what is about to be written come first.
      for (const int32_t user : users_[static_cast<size_t>(b)]) {
        if (user < i && is_pending_loop(user)) emit_kernel(group_of(user), -1);
      }
      ++versions_[static_cast<size_t>(b)];
    }
    Step step;
    step.kind = Step::Kind::Call;
    step.name = it.name;
    step.nodes.push_back(it.node);
    step.op = it.op;
    count_bytes(it);
    step.args = std::move(it.args);
    step.results = it.results;
    step.row = std::move(it.row);
    note_uses(it.reads);
    for (const CallResult& result : it.results) note_use(view(result.view).buffer);
    done_[static_cast<size_t>(i)] = true;
    plan_.steps.push_back(std::move(step));
  }

  // A call reads each buffer once, as much of it as its arguments show, and writes its results.
  void count_bytes(const Item& it) {
    std::map<int32_t, SymInt> read;
    for (const CallArg& arg : it.args) {
      for (const int32_t v : arg.views) {
        if (v < 0) continue;
        SymInt& most = read[view(v).buffer];
        most = larger(most, bytes_of(view(v)));
      }
    }
    for (const auto& [b, bytes] : read) bytes_read_ += bytes;
    for (const CallResult& result : it.results) bytes_written_ += bytes_of(view(result.view));
    for (const int32_t b : it.writes) bytes_written_ += read[b];
  }
  static SymInt bytes_of(const View& v) {
    SymInt numel = 1; // elements that differ
    for (size_t d = 0; d < v.sizes.size(); ++d)
      if (v.strides[d] != 0 || v.sizes[d] == 0) numel *= SymInt::from_raw(v.sizes[d]);
    return numel * static_cast<int64_t>(c10::elementSize(v.dtype));
  }

  // ---- reductions
  void emit_reduce(int32_t i) {
    const Item& it = item(i);
    const int32_t maker = buffer(it.reads[0]).item;
    const bool alone = is_pending_loop(maker) && !buffer(it.reads[0]).is_output &&
                       users_[static_cast<size_t>(it.reads[0])].size() == 1;
    if (alone && maker_joins(it, maker)) {
      const std::vector<int32_t> members = group_of(maker, /*extend=*/false);
      if (is_pending_loop(maker)) {
        emit_kernel(members, i);
        return;
      }
    }
    require(it.reads[0]);
    Step step = reduce_step(it);
    step.pointers.push_back({it.reads[0], 0});
    bytes_read_ += it.elements.sym_numel() * step.element_size;
    note_uses(it.reads);
    note_use(it.buffer);
    done_[static_cast<size_t>(i)] = true;
    plan_.steps.push_back(std::move(step));
  }
  // The elements have the places of the maker's result, whatever shape they are seen in.
  bool maker_joins(const Item& it, int32_t maker) {
    return same(it.elements.sym_numel(), item(maker).numel());
  }
  Step reduce_step(const Item& it) {
    Step step;
    step.kind = Step::Kind::Reduce;
    step.name = it.name;
    step.nodes.push_back(it.node);
    bytes_written_ += it.result.sym_numel() * it.result.itemsize();
    step.reduction = it.reduction;
    step.mask = it.mask;
    step.elements = it.elements;
    step.element_size = static_cast<int32_t>(it.elements.itemsize());
    step.outputs.push_back({view_of_result(it), -1});
    return step;
  }

  // ---- loops
  // The pending loops that `target` needs and that fit into its kernel; what does not fit is
  // emitted first.
  std::vector<int32_t> group_of(int32_t target, bool extend = true) {
    std::set<int32_t> members;
    for (bool again = true; again;) {
      again = false;
      members = {target};
      std::vector<int32_t> open = {target};
      while (!open.empty() && !again) {
        const int32_t i = open.back();
        open.pop_back();
        for (const Source& source : item(i).body.sources) {
          if (source.is_number) continue;
          const int32_t maker = buffer(source.buffer).item;
          if (!is_pending(maker) || members.count(maker)) continue;
          if (joins(source, item(i).numel(), maker) && members.size() < most_) {
            members.insert(maker);
            open.push_back(maker);
          } else {
            require(source.buffer); // may emit members: begin again
            again = true;
            break;
          }
        }
      }
      if (again && !is_pending(target)) return {};
    }
    // A member may be read in another way by another member.
    for (const int32_t i : members) {
      for (const Source& source : item(i).body.sources) {
        if (source.is_number) continue;
        const int32_t maker = buffer(source.buffer).item;
        if (members.count(maker) && !joins(source, item(i).numel(), maker)) {
          require_alone(maker);
          return is_pending(target) ? group_of(target, extend) : std::vector<int32_t>{};
        }
      }
    }
    if (extend) add_ready(members, item(target).numel());
    return {members.begin(), members.end()};
  }
  void require_alone(int32_t maker) { emit_kernel(group_of(maker, false), -1); }

  bool only_reduced(int32_t i) {
    const std::vector<int32_t>& users = users_[static_cast<size_t>(item(i).buffer)];
    return users.size() == 1 && item(users[0]).kind == Kind::Reduce &&
           !buffer(item(i).buffer).is_output;
  }

  // Adds loops over the same elements whose operands are all there by then.
  void add_ready(std::set<int32_t>& members, SymInt numel) {
    std::set<int32_t> near;
    const auto look = [&](int32_t b) {
      for (const int32_t user : users_[static_cast<size_t>(b)]) near.insert(user);
    };
    for (const int32_t i : members) {
      look(item(i).buffer);
      for (const int32_t b : item(i).reads) look(b);
    }
    while (!near.empty() && members.size() < most_) {
      const int32_t i = *near.begin();
      near.erase(near.begin());
      if (members.count(i) || !is_pending_loop(i) || !same(item(i).numel(), numel) ||
          only_reduced(i) || !is_ready(i, members))
        continue;
      members.insert(i);
      look(item(i).buffer);
    }
  }
  bool is_ready(int32_t i, const std::set<int32_t>& members) {
    for (const Source& source : item(i).body.sources) {
      if (source.is_number) continue;
      const int32_t maker = buffer(source.buffer).item;
      if (members.count(maker)) {
        if (!joins(source, item(i).numel(), maker)) return false;
      } else if (is_pending(maker) ||
                 source.version != versions_[static_cast<size_t>(source.buffer)]) {
        return false;
      }
    }
    return true;
  }

  int32_t view_of_result(const Item& it) {
    plan_.views.push_back({it.buffer, it.result.scalar_type(), raw_list(it.result.sym_sizes()),
                           raw_list(it.result.sym_strides()), 0});
    return static_cast<int32_t>(plan_.views.size()) - 1;
  }

  bool is_stored(int32_t i, const std::vector<int32_t>& members, int32_t reduce) {
    const int32_t b = item(i).buffer;
    if (buffer(b).is_output) return true;
    for (const int32_t user : users_[static_cast<size_t>(b)]) {
      if (user != reduce && !std::binary_search(members.begin(), members.end(), user)) return true;
    }
    return false;
  }

  // One kernel of the members, in the order of the program; with `reduce`, as its elements.
  void emit_kernel(const std::vector<int32_t>& members, int32_t reduce) {
    if (members.empty()) return;
    KernelBuilder builder;
    Step step;
    if (reduce >= 0) step = reduce_step(item(reduce));
    step.kind = reduce >= 0 ? Step::Kind::Reduce : Step::Kind::Fused;
    const SymInt numel = item(members.front()).numel();
    step.numel = numel.raw();
    std::string name = "fused";
    std::vector<int32_t> stored;
    for (const int32_t i : members) {
      const bool keep = is_stored(i, members, reduce);
      const bool reduced = reduce >= 0 && i == members.back();
      builder.add(item(i), keep, reduced);
      step.nodes.push_back(item(i).node);
      if (keep) stored.push_back(i);
      name += "_" + item(i).name;
    }
    step.name = reduce >= 0 ? name + "_" + item(reduce).name : name;
    std::vector<int32_t> used;
    builder.finish(step, used);
    for (const int32_t i : members) done_[static_cast<size_t>(i)] = true;
    for (const int32_t i : stored) {
      const int32_t donor =
          reduce >= 0 ? -1 : builder.donor(item(i), [&](int32_t b) { return dies(b, members); });
      step.outputs.push_back({view_of_result(item(i)), donor});
      used.push_back(item(i).buffer);
      bytes_written_ += item(i).numel() * item(i).result.itemsize();
    }
    bytes_read_ += builder.bytes_read(numel);
    if (reduce >= 0) {
      used.push_back(item(reduce).buffer);
      done_[static_cast<size_t>(reduce)] = true;
    }
    note_uses(used);
    plan_.steps.push_back(std::move(step));
  }

  // Whether the kernel of `members` is the last that reads the buffer.
  bool dies(int32_t b, const std::vector<int32_t>& members) {
    if (buffer(b).item < 0 || buffer(b).is_output || !buffer(b).meta.defined()) return false;
    const at::Tensor& meta = buffer(b).meta;
    if (!same(meta.unsafeGetTensorImpl()->sym_storage_offset(), 0) ||
        !meta.is_non_overlapping_and_dense() ||
        !same(meta.sym_numel(), item(members.front()).numel()))
      return false;
    for (const int32_t user : users_[static_cast<size_t>(b)]) {
      if (!done_[static_cast<size_t>(user)] &&
          !std::binary_search(members.begin(), members.end(), user))
        return false;
    }
    return true;
  }

  // ---- lifetimes
  void note_use(int32_t b) { last_use_[b] = static_cast<int32_t>(plan_.steps.size()); }
  void note_uses(const std::vector<int32_t>& buffers) {
    for (const int32_t b : buffers) note_use(b);
  }
  void mark_frees() {
    for (const auto& [b, step] : last_use_) {
      if (!buffer(b).is_output) plan_.steps[static_cast<size_t>(step)].frees.push_back(b);
    }
  }

  Lowered& in_;
  Plan& plan_;
  std::vector<bool> live_, done_;
  std::vector<std::vector<int32_t>> users_;
  std::vector<int32_t> versions_;
  std::map<int32_t, int32_t> last_use_;
  SymInt bytes_read_, bytes_written_;
  const size_t most_; // loops of a kernel
};

} // namespace

void schedule(Lowered& lowered, Plan& plan) {
  plan.views = std::move(lowered.views);
  plan.buffers = static_cast<int32_t>(lowered.buffers.size());
  plan.input_buffers = lowered.input_buffers;
  plan.constant_buffers = lowered.constant_buffers;
  plan.outer.resize(lowered.buffers.size());
  for (const std::vector<int32_t>* outer : {&plan.input_buffers, &plan.constant_buffers})
    for (const int32_t b : *outer)
      if (b >= 0) plan.outer[static_cast<size_t>(b)] = true;
  Scheduler(lowered, plan).run();
  if (lowered.device.is_cpu()) build_chains(plan);
  plan.outputs = std::move(lowered.outputs);
  if (lowered.device.is_cuda()) {
    join_gradients(plan);
    offer_sums(plan);
    join_batch_norms(plan);
  }
}

} // namespace torch::inductor
