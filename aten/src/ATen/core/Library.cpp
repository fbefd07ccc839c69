// Registration blocks. See Library.h.
#include <ATen/core/GeneratorKernel.h>
#include <ATen/core/Library.h>
#include <ATen/core/PendingKernels.h>
#include <ATen/core/RegistrationFailures.h>

#include <dlfcn.h>

#include <cstdio>
#include <mutex>
#include <utility>

namespace torch {

Library::Library(Kind kind, std::string ns, std::optional<c10::DispatchKey> key)
    : kind_(kind), ns_(std::move(ns)), key_(key) {}
Library::Library(Kind kind, std::string ns, std::optional<c10::DispatchKey> key, const char*,
                 uint32_t)
    : Library(kind, std::move(ns), key) {
  owns_ = true;
}
Library::Library(Library&& from) noexcept
    : kind_(from.kind_), ns_(std::move(from.ns_)), key_(from.key_), owns_(from.owns_),
      kernels_(std::move(from.kernels_)), defined_(std::move(from.defined_)) {
  from.kernels_.clear();
  from.defined_.clear();
}
Library& Library::operator=(Library&& from) noexcept {
  if (this == &from) return *this;
  reset();
  kind_ = from.kind_;
  ns_ = std::move(from.ns_);
  key_ = from.key_;
  owns_ = from.owns_;
  kernels_ = std::exchange(from.kernels_, {});
  defined_ = std::exchange(from.defined_, {});
  return *this;
}
Library::~Library() { reset(); }

void Library::reset() {
  at::Dispatcher& dispatcher = at::Dispatcher::singleton();
  for (const auto& [op, id] : kernels_) dispatcher.deregister_kernel(op, id);
  for (const at::OperatorEntry* op : defined_) dispatcher.undefine(op);
  kernels_.clear();
  defined_.clear();
}

void Library::register_kernel(const at::OperatorEntry* op, c10::DispatchKey key, CppFunction& f) {
  if (key == at::GeneratorKernel::kKey) f.kernel = at::GeneratorKernel::around(*op, f.kernel);
  const uint64_t id =
      at::Dispatcher::singleton().register_kernel(op, key, {nullptr, f.kernel, f.shown});
  if (owns_) kernels_.emplace_back(op, id);
}

Library& Library::def(const std::string& schema, const std::vector<at::Tag>& tags) {
  TORCH_CHECK(kind_ != IMPL, "def(\"", schema,
              "\"): operators are defined in TORCH_LIBRARY, not in TORCH_LIBRARY_IMPL");
  const bool qualified = schema.substr(0, schema.find('(')).find("::") != std::string::npos;
  std::vector<std::string> names;
  for (at::Tag tag : tags) names.emplace_back(at::tag_name(tag));
  const at::OperatorEntry* op = at::Dispatcher::singleton().define(
      qualified ? schema : ns_ + "::" + schema, std::move(names));
  if (owns_) defined_.push_back(op);
  return *this;
}

Library& Library::def(const std::string& text, CppFunction f) {
  std::string schema = text;
  if (text.find('(') == std::string::npos) {
    TORCH_CHECK(f.schema != nullptr, "def(\"", text,
                "\"): a boxed kernel does not say what the operator takes; give a schema");
    at::FunctionSchema inferred = f.schema();
    inferred.name = text;
    // An operator has no result or several, where a function returns nothing or a tuple.
    const at::SchemaType result = inferred.returns[0].type;
    if (result.kind == at::SchemaType::Kind::None) inferred.returns.clear();
    if (result.kind == at::SchemaType::Kind::Tuple) {
      inferred.returns.clear();
      for (const at::SchemaType& each : result.contained)
        inferred.returns.push_back({"_" + std::to_string(inferred.returns.size()), each});
    }
    schema = inferred.str();
  }
  def(schema);
  const c10::DispatchKey key = f.key ? *f.key : c10::DispatchKey::CompositeImplicitAutograd;
  const std::string name = schema.substr(0, schema.find('('));
  register_kernel(find(name), key, f);
  return *this;
}

namespace {
// "name.overload" or "ns::name.overload" as "ns::name" and "overload".
std::pair<std::string, std::string> parts_of_name(const std::string& full, const std::string& ns) {
  const std::string name = full.find("::") == std::string::npos ? ns + "::" + full : full;
  const size_t dot = name.find('.');
  if (dot == std::string::npos) return {name, ""};
  return {name.substr(0, dot), name.substr(dot + 1)};
}
} // namespace

const at::OperatorEntry* Library::find(const std::string& full) const {
  const auto [name, overload] = parts_of_name(full, ns_);
  const at::OperatorEntry* op = at::Dispatcher::singleton().find(name, overload);
  TORCH_CHECK(op != nullptr, "impl(\"", full, "\"): there is no operator ", name,
              overload.empty() ? "" : ".", overload, "; define it first with TORCH_LIBRARY");
  return op;
}

Library& Library::impl(const std::string& name, CppFunction f) {
  const c10::DispatchKey key = f.key  ? *f.key
                               : key_ ? *key_
                                      : c10::DispatchKey::CompositeImplicitAutograd;
  const auto [operator_name, overload] = parts_of_name(name, ns_);
  // Another library may define the operator later. One that takes back what it registered does not
  // leave kernels to wait.
  if (owns_ || at::Dispatcher::singleton().find(operator_name, overload) != nullptr)
    register_kernel(find(name), key, f);
  else
    at::detail::keep_pending_kernel(operator_name, overload, key, {nullptr, f.kernel, f.shown});
  return *this;
}

Library& Library::fallback(CppFunction f) {
  TORCH_CHECK(key_.has_value(),
              "fallback() needs a dispatch key: use TORCH_LIBRARY_IMPL(_, Key, m)");
  at::Dispatcher::singleton().register_fallback(*key_, f.kernel, ns_);
  return *this;
}

namespace detail {
namespace {
struct Failures {
  std::mutex mutex;
  std::vector<RegistrationFailure> all;
  void (*notify)(const RegistrationFailure&) noexcept = nullptr;
};
// Never destroyed: libraries may be loaded while the process ends.
Failures& failures() {
  static auto* const kept = new Failures;
  return *kept;
}

std::string file_of(const void* address) {
  Dl_info info;
  return dladdr(address, &info) != 0 && info.dli_fname != nullptr ? info.dli_fname : "";
}

void keep_failure(RegistrationFailure failure) {
  void (*notify)(const RegistrationFailure&) noexcept = nullptr;
  {
    std::lock_guard<std::mutex> lock(failures().mutex);
    failures().all.push_back(failure);
    notify = failures().notify;
  }
  if (notify != nullptr)
    notify(failure);
  else
    std::fprintf(stderr, "%s in %s: %s\n", failure.block.c_str(), failure.file.c_str(),
                 failure.text.c_str());
}

std::string block_name(Library::Kind kind, const char* ns, std::optional<c10::DispatchKey> key) {
  if (kind == Library::DEF) return c10::str("TORCH_LIBRARY(", ns, ")");
  if (kind == Library::FRAGMENT) return c10::str("TORCH_LIBRARY_FRAGMENT(", ns, ")");
  return c10::str("TORCH_LIBRARY_IMPL(", ns, ", ", key ? c10::toString(*key) : "?", ")");
}
} // namespace

void keep_registration_failure(const void* address, std::string ns, std::string block,
                               std::string text) {
  keep_failure({file_of(address), std::move(ns), std::move(block), std::move(text)});
}

std::vector<RegistrationFailure> registration_failures() {
  std::lock_guard<std::mutex> lock(failures().mutex);
  return failures().all;
}

void set_registration_notify(void (*notify)(const RegistrationFailure& failure) noexcept) {
  std::lock_guard<std::mutex> lock(failures().mutex);
  failures().notify = notify;
}

LibraryInit::LibraryInit(Library::Kind kind, void (*init)(Library&), const char* ns,
                         std::optional<c10::DispatchKey> key) {
  std::string thrown = "an exception that is no std::exception";
  try {
    Library library(kind, ns, key);
    init(library);
    return;
  } catch (const std::exception& error) {
    thrown = error.what();
  } catch (...) { // NOLINT: nothing may leave a static initialiser
  }
  keep_registration_failure(reinterpret_cast<const void*>(init), ns, block_name(kind, ns, key),
                            std::move(thrown));
}
} // namespace detail

} // namespace torch
