// An operation of a backend that may still be running, as C++ extensions write and use it. A
// backend derives from Work and overrides what it knows better; the rest works on what finish()
// was told. Any thread may ask and wait.
#pragma once
#include <condition_variable>
#include <exception>
#include <mutex>

#include <ATen/core/ivalue_future.h>
#include <c10/util/intrusive_ptr.h>
#include <torch/csrc/distributed/c10d/Types.hpp>

namespace c10d {

class TORCH_API Work : public c10::intrusive_ptr_target {
 public:
  // The title and the inputs are for profiles; the library's own profiles have them already.
  Work(int rank = -1, OpType opType = OpType::UNKNOWN, const char* profilingTitle = nullptr,
       const std::optional<std::vector<at::Tensor>>& inputTensors = std::nullopt);
  ~Work() override;

  virtual bool isCompleted();
  virtual bool isSuccess() const;
  // Null where there is none.
  virtual std::exception_ptr exception() const;
  // The rank that sent, of a recvAnysource.
  virtual int sourceRank() const;
  // The tensors that the operation writes. Throws where the backend does not tell.
  virtual std::vector<at::Tensor> result();
  // Lets what follows see the result.
  virtual void synchronize();
  // Returns true when the work is done and throws what it failed with. kNoTimeout waits for ever.
  virtual bool wait(std::chrono::milliseconds timeout = kNoTimeout);
  virtual void abort();
  // A future of the tensors. Throws where the backend has none.
  virtual c10::intrusive_ptr<c10::ivalue::Future> getFuture();
  virtual float getDuration() const;
  virtual uint64_t getSequencenumber() const;
  OpType retrieveOpType() const { return opType_; }

  // Work that is done when the future is.
  static c10::intrusive_ptr<Work>
  create_from_future(const c10::intrusive_ptr<c10::ivalue::Future>& future);

 protected:
  void finish(std::exception_ptr exception = nullptr);
  void finishAndThrow(std::exception_ptr exception);

  mutable std::mutex mutex_;
  std::condition_variable cv_;
  bool completed_ = false;
  std::exception_ptr exception_;
  const int rank_;
  const OpType opType_;
};

} // namespace c10d
