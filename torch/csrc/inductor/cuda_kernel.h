// Tile programs as CUDA kernels: the text of a program for the run-time compiler, with the functors
// of eager operators, and its launch. The text holds types and operators only; sizes, addresses and
// numbers are arguments, so that one machine code serves all shapes and is found again on disk.
#pragma once
#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include <torch/csrc/inductor/tile.h>

namespace torch::inductor {

// Whether a loop of this functor, or a conversion or choice where it is null, over these types can
// be a part of a CUDA kernel.
bool has_cuda_form(const at::iter::PointwiseSpec* spec, at::ScalarType compute,
                   at::ScalarType produced);
bool has_cuda_type(at::ScalarType dtype);

class CudaKernel {
 public:
  explicit CudaKernel(const TileProgram& program);
  // Finds the machine code for the current device where it was made before.
  bool find();
  // Finds or makes it.
  void prepare();
  // On the current stream of the current device; pointers[k] is where element 0 of pointer k lies.
  void launch(const TileProgram& program, char* const* pointers, int64_t numel);
  const std::string& text() const { return text_; }

 private:
  struct Operand {
    int16_t pointer;
    int16_t size; // bytes of an element
    int16_t rows; // entry of TileProgram::rows, or -1
  };
  void* known(int device);
  void* function(int device);

  std::string text_;
  std::vector<Operand> linear_; // read or written by the element's number
  std::vector<Operand> strided_;
  size_t pointers_ = 0; // of the arguments
  size_t pool_at_ = 0, rows_at_ = 0, bytes_ = 0;
  int pack_ = 1;
  int runs_ = 1;                          // packs of a thread
  std::atomic<void*> functions_[16] = {}; // by device
};

} // namespace torch::inductor
