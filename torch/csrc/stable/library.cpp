// Operators of the C interface: registration of kernels that take stacks of StableIValues, and
// calls of any operator with such a stack.
#include <algorithm>
#include <memory>

#include <ATen/core/Library.h>
#include <ATen/core/RegistrationFailures.h>
#include <torch/csrc/stable/values.h>

namespace torch::stable {
namespace {

using KernelFn = void (*)(StableIValue*, uint64_t, uint64_t);

class StableKernel final : public at::BoxedKernel {
 public:
  explicit StableKernel(KernelFn fn) : fn_(fn) {}
  void call(const at::OperatorEntry& op, at::DispatchKeySet, at::Stack& stack) override {
    const at::FunctionSchema& schema = op.schema();
    const size_t taken = schema.arguments.size(), given = schema.returns.size();
    TORCH_CHECK(stack.size() >= taken, op.full_name(), ": takes ", taken, " arguments");
    std::vector<StableIValue> bits(std::max(taken, given));
    const size_t base = stack.size() - taken;
    for (size_t i = 0; i < taken; ++i)
      bits[i] = to_stable(stack[base + i], schema.arguments[i].type);
    fn_(bits.data(), taken, given);
    stack.resize(base);
    for (size_t i = 0; i < given; ++i)
      stack.push_back(from_stable(bits[i], schema.returns[i].type));
  }

 private:
  KernelFn fn_;
};

torch::Library& library_of(TorchLibraryHandle handle) {
  TORCH_CHECK(handle != nullptr, "the handle of a library is null");
  return *reinterpret_cast<torch::Library*>(handle);
}

void make_library(torch::Library::Kind kind, const char* ns, std::optional<c10::DispatchKey> key,
                  TorchLibraryHandle* ret) {
  TORCH_CHECK(ns != nullptr, "a library needs a namespace");
  *ret = reinterpret_cast<TorchLibraryHandle>(new torch::Library(kind, ns, key));
}

void call_operator(const char* name, const char* overload, StableIValue* stack) {
  const at::OperatorEntry* op = at::Dispatcher::singleton().find(name, overload);
  TORCH_CHECK(op != nullptr, "Could not find schema for ", name, ".", overload);
  const at::FunctionSchema& schema = op->schema();
  at::Stack values;
  for (size_t i = 0; i < schema.arguments.size(); ++i)
    values.push_back(from_stable(stack[i], schema.arguments[i].type));
  op->call_boxed(values);
  TORCH_CHECK(values.size() == schema.returns.size(), op->full_name(), ": returns ", values.size(),
              " values, its schema says ", schema.returns.size());
  for (size_t i = 0; i < values.size(); ++i)
    stack[i] = to_stable(values[i], schema.returns[i].type);
}

} // namespace
} // namespace torch::stable

using namespace torch::stable; // NOLINT: the C functions lie outside of every namespace

AOTITorchError aoti_torch_library_init_impl(const char* ns, const char* key, const char*, uint32_t,
                                            TorchLibraryHandle* ret) {
  return shim([&] {
    TORCH_CHECK(key != nullptr, "a library of kernels needs a dispatch key");
    make_library(torch::Library::IMPL, ns, c10::parseDispatchKey(key), ret);
  });
}
AOTITorchError aoti_torch_library_init_def(const char* ns, const char*, uint32_t,
                                           TorchLibraryHandle* ret) {
  return shim([&] { make_library(torch::Library::DEF, ns, std::nullopt, ret); });
}
AOTITorchError aoti_torch_library_init_fragment(const char* ns, const char*, uint32_t,
                                                TorchLibraryHandle* ret) {
  return shim([&] { make_library(torch::Library::FRAGMENT, ns, std::nullopt, ret); });
}
AOTITorchError aoti_torch_library_def(TorchLibraryHandle self, const char* schema) {
  return shim([&] { library_of(self).def(schema); });
}
AOTITorchError aoti_torch_library_impl(TorchLibraryHandle self, const char* name,
                                       void (*kernel)(StableIValue*, uint64_t, uint64_t)) {
  return shim([&] {
    TORCH_CHECK(kernel != nullptr, "the kernel of ", name, " is null");
    torch::CppFunction function = torch::CppFunction::makeFallthrough();
    function.kernel = c10::make_intrusive<StableKernel>(kernel);
    library_of(self).impl(name, std::move(function));
  });
}
AOTITorchError aoti_torch_delete_library_object(TorchLibraryHandle self) {
  return shim([&] { delete reinterpret_cast<torch::Library*>(self); });
}
AOTITorchError aoti_torch_call_dispatcher(const char* name, const char* overload,
                                          StableIValue* stack) {
  return shim([&] { call_operator(name, overload, stack); });
}
AOTITorchError torch_library_impl(TorchLibraryHandle self, const char* name,
                                  void (*kernel)(StableIValue*, uint64_t, uint64_t),
                                  uint64_t /*extension_build_version*/) {
  return aoti_torch_library_impl(self, name, kernel);
}
AOTITorchError torch_call_dispatcher(const char* name, const char* overload, StableIValue* stack,
                                     uint64_t /*extension_build_version*/) {
  return aoti_torch_call_dispatcher(name, overload, stack);
}
void torch_note_registration_failure(const char* ns, const void* address, const char* message) {
  torch::detail::keep_registration_failure(address, ns, c10::str("STABLE_TORCH_LIBRARY(", ns, ")"),
                                           message);
}
