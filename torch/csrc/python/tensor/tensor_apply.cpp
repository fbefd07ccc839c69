// apply_, map_ and map2_. They exist for convenience, one Python call per element on CPU tensors;
// the values go through PyTorch's numbers, so that each dtype converts as indexing does.
#include <torch/csrc/python/tensor/tensor_apply.h>

#include <torch/csrc/python/args/arg_parser.h>
#include <torch/csrc/python/tensor/scalar_access.h>

#include <ATen/core/EmptyTensor.h>

namespace torch::python {
namespace {

void check_operand(const at::Tensor& tensor, const char* name) {
  TORCH_CHECK(!tensor.requires_grad(), "Can't call ", name,
              "() on Variable that requires grad. Use var.detach().", name, "() instead.");
  if (!tensor.is_cpu() || tensor.layout() != c10::Layout::Strided) {
    raise_type_error(c10::str(name, "_ is only implemented on CPU tensors"));
  }
}

// Walks all elements in order and replaces those of the first tensor by the function's results.
void walk(PyObject* function, const at::Tensor* tensors, int count, c10::DimVector& index,
          int64_t dim) {
  if (dim < tensors[0].dim()) {
    for (index[dim] = 0; index[dim] < tensors[0].sizes()[dim]; ++index[dim]) {
      walk(function, tensors, count, index, dim + 1);
    }
    return;
  }
  at::Tensor elements[3];
  PyRef numbers[3];
  PyObject* args[3];
  for (int i = 0; i < count; ++i) {
    int64_t offset = tensors[i].storage_offset();
    for (int64_t d = 0; d < dim; ++d) offset += index[d] * tensors[i].strides()[d];
    elements[i] = at::detail::view_of(tensors[i], {}, {}, offset);
    numbers[i] = checked(wrap(item_of(elements[i])));
    args[i] = numbers[i].get();
  }
  PyRef result = checked(PyObject_Vectorcall(function, args, static_cast<size_t>(count), nullptr));
  if (!is_number_like(result.get())) {
    raise_type_error(c10::str("the function must return a number, got ", type_name(result.get())));
  }
  elements[0].fill_(to_scalar(result.get()));
}

// Arguments: self, the other tensors, the callable.
template <int kTensors> PyObject* invoke(ArgValues& a) {
  const char* name = a.function().name;
  PyObject* function = a.object(kTensors);
  if (!PyCallable_Check(function)) {
    raise_type_error(c10::str("'", type_name(function), "' object is not callable"));
  }
  const at::Tensor& self = a.tensor(0);
  at::Tensor tensors[3];
  for (int i = 0; i < kTensors; ++i) {
    check_operand(a.tensor(i), name);
    TORCH_CHECK_TYPE(a.tensor(i).scalar_type() == self.scalar_type(), name, "(): expected ",
                     self.scalar_type(), " tensors, got ", a.tensor(i).scalar_type());
    tensors[i] = i == 0 ? self : a.tensor(i).expand(self.sizes());
  }
  c10::DimVector index(static_cast<size_t>(self.dim()), 0);
  walk(function, tensors, kTensors, index, 0);
  return wrap_self(a);
}

constexpr Param kSelf = {"self", P::Tensor, 0, 0, nullptr};
constexpr Param kCallable = {"callable", P::Object, 0, 0, nullptr};
constexpr Param kApply[] = {kSelf, kCallable};
constexpr Param kMap[] = {kSelf, {"other", P::Tensor, 0, 0, nullptr}, kCallable};
constexpr Param kMap2[] = {
    kSelf, {"x", P::Tensor, 0, 0, nullptr}, {"y", P::Tensor, 0, 0, nullptr}, kCallable};
const Signature kApplySignature[] = {{kApply, 2, 2, 0, invoke<1>, "apply_(callable)"}};
const Signature kMapSignature[] = {{kMap, 3, 3, 0, invoke<2>, "map_(Tensor other, callable)"}};
const Signature kMap2Signature[] = {
    {kMap2, 4, 4, 0, invoke<3>, "map2_(Tensor x, Tensor y, callable)"}};
const Function kApplyFunction = {"apply_", "torch.Tensor", kApplySignature, 1};
const Function kMapFunction = {"map_", "torch.Tensor", kMapSignature, 1};
const Function kMap2Function = {"map2_", "torch.Tensor", kMap2Signature, 1};

template <const Function& kFunction>
PyObject* entry(PyObject* self, PyObject* const* args, Py_ssize_t n, PyObject* names) {
  return call(kFunction, self, args, n, names);
}
} // namespace

PyMethodDef tensor_apply_methods[] = {
    {"apply_", as_method(entry<kApplyFunction>), METH_FASTCALL | METH_KEYWORDS,
     "apply_($self, callable)\n--\n\nReplaces each element x by callable(x)."},
    {"map_", as_method(entry<kMapFunction>), METH_FASTCALL | METH_KEYWORDS,
     "map_($self, other, callable)\n--\n\nReplaces each element x by callable(x, y), y from "
     "other."},
    {"map2_", as_method(entry<kMap2Function>), METH_FASTCALL | METH_KEYWORDS,
     "map2_($self, x, y, callable)\n--\n\nReplaces each element s by callable(s, x, y)."},
    {nullptr, nullptr, 0, nullptr}};

} // namespace torch::python
