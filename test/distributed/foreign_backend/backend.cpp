// A backend of an extension whose ranks meet in a store: what one writes there all others read.
// Some of its operations fail in the ways that operations can.
#include <torch/extension.h>

#include <pybind11/chrono.h>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>
#include <torch/csrc/distributed/c10d/Utils.hpp>

namespace {

using Tensors = std::vector<at::Tensor>;
using WorkPtr = c10::intrusive_ptr<c10d::Work>;
using Future = c10::ivalue::Future;

// Done from the beginning, with a future.
class DoneWork final : public c10d::Work {
 public:
  DoneWork(c10d::OpType type, Tensors outputs)
      : Work(-1, type),
        future_(c10::make_intrusive<Future>(c10::ListType::create(c10::TensorType::get()))) {
    future_->markCompleted(at::IValue(outputs));
    finish();
  }
  c10::intrusive_ptr<Future> getFuture() override { return future_; }
  Tensors result() override { return future_->value().toTensorVector(); }

 private:
  c10::intrusive_ptr<Future> future_;
};

// Ends with an error when it is waited for.
class FailingWork final : public c10d::Work {
  bool wait(std::chrono::milliseconds) override {
    finishAndThrow(std::make_exception_ptr(std::runtime_error("the wire is cut")));
    return false;
  }
};

class StoreBackend final : public c10d::Backend {
 public:
  StoreBackend(c10::intrusive_ptr<c10d::Store> store, int rank, int size)
      : Backend(rank, size), store_(std::move(store)) {}
  const std::string getBackendName() const override { return "stored"; }

  WorkPtr allreduce(Tensors& tensors, const c10d::AllreduceOptions& opts) override {
    const bool is_max = opts.reduceOp == c10d::ReduceOp::MAX;
    TORCH_CHECK_VALUE(is_max || opts.reduceOp == c10d::ReduceOp::SUM, "stored: sums and maxima");
    const Tensors all = exchange(tensors[0]);
    at::Tensor result = all[0].clone();
    for (size_t i = 1; i < all.size(); ++i)
      result = is_max ? at::maximum(result, all[i]) : result + all[i];
    tensors[0].copy_(result);
    return done(c10d::OpType::ALLREDUCE, tensors);
  }
  WorkPtr allgather(std::vector<Tensors>& outputs, Tensors& inputs,
                    const c10d::AllgatherOptions&) override {
    const Tensors all = exchange(inputs[0]);
    for (size_t i = 0; i < all.size(); ++i) outputs.at(0).at(i).copy_(all[i]);
    return done(c10d::OpType::ALLGATHER, outputs[0]);
  }
  WorkPtr broadcast(Tensors& tensors, const c10d::BroadcastOptions& opts) override {
    tensors[0].copy_(exchange(tensors[0])[static_cast<size_t>(opts.rootRank)]);
    return done(c10d::OpType::BROADCAST, tensors);
  }
  WorkPtr barrier(const c10d::BarrierOptions&) override {
    exchange(at::zeros({1}));
    return done(c10d::OpType::BARRIER, {});
  }
  WorkPtr send(Tensors&, int rank, int) override {
    if (rank == 0) throw std::runtime_error("nobody is listening");
    return {};
  }
  WorkPtr recv(Tensors&, int, int) override { return c10::make_intrusive<FailingWork>(); }

 private:
  static WorkPtr done(c10d::OpType type, const Tensors& outputs) {
    return c10::make_intrusive<DoneWork>(type, outputs);
  }
  // Every rank's tensor.
  Tensors exchange(const at::Tensor& mine) {
    const auto prefix = "step" + std::to_string(step_++) + "/";
    const at::Tensor flat = mine.contiguous();
    const auto* data = static_cast<const uint8_t*>(flat.const_data_ptr());
    store_->set(prefix + std::to_string(rank_), std::vector<uint8_t>(data, data + flat.nbytes()));
    Tensors all;
    for (int rank = 0; rank < size_; ++rank) {
      const std::vector<uint8_t> bytes = store_->get(prefix + std::to_string(rank));
      all.push_back(at::empty_like(flat));
      TORCH_CHECK(bytes.size() == flat.nbytes(), "stored: rank ", rank, " sent ", bytes.size(),
                  " bytes, expected ", flat.nbytes());
      std::copy(bytes.begin(), bytes.end(), static_cast<uint8_t*>(all.back().data_ptr()));
    }
    return all;
  }
  const c10::intrusive_ptr<c10d::Store> store_;
  int step_ = 0;
};

c10::intrusive_ptr<c10d::Backend> make(const c10::intrusive_ptr<c10d::Store>& store, int rank,
                                       int size, const std::chrono::duration<float>&) {
  return c10::make_intrusive<StoreBackend>(store, rank, size);
}

// A group that stands for its own backend, as extensions of old made them.
class OldGroup final : public c10d::ProcessGroup {
 public:
  using ProcessGroup::ProcessGroup;
  WorkPtr allreduce(Tensors& tensors, const c10d::AllreduceOptions&) override {
    tensors[0].mul_(getSize());
    return c10::make_intrusive<DoneWork>(c10d::OpType::ALLREDUCE, tensors);
  }
};

c10::intrusive_ptr<c10d::ProcessGroup> make_old(int rank, int size) {
  return c10::make_intrusive<OldGroup>(rank, size);
}

// What functions do with a group that Python made.
at::Tensor mean_over(const c10::intrusive_ptr<c10d::ProcessGroup>& group, const at::Tensor& x) {
  Tensors sum{x.clone()};
  group->allreduce(sum)->wait();
  return sum[0] / group->getSize();
}
py::tuple described(const c10::intrusive_ptr<c10d::ProcessGroup>& group) {
  return py::make_tuple(group->getRank(), group->getSize(), group->getBackendName(),
                        group->getGroupName());
}

bool waited(const WorkPtr& work) { return work->wait() && work->isSuccess(); }
int64_t counted(const c10::intrusive_ptr<c10d::Store>& store, const std::string& key) {
  store->set(key + "/text", std::string("seen"));
  return store->add(key, 2) + static_cast<int64_t>(store->get_to_str(key + "/text").size());
}
bool same(const c10::intrusive_ptr<c10d::Backend>& backend) {
  return dynamic_cast<StoreBackend*>(backend.get()) != nullptr;
}
c10::intrusive_ptr<c10d::Backend> none() { return {}; }

} // namespace

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
  m.def("make", &make);
  m.def("make_old", &make_old);
  m.def("mean_over", &mean_over, py::call_guard<py::gil_scoped_release>());
  m.def("described", &described);
  m.def("waited", &waited, py::call_guard<py::gil_scoped_release>());
  m.def("counted", &counted);
  m.def("same", &same);
  m.def("none", &none);
}
