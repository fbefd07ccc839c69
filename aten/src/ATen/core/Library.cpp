// Registration blocks. See Library.h.
#include <ATen/core/Library.h>

namespace torch {

Library::Library(Kind kind, std::string ns, std::optional<c10::DispatchKey> key)
    : kind_(kind), ns_(std::move(ns)), key_(key) {}

Library& Library::def(const std::string& schema) {
  TORCH_CHECK(kind_ != IMPL, "def(\"", schema,
              "\"): operators are defined in TORCH_LIBRARY, not in TORCH_LIBRARY_IMPL");
  const bool qualified = schema.substr(0, schema.find('(')).find("::") != std::string::npos;
  at::Dispatcher::singleton().define(qualified ? schema : ns_ + "::" + schema);
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
  at::Dispatcher::singleton().register_kernel(find(name), key, {nullptr, f.kernel, "C++"});
  return *this;
}

const at::OperatorEntry* Library::find(const std::string& full) const {
  std::string name = full.find("::") == std::string::npos ? ns_ + "::" + full : full;
  std::string overload;
  const size_t dot = name.find('.');
  if (dot != std::string::npos) {
    overload = name.substr(dot + 1);
    name = name.substr(0, dot);
  }
  const at::OperatorEntry* op = at::Dispatcher::singleton().find(name, overload);
  TORCH_CHECK(op != nullptr, "impl(\"", full, "\"): there is no operator ", name,
              overload.empty() ? "" : ".", overload, "; define it first with TORCH_LIBRARY");
  return op;
}

Library& Library::impl(const std::string& name, CppFunction f) {
  const c10::DispatchKey key = f.key  ? *f.key
                               : key_ ? *key_
                                      : c10::DispatchKey::CompositeImplicitAutograd;
  at::Dispatcher::singleton().register_kernel(find(name), key, {nullptr, f.kernel, "C++"});
  return *this;
}

Library& Library::fallback(CppFunction f) {
  TORCH_CHECK(key_.has_value(),
              "fallback() needs a dispatch key: use TORCH_LIBRARY_IMPL(_, Key, m)");
  at::Dispatcher::singleton().register_fallback(*key_, f.kernel, ns_);
  return *this;
}

namespace detail {
LibraryInit::LibraryInit(Library::Kind kind, void (*init)(Library&), const char* ns,
                         std::optional<c10::DispatchKey> key) {
  Library library(kind, ns, key);
  init(library);
}
} // namespace detail

} // namespace torch
