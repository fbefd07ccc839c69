// From a program to items with buffers. Every operator runs once on the meta device: what shares
// storage with an argument is a view, what pointwise loops it would run are recorded
// (ATen/iter/PointwiseRecord.h), the rest is called when the plan runs. So the shape, strides and
// loops of an operator are not written here a second time.
#include <torch/csrc/inductor/ir.h>

#include <algorithm>
#include <cstring>
#include <string_view>
#include <unordered_map>

#include <ATen/core/EmptyTensor.h>
#include <ATen/iter/Cast.h>
#include <ATen/iter/PointwiseRecord.h>
#include <ATen/native/index/WhereLoop.h>
#include <ATen/native/reduce/ReduceDims.h>
#include <c10/core/SymbolicGeometry.h>
#include <torch/csrc/inductor/cuda_kernel.h>

namespace torch::inductor {
namespace {

using at::IValue;
using at::ScalarType;
using at::Tensor;
using at::native::reduce::Post;
using at::native::reduce::ReduceOp;
using c10::DispatchKey;
using Kind = Item::Kind;

constexpr c10::DispatchKeySet kMetaKeys{DispatchKey::Meta};

[[noreturn]] void refuse(const std::string& why) { throw NotLowered(why); }

// No mode, no autograd: operators go straight to their kernels.
class PlainDispatch {
 public:
  PlainDispatch() : saved_(c10::tls_dispatch_keys) {
    c10::tls_dispatch_keys.included = 0;
    c10::tls_dispatch_keys.excluded =
        (c10::kAutogradKeys | c10::kAutocastKeys |
         c10::DispatchKeySet{DispatchKey::Python, DispatchKey::Fake, DispatchKey::Functionalize})
            .raw();
  }
  ~PlainDispatch() { c10::tls_dispatch_keys = saved_; }
  PlainDispatch(const PlainDispatch&) = delete;
  PlainDispatch& operator=(const PlainDispatch&) = delete;

 private:
  c10::LocalDispatchKeySet saved_;
};

bool has_tag(const at::OperatorEntry& op, std::string_view wanted) {
  std::string_view rest(op.tags_text ? op.tags_text : "");
  while (!rest.empty()) {
    const size_t comma = rest.find(',');
    std::string_view tag = rest.substr(0, comma);
    while (!tag.empty() && tag.front() == ' ') tag.remove_prefix(1);
    if (tag == wanted) return true;
    rest = comma == rest.npos ? std::string_view() : rest.substr(comma + 1);
  }
  return false;
}

std::string short_name(const at::OperatorEntry& op) {
  const std::string_view name(op.name);
  return std::string(name.substr(name.find("::") + 2));
}

bool is_plain(const Tensor& t) {
  return t.layout() == at::kStrided && !t.is_conj() && !t.is_neg() && !t.is_nested() &&
         !t.is_quantized() && t.has_storage();
}

// Strides of `t`, which broadcasts to the dense `result`, over the result's memory order.
bool numbered_dims(const Tensor& t, const Tensor& result, c10::SmallVector<Source::Dim, 4>& dims) {
  const c10::SymIntArrayRef sizes = result.sym_sizes(), strides = result.sym_strides();
  const int64_t rank = result.dim(), missing = rank - t.dim();
  if (missing < 0) return false;
  c10::SmallVector<int64_t, 6> order;
  for (int64_t d = 0; d < rank; ++d)
    if (sizes[d] != 1) order.push_back(d);
  std::stable_sort(order.begin(), order.end(),
                   [&](int64_t a, int64_t b) { return strides[a] < strides[b]; });
  for (const int64_t d : order) {
    const SymInt size = sizes[d];
    const bool repeats = d < missing || t.sym_sizes()[d - missing] == 1;
    if (!repeats && t.sym_sizes()[d - missing] != size) return false;
    const SymInt stride = repeats ? SymInt(0) : t.sym_strides()[d - missing];
    if (!dims.empty() && same(dims.back().stride * dims.back().size, stride)) {
      dims.back().size *= size;
    } else {
      dims.push_back({size, stride});
    }
  }
  return true;
}

class Lowering {
 public:
  Lowering(const Program& program, c10::ArrayRef<IValue> inputs, bool fuse, at::Device device)
      : program_(program), inputs_(inputs), fuse_(fuse) {
    out_.device = device;
  }

  Lowered run() {
    PlainDispatch plain;
    env_.resize(program_.nodes.size());
    for (size_t i = 0; i < program_.nodes.size(); ++i) {
      const Node& node = program_.nodes[i];
      current_node_ = static_cast<int32_t>(i);
      if (node.kind == Node::Kind::Input)
        env_[i] = input(inputs_[static_cast<size_t>(node.index)], out_.input_buffers);
      else if (node.kind == Node::Kind::Constant)
        env_[i] = input(program_.constants[static_cast<size_t>(node.index)], out_.constant_buffers);
      else if (node.kind == Node::Kind::Item)
        env_[i] = item_of(value_of(node.args[0]), node.index);
      else if (node.kind == Node::Kind::Number)
        env_[i] = number(node);
      else if (node.kind == Node::Kind::Call)
        env_[i] = call(node);
      else
        refuse("a call of another graph");
    }
    for (const Arg& arg : program_.outputs) add_output(arg);
    return std::move(out_);
  }

 private:
  // ---- inputs and outputs
  bool is_cuda() const { return out_.device.is_cuda(); }
  IValue input(const IValue& value, std::vector<int32_t>& buffers) {
    if (!value.isTensor()) {
      buffers.push_back(-1);
      return value;
    }
    const Tensor t = value.toTensor();
    if (!is_plain(t) || !(t.is_cpu() || t.is_meta() || t.is_cuda()))
      refuse("an input that is no plain tensor of the CPU or of a CUDA device");
    if (!t.is_meta() && t.device() != out_.device)
      refuse(c10::str("tensors of two devices, ", out_.device, " and ", t.device()));
    const Tensor meta =
        t.unsafeGetTensorImpl()->has_symbolic_sizes() ? t : plain_input(t, program_.uses_offsets);
    buffers.push_back(new_buffer(meta, -1));
    return meta;
  }

  static Tensor plain_input(const Tensor& t, bool uses_offsets) {
    const int64_t start = uses_offsets ? t.storage_offset() : 0;
    int64_t reach = start;
    for (int64_t d = 0; d < t.dim(); ++d) reach += (t.sizes()[d] - 1) * t.strides()[d];
    if (t.numel() == 0) reach = start;
    // A view whose offset leaves room for what operators may ask of the storage.
    const Tensor whole = at::detail::empty({reach + 1}, t.scalar_type(), at::Device(at::kMeta));
    return at::detail::checked_tensor(whole.storage(), t.scalar_type(), t.sizes(), t.strides(),
                                      start);
  }

  void add_output(const Arg& arg) {
    Plan::Output output;
    const IValue value = value_of(arg);
    if (value.isTensor()) {
      output.view = view_of(value.toTensor());
      out_.buffers[static_cast<size_t>(out_.views[static_cast<size_t>(output.view)].buffer)]
          .is_output = true;
    } else if (value.isTensorList() || value.isList()) {
      refuse("a list among the outputs");
    } else {
      output.value = value;
    }
    out_.outputs.push_back(std::move(output));
  }

  // ---- buffers
  int32_t new_buffer(const Tensor& meta, int32_t item) {
    const auto id = static_cast<int32_t>(out_.buffers.size());
    out_.buffers.push_back({item, false, meta});
    versions_.push_back(0);
    by_storage_[meta.storage().get()] = id;
    return id;
  }
  int32_t find_buffer(const Tensor& t) const {
    const auto found = by_storage_.find(t.storage().get());
    return found == by_storage_.end() ? -1 : found->second;
  }
  static SymInt offset_of(const Tensor& t) { return t.unsafeGetTensorImpl()->sym_storage_offset(); }
  static bool is_view(const Tensor& t, const View& v) {
    return raw_list(t.sym_sizes()) == v.sizes && raw_list(t.sym_strides()) == v.strides &&
           offset_of(t).raw() == v.offset;
  }
  int32_t view_of(const Tensor& t) {
    const auto known = views_.find(t.unsafeGetTensorImpl());
    // An operator may have given the tensor another shape since (squeeze_, t_).
    if (known != views_.end() && is_view(t, out_.views[static_cast<size_t>(known->second)]))
      return known->second;
    const int32_t buffer = find_buffer(t);
    if (buffer < 0 || !is_plain(t))
      refuse(c10::str("a tensor of unknown origin, ", t.scalar_type(), t.sym_sizes(), " on ",
                      t.device(), ", of ", current_ ? current_->full_name() : "the outputs"));
    const auto id = static_cast<int32_t>(out_.views.size());
    out_.views.push_back({buffer, t.scalar_type(), raw_list(t.sym_sizes()),
                          raw_list(t.sym_strides()), offset_of(t).raw()});
    kept_.push_back(t);
    views_[t.unsafeGetTensorImpl()] = id;
    return id;
  }

  // ---- arguments
  IValue value_of(const Arg& arg) const {
    if (arg.kind == Arg::Kind::Node) return env_[static_cast<size_t>(arg.node)];
    return arg.value;
  }
  // Sums, products and quotients of symbols are symbols; other functions take their values.
  IValue number(const Node& node) const {
    std::vector<IValue> in = values_of(node.args, env_);
    const bool symbolic =
        std::any_of(in.begin(), in.end(), [](const IValue& v) { return v.isSymbol(); });
    const bool whole = std::all_of(in.begin(), in.end(),
                                   [](const IValue& v) { return v.isSymbol() || v.isInt(); });
    if (symbolic && whole) {
      const SymInt a = in[0].toSymInt();
      if (node.number == NumberOp::Neg) return -a;
      if (node.number <= NumberOp::Min)
        return SymInt::apply(symbolic_op(node.number), a, in.at(1).toSymInt());
    }
    for (IValue& value : in)
      if (value.isSymbol()) value = value.toInt();
    return number_result(node.number, in);
  }
  static c10::SymOp symbolic_op(NumberOp op) {
    switch (op) {
    case NumberOp::Add:
      return c10::SymOp::Add;
    case NumberOp::Sub:
      return c10::SymOp::Sub;
    case NumberOp::Mul:
      return c10::SymOp::Mul;
    case NumberOp::FloorDiv:
      return c10::SymOp::FloorDiv;
    case NumberOp::Mod:
      return c10::SymOp::Mod;
    case NumberOp::Max:
      return c10::SymOp::Max;
    default:
      return c10::SymOp::Min;
    }
  }
  // What the call of the plan gets: the same with views for tensors.
  std::vector<CallArg> call_args(const at::Stack& stack) {
    std::vector<CallArg> args;
    for (const IValue& value : stack) {
      CallArg arg;
      if (value.isTensor() && value.toTensor().is_cpu()) {
        arg.value = value; // a number that passes for a tensor
      } else if (value.isTensor()) {
        arg.kind = CallArg::Kind::Tensor;
        arg.views.push_back(view_of(value.toTensor()));
      } else if (value.isTensorList()) {
        arg.kind = CallArg::Kind::Tensors;
        for (const Tensor& t : value.toTensorList()) arg.views.push_back(view_of(t));
      } else if (value.isOptionalTensorList()) {
        arg.kind = CallArg::Kind::OptionalTensors;
        for (const auto& t : value.toOptionalTensorList())
          arg.views.push_back(t ? view_of(*t) : -1);
      } else {
        arg.value = value;
      }
      args.push_back(std::move(arg));
    }
    return args;
  }
  // Whether a factory with this device argument makes a tensor where the plan runs.
  bool is_here(const IValue& device, bool follows_tensor) const {
    if (device.isNone()) return follows_tensor || out_.device.is_cpu();
    const at::Device given = device.toDevice();
    return given == out_.device || (given.type() == out_.device.type() && !given.has_index());
  }
  // Factories are to make tensors of the meta device.
  void use_meta(const at::FunctionSchema& schema, at::Stack& stack) {
    for (size_t i = 0; i < stack.size(); ++i) {
      if (schema.arguments[i].type.kind != at::SchemaType::Kind::Device) continue;
      const bool has_tensor =
          std::any_of(stack.begin(), stack.end(), [](const IValue& v) { return v.isTensor(); });
      if (!is_here(stack[i], has_tensor)) refuse("a tensor of another device");
      if (!stack[i].isNone() || !has_tensor) stack[i] = at::Device(at::kMeta);
    }
  }

  // ---- calls
  IValue call(const Node& node) {
    const at::OperatorEntry& op = *node.op;
    current_ = &op;
    const at::FunctionSchema& schema = op.schema();
    const at::Stack given = stack_of(node, env_);
    // A tensor copied to itself stays as it is, even one whose elements share memory.
    if (std::string_view(op.name) == "aten::copy_" &&
        given[0].toTensor().is_same(given[1].toTensor()))
      return given[0];
    at::Stack stack = given;
    use_meta(schema, stack);
    std::vector<at::iter::PointwiseRecord> records;
    {
      at::iter::PointwiseRecorder recorder;
      op.redispatch_boxed(kMetaKeys, stack);
      records = std::move(recorder.calls);
    }
    if (std::string_view(op.name).rfind("aten::sym_", 0) == 0) return result_of(stack);
    for (const IValue& value : stack) check_result(op, value);
    const bool writes = schema.is_mutable();
    if (!writes && all_views(stack)) return result_of(stack);
    if (!writes && fuse_ && stack.size() == 1 && stack[0].isTensor()) {
      const Tensor result = stack[0].toTensor();
      if (lower_records(op, records, result) || lower_by_name(op, given, result)) return result;
    }
    add_call(op, given, stack);
    return result_of(stack);
  }

  static IValue result_of(at::Stack& stack) {
    if (stack.size() == 1) return stack[0];
    return std::vector<IValue>(stack.begin(), stack.end());
  }

  static void check_result(const at::OperatorEntry& op, const IValue& value) {
    const auto check = [&](const Tensor& t) {
      if (t.defined() && (!t.is_meta() || !is_plain(t)))
        refuse(op.full_name() + " gives no plain tensor");
    };
    if (value.isTensor()) return check(value.toTensor());
    if (value.isTensorList()) {
      for (const Tensor& t : value.toTensorList()) check(t);
      return;
    }
    if (!value.isNone()) refuse(op.full_name() + " gives a number");
  }

  bool all_views(const at::Stack& stack) const {
    if (stack.empty()) return false;
    for (const IValue& value : stack) {
      if (value.isTensor()) {
        if (find_buffer(value.toTensor()) < 0) return false;
      } else if (value.isTensorList()) {
        for (const Tensor& t : value.toTensorList())
          if (find_buffer(t) < 0) return false;
      } else {
        return false;
      }
    }
    return true;
  }

  Item& new_item(Kind kind, std::string name, const Tensor& result) {
    out_.items.emplace_back();
    Item& item = out_.items.back();
    item.kind = kind;
    item.name = std::move(name);
    item.node = current_node_;
    item.result = result;
    item.buffer = new_buffer(result, static_cast<int32_t>(out_.items.size()) - 1);
    return item;
  }

  void add_call(const at::OperatorEntry& op, const at::Stack& given, const at::Stack& results) {
    Item item;
    item.kind = Kind::Call;
    item.name = op.full_name();
    item.node = current_node_;
    item.op = &op;
    item.args = call_args(given);
    for (const CallArg& arg : item.args)
      for (const int32_t view : arg.views)
        if (view >= 0) item.reads.push_back(out_.views[static_cast<size_t>(view)].buffer);
    const at::FunctionSchema& schema = op.schema();
    for (size_t i = 0; i < item.args.size(); ++i) {
      const auto& alias = schema.arguments[i].alias;
      if (!alias || !alias->is_write) continue;
      for (const int32_t view : item.args[i].views) {
        if (view < 0) continue;
        const int32_t buffer = out_.views[static_cast<size_t>(view)].buffer;
        if (fuse_ && out_.buffers[static_cast<size_t>(buffer)].item >= 0) throw InnerWrite{};
        item.writes.push_back(buffer);
        ++versions_[static_cast<size_t>(buffer)];
      }
    }
    item.has_effect =
        !item.writes.empty() || results.empty() || has_tag(op, "nondeterministic_seeded");
    const auto id = static_cast<int32_t>(out_.items.size());
    const auto add_result = [&](const Tensor& t, size_t index, int32_t list_item) {
      if (!t.defined() || find_buffer(t) >= 0) return; // an argument that is returned
      const int32_t buffer = new_buffer(t, id);
      item.results.push_back({static_cast<int32_t>(index), list_item, view_of(t)});
      if (item.buffer < 0) item.buffer = buffer;
    };
    for (size_t i = 0; i < results.size(); ++i) {
      if (results[i].isTensor()) add_result(results[i].toTensor(), i, -1);
      if (!results[i].isTensorList()) continue;
      int32_t k = 0;
      for (const Tensor& t : results[i].toTensorList()) add_result(t, i, k++);
    }
    if (fuse_ && !item.has_effect && !is_cuda())
      item.row = row_form(op, given, results, [&](const Tensor& t) { return view_of(t); });
    out_.items.push_back(std::move(item));
  }

  // ---- loops
  static bool is_dense(const Tensor& t) {
    return same(offset_of(t), 0) && t.is_non_overlapping_and_dense();
  }

  // The number of a constant buffer, converted.
  static void convert(const char* from, ScalarType from_type, ScalarType to_type, char* to) {
    const int64_t strides[2] = {0, 0};
    char* const data[2] = {to, const_cast<char*>(from)};
    at::cast_loop(to_type, from_type)(data, strides, 1, nullptr);
  }

  bool source_of(const Tensor& t, const Tensor& result, ScalarType compute, Source& source) {
    if (t.is_cpu() && t.dim() == 0) { // a number that the operator made
      source.is_number = true;
      // Its element is the value of this run.
      if (const int64_t handle = c10::symbolic_number(*t.unsafeGetTensorImpl()))
        c10::symbolic_node(handle)->guard_int(__FILE__, __LINE__);
      convert(static_cast<const char*>(t.const_data_ptr()), t.scalar_type(), compute,
              source.number.data());
      return true;
    }
    if (!is_plain(t)) return false;
    source.buffer = find_buffer(t);
    if (source.buffer < 0) return false;
    const Buffer& buffer = out_.buffers[static_cast<size_t>(source.buffer)];
    if (buffer.item >= 0 && buffer.meta.scalar_type() == t.scalar_type() &&
        out_.items[static_cast<size_t>(buffer.item)].kind == Kind::Constant) {
      source.is_number = true;
      convert(out_.items[static_cast<size_t>(buffer.item)].number.data(), t.scalar_type(), compute,
              source.number.data());
      return true;
    }
    source.version = versions_[static_cast<size_t>(source.buffer)];
    source.dtype = t.scalar_type();
    source.offset = offset_of(t);
    return at::cast_loop(compute, source.dtype) != nullptr && numbered_dims(t, result, source.dims);
  }

  // Elements are numbered with 32 bits in a kernel.
  static bool fits_cuda(const Body& body, const Tensor& result) {
    bool fits = result.sym_numel() < (int64_t(1) << 31) && has_cuda_type(result.scalar_type()) &&
                has_cuda_form(body.spec, body.compute, body.produced);
    for (const Source& source : body.sources)
      fits = fits && (source.is_number || has_cuda_type(source.dtype));
    return fits;
  }

  bool add_loop(std::string name, Body body, const Tensor& result) {
    if (!is_dense(result) || at::cast_loop(result.scalar_type(), body.produced) == nullptr)
      return false;
    if (is_cuda() && !fits_cuda(body, result)) return false;
    Item& item = new_item(Kind::Loop, std::move(name), result);
    for (const Source& source : body.sources)
      if (!source.is_number) item.reads.push_back(source.buffer);
    item.body = std::move(body);
    return true;
  }

  // Whether the device's kernel does what the meta kernel did: one function, or the operator's
  // entry says that it is pointwise, which has one source for all backends. Kernels that were
  // registered at run time are called.
  bool shares_kernel(const at::OperatorEntry& op) const {
    const DispatchKey key = is_cuda() ? DispatchKey::CUDA : DispatchKey::CPU;
    if (!op.has_kernel_for(key)) return false;
    if (op.lookup(c10::DispatchKeySet(key)) == op.lookup(kMetaKeys)) return true;
    return has_tag(op, "pointwise") && !has_kernel_of_user(op);
  }

  // The recorded loops stand for the operator if its CPU kernel runs them, everything they read is
  // known, and the last one makes the result.
  bool lower_records(const at::OperatorEntry& op,
                     const std::vector<at::iter::PointwiseRecord>& records, const Tensor& result) {
    if (records.empty() || !records.back().target.is_same(result)) return false;
    if (!shares_kernel(op)) return false;
    const size_t items = out_.items.size(), buffers = out_.buffers.size();
    for (const at::iter::PointwiseRecord& record : records) {
      if (add_record(op, record)) continue;
      while (out_.buffers.size() > buffers) {
        by_storage_.erase(out_.buffers.back().meta.storage().get());
        out_.buffers.pop_back();
        versions_.pop_back();
      }
      out_.items.resize(items);
      return false;
    }
    return true;
  }

  bool add_record(const at::OperatorEntry& op, const at::iter::PointwiseRecord& record) {
    if (find_buffer(record.target) >= 0) return false; // written in place
    if (record.target.unsafeGetTensorImpl()->version() != 0) return false;
    Body body;
    body.loop = record.loop;
    body.spec = record.spec;
    body.compute = record.compute;
    body.produced = record.produced;
    body.has_params = record.spec->params > 0;
    static_assert(sizeof(record.params) == sizeof(body.params));
    body.params = record.params;
    for (size_t k = 0; k < record.operands.size(); ++k) {
      Source source;
      if (!record.operands[k].defined()) {
        source.is_number = true;
        source.number = record.numbers[k];
      } else if (!source_of(record.operands[k], record.target, record.compute, source)) {
        return false;
      }
      body.sources.push_back(std::move(source));
    }
    return add_loop(short_name(op), std::move(body), record.target);
  }

  // ---- operators that are no pointwise functor
  bool lower_by_name(const at::OperatorEntry& op, const at::Stack& args, const Tensor& result) {
    const std::string name = op.full_name();
    if (name == "aten::_to_copy" || name == "aten::clone") {
      return add_copy(name.c_str() + 6, args[0].toTensor(), result);
    }
    if (name == "aten::where.self")
      return add_where(args[0].toTensor(), args[1].toTensor(), args[2].toTensor(), result);
    if (name == "aten::masked_fill.Scalar") return add_masked_fill(args, result);
    if (const auto value = constant_value(name, args)) return add_constant(*value, result, name);
    return !is_cuda() && lower_reduction(name, args, result);
  }

  bool add_copy(const char* name, const Tensor& from, const Tensor& result) {
    Body body;
    body.compute = body.produced = result.scalar_type();
    body.loop = at::cast_loop(body.compute, from.scalar_type());
    Source source;
    if (!body.loop || !source_of(from, result, body.compute, source)) return false;
    body.loop = nullptr; // the conversion of the source is all
    body.sources.push_back(std::move(source));
    return add_loop(name, std::move(body), result);
  }

  bool add_where(const Tensor& mask, const Tensor& a, const Tensor& b, const Tensor& result) {
    Body body;
    body.compute = body.produced = result.scalar_type();
    body.loop = at::native::where_loop(result.itemsize());
    body.mask_first = true;
    body.sources.resize(3);
    if (!source_of(mask, result, at::kBool, body.sources[0]) ||
        !source_of(a, result, body.compute, body.sources[1]) ||
        !source_of(b, result, body.compute, body.sources[2]))
      return false;
    return add_loop("where", std::move(body), result);
  }

  bool add_masked_fill(const at::Stack& args, const Tensor& result) {
    const Tensor self = args[0].toTensor(), mask = args[1].toTensor();
    if (mask.scalar_type() != at::kBool || self.scalar_type() != result.scalar_type()) return false;
    const at::Scalar value = args[2].toScalar();
    const Tensor number = at::detail::scalar_tensor(value, result.scalar_type());
    return add_where(mask, number, self, result);
  }

  static std::optional<at::Scalar> constant_value(const std::string& name, const at::Stack& args) {
    if (name == "aten::full" || name == "aten::full_like" || name == "aten::fill.Scalar")
      return args[1].toScalar();
    if (name == "aten::new_full") return args[2].toScalar();
    if (name == "aten::scalar_tensor") return args[0].toScalar();
    if (name == "aten::zeros" || name == "aten::zeros_like" || name == "aten::new_zeros")
      return at::Scalar(0);
    if (name == "aten::ones" || name == "aten::ones_like" || name == "aten::new_ones")
      return at::Scalar(1);
    return std::nullopt;
  }

  bool add_constant(const at::Scalar& value, const Tensor& result, const std::string& name) {
    if (!is_dense(result) || (is_cuda() && !has_cuda_type(result.scalar_type()))) return false;
    Tensor number;
    try {
      number = at::detail::scalar_tensor(value, result.scalar_type());
    } catch (const c10::Error&) {
      return false; // the call will say what is wrong
    }
    Item& item = new_item(Kind::Constant, name.substr(6), result);
    std::memcpy(item.number.data(), number.const_data_ptr(),
                static_cast<size_t>(result.itemsize()));
    return true;
  }

  struct NamedReduction {
    const char* name;
    ReduceOp op;
    Post post;
    int dims; // argument with the dimensions, -1: all
  };

  bool lower_reduction(const std::string& name, const at::Stack& args, const Tensor& result) {
    static constexpr NamedReduction kKnown[] = {
        {"aten::sum", ReduceOp::Sum, Post::None, -1},
        {"aten::sum.dim_IntList", ReduceOp::Sum, Post::None, 1},
        {"aten::mean", ReduceOp::Sum, Post::Mean, -1},
        {"aten::mean.dim", ReduceOp::Sum, Post::Mean, 1},
        {"aten::amax", ReduceOp::Max, Post::None, 1},
        {"aten::amin", ReduceOp::Min, Post::None, 1},
    };
    const NamedReduction* found = nullptr;
    for (const NamedReduction& known : kKnown)
      if (name == known.name) found = &known;
    if (!found) return false;
    const Tensor self = args[0].toTensor();
    // Where eager converts first, it does so by a kernel of its own.
    if (self.scalar_type() != result.scalar_type() || !is_dense(self) || !result.is_contiguous() ||
        self.sym_numel() == 0 || !same(offset_of(result), 0))
      return false;
    const auto* kernel = at::native::reduce::find_kernel(found->op, self.scalar_type());
    const int32_t buffer = find_buffer(self);
    const bool ordered = found->op == ReduceOp::Max || found->op == ReduceOp::Min;
    if (!kernel || buffer < 0 || (ordered && !self.is_floating_point())) return false;
    const Buffer& from = out_.buffers[static_cast<size_t>(buffer)];
    if (!same(from.meta.sym_numel(), self.sym_numel()) ||
        from.meta.scalar_type() != self.scalar_type() || !same(offset_of(from.meta), 0) ||
        versions_[static_cast<size_t>(buffer)] != 0)
      return false;
    at::DimVector dims;
    const bool all = found->dims < 0 || args[static_cast<size_t>(found->dims)].isNone();
    if (!all) dims = at::DimVector(args[static_cast<size_t>(found->dims)].toIntList());
    Item& item = new_item(Kind::Reduce, name.substr(6), result);
    item.reduction.kernel = kernel;
    item.reduction.post = found->post;
    item.mask = all ? at::native::reduce::all_dims(self.dim())
                    : at::native::reduce::dims_mask(at::IntArrayRef(dims), self.dim());
    item.elements = self;
    item.reads.push_back(buffer);
    return true;
  }

  const Program& program_;
  c10::ArrayRef<IValue> inputs_;
  const bool fuse_;
  const at::OperatorEntry* current_ = nullptr;
  int32_t current_node_ = -1;
  Lowered out_;
  std::vector<IValue> env_;
  std::vector<Tensor> kept_; // whose addresses are keys below
  std::vector<int32_t> versions_;
  std::unordered_map<const c10::StorageImpl*, int32_t> by_storage_;
  std::unordered_map<const c10::TensorImpl*, int32_t> views_;
};

} // namespace

Lowered lower(const Program& program, c10::ArrayRef<IValue> inputs, bool fuse, at::Device device) {
  return Lowering(program, inputs, fuse, device).run();
}

} // namespace torch::inductor
