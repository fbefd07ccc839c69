// The second tier of tile programs: C++ text of a whole kernel, for a compiler that may be there.
// A program that has run over many elements asks for it; what comes back is tried beside the loops
// on real tiles and takes their place once the bits agreed.
#pragma once
#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <torch/csrc/inductor/tile.h>

namespace torch::inductor {

using CompiledTile = void (*)(char* const* data, const int64_t* strides, int64_t n,
                              const char* pool);

// An operand of a compiled kernel: where the tile finds it.
struct TierOperand {
  Place place;
  at::ScalarType dtype = at::ScalarType::Undefined;
  bool is_output = false;
};

struct KernelText {
  std::string text; // defines the function CPP_FUSED
  std::vector<TierOperand> operands;
};

// None where an operator, a type or an access has no form in registers.
std::optional<KernelText> kernel_text(const TileProgram& program);

// The state that a program and its copies share.
class TORCH_API Tier {
 public:
  // Tiles that must agree before the kernel is trusted.
  static constexpr int kTrials = 16;

  void count(const TileProgram& program, int64_t elements) {
    if (!is_hot_.load(std::memory_order_relaxed)) heat_more(program, elements);
  }
  CompiledTile function() const { return function_.load(std::memory_order_acquire); }
  bool is_trusted() const { return trials_.load(std::memory_order_relaxed) >= kTrials; }
  const std::vector<TierOperand>& operands() const { return operands_; }
  const std::string& text() const { return text_; }
  // What a trial found.
  void agreed();
  void reject();
  void install(CompiledTile function) { function_.store(function, std::memory_order_release); }

 private:
  void heat_more(const TileProgram& program, int64_t elements);
  std::atomic<int64_t> heat_{0};
  std::atomic<bool> is_hot_{false};
  std::atomic<CompiledTile> function_{nullptr};
  std::atomic<int> trials_{0};
  std::vector<TierOperand> operands_;
  std::string text_;
};

// Kernels that wait for a compiler. The check costs a load.
TORCH_API bool kernels_wait();
TORCH_API std::vector<std::shared_ptr<Tier>> take_waiting();
// Elements after which a kernel is worth compiling; 0: none is, as long as nobody can.
TORCH_API void set_hot_after(int64_t elements);
// Whether compiled kernels run beside the loops for ever, which then give the results.
TORCH_API void set_always_tried(bool value);
// Kernels whose bits differed, since the process began.
TORCH_API int64_t rejected_kernels();
// The macro CRESSET_ISA of this machine's loops.
TORCH_API const char* isa_namespace();

} // namespace torch::inductor
