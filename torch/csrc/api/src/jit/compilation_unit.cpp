// torch::jit::compile: functions written as text, compiled as those of archives are.
#include <torch/jit.h>

#include <torch/csrc/api/src/jit/archive.h>

namespace torch::jit {

namespace {

constexpr const char* kPath = "code/__torch__.py"; // where the unit looks for __torch__.name

// The text without the white space that all of its lines begin with.
std::string without_margin(const std::string& text) {
  std::vector<std::string> lines{""};
  for (const char c : text) {
    if (c == '\n')
      lines.emplace_back();
    else
      lines.back() += c;
  }
  size_t margin = std::string::npos;
  for (const std::string& line : lines) margin = std::min(margin, line.find_first_not_of(" \t\r"));
  std::string out;
  for (const std::string& line : lines)
    out += (line.size() > margin ? line.substr(margin) : std::string()) + "\n";
  return out;
}

} // namespace

CompilationUnit::CompilationUnit(const std::string& source) { define(source); }
CompilationUnit::~CompilationUnit() = default;

void CompilationUnit::define(const std::string& source) {
  // Calls between texts mean the functions of all of them, hence one unit.
  const std::string whole = text_ + without_margin(source);
  auto code = std::make_shared<ModuleCode>();
  code->unit = std::make_unique<source::Unit>(
      [whole](const std::string& path) {
        return path == kPath ? std::optional<std::string>(whole) : std::nullopt;
      },
      std::vector<IValue>());
  std::map<std::string, const source::Callable*> functions;
  for (const source::StmtPtr& step : source::parse(whole, kPath)) {
    TORCH_CHECK(step->kind == source::Stmt::Kind::Def,
                "torch::jit::compile takes definitions of functions, but line ", step->line,
                " is something else");
    TORCH_CHECK(functions.count(step->name) == 0, "the function ", step->name, " is defined twice");
    functions[step->name] = code->unit->find_function("__torch__." + step->name);
  }
  code->unit->compile_pending();
  text_ = whole;
  code_ = std::move(code);
  functions_ = std::move(functions);
}

std::optional<Method> CompilationUnit::find_function(const std::string& name) const {
  const auto found = functions_.find(name);
  if (found == functions_.end()) return std::nullopt;
  return Method(nullptr, code_, found->second);
}
Method CompilationUnit::get_function(const std::string& name) const {
  std::optional<Method> found = find_function(name);
  TORCH_CHECK(found, "Function '", name, "' is not defined.");
  return *found;
}
std::vector<Method> CompilationUnit::get_functions() const {
  std::vector<Method> out;
  for (const auto& [name, callable] : functions_) out.push_back(Method(nullptr, code_, callable));
  return out;
}

std::shared_ptr<CompilationUnit> compile(const std::string& source) {
  return std::make_shared<CompilationUnit>(source);
}

} // namespace torch::jit
