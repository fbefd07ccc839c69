// See cuda_kernel.h.
#include <torch/csrc/inductor/cuda_kernel.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <mutex>
#include <set>
#include <sstream>
#include <unordered_map>

#include <ATen/cuda/Launch.h>
#include <ATen/cuda/PointwiseLaunch.h>
#include <ATen/cuda/PointwiseProgram.h>
#include <ATen/cuda/Program.h>
#include <ATen/iter/Pointwise.h>
#include <c10/cuda/CUDAStream.h>
#include <torch/csrc/inductor/program.h>

namespace torch::inductor {
namespace {

using at::ScalarType;
using PK = Place::Kind;
using Form = TileStep::Form;

constexpr int kThreads = 128;
// Up to so many steps a thread computes two packs: more would need too many registers.
constexpr size_t kShortProgram = 6;
constexpr size_t kMostArguments = 4096; // bytes that a launch takes
constexpr const char* kName = "cresset_fused";

std::string type_name(ScalarType dtype) {
  return std::string("cresset_") + at::cuda::device_type_name(dtype);
}

const char* kind_name(at::native::OutKind kind) {
  return kind == at::native::OutKind::Bool   ? "Bool"
         : kind == at::native::OutKind::Real ? "Real"
                                             : "Same";
}

// The statements of one pack of elements. Registers of the tile are names here.
class Writer {
 public:
  explicit Writer(const TileProgram& program) : program_(program) {
    for (const TileStep& step : program.steps) add(step);
  }

  std::set<std::string> headers;
  std::ostringstream loads, body;
  int widest = 1;

 private:
  std::string value(const Place& place, ScalarType dtype) {
    widest = std::max<int>(widest, static_cast<int>(c10::elementSize(dtype)));
    if (place.kind == PK::Register) return registers_.at(place.index);
    if (place.kind == PK::LoneTemp) return lone_.at(place.index);
    if (place.kind == PK::Memory) {
      const auto stored = stored_.find(place.index);
      if (stored != stored_.end()) return stored->second;
    }
    const std::string key = c10::str(static_cast<int>(place.kind), "_", place.index, "_",
                                     place.rows, "_", static_cast<int>(dtype));
    const auto [known, is_new] = loads_.emplace(key, "m" + std::to_string(loads_.size()));
    if (!is_new) return known->second;
    const std::string type = type_name(dtype), pointer = c10::str("a.p[", place.index, "]");
    loads << "  const auto " << known->second << " = ";
    if (place.kind == PK::Constant)
      loads << "lone<" << type << ", S::kCount>(reinterpret_cast<const char*>(a.pool) + "
            << 16 * int64_t(place.index) << ");\n";
    else if (place.kind == PK::Lone)
      loads << "lone<" << type << ", S::kCount>(" << pointer << ");\n";
    else if (place.kind == PK::Rows)
      loads << "load_rows<" << type << ", S>(" << pointer << ", first, end, a.rows" << place.rows
            << ");\n";
    else
      loads << "load<" << type << ", S>(" << pointer << ", first, end);\n";
    return known->second;
  }

  void add(const TileStep& step) {
    std::vector<std::string> in;
    for (int k = 0; k < step.inputs; ++k) {
      const bool is_mask = step.form == Form::Where && k == 0;
      in.push_back(value(step.in[static_cast<size_t>(k)], is_mask ? ScalarType::Bool : step.from));
    }
    widest = std::max<int>(widest, static_cast<int>(c10::elementSize(step.to)));
    const std::string name = "v" + std::to_string(count_++);
    body << "  const auto " << name << " = " << expression(step, in) << ";\n";
    if (step.out.kind == PK::Register) {
      registers_[step.out.index] = name;
    } else if (step.out.kind == PK::LoneTemp) {
      lone_[step.out.index] = name;
    } else {
      stored_[step.out.index] = name;
      body << "  store<S>(a.p[" << step.out.index << "], first, end, " << name << ");\n";
    }
  }

  std::string expression(const TileStep& step, const std::vector<std::string>& in) {
    if (step.form == Form::Cast) return "cast<" + type_name(step.to) + ">(" + in[0] + ")";
    if (step.form == Form::Where) return "where(" + in[0] + ", " + in[1] + ", " + in[2] + ")";
    const at::cuda::PointwiseProgram& functor = *step.spec->cuda;
    headers.insert(functor.header);
    std::ostringstream text;
    text << "apply<at::native::fn::" << functor.functor
         << ", at::device::OutKind::" << kind_name(functor.out) << ", " << type_name(step.from)
         << ", " << static_cast<int>(functor.params) << ", S::kCount>(";
    if (functor.params > 0)
      text << "a.pool + " << step.params;
    else
      text << "nullptr";
    for (const std::string& name : in) text << ", " << name;
    text << ")";
    return text.str();
  }

  const TileProgram& program_;
  std::map<int16_t, std::string> registers_, lone_, stored_;
  std::map<std::string, std::string> loads_;
  int count_ = 0;
};

// Whether packs of an input lie together, are one element, or neither; see Rows in Fused.cuh.
uint32_t row_form(const RowAccess& access, const char* address, int64_t size, int pack) {
  const RowAccess::Dim& inner = access.dims[0];
  if (inner.size % pack != 0) return 0;
  if (inner.stride == 0) return 2;
  if (inner.stride != size) return 0;
  const int64_t bytes = size * pack;
  bool aligned = reinterpret_cast<uintptr_t>(address) % static_cast<uintptr_t>(bytes) == 0;
  for (size_t d = 1; d < access.dims.size(); ++d)
    aligned = aligned && access.dims[d].stride % bytes == 0;
  return aligned ? 1 : 0;
}

size_t rounded(size_t bytes, size_t unit) { return (bytes + unit - 1) / unit * unit; }

// Machine code by text and device, shared by all plans.
struct Functions {
  std::mutex mutex;
  std::unordered_map<std::string, void*> known;
};
Functions& functions() {
  static Functions* const kept = new Functions;
  return *kept;
}

} // namespace

bool has_cuda_type(ScalarType dtype) { return at::cuda::device_type_name(dtype) != nullptr; }
bool has_cuda_form(const at::iter::PointwiseSpec* spec, ScalarType compute, ScalarType produced) {
  if (!has_cuda_type(compute) || !has_cuda_type(produced)) return false;
  if (spec == nullptr) return true;
  return spec->cuda != nullptr && (spec->cuda->types >> static_cast<int>(compute) & 1);
}

CudaKernel::CudaKernel(const TileProgram& program) {
  Writer writer(program);
  pack_ = std::max(1, 16 / std::max(writer.widest, 2));
  std::set<int16_t> seen;
  const auto note = [&](const Place& place) {
    if (place.kind == PK::Memory || place.kind == PK::Lone || place.kind == PK::Rows)
      pointers_ = std::max(pointers_, static_cast<size_t>(place.index) + 1);
    if (place.kind == PK::Memory && seen.insert(place.index).second)
      linear_.push_back({place.index, place.size, -1});
    if (place.kind != PK::Rows) return;
    const auto same = [&](const Operand& o) { return o.rows == place.rows; };
    if (std::none_of(strided_.begin(), strided_.end(), same))
      strided_.push_back({place.index, place.size, place.rows});
  };
  for (const TileStep& step : program.steps) {
    for (int k = 0; k < step.inputs; ++k) note(step.in[static_cast<size_t>(k)]);
    note(step.out);
  }
  pool_at_ = program.pool.empty() ? 16 + 8 * pointers_ : rounded(16 + 8 * pointers_, 16);
  rows_at_ = pool_at_ + rounded(program.pool.size(), 16);
  bytes_ = rows_at_;
  std::ostringstream text, members;
  for (const std::string& header : writer.headers) text << "#include <" << header << ">\n";
  for (const Operand& operand : strided_) {
    const size_t dims = program.rows[static_cast<size_t>(operand.rows)].dims.size();
    members << "  at::device::fused::Rows<" << dims << "> rows" << operand.rows << ";\n";
    bytes_ += rounded(dims * sizeof(at::device::Divider), 8) + dims * 8 + 8;
  }
  bytes_ = rounded(bytes_, 16);
  if (bytes_ > kMostArguments) throw NotLowered("a kernel with too many arguments for CUDA");
  text << "#include <ATen/cuda/device/Fused.cuh>\n\nstruct alignas(16) FusedArgs {\n"
       << "  long n;\n  unsigned aligned, padding;\n  char* p[" << std::max<size_t>(pointers_, 1)
       << "];\n";
  runs_ = program.steps.size() <= kShortProgram ? 2 : 1;
  if (rows_at_ > pool_at_)
    text << "  alignas(16) unsigned char pool[" << rows_at_ - pool_at_ << "];\n";
  text << members.str() << "};\n\nnamespace at::device::fused {\ntemplate <class S> "
       << "CRESSET_DEVICE_FN void once(const FusedArgs& a, long first, long end) {\n"
       << writer.loads.str() << writer.body.str() << "}\nusing Packs = Span<" << pack_ << ", "
       << runs_ << ", " << kThreads << ">;\nusing One = Span<1, 1, " << kThreads
       << ">;\n} // namespace at::device::fused\n\nCRESSET_KERNEL(" << kThreads << ")\n"
       << kName << R"((const __grid_constant__ FusedArgs a) {
  CRESSET_AWAIT_PREDECESSOR;
  using S = at::device::fused::Packs;
  using One = at::device::fused::One;
  const long block = blockIdx.x * S::kRuns * S::kStride;
  if (a.aligned == 0) {
    CRESSET_NO_UNROLL
    for (int i = threadIdx.x; i < S::kRuns * S::kStride; i += blockDim.x)
      at::device::fused::once<One>(a, block + i, a.n);
    return;
  }
  at::device::fused::once<S>(a, block + threadIdx.x * S::kPack, a.n - (S::kPack - 1));
  // The elements after the last whole pack.
  const long rest = a.n - a.n % S::kPack + threadIdx.x;
  if (S::kPack > 1 && blockIdx.x == gridDim.x - 1 && rest < a.n)
    at::device::fused::once<One>(a, rest, a.n);
}
)";
  text_ = text.str();
}

namespace {
// Products and sums stay apart, as in the kernels of single operators.
const std::vector<std::string> kOptions = {"--fmad=false"};

void* remember(const std::string& key, void* function) {
  const std::lock_guard<std::mutex> lock(functions().mutex);
  return functions().known.emplace(key, function).first->second;
}
} // namespace

// Loaded before, by this kernel or by another of the same text.
void* CudaKernel::known(int device) {
  std::atomic<void*>& slot = functions_[device & 15];
  void* found = slot.load(std::memory_order_acquire);
  if (C10_LIKELY(found != nullptr)) return found;
  {
    const std::lock_guard<std::mutex> lock(functions().mutex);
    const auto other = functions().known.find(std::to_string(device) + text_);
    if (other == functions().known.end()) return nullptr;
    found = other->second;
  }
  slot.store(found, std::memory_order_release);
  return found;
}

void* CudaKernel::function(int device) {
  if (void* found = known(device)) return found;
  void* made = at::cuda::load_generated(device, nullptr, text_, kOptions, kName);
  remember(std::to_string(device) + text_, made);
  return known(device);
}

bool CudaKernel::find() {
  const c10::DeviceIndex device = c10::cuda::current_device();
  if (known(device) != nullptr) return true;
  c10::cuda::bind_device(device);
  void* found = at::cuda::find_generated(device, text_, kOptions, kName);
  if (found == nullptr) return false;
  remember(std::to_string(device) + text_, found);
  return true;
}

void CudaKernel::prepare() {
  const c10::DeviceIndex device = c10::cuda::current_device();
  c10::cuda::bind_device(device);
  function(device);
}

void CudaKernel::launch(const TileProgram& program, char* const* pointers, int64_t numel) {
  const c10::DeviceIndex device = c10::cuda::current_device();
  c10::cuda::bind_device(device);
  c10::SmallVector<char, 512> arguments(bytes_, 0);
  bool aligned = true;
  for (const Operand& operand : linear_)
    aligned = aligned && reinterpret_cast<uintptr_t>(pointers[operand.pointer]) %
                                 static_cast<uintptr_t>(pack_ * operand.size) ==
                             0;
  const uint32_t flag = aligned ? 1 : 0;
  std::memcpy(arguments.data(), &numel, 8);
  std::memcpy(arguments.data() + 8, &flag, 4);
  std::memcpy(arguments.data() + 16, pointers, 8 * pointers_);
  if (!program.pool.empty())
    std::memcpy(arguments.data() + pool_at_, program.pool.data(), program.pool.size());
  char* at = arguments.data() + rows_at_;
  for (const Operand& operand : strided_) {
    const RowAccess& access = program.rows[static_cast<size_t>(operand.rows)];
    for (const RowAccess::Dim& dim : access.dims) {
      const at::device::Divider divider(static_cast<uint32_t>(dim.size));
      std::memcpy(at, &divider, sizeof(divider));
      at += sizeof(divider);
    }
    at = arguments.data() + rounded(static_cast<size_t>(at - arguments.data()), 8);
    for (const RowAccess::Dim& dim : access.dims) {
      std::memcpy(at, &dim.stride, 8);
      at += 8;
    }
    const uint32_t form = row_form(access, pointers[operand.pointer], operand.size, pack_);
    std::memcpy(at, &form, 4);
    at += 8;
  }
  const int64_t share = int64_t(kThreads) * runs_ * pack_;
  void* given[] = {arguments.data()};
  at::cuda::launch_overlapping(static_cast<c10::cuda::CUfunction>(function(device)),
                               static_cast<unsigned>((numel + share - 1) / share), kThreads,
                               c10::cuda::getCurrentCUDAStream(device), given);
}

} // namespace torch::inductor
