// A compiled graph for one set of shapes, made for it or from a template (template.h): a flat list
// of steps (fused kernels, reductions with what leads to them, calls of operators) that runs
// without Python. Buffers are storages; everything a step reads or writes is a view of one.
// `Compiled` keeps a Program with the plans made of it.
#pragma once
#include <atomic>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include <ATen/native/RowKernels.h>
#include <ATen/native/reduce/ReduceDriver.h>
#include <torch/csrc/inductor/program.h>
#include <torch/csrc/inductor/tile.h>

namespace torch::inductor {

class Compilation;
class CudaKernel;
class PlanTemplate;
class Recordings;

// A tensor over a buffer; offset in elements from the buffer's first byte.
struct View {
  int32_t buffer = -1;
  at::ScalarType dtype = at::ScalarType::Undefined;
  at::DimVector sizes, strides;
  int64_t offset = 0;
};

struct CallArg {
  enum class Kind : uint8_t { Value, Tensor, Tensors, OptionalTensors };
  Kind kind = Kind::Value;
  at::IValue value;
  std::vector<int32_t> views; // -1: no tensor
};

// A tensor that a call returns: result `index`, or item `item` of it.
struct CallResult {
  int32_t index = 0, item = -1;
  int32_t view = -1;
};

// An operand of a fused kernel in memory.
struct Pointer {
  int32_t buffer = -1;
  int64_t offset = 0; // bytes
};

struct FusedOutput {
  int32_t view = -1;
  int32_t donor = -1; // a buffer that dies here and may lend its memory
};

// A call as a kernel over rows. Views are -1 where an argument is not given.
struct RowForm {
  at::native::RowKernel kernel; // `run` is null for other calls
  int64_t count = 0;            // rows
  int32_t by_row = 1;           // arguments that come row by row; the rest serve all rows
  std::vector<int32_t> in, out; // views
};

// ---- chains: steps that are run one after the other on a few rows at a time (chain.cpp)
// An operand of a part: memory of a buffer, or of scratch that holds the rows at hand.
struct ChainPointer {
  int32_t buffer = -1;
  int64_t offset = 0;    // bytes
  int64_t row_bytes = 0; // 0: the same for all rows
  int32_t slot = -1;     // of the scratch; -1: the buffer's memory
  bool wanted = true;
};

struct ChainPart {
  enum class Kind : uint8_t { Fused, Reduce, Call };
  Kind kind = Kind::Fused;
  int64_t length = 0; // elements of a row
  TileProgram program;
  std::vector<ChainPointer> pointers; // of the program, or arguments and then results of the kernel
  size_t arguments = 0;
  at::native::RowKernel kernel;
  at::native::reduce::ReduceCall reduction{nullptr};
  ChainPointer elements, result; // Reduce
  at::ScalarType result_dtype = at::ScalarType::Undefined;
};

struct Chain {
  std::vector<ChainPart> parts;
  int64_t rows = 0;
  int64_t block = 1;          // rows at a time
  int64_t grain = 1;          // rows a thread should have at least
  std::vector<int64_t> slots; // where each begins in the scratch; then its size
  // addresses[b]: the memory of buffer b, for those that have some.
  void run(const std::vector<char*>& addresses) const;
};

struct Step {
  enum class Kind : uint8_t { Call, Fused, Reduce, Chain };
  Kind kind = Kind::Call;
  std::string name;
  std::vector<int32_t> nodes; // of the program that it computes
  // Call
  const at::OperatorEntry* op = nullptr;
  std::vector<CallArg> args;
  std::vector<CallResult> results;
  // Fused; of Reduce, what computes the elements. The last pointer of Reduce is its element block.
  TileProgram program;
  std::vector<Pointer> pointers;
  std::vector<FusedOutput> outputs;
  int64_t numel = 0;
  std::shared_ptr<CudaKernel> kernel; // of a plan for CUDA
  // Reduce
  at::native::reduce::ReduceCall reduction{nullptr};
  at::native::reduce::DimMask mask = 0;
  at::Tensor elements; // their shape, strides and dtype, on meta
  int32_t element_size = 0;
  RowForm row; // of a Call
  // Of a Call whose results a later step joins or adds to a sum: the view of what that one makes,
  // -1 for others, and the view of the sum. The later one does nothing where its result is there
  // already (join.cpp, pending_sums.cpp).
  int32_t joined = -1, sum = -1;
  bool may_be_joined = false;
  // What a batch norm does on the way (batch_norms.cpp); views, or -1.
  struct BatchNormJoin {
    bool rectifies = false;
    int32_t added = -1, rectified = -1;
  };
  std::optional<BatchNormJoin> batch_norm;
  std::shared_ptr<Chain> chain; // with the results in `outputs` and the buffers in `pointers`

  std::vector<int32_t> frees; // buffers not needed after this step
};

struct TORCH_API Plan {
  at::Device device{at::kCPU}; // of all tensors
  std::vector<View> views;
  std::vector<Step> steps;
  int32_t buffers = 0;
  std::vector<int32_t> input_buffers; // by input, -1 for numbers
  std::vector<int32_t> constant_buffers;
  std::vector<bool> outer; // by buffer: an input or a constant
  struct Output {
    at::IValue value; // where view < 0
    int32_t view = -1;
  };
  std::vector<Output> outputs;

  // What the inputs must look like.
  struct InputKey {
    bool is_tensor = false;
    at::ScalarType dtype = at::ScalarType::Undefined;
    at::Device device{at::kCPU};
    at::DimVector sizes, strides;
    int64_t offset = 0;
    at::IValue number;
  };
  std::vector<InputKey> keys;
  bool uses_offsets = false, apart = false;
  int64_t bytes_read = 0, bytes_written = 0;
  // While kernels are being compiled: the same graph, operator by operator (cuda_compile.h).
  std::shared_ptr<Compilation> compilation;
  std::shared_ptr<const Plan> meanwhile;
  std::shared_ptr<Recordings> recordings; // of a plan for CUDA that is queued as graphs

  bool matches(c10::ArrayRef<at::IValue> inputs) const;
  std::vector<at::IValue> run(std::vector<at::IValue>& inputs,
                              const std::vector<at::Tensor>& constants) const;
  // One step after the other, with the current device that of the plan.
  std::vector<at::IValue> run_steps(std::vector<at::IValue>& inputs,
                                    const std::vector<at::Tensor>& constants) const;
  std::string text() const;
};

// Makes the plan of a program for inputs like these. NotLowered where it cannot.
TORCH_API std::shared_ptr<Plan> make_plan(const Program& program, c10::ArrayRef<at::IValue> inputs);
// The same with symbols for some numbers of the inputs; such a plan is not run
// (Note [Plans with symbols]).
std::shared_ptr<Plan> make_plan(const Program& program, c10::ArrayRef<at::IValue> inputs,
                                c10::ArrayRef<at::IValue> with_symbols);
// What a plan on CUDA needs before it runs with these inputs: the operators one by one while its
// kernels are compiled, and recordings.
void make_ready(Plan& plan, const Program& program, c10::ArrayRef<at::IValue> inputs);

Plan::InputKey key_of(const at::IValue& value, bool uses_offsets);
bool same_number(const at::IValue& a, const at::IValue& b);
// Whether no two inputs share memory.
bool are_apart(c10::ArrayRef<at::IValue> inputs);

class TORCH_API Compiled {
 public:
  explicit Compiled(Program program) : program_(std::move(program)) {}
  // Takes the tensors out of `inputs`, so that they are freed when they are used for the last time.
  std::vector<at::IValue> run(std::vector<at::IValue>& inputs) {
    return run(inputs, program_.constants);
  }
  // With other constants that look like the program's. NotLowered leaves the inputs as they are.
  std::vector<at::IValue> run(std::vector<at::IValue>& inputs,
                              const std::vector<at::Tensor>& constants);
  std::shared_ptr<const Plan> prepare(c10::ArrayRef<at::IValue> inputs);
  const Program& program() const { return program_; }
  std::vector<std::shared_ptr<const Plan>> plans();
  // How often the program was planned: for sizes that were known, and with symbols.
  int64_t planned() const { return planned_.load(std::memory_order_relaxed); }

 private:
  // A program that decides anew for all sizes is planned for each.
  static constexpr size_t kMostTemplates = 4;
  static constexpr size_t kExamples = 8; // of inputs, that say what changes
  // Steps of all plans together: a graph of few operators has plans for hundreds of shapes, one of
  // a thousand for a dozen.
  static constexpr size_t kMostSteps = 16384;
  static constexpr size_t kFewPlans = 8; // are kept whatever their steps
  struct Known {
    uint64_t mark = 0; // of the inputs that it was made for
    std::shared_ptr<const Plan> plan;
  };
  using Order = std::list<Known>; // the one used last first

  Program program_;
  std::mutex mutex_; // held where no operator runs, so that a shape function may be of any kind
  Order plans_;
  std::vector<std::shared_ptr<const PlanTemplate>> templates_; // the one made last first
  size_t attempts_ = 0;                                        // to make one
  std::atomic<int64_t> planned_{0};
  std::unordered_multimap<uint64_t, Order::iterator> by_mark_;
  size_t steps_ = 0;
  // The compiled forms of kernels, by what the kernels do: sizes are no part of them, so that plans
  // for other shapes begin with what was compiled for the first.
  std::map<std::string, std::shared_ptr<Tier>> tiers_;
  void share_tiers(Plan& plan);
  uint64_t mark_of(c10::ArrayRef<at::IValue> inputs) const;
  bool fits(const Plan& plan, c10::ArrayRef<at::IValue> inputs) const;
  std::shared_ptr<const Plan> find(c10::ArrayRef<at::IValue> inputs);
  // By a template that there is, or by one that is made because these are not the first sizes.
  std::shared_ptr<Plan> from_template(c10::ArrayRef<at::IValue> inputs);
  std::shared_ptr<const Plan> keep(const std::shared_ptr<Plan>& plan,
                                   c10::ArrayRef<at::IValue> inputs);
};

} // namespace torch::inductor
