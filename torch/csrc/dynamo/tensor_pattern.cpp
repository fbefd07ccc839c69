// Guards on tensors: everything a compiled function assumed of one, compared in a few loads, and
// the first difference in the words that PyTorch's log uses.
#include <torch/csrc/dynamo/guards.h>

namespace torch::dynamo {
namespace {

std::string keys_text(uint64_t bits) {
  std::string out = "DispatchKeySet(";
  bool first = true;
  for (int i = 0; i < 64; ++i) {
    if (!((bits >> i) & 1)) continue;
    out += std::string(first ? "" : ", ") + c10::toString(static_cast<c10::DispatchKey>(i));
    first = false;
  }
  return out + ")";
}

bool numbers_match(const std::vector<int64_t>& wanted, c10::IntArrayRef got) {
  for (size_t i = 0; i < wanted.size(); ++i)
    if (wanted[i] != TensorPattern::kAny && wanted[i] != got[i]) return false;
  return true;
}

std::string number_difference(const char* what, const std::vector<int64_t>& wanted,
                              c10::IntArrayRef got) {
  for (size_t i = 0; i < wanted.size(); ++i) {
    if (wanted[i] == TensorPattern::kAny || wanted[i] == got[i]) continue;
    return std::string(what) + " mismatch at index " + std::to_string(i) + ". expected " +
           std::to_string(wanted[i]) + ", actual " + std::to_string(got[i]);
  }
  return {};
}

} // namespace

bool TensorPattern::matches(PyObject* value) const {
  if (Py_TYPE(value) != type) return false;
  const c10::TensorImpl* impl = python::tensor_of(value).unsafeGetTensorImpl();
  if (!impl || impl->key_set().raw() != keys || impl->dtype() != dtype ||
      impl->device() != device || impl->requires_grad() != requires_grad ||
      impl->sizes().size() != sizes.size()) {
    return false;
  }
  return numbers_match(sizes, impl->sizes()) &&
         (strides.empty() || numbers_match(strides, impl->strides()));
}

std::string TensorPattern::difference(PyObject* value, const std::string& name) const {
  if (Py_TYPE(value) != type) {
    return "expected type of '" + name + "' to be a tensor type, ' but found " +
           python::repr_of(reinterpret_cast<PyObject*>(Py_TYPE(value)));
  }
  const c10::TensorImpl* impl = python::tensor_of(value).unsafeGetTensorImpl();
  const std::string head = "tensor '" + name + "' ";
  if (!impl) return head + "is empty";
  if (impl->dtype() != dtype) {
    return head + "dtype mismatch. expected " + c10::toString(dtype) + ", actual " +
           c10::toString(impl->dtype());
  }
  if (impl->device() != device) {
    return head + "device index mismatch. Expected device index to be " + device.str() +
           ", but got " + impl->device().str();
  }
  if (impl->requires_grad() != requires_grad) {
    return head + "requires_grad mismatch. expected requires_grad=" +
           std::to_string(requires_grad ? 1 : 0);
  }
  if (impl->key_set().raw() != keys) {
    return head + "dispatch key set mismatch. expected " + keys_text(keys) + ", actual " +
           keys_text(impl->key_set().raw());
  }
  if (impl->sizes().size() != sizes.size()) {
    return head + "rank mismatch. expected " + std::to_string(sizes.size()) + ", actual " +
           std::to_string(impl->sizes().size());
  }
  std::string found = number_difference("size", sizes, impl->sizes());
  if (found.empty() && !strides.empty())
    found = number_difference("stride", strides, impl->strides());
  return found.empty() ? found : head + found;
}

} // namespace torch::dynamo
