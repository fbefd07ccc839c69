// Builds the tile program of one fused kernel: loads, conversions, loops, and registers shared by
// values that do not live at the same time.
#pragma once
#include <functional>
#include <map>
#include <tuple>
#include <vector>

#include <torch/csrc/inductor/ir.h>

namespace torch::inductor {

class KernelBuilder {
 public:
  // The next loop or constant, in program order. `stored`: its result goes to memory; `reduced`: it
  // is the element block of the reduction.
  void add(const Item& item, bool stored, bool reduced);
  // Moves the program into the step; `used` receives the buffers it reads.
  void finish(Step& step, std::vector<int32_t>& used);
  // After finish: a buffer whose memory the stored result of `item` may take, or -1. `dies` says
  // whether this kernel is the last to read a buffer.
  int32_t donor(const Item& item, const std::function<bool(int32_t)>& dies);
  SymInt bytes_read(SymInt numel) const;

 private:
  struct Input {
    Pointer pointer;
    bool linear = false;
    int32_t size = 0;
    int32_t last_step = -1;
    bool taken = false;
  };
  struct Output {
    int32_t buffer;
    int32_t step; // that writes it
    int32_t size;
  };

  Place load(const Source& source, SymInt numel);
  Place converted(Place from, at::ScalarType have, at::ScalarType want, const Source* key);
  Place number(const char* bytes, int64_t size);
  Place new_register(int64_t size);
  int16_t pointer_of(int32_t buffer, SymInt offset, bool linear, int64_t size);
  void emit(TileStep step);
  void assign_registers();

  TileProgram program_;
  std::vector<Input> inputs_; // by pointer; outputs have entries too
  std::vector<Output> outputs_;
  std::vector<int16_t> register_bytes_;
  std::map<int32_t, Place> made_; // by buffer: results of this kernel
  std::map<int32_t, at::ScalarType> made_dtype_;
  std::map<std::pair<int32_t, int64_t>, int16_t> pointers_;
  struct RowKey {
    int16_t pointer;
    c10::SmallVector<Source::Dim, 4> dims;
    int16_t rows;
  };
  std::vector<RowKey> row_keys_;
  using CastKey = std::tuple<int, int, int, int>;
  std::map<CastKey, Place> casts_;
  int16_t block_pointer_ = -1;
};

} // namespace torch::inductor
