// Learning rates that change with the number of steps.
#pragma once
#include <string>
#include <vector>

#include <torch/optim/optimizer.h>

namespace torch::optim {

class TORCH_API LRScheduler {
 public:
  explicit LRScheduler(Optimizer& optimizer) : optimizer_(optimizer) {}
  virtual ~LRScheduler();
  void step();

 protected:
  // The rate of each group for the present step.
  virtual std::vector<double> get_lrs() = 0;
  std::vector<double> get_current_lrs() const;
  unsigned step_count_ = 0;

 private:
  Optimizer& optimizer_;
};

// Multiplies the rate by gamma every step_size steps.
class TORCH_API StepLR : public LRScheduler {
 public:
  StepLR(Optimizer& optimizer, const unsigned step_size, const double gamma = 0.1)
      : LRScheduler(optimizer), step_size_(step_size), gamma_(gamma) {}

 private:
  std::vector<double> get_lrs() override;
  const unsigned step_size_;
  const double gamma_;
};

// Lowers the rate when a measure has stopped to improve.
class TORCH_API ReduceLROnPlateauScheduler {
 public:
  enum SchedulerMode { min, max };
  enum ThresholdMode { rel, abs };
  ReduceLROnPlateauScheduler(Optimizer& optimizer, SchedulerMode mode = min, float factor = 0.1,
                             int patience = 10, double threshold = 1e-4,
                             ThresholdMode threshold_mode = rel, int cooldown = 0,
                             const std::vector<float>& min_lr = std::vector<float>(),
                             double eps = 1e-8, bool verbose = false);
  virtual ~ReduceLROnPlateauScheduler();
  void step(float metric);

 private:
  bool is_better(double metric) const;
  void reduce();

  Optimizer& optimizer_;
  SchedulerMode mode_;
  ThresholdMode threshold_mode_;
  double factor_, threshold_, eps_, best_;
  int patience_, cooldown_, bad_steps_ = 0, cooling_ = 0;
  std::vector<float> min_lrs_;
  bool verbose_;
};

} // namespace torch::optim
