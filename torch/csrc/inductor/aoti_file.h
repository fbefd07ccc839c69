// A compiled model as data: graphs of operators (program.h) with what their inputs must look like
// and where their constants lie. docs/aotinductor.md describes the file. Reading one looks
// operators up by name and runs nothing; whatever does not fit raises Error.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <torch/csrc/inductor/program.h>

namespace torch::inductor {

// ---- what a file says
// A size of an input: `factor * symbol + offset`, a number, or any.
struct AotiSize {
  enum class Kind : uint8_t { Fixed, Symbol, Any };
  Kind kind = Kind::Any;
  int64_t value = 0; // Fixed; of Symbol, the offset
  int64_t factor = 1;
  int32_t symbol = -1;
};

struct AotiInput {
  enum class Kind : uint8_t { Tensor, Int, Float, Bool };
  Kind kind = Kind::Tensor;
  std::string name;
  at::ScalarType dtype = at::ScalarType::Undefined;
  std::vector<AotiSize> sizes;
};

struct AotiSymbol {
  std::string name;
  int64_t least = 0, most = 0;
};

struct AotiConstant {
  std::string name; // as an identifier
  std::string fqn;  // as in the module
  at::ScalarType dtype = at::ScalarType::Undefined;
  std::vector<int64_t> sizes, strides;
  bool folded = false;  // computed from others by the graph `fold`
  bool in_file = false; // its bytes are in the file of weights
  uint64_t begin = 0, bytes = 0, checksum = 0;
};

struct AotiGraph {
  bool planned = true;            // false: operators are called one by one
  std::vector<int32_t> constants; // of the model, by number in the program
  Program program;
};

struct AotiFile {
  std::map<std::string, std::string> metadata;
  std::string in_spec, out_spec; // trees of arguments and results, as text
  at::Device device{at::kCPU};
  std::vector<AotiSymbol> symbols;
  std::vector<AotiInput> inputs;
  std::vector<AotiConstant> constants;
  int32_t fold = -1;             // the graph that computes folded constants, in their order
  std::vector<AotiGraph> graphs; // the first is the model; others are called by those before them
};

// Reads a file; constants have no data yet.
TORCH_API AotiFile read_aoti(std::string_view bytes);
// A program without its constants, as read_aoti reads it.
TORCH_API std::string encode_program(const Program& program);
// 64 bits that change with any byte.
TORCH_API uint64_t aoti_checksum(const void* data, size_t size);

} // namespace torch::inductor
