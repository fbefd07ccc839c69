// Plans for CUDA as graphs of the driver: the steps of a plan are recorded once and queued as a
// whole from then on, which costs the host the launch of one graph instead of one launch a step.
//
// Note [Memory of recorded plans]
// A graph reads and writes the addresses that it was recorded with. Inputs are read where they lie
// if they lie there again, and are copied to memory of the recording otherwise. Outputs belong to
// the recording. They may be written again only when nobody has them any more, which the count of
// references to their storage says; so a recording with outputs in use is left alone, and the call
// is served by another one or by the plan as it is. Results are never overwritten behind a
// program's back.
#pragma once
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include <ATen/core/IValue.h>
#include <ATen/core/Tensor.h>

namespace torch::inductor {

struct Plan;
struct Program;
class Recording;

class TORCH_API Recordings {
 public:
  // `writes`: by input, whether the program may write to it. `refusal`: why nothing is recorded.
  Recordings(std::vector<bool> writes, std::string refusal);
  ~Recordings();
  // What Plan::run returns, with the current device that of the plan.
  std::vector<at::IValue> run(const Plan& plan, std::vector<at::IValue>& inputs,
                              const std::vector<at::Tensor>& constants);
  // How many graphs there are, and why no more are recorded; empty while they are.
  std::pair<size_t, std::string> state();

 private:
  Recording* fitting(const std::vector<char*>& addresses);
  std::unique_ptr<Recording> record(const Plan& plan, const std::vector<at::IValue>& inputs,
                                    const std::vector<at::Tensor>& constants);
  void note_moves(const std::vector<char*>& addresses);

  std::mutex mutex_;
  const std::vector<bool> writes_;
  std::vector<std::unique_ptr<Recording>> made_; // the one used last first
  std::vector<char*> seen_;                      // addresses of the inputs of the last call
  std::vector<bool> moves_;                      // by input: it lay elsewhere before
  int calls_ = 0, attempts_ = 0;
  std::string refusal_;
};

// The recordings of a plan for CUDA; null where the program wants none or, where it leaves that
// open, the launches of the plan take no longer than its kernels.
std::shared_ptr<Recordings> make_recordings(const Program& program, const Plan& plan);

} // namespace torch::inductor
