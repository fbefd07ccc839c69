// Buckets of gradients. Note [Order of buckets]: ranks must exchange buckets in the same order, but
// their gradients may come in different ones; so a bucket starts when it and all before it are
// complete.
#include <torch/csrc/distributed/c10d/Reducer.h>

#include <unordered_set>

#include <ATen/core/EmptyTensor.h>
#include <ATen/ops/mul.h>
#include <ATen/parallel/Parallel.h>
#include <torch/csrc/autograd/engine.h>
#include <torch/csrc/autograd/set_grad.h>

namespace c10d::engine {

using torch::autograd::Node;

GradientExchange::~GradientExchange() = default;

namespace {

class BackendExchange final : public GradientExchange {
 public:
  explicit BackendExchange(std::shared_ptr<Backend> backend) : backend_(std::move(backend)) {}
  void start(size_t bucket, const at::Tensor& flat) override {
    if (works_.size() <= bucket) works_.resize(bucket + 1);
    works_[bucket] = backend_->run(sum_of(flat, true));
  }
  at::Tensor finish(size_t bucket, const at::Tensor& flat) override {
    at::BlockingRegion waits;
    works_.at(bucket)->wait(Millis::zero());
    works_[bucket].reset();
    return flat;
  }
  void add_up(const at::Tensor& tensor) override {
    at::BlockingRegion waits;
    backend_->run(sum_of(tensor, false))->wait(Millis::zero());
  }

 private:
  static Collective sum_of(const at::Tensor& tensor, bool is_async) {
    Collective call;
    call.type = OpType::AllReduce;
    call.outputs = {tensor};
    call.is_async = is_async;
    return call;
  }
  const std::shared_ptr<Backend> backend_;
  std::vector<std::shared_ptr<Work>> works_;
};

} // namespace

std::unique_ptr<GradientExchange> make_exchange(std::shared_ptr<Backend> backend) {
  return std::make_unique<BackendExchange>(std::move(backend));
}

// Told when the gradient of a parameter has been accumulated.
class Reducer::Hook final : public torch::autograd::NodeHook {
 public:
  Hook(Reducer* owner, size_t parameter) : owner_(owner), parameter_(parameter) {}
  void call(torch::autograd::TensorVec&, torch::autograd::TensorVec&) override {
    if (owner_) owner_->accumulated(parameter_);
  }
  void forget() { owner_ = nullptr; }

 private:
  Reducer* owner_;
  const size_t parameter_;
};

Reducer::Reducer(std::vector<at::Tensor> parameters, Buckets buckets, ReducerOptions options,
                 std::unique_ptr<GradientExchange> exchange)
    : parameters_(std::move(parameters)), options_(std::move(options)),
      exchange_(std::move(exchange)), uses_(parameters_.size(), 0),
      used_(at::detail::empty({static_cast<int64_t>(parameters_.size())}, at::kInt).zero_()) {
  set_buckets(std::move(buckets));
  for (size_t i = 0; i < parameters_.size(); ++i) {
    TORCH_CHECK(torch::autograd::is_leaf(parameters_[i]) && parameters_[i].requires_grad(),
                "Reducer: parameter ", i, " does not require a gradient or is not a leaf");
    accumulators_.push_back(torch::autograd::grad_accumulator(parameters_[i]));
    hooks_.push_back(std::make_shared<Hook>(this, i));
    accumulators_.back()->ensure_hooks().post.push_back(hooks_.back());
  }
}

Reducer::~Reducer() { remove_hooks(); }

void Reducer::remove_hooks() {
  for (size_t i = 0; i < hooks_.size(); ++i) {
    static_cast<Hook&>(*hooks_[i]).forget();
    auto& list = accumulators_[i]->ensure_hooks().post;
    for (auto at = list.begin(); at != list.end(); ++at) {
      if (*at == hooks_[i]) {
        list.erase(at);
        break;
      }
    }
  }
  hooks_.clear();
  accumulators_.clear();
}

void Reducer::set_exchange(std::unique_ptr<GradientExchange> exchange) {
  exchange_ = std::move(exchange);
}

void Reducer::set_buckets(Buckets buckets) {
  std::vector<Bucket> made;
  std::vector<Place> places(parameters_.size());
  std::vector<char> seen(parameters_.size(), 0);
  for (auto& members : buckets) {
    TORCH_CHECK(!members.empty(), "Reducer: a bucket is empty");
    Bucket bucket;
    int64_t count = 0;
    const at::Tensor& first = parameters_.at(members[0]);
    for (const size_t i : members) {
      const at::Tensor& p = parameters_.at(i);
      TORCH_CHECK(!seen[i], "Reducer: parameter ", i, " is in two buckets");
      TORCH_CHECK(p.scalar_type() == first.scalar_type() && p.device() == first.device(),
                  "Reducer: parameters of a bucket must have the same dtype and device");
      seen[i] = 1;
      count += p.numel();
    }
    bucket.flat = at::detail::empty({count}, first.scalar_type(), first.device()).zero_();
    int64_t offset = 0;
    for (size_t k = 0; k < members.size(); ++k) {
      const at::Tensor& p = parameters_[members[k]];
      bucket.views.push_back(bucket.flat.narrow(0, offset, p.numel()).view(p.sizes()));
      places[members[k]] = {made.size(), k};
      offset += p.numel();
    }
    bucket.members = std::move(members);
    made.push_back(std::move(bucket));
  }
  for (size_t i = 0; i < seen.size(); ++i) {
    TORCH_CHECK(seen[i], "Reducer: parameter ", i, " is in no bucket");
  }
  // Gradients that live in the old buckets move.
  if (options_.as_bucket_view) {
    for (size_t i = 0; i < parameters_.size(); ++i) {
      auto* meta = torch::autograd::meta_of(parameters_[i]);
      if (!meta || !meta->grad.defined()) continue;
      const at::Tensor view = made[places[i].bucket].views[places[i].index];
      view.copy_(meta->grad.detach());
      torch::autograd::set_grad(parameters_[i], view);
    }
  }
  buckets_ = std::move(made);
  places_ = std::move(places);
}

std::vector<at::Tensor> Reducer::bucket_parameters(size_t bucket) const {
  std::vector<at::Tensor> out;
  for (const size_t i : buckets_.at(bucket).members) out.push_back(parameters_[i]);
  return out;
}

// ---- one pass -----------------------------------------------------------------------------------
void Reducer::throw_unfinished() const {
  std::string missing;
  for (size_t i = 0; i < is_ready_.size(); ++i) {
    if (is_ready_[i]) continue;
    if (!missing.empty()) missing += ", ";
    missing += c10::str(i);
    if (i < options_.names.size()) missing += c10::str(" (", options_.names[i], ")");
  }
  TORCH_CHECK(
      false,
      "Expected to have finished reduction in the prior iteration before starting a new one. This "
      "error indicates that your module has parameters that were not used in producing loss. You "
      "can enable unused parameter detection by passing the keyword argument "
      "`find_unused_parameters=True` to `torch.nn.parallel.DistributedDataParallel`, and by making "
      "sure all `forward` function outputs participate in calculating loss.\n  Parameter indices "
      "which did not receive grad: ",
      missing);
}

void Reducer::prepare_for_backward(const std::vector<at::Tensor>& outputs) {
  if (!is_finished_ && has_begun_) throw_unfinished();
  expects_ = true;
  has_begun_ = is_finished_ = false;
  next_bucket_ = 0;
  arrival_.clear();
  is_ready_.assign(parameters_.size(), 0);
  uses_left_ = uses_;
  for (auto& bucket : buckets_) bucket.pending = bucket.members.size();
  unused_.clear();
  if (options_.static_graph) {
    if (is_first_pass_) uses_.assign(parameters_.size(), 0);
  } else if (options_.find_unused) {
    find_unused(outputs);
  }
}

void Reducer::find_unused(const std::vector<at::Tensor>& outputs) {
  std::unordered_set<Node*> seen;
  std::vector<Node*> todo;
  for (const auto& t : outputs) {
    const auto edge = torch::autograd::gradient_edge(t);
    if (edge.is_valid()) todo.push_back(edge.function.get());
  }
  while (!todo.empty()) {
    Node* node = todo.back();
    todo.pop_back();
    if (!seen.insert(node).second) continue;
    for (const auto& edge : node->next_edges()) {
      if (edge.is_valid()) todo.push_back(edge.function.get());
    }
  }
  for (size_t i = 0; i < accumulators_.size(); ++i) {
    if (!seen.count(accumulators_[i].get())) unused_.push_back(i);
  }
}

void Reducer::accumulated(size_t parameter) {
  static_cast<int32_t*>(used_.data_ptr())[parameter] = 1;
  if (!expects_) return;
  if (!has_begun_) {
    has_begun_ = true;
    torch::autograd::queue_outermost_callback([this] { finish_pass(); });
    for (const size_t i : unused_) mark_ready(i, false);
  }
  if (options_.static_graph) {
    // The first pass counts; its buckets wait for its end.
    if (is_first_pass_) {
      ++uses_[parameter];
      if (uses_[parameter] == 1) arrival_.push_back(parameter);
      return;
    }
    if (--uses_left_[parameter] > 0) return;
  }
  mark_ready(parameter, true);
}

void Reducer::mark_ready(size_t parameter, bool is_used) {
  if (is_ready_[parameter]) {
    std::string name = parameter < options_.names.size() ? options_.names[parameter] : "";
    TORCH_CHECK(false,
                "Expected to mark a variable ready only once. This error is caused by one of "
                "the following reasons: 1) Use of a module parameter outside the `forward` "
                "function. 2) Reused parameters in multiple reentrant backward passes; "
                "`static_graph=True` (or `_set_static_graph()`) may help.\n  Parameter at index ",
                parameter, " with name ", name, " has been marked as ready twice.");
  }
  is_ready_[parameter] = 1;
  if (!(options_.static_graph && is_first_pass_)) arrival_.push_back(parameter);
  const Place place = places_[parameter];
  Bucket& bucket = buckets_[place.bucket];
  const at::Tensor& p = parameters_[parameter];
  at::Tensor& view = bucket.views[place.index];
  auto* meta = torch::autograd::meta_of(p);
  const at::Tensor grad = meta ? meta->grad : at::Tensor();
  const double share = exchange_->divides() ? 1.0 / options_.world_size : 1.0;
  if (!grad.defined()) {
    view.zero_();
  } else {
    TORCH_CHECK_NOT_IMPLEMENTED(grad.layout() == at::kStrided,
                                "DistributedDataParallel is not implemented for gradients of "
                                "layout ",
                                grad.layout());
    // Gradients in place need the division alone.
    at::mul_out(view, grad.detach(), at::detail::wrapped_number(share));
    if (options_.as_bucket_view && is_used && grad.data_ptr() != view.data_ptr()) {
      torch::autograd::set_grad(p, view);
    }
  }
  if (--bucket.pending == 0) start_ready_buckets();
}

// Note [Order of buckets]
void Reducer::start_ready_buckets() {
  while (next_bucket_ < buckets_.size() && buckets_[next_bucket_].pending == 0) {
    exchange_->start(next_bucket_, buckets_[next_bucket_].flat);
    ++next_bucket_;
  }
}

void Reducer::finish_pass() {
  if (options_.static_graph && is_first_pass_) {
    for (size_t i = 0; i < parameters_.size(); ++i) mark_ready(i, uses_[i] > 0);
  } else if (options_.static_graph) {
    for (size_t i = 0; i < parameters_.size(); ++i) {
      if (uses_[i] == 0) mark_ready(i, false);
    }
  }
  expects_ = false;
  // Some parameter got no gradient: the next call of prepare_for_backward says which.
  if (next_bucket_ < buckets_.size()) return;
  at::Tensor used_anywhere;
  if (options_.find_unused || options_.static_graph) {
    used_anywhere = used_.clone();
    exchange_->add_up(used_anywhere);
  }
  for (size_t b = 0; b < buckets_.size(); ++b) {
    deliver(buckets_[b], exchange_->finish(b, buckets_[b].flat), used_anywhere);
  }
  used_.zero_();
  is_finished_ = true;
  is_first_pass_ = false;
}

void Reducer::deliver(const Bucket& bucket, const at::Tensor& result,
                      const at::Tensor& used_anywhere) {
  if (!result.is_same(bucket.flat)) bucket.flat.copy_(result.view(bucket.flat.sizes()));
  for (size_t k = 0; k < bucket.members.size(); ++k) {
    const size_t i = bucket.members[k];
    // What no rank used keeps the gradient it had.
    if (used_anywhere.defined() && static_cast<int32_t*>(used_anywhere.data_ptr())[i] == 0)
      continue;
    const at::Tensor& p = parameters_[i];
    auto* meta = torch::autograd::meta_of(p);
    const at::Tensor grad = meta ? meta->grad : at::Tensor();
    if (options_.as_bucket_view) {
      if (!grad.defined() || grad.data_ptr() != bucket.views[k].data_ptr()) {
        torch::autograd::set_grad(p, bucket.views[k]);
      }
    } else if (grad.defined()) {
      grad.detach().copy_(bucket.views[k]);
    } else {
      torch::autograd::set_grad(p, bucket.views[k].clone());
    }
  }
}

} // namespace c10d::engine
