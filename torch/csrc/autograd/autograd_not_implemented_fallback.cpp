// See autograd_not_implemented_fallback.h.
#include <torch/csrc/autograd/autograd_not_implemented_fallback.h>

#include <torch/csrc/autograd/boxed_tensors.h>
#include <torch/csrc/autograd/functions/basic_ops.h>
#include <torch/csrc/autograd/variable.h>

namespace torch::autograd {
namespace {

bool holds(const std::vector<Tensor>& list, const Tensor& t) {
  for (const Tensor& each : list)
    if (each.is_same(t)) return true;
  return false;
}

// The tensors of the arguments on top of the stack; `written` gets those that the operator writes.
std::vector<Tensor> tensors_of(const at::FunctionSchema& schema, const at::Stack& stack,
                               std::vector<Tensor>& written) {
  const size_t from = stack.size() - schema.arguments.size();
  std::vector<Tensor> all;
  for (size_t i = 0; i < schema.arguments.size(); ++i) {
    const size_t before = all.size();
    add_tensors(all, stack[from + i]);
    if (is_written(schema.arguments[i]))
      written.insert(written.end(), all.begin() + static_cast<std::ptrdiff_t>(before), all.end());
  }
  return all;
}

// A view whose base was written has its history made anew when it is asked for; that may raise.
bool is_recorded(const std::vector<Tensor>& inputs) {
  if (!c10::tls_autograd_state.grad_mode) return false;
  bool any = false;
  for (const Tensor& t : inputs)
    any = any || (t.defined() && (t.requires_grad() || grad_fn_of(t) != nullptr));
  return any;
}

void not_implemented(const at::OperatorEntry& op, c10::DispatchKeySet keys, at::Stack* stack) {
  const at::FunctionSchema& schema = op.schema();
  const size_t from = stack->size() - schema.arguments.size();
  std::vector<Tensor> written;
  const std::vector<Tensor> inputs = tensors_of(schema, *stack, written);
  const bool recorded = is_recorded(inputs);
  for (const Tensor& t : written)
    if (t.defined()) check_inplace(t, recorded);
  c10::intrusive_ptr<Node> node;
  if (recorded) {
    node = c10::make_intrusive<NotImplemented>(op.full_name());
    for (const Tensor& t : inputs) node->add_next_edge(gradient_edge(t));
  }
  {
    const c10::ExcludeDispatchKeyGuard below(c10::kAutogradKeys);
    op.redispatch_boxed(keys - c10::kAutogradKeys, *stack);
  }
  if (!recorded) return;
  for (size_t i = 0; i < schema.returns.size(); ++i) {
    std::vector<Tensor> outputs;
    add_tensors(outputs, (*stack)[from + i]);
    for (const Tensor& t : outputs) {
      if (!is_differentiable(t)) continue;
      if (holds(written, t))
        rebase_history(t, node);
      else if (!holds(inputs, t))
        set_history(t, node);
    }
  }
}

// The position of the one result that is a view without being written, or -1.
int viewed_result(const at::OperatorEntry& op, const at::FunctionSchema& schema) {
  const auto is_view = [](const at::SchemaArgument& a) { return a.alias && !a.alias->is_write; };
  int found = -1;
  for (size_t i = 0; i < schema.returns.size(); ++i) {
    if (!is_view(schema.returns[i])) continue;
    TORCH_CHECK(found < 0,
                "Expected only a single output in the operator schema to have a non-write alias "
                "annotation (i.e., 'Tensor(a)'). Non-composite functions where multiple outputs "
                "are aliased with inputs aren't supported: ",
                op.full_name());
    found = static_cast<int>(i);
  }
  if (found < 0) return found;
  TORCH_CHECK(found == 0 && !schema.arguments.empty() && is_view(schema.arguments[0]),
              op.full_name(),
              ": the fallback can only create view relationships between the first input and the "
              "first output (the output can be a vector of tensors)");
  return found;
}

void view_not_implemented(const at::OperatorEntry& op, c10::DispatchKeySet keys, at::Stack* stack) {
  const at::FunctionSchema& schema = op.schema();
  const size_t from = stack->size() - schema.arguments.size();
  const int viewed = viewed_result(op, schema);
  op.redispatch_boxed(keys.remove(c10::DispatchKey::ADInplaceOrView), *stack);
  if (viewed < 0) return;
  std::vector<Tensor> views;
  add_tensors(views, (*stack)[from + static_cast<size_t>(viewed)]);
  for (const Tensor& t : views)
    if (t.defined() && t.is_view())
      t.unsafeGetTensorImpl()->view_origin = c10::TensorImpl::ViewOrigin::Custom;
}

void unregistered(const at::OperatorEntry& op, c10::DispatchKeySet keys, at::Stack* stack) {
  unregistered_autograd_kernel()->call(op, keys, *stack);
}

} // namespace

torch::CppFunction autogradNotImplementedFallback() {
  return torch::CppFunction::makeFromBoxedFunction(&not_implemented);
}
torch::CppFunction autogradNotImplementedInplaceOrViewFallback() {
  return torch::CppFunction::makeFromBoxedFunction(&view_not_implemented);
}
torch::CppFunction basicAutogradNotImplementedFallback() {
  return torch::CppFunction::makeFromBoxedFunction(&unregistered);
}

} // namespace torch::autograd
