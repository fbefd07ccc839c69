// backward() and grad(), and the small things C++ programs use beside them.
#pragma once
#include <torch/csrc/autograd/engine.h>
#include <torch/csrc/autograd/node.h>

namespace torch::autograd {

// Backward passes under this guard say where a gradient that went wrong came from.
class DetectAnomalyGuard {
 public:
  explicit DetectAnomalyGuard(bool check_nan = true) : before_(anomaly_mode()) {
    anomaly_mode() = {true, check_nan};
  }
  ~DetectAnomalyGuard() { anomaly_mode() = before_; }
  DetectAnomalyGuard(const DetectAnomalyGuard&) = delete;
  DetectAnomalyGuard& operator=(const DetectAnomalyGuard&) = delete;

 private:
  AnomalyMode before_;
};

} // namespace torch::autograd
