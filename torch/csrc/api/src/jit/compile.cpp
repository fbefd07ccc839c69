// From a function of an archive to instructions. A variable has one register, which every
// assignment to it writes: archives are written so that a name stands for one variable. Types are
// followed along the way, because they choose the overloads that calls mean.
#include <torch/csrc/api/src/jit/unit.h>

#include <algorithm>
#include <limits>
#include <set>

namespace torch::jit::source {

using Kind = Type::Kind;

namespace {

// What an expression stands for: a value of the program, or something that is only called or asked
// for its attributes.
struct Value {
  enum class Is : uint8_t {
    Operand,
    Several,
    Operator,
    Space,
    Function,
    Class,
    Dotted,
    Constants,
    Form,
    Method,
    Nested
  };
  Is is = Is::Operand;
  int32_t operand = 0; // as Function has it
  TypePtr type;
  bool fresh = false;       // the register belongs to no variable
  bool untyped = false;     // an empty list or dictionary without a type
  std::string text;         // of a name, operator or method
  std::vector<Value> parts; // results of an operator with several
  Callable* function = nullptr;
  Class* cls = nullptr;
  const Stmt* node = nullptr;
};

struct Mismatch {
  std::string why;
};

class Compiler {
 public:
  Compiler(Unit& unit, Callable& callable) : unit_(unit), callable_(callable) {}

  void run(const std::vector<std::pair<std::string, TypePtr>>& captured) {
    f_.name = callable_.name;
    for (const auto& [name, type] : captured) variables_[name] = {new_register(), type};
    for (const Formal& formal : callable_.arguments)
      variables_[formal.name] = {new_register(), formal.type};
    f_.inputs = captured.size() + callable_.arguments.size();
    body(callable_.node->body);
    const Value none = constant(IValue());
    emit(Opcode::Return, {none.operand}, {});
    f_.registers = std::max<size_t>(size_t(registers_), 1);
    mark_last_uses(f_, size_t(registers_), loops_);
    f_.check();
    f_.defined = true;
    *callable_.function = std::move(f_);
    if (!callable_.node->type && returned_) callable_.returns = returned_;
  }

 private:
  struct Variable {
    int32_t reg = -1;
    TypePtr type;
  };
  using Variables = std::map<std::string, Variable>;
  // Jumps of a loop whose targets are not known yet.
  struct Exits {
    std::vector<size_t> breaks, continues;
  };

  [[noreturn]] void fail(const std::string& why) const {
    throw c10::Error(c10::str(callable_.path, ":", line_, " in ", callable_.name, ": ", why));
  }

  // ---- instructions
  int32_t new_register() { return registers_++; }
  size_t emit(Opcode op, const std::vector<int32_t>& inputs, const std::vector<int32_t>& outputs,
              int32_t target = 0, int32_t count = 0) {
    TORCH_CHECK(inputs.size() <= UINT16_MAX && outputs.size() <= UINT16_MAX,
                "a call of the archive has too many arguments");
    Instruction in;
    in.op = op;
    in.inputs = static_cast<uint16_t>(inputs.size());
    in.outputs = static_cast<uint16_t>(outputs.size());
    in.first = static_cast<int32_t>(f_.operands.size());
    in.target = target;
    in.count = count;
    in.place = place();
    f_.operands.insert(f_.operands.end(), inputs.begin(), inputs.end());
    f_.operands.insert(f_.operands.end(), outputs.begin(), outputs.end());
    f_.code.push_back(in);
    return f_.code.size() - 1;
  }
  int32_t place() {
    if (places_.count(line_) == 0) {
      places_[line_] = static_cast<int32_t>(f_.places.size());
      f_.places.push_back(
          c10::str("  File \"", callable_.path, "\", line ", line_, ", in ", callable_.name, "\n"));
    }
    return places_[line_];
  }
  Value operand(int32_t reg, TypePtr type, bool fresh) const {
    Value out;
    out.operand = reg * 2;
    out.type = std::move(type);
    out.fresh = fresh;
    return out;
  }
  Value result(Opcode op, const std::vector<int32_t>& inputs, TypePtr type, int32_t target = 0,
               int32_t count = 0) {
    const int32_t reg = new_register();
    emit(op, inputs, {reg}, target, count);
    return operand(reg, std::move(type), true);
  }
  Value constant(const IValue& value, TypePtr type = nullptr) {
    f_.constants.push_back(value);
    Value out;
    out.operand = -static_cast<int32_t>(f_.constants.size());
    out.type = type ? std::move(type) : type_of_value(value);
    return out;
  }
  bool is_constant(const Value& v) const { return v.is == Value::Is::Operand && v.operand < 0; }
  const IValue& constant_value(const Value& v) const {
    return f_.constants[size_t(-1 - v.operand)];
  }
  int32_t type_index(const TypePtr& type) {
    f_.types.push_back(type);
    return static_cast<int32_t>(f_.types.size() - 1);
  }
  int32_t function_index(const std::shared_ptr<Function>& function) {
    f_.functions.push_back(function);
    return static_cast<int32_t>(f_.functions.size() - 1);
  }
  void move_to(const Value& from, int32_t reg) { emit(Opcode::Move, {from.operand}, {reg}); }

  // ---- statements
  void body(const Body& steps) {
    for (const StmtPtr& step : steps) {
      line_ = step->line;
      statement(*step);
    }
  }
  void statement(const Stmt& step) {
    switch (step.kind) {
    case Stmt::Kind::Assign:
      if (step.in_place)
        assign_in_place(*step.target, *step.value);
      else
        assign(*step.target, *step.value);
      break;
    case Stmt::Kind::Declare: {
      if (!step.value) fail("a declaration without a value");
      const Value v = typed(value(*step.value, unit_.type_of(*step.type)), *step.type);
      store(*step.target, v);
      break;
    }
    case Stmt::Kind::Expr:
      expression(*step.value);
      break;
    case Stmt::Kind::Return: {
      const bool declared = callable_.node->type != nullptr;
      Value v = step.value ? value(*step.value, declared ? callable_.returns : nullptr)
                           : constant(IValue());
      if (declared) v = fitted(v, callable_.returns, "the result");
      returned_ = returned_ ? joined(returned_, v.type) : v.type;
      emit(Opcode::Return, {v.operand}, {});
      break;
    }
    case Stmt::Kind::If:
      condition(step);
      break;
    case Stmt::Kind::While:
    case Stmt::Kind::For:
      loop(step);
      break;
    case Stmt::Kind::With:
      with(step);
      break;
    case Stmt::Kind::Def: {
      Value nested;
      nested.is = Value::Is::Nested;
      nested.node = &step;
      statics_[step.name] = nested;
      break;
    }
    case Stmt::Kind::Class:
      fail("a class inside of a function");
    case Stmt::Kind::Break:
    case Stmt::Kind::Continue: {
      if (exits_.empty()) fail("break and continue belong into a loop");
      const bool ends = step.kind == Stmt::Kind::Break;
      (ends ? exits_.back().breaks : exits_.back().continues).push_back(emit(Opcode::Jump, {}, {}));
      break;
    }
    case Stmt::Kind::Block:
      body(step.body);
      break;
    case Stmt::Kind::Pass:
      break;
    }
  }

  // target += ...: tensors and lists are changed where they are, where the operator can do that.
  void assign_in_place(const Expr& target, const Expr& source) {
    const Value before = value(*source.items[1]);
    const std::string in_place = "aten::" + source.items[0]->text + "_";
    const bool shared = before.type->kind == Kind::Tensor || before.type->kind == Kind::List;
    if (shared && !unit_.schemas(in_place).empty())
      call_operator(in_place, {before, value(*source.items[2])}, {});
    else
      store(target, single(expression(source)));
  }
  void assign(const Expr& target, const Expr& source) {
    if (target.kind != Expr::Kind::Tuple) {
      const Value v = expression(source);
      if (v.is != Value::Is::Operand && v.is != Value::Is::Several &&
          target.kind == Expr::Kind::Name) {
        statics_[target.text] = v;
        return;
      }
      store(target, single(v));
      return;
    }
    if (source.kind == Expr::Kind::Tuple && source.items.size() == target.items.size()) {
      assign_together(target, source);
      return;
    }
    const std::vector<Value> parts = unpacked(expression(source), target.items.size());
    for (size_t i = 0; i < parts.size(); ++i) store(*target.items[i], parts[i]);
  }
  // a, b = b, a: every value is read before any variable is written.
  void assign_together(const Expr& target, const Expr& source) {
    std::vector<int32_t> from, to;
    std::vector<Value> values;
    for (const ExprPtr& item : source.items) values.push_back(single(expression(*item)));
    for (size_t i = 0; i < values.size(); ++i) {
      if (target.items[i]->kind != Expr::Kind::Name) {
        store(*target.items[i], values[i]);
        continue;
      }
      Variable& variable = variables_[target.items[i]->text];
      if (variable.reg < 0) variable.reg = register_of(target.items[i]->text);
      variable.type = values[i].type;
      from.push_back(values[i].operand);
      to.push_back(variable.reg);
    }
    if (!from.empty()) emit(Opcode::Move, from, to);
  }
  // The register of a variable, also where another branch assigned it first.
  int32_t register_of(const std::string& name) {
    const auto [found, added] = registers_of_.try_emplace(name, -1);
    if (added) found->second = new_register();
    return found->second;
  }
  void store(const Expr& target, const Value& v) {
    if (target.kind == Expr::Kind::Name) {
      statics_.erase(target.text);
      Variable& variable = variables_[target.text];
      const bool known = variable.reg >= 0 || registers_of_.count(target.text) != 0;
      if (!known && v.fresh) {
        variable.reg = registers_of_[target.text] = v.operand >> 1;
      } else {
        if (variable.reg < 0) variable.reg = register_of(target.text);
        move_to(v, variable.reg);
      }
      variable.type = v.type;
    } else if (target.kind == Expr::Kind::Attribute) {
      const Value owner = single(expression(*target.items[0]));
      Class* cls = unit_.class_of(*owner.type);
      if (!cls || !cls->type->cls) fail("an attribute of a value that is no object");
      const int slot = cls->type->cls->slot(target.text);
      if (slot < 0) fail(c10::str(owner.type->name, " has no attribute '", target.text, "'"));
      const Value fit = fitted(v, cls->attribute(target.text), "the attribute");
      emit(Opcode::SetSlot, {owner.operand, fit.operand}, {}, slot);
    } else if (target.kind == Expr::Kind::Subscript) {
      const Value owner = single(expression(*target.items[0]));
      call_operator("aten::_set_item", {owner, single(expression(*target.items[1])), v}, {});
    } else {
      fail("a target that cannot be assigned");
    }
  }

  Value truth(const Value& v) {
    return v.type->kind == Kind::Bool ? v : call_operator("aten::Bool", {v}, {});
  }
  static TypePtr joined(const TypePtr& a, const TypePtr& b) {
    const TypePtr both = unify(a, b);
    return both ? both : union_of({a, b});
  }
  // What a comparison with None says about a variable.
  void narrow(const Expr& test, bool holds) {
    const auto found = variables_.find(not_none(test, holds));
    if (found != variables_.end()) found->second.type = plain(found->second.type);
  }
  void condition(const Stmt& step) {
    const Value test = truth(value(*step.value));
    const size_t jump = emit(Opcode::JumpIfNot, {test.operand}, {});
    const Variables before = variables_;
    narrow(*step.value, true);
    body(step.body);
    const size_t skip = emit(Opcode::Jump, {}, {});
    f_.code[jump].target = static_cast<int32_t>(f_.code.size());
    Variables then = std::move(variables_);
    variables_ = before;
    narrow(*step.value, false);
    body(step.other);
    f_.code[skip].target = static_cast<int32_t>(f_.code.size());
    if (leaves(step.body)) return;
    if (leaves(step.other)) variables_ = then;
    for (auto& [name, variable] : then) {
      const auto other = variables_.find(name);
      if (other == variables_.end())
        variables_[name] = variable;
      else if (!same(variable.type, other->second.type))
        other->second.type = joined(variable.type, other->second.type);
    }
  }
  Value select(const Expr& e, const TypePtr& hint) {
    const Value test = truth(value(*e.items[0]));
    const size_t jump = emit(Opcode::JumpIfNot, {test.operand}, {});
    const Variables before = variables_;
    narrow(*e.items[0], true);
    const Value then = value(*e.items[1], hint);
    const int32_t reg = new_register();
    move_to(then, reg);
    const size_t skip = emit(Opcode::Jump, {}, {});
    f_.code[jump].target = static_cast<int32_t>(f_.code.size());
    variables_ = before;
    narrow(*e.items[0], false);
    const Value other = value(*e.items[2], hint);
    move_to(other, reg);
    f_.code[skip].target = static_cast<int32_t>(f_.code.size());
    variables_ = before;
    return operand(reg, joined(then.type, other.type), true);
  }

  void loop(const Stmt& step) {
    int32_t index = -1;
    Value count;
    if (step.kind == Stmt::Kind::For) {
      const Expr& range = *step.value;
      if (range.kind != Expr::Kind::Call || range.items[0]->dotted() != "range" ||
          range.items.size() != 2 || step.target->kind != Expr::Kind::Name)
        fail("a loop of an archive goes over range(n)");
      count = value(*range.items[1]);
      if (count.type->kind != Kind::Int) fail("the count of a loop is not an int");
      index = new_register();
      move_to(constant(IValue(0)), index);
    }
    const size_t top = f_.code.size();
    Value test;
    if (index >= 0)
      test = call_operator("aten::lt", {operand(index, simple_type(Kind::Int), false), count}, {});
    else
      test = truth(value(*step.value));
    const size_t out = emit(Opcode::JumpIfNot, {test.operand}, {});
    if (index >= 0) store(*step.target, operand(index, simple_type(Kind::Int), false));
    const Variables before = variables_;
    exits_.emplace_back();
    body(step.body);
    for (const size_t jump : exits_.back().continues)
      f_.code[jump].target = static_cast<int32_t>(f_.code.size());
    for (auto& [name, variable] : variables_) {
      const auto old = before.find(name);
      if (old == before.end() || same(old->second.type, variable.type)) continue;
      const TypePtr both = unify(old->second.type, variable.type);
      if (both) variable.type = both;
    }
    if (index >= 0) {
      const Value next = call_operator(
          "aten::add", {operand(index, simple_type(Kind::Int), false), constant(IValue(1))}, {});
      move_to(next, index);
    }
    emit(Opcode::Jump, {}, {}, static_cast<int32_t>(top));
    for (const size_t jump : exits_.back().breaks)
      f_.code[jump].target = static_cast<int32_t>(f_.code.size());
    exits_.pop_back();
    f_.code[out].target = static_cast<int32_t>(f_.code.size());
    loops_.emplace_back(top, f_.code.size());
  }

  void with(const Stmt& step) {
    const Value context = value(*step.value);
    const Value inside = call_method(context, "__enter__", {}, {});
    if (step.target) store(*step.target, inside);
    body(step.body);
    const Value none = constant(IValue());
    call_method(context, "__exit__", {none, none, none}, {});
  }

  // ---- values
  Value single(const Value& v) {
    if (v.is == Value::Is::Operand) return v;
    if (v.is != Value::Is::Several) fail(c10::str("'", v.text, "' is not a value"));
    std::vector<int32_t> inputs;
    std::vector<TypePtr> types;
    for (const Value& part : v.parts) {
      inputs.push_back(part.operand);
      types.push_back(part.type);
    }
    return result(Opcode::MakeTuple, inputs, tuple_of(std::move(types)), -1);
  }
  Value value(const Expr& e, const TypePtr& hint = nullptr) { return single(expression(e, hint)); }
  std::vector<Value> unpacked(const Value& v, size_t count) {
    if (v.is == Value::Is::Several) {
      if (v.parts.size() != count) fail("an assignment has another number of targets than values");
      return v.parts;
    }
    const Value whole = single(v);
    const bool tuple = whole.type->kind == Kind::Tuple;
    if (!tuple && whole.type->kind != Kind::List)
      fail(c10::str("a value of type ", whole.type->name, " cannot be unpacked"));
    if (tuple && whole.type->inner.size() != count)
      fail("an assignment has another number of targets than values");
    std::vector<int32_t> outputs;
    std::vector<Value> out;
    for (size_t i = 0; i < count; ++i) {
      outputs.push_back(new_register());
      out.push_back(operand(outputs.back(), whole.type->inner[tuple ? i : 0], true));
    }
    emit(tuple ? Opcode::UnpackTuple : Opcode::UnpackList, {whole.operand}, outputs);
    return out;
  }
  // The value as one of the type an annotation says.
  Value typed(Value v, const Expr& annotation) {
    const TypePtr wanted = unit_.type_of(annotation);
    v = fitted(v, wanted, "an annotated value");
    v.type = wanted;
    return v;
  }

  // The value as one of the wanted type: tuples become lists, empty containers take the type.
  std::optional<Value> try_fit(const Value& v, const TypePtr& wanted, bool convert) {
    if (is_subtype(v.type, wanted)) return v;
    const TypePtr& kind = plain(wanted);
    if (v.untyped && v.type->kind == kind->kind) return empty(kind);
    if (kind->kind == Kind::List && (v.type->kind == Kind::Tuple)) {
      std::vector<int32_t> items;
      for (const Value& part : unpacked(v, v.type->inner.size())) {
        const std::optional<Value> fit = try_fit(part, kind->inner[0], convert);
        if (!fit) return std::nullopt;
        items.push_back(fit->operand);
      }
      return result(Opcode::MakeList, items, kind, type_index(kind->inner[0]));
    }
    if (kind->kind == Kind::Tuple && v.type->kind == Kind::Tuple && kind->fields.empty() &&
        kind->inner.size() == v.type->inner.size()) {
      std::vector<int32_t> items;
      const std::vector<Value> parts = unpacked(v, kind->inner.size());
      for (size_t i = 0; i < parts.size(); ++i) {
        const std::optional<Value> fit = try_fit(parts[i], kind->inner[i], convert);
        if (!fit) return std::nullopt;
        items.push_back(fit->operand);
      }
      return result(Opcode::MakeTuple, items, kind, -1);
    }
    // Lists differ in how they are held: one of unknown element is made anew when it is read.
    if (v.type->kind == Kind::Any)
      return result(Opcode::Cast, {v.operand}, wanted, type_index(wanted));
    return convert ? converted(v, kind) : std::nullopt;
  }
  std::optional<Value> converted(const Value& v, const TypePtr& wanted) {
    const Kind kind = wanted->kind;
    if (v.type->kind == Kind::Tensor &&
        (kind == Kind::Int || kind == Kind::Float || kind == Kind::Number))
      return call_operator(kind == Kind::Int     ? "aten::IntImplicit"
                           : kind == Kind::Float ? "aten::FloatImplicit"
                                                 : "aten::ScalarImplicit",
                           {v}, {});
    if (v.type->kind == Kind::Str && kind == Kind::Device)
      return call_operator("aten::device", {v}, {});
    if (v.type->kind == Kind::Bool && kind == Kind::Number) return v;
    if (v.type->kind == Kind::Int && kind == Kind::Float && is_constant(v))
      return constant(IValue(static_cast<double>(constant_value(v).toInt())));
    return std::nullopt;
  }
  Value fitted(const Value& v, const TypePtr& wanted, const char* what) {
    const std::optional<Value> out = try_fit(v, wanted, true);
    if (!out)
      fail(c10::str(what, " should be of type ", wanted->name, " but is of type ", v.type->name));
    return *out;
  }
  Value empty(const TypePtr& type) {
    if (type->kind == Kind::List)
      return result(Opcode::MakeList, {}, type, type_index(type->inner[0]));
    return result(Opcode::MakeDict, {}, type);
  }

  // ---- expressions
  Value expression(const Expr& e, const TypePtr& hint = nullptr) {
    switch (e.kind) {
    case Expr::Kind::Name:
      return name(e);
    case Expr::Kind::Int:
    case Expr::Kind::Float:
    case Expr::Kind::Complex:
    case Expr::Kind::String:
    case Expr::Kind::None:
    case Expr::Kind::True:
    case Expr::Kind::False:
      return constant(unit_.constant_of(e, simple_type(Kind::Any)));
    case Expr::Kind::Attribute:
      return attribute(expression(*e.items[0]), e.text);
    case Expr::Kind::Call:
      return call(e, hint);
    case Expr::Kind::Select:
      return select(e, hint);
    case Expr::Kind::Subscript:
      return subscript(e);
    case Expr::Kind::List:
      return list(e, hint);
    case Expr::Kind::Dict:
      return dict(e, hint);
    case Expr::Kind::Tuple: {
      Value out;
      out.is = Value::Is::Several;
      const TypePtr wanted = hint ? plain(hint) : nullptr;
      const bool parts =
          wanted && wanted->kind == Kind::Tuple && wanted->inner.size() == e.items.size();
      for (size_t i = 0; i < e.items.size(); ++i)
        out.parts.push_back(value(*e.items[i], parts ? wanted->inner[i] : nullptr));
      return single(out);
    }
    case Expr::Kind::Negate: {
      const Value v = value(*e.items[0]);
      if (is_constant(v) && constant_value(v).isInt())
        return constant(IValue(-constant_value(v).toInt()));
      if (is_constant(v) && constant_value(v).isDouble())
        return constant(IValue(-constant_value(v).toDouble()));
      return call_operator("aten::neg", {v}, {});
    }
    }
    fail("an expression that archives do not have");
  }
  Value name(const Expr& e) {
    const auto local = statics_.find(e.text);
    if (local != statics_.end()) return local->second;
    const auto variable = variables_.find(e.text);
    if (variable != variables_.end())
      return operand(variable->second.reg, variable->second.type, false);
    Value out;
    out.text = e.text;
    if (e.text == "torch" || e.text == "ops") {
      out.is = Value::Is::Space;
      out.text = e.text == "torch" ? "aten" : "";
    } else if (e.text == "__torch__") {
      out.is = Value::Is::Dotted;
    } else if (e.text == "CONSTANTS") {
      out.is = Value::Is::Constants;
    } else if (e.text == "inf" || e.text == "nan") {
      return constant(unit_.constant_of(e, simple_type(Kind::Float)));
    } else {
      static const std::set<std::string> forms = {"annotate",      "unchecked_cast",
                                                  "uninitialized", "isinstance",
                                                  "getattr",       "fork",
                                                  "int",           "float",
                                                  "bool",          "complex",
                                                  "str",           "print",
                                                  "len",           "abs",
                                                  "min",           "max",
                                                  "list",          "awaitable"};
      out.is = Value::Is::Form;
      if (forms.count(e.text) != 0) return out;
      out.function = unit_.find_function("__torch__." + e.text);
      if (out.function == nullptr) fail(c10::str("undefined value ", e.text));
      // What it returns is known from its code where no annotation says it.
      if (out.function->node->type == nullptr) {
        compile(unit_, *out.function);
        if (!out.function->function->defined)
          fail(c10::str(e.text, "() calls itself: it needs an annotation of what it returns"));
      }
      out.is = Value::Is::Function;
    }
    return out;
  }
  Value attribute(const Value& owner, const std::string& attr) {
    Value out;
    switch (owner.is) {
    case Value::Is::Space:
      out.is = owner.text.empty() ? Value::Is::Space : Value::Is::Operator;
      out.text = owner.text.empty() ? attr : owner.text + "::" + attr;
      if (out.text == "aten::inf") return constant(IValue(std::numeric_limits<double>::infinity()));
      return out;
    case Value::Is::Dotted: {
      out.text = owner.text + "." + attr;
      out.is = Value::Is::Dotted;
      if (Class* cls = unit_.find_class(out.text)) {
        out.is = Value::Is::Class;
        out.cls = cls;
      } else if (Callable* function = unit_.find_function(out.text)) {
        out.is = Value::Is::Function;
        out.function = function;
      }
      return out;
    }
    case Value::Is::Constants:
      return constant(unit_.constant(attr));
    case Value::Is::Class: {
      const auto member = owner.cls->members.find(attr);
      if (member != owner.cls->members.end()) return constant(member->second, owner.cls->type);
      const auto method = owner.cls->methods.find(attr);
      out.is = attr == "__new__" ? Value::Is::Method : Value::Is::Function;
      out.cls = owner.cls;
      out.text = attr;
      if (attr != "__new__") {
        if (method == owner.cls->methods.end())
          fail(c10::str("the class ", owner.text, " has no attribute '", attr, "'"));
        out.function = method->second.get();
      }
      return out;
    }
    case Value::Is::Operand:
      return value_attribute(owner, attr);
    default:
      fail(c10::str("'", owner.text, "' has no attribute '", attr, "'"));
    }
  }
  Value value_attribute(const Value& owner, const std::string& attr) {
    const Type& type = *owner.type;
    if (type.kind == Kind::Tuple && !type.fields.empty()) {
      const auto found = std::find(type.fields.begin(), type.fields.end(), attr);
      if (found == type.fields.end()) fail(c10::str(type.name, " has no field '", attr, "'"));
      const auto i = found - type.fields.begin();
      return result(Opcode::TupleItem, {owner.operand}, type.inner[size_t(i)], int32_t(i));
    }
    Value out = owner;
    out.is = Value::Is::Method;
    out.text = attr;
    if (type.kind != Kind::Class && type.kind != Kind::Interface) return out; // an operator
    Class* cls = unit_.class_of(type);
    if (!cls) fail(c10::str("the archive has no class ", type.name));
    if (type.kind == Kind::Class) {
      const int slot = cls->type->cls->slot(attr);
      if (slot >= 0) return result(Opcode::GetSlot, {owner.operand}, cls->attribute(attr), slot);
      const auto constant_found = cls->constants.find(attr);
      if (constant_found != cls->constants.end()) return constant(constant_found->second);
    }
    if (cls->methods.count(attr) == 0) fail(c10::str(type.name, " has no attribute '", attr, "'"));
    return out;
  }
  Value subscript(const Expr& e) {
    const Value owner = value(*e.items[0]);
    const Value index = value(*e.items[1]);
    if (owner.type->kind == Kind::Tuple) {
      if (!is_constant(index) || !constant_value(index).isInt())
        fail("the index of a tuple is not a constant");
      const auto size = static_cast<int64_t>(owner.type->inner.size());
      int64_t i = constant_value(index).toInt();
      if (i < 0) i += size;
      if (i < 0 || i >= size) fail("the index of a tuple lies outside");
      return result(Opcode::TupleItem, {owner.operand}, owner.type->inner[size_t(i)], int32_t(i));
    }
    if (owner.type->kind == Kind::Tensor && index.type->kind == Kind::Int)
      return call_operator("aten::select", {owner, constant(IValue(0)), index}, {});
    return call_operator("aten::__getitem__", {owner, index}, {});
  }
  Value list(const Expr& e, const TypePtr& hint) {
    const TypePtr wanted = hint ? plain(hint) : nullptr;
    const bool known = wanted && wanted->kind == Kind::List;
    std::vector<Value> items;
    for (const ExprPtr& item : e.items)
      items.push_back(value(*item, known ? wanted->inner[0] : nullptr));
    TypePtr element = known ? wanted->inner[0] : nullptr;
    if (!element) {
      element = items.empty() ? simple_type(Kind::Tensor) : items[0].type;
      for (const Value& item : items) {
        const TypePtr both = unify(element, item.type);
        element = both ? both : union_of({element, item.type});
      }
    }
    std::vector<int32_t> inputs;
    for (const Value& item : items)
      inputs.push_back(fitted(item, element, "an item of a list").operand);
    Value out = result(Opcode::MakeList, inputs, list_of(element), type_index(element));
    out.untyped = items.empty() && !known;
    return out;
  }
  Value dict(const Expr& e, const TypePtr& hint) {
    const TypePtr wanted = hint ? plain(hint) : nullptr;
    const bool known = wanted && wanted->kind == Kind::Dict;
    TypePtr types[2] = {known ? wanted->inner[0] : nullptr, known ? wanted->inner[1] : nullptr};
    std::vector<int32_t> inputs;
    for (size_t i = 0; i < e.items.size(); ++i) {
      Value item = value(*e.items[i], known ? wanted->inner[i % 2] : nullptr);
      if (known) item = fitted(item, types[i % 2], "an item of a dictionary");
      if (!known)
        types[i % 2] = types[i % 2] && unify(types[i % 2], item.type)
                           ? unify(types[i % 2], item.type)
                           : item.type;
      inputs.push_back(item.operand);
    }
    if (!types[0]) types[0] = simple_type(Kind::Str), types[1] = simple_type(Kind::Tensor);
    Value out = result(Opcode::MakeDict, inputs, dict_of(types[0], types[1]));
    out.untyped = e.items.empty() && !known;
    return out;
  }

  // ---- calls
  using Keywords = std::vector<std::pair<std::string, Value>>;

  Value call(const Expr& e, const TypePtr& hint) {
    const Value function = expression(*e.items[0]);
    if (function.is == Value::Is::Form) return form(function.text, e, hint);
    std::vector<Value> args;
    for (size_t i = 1; i < e.items.size(); ++i)
      if (!(function.is == Value::Is::Method && function.text == "__new__"))
        args.push_back(value(*e.items[i]));
    Keywords keywords;
    for (const auto& [key, item] : e.keywords) keywords.emplace_back(key, value(*item));
    switch (function.is) {
    case Value::Is::Operator:
      return call_operator(function.text, args, keywords);
    case Value::Is::Function:
      return call_function(*function.function, args, keywords);
    case Value::Is::Class:
      return construct(*function.cls, args, keywords);
    case Value::Is::Method:
      if (function.text == "__new__")
        return result(Opcode::NewObject, {}, function.cls->type, type_index(function.cls->type));
      {
        Value receiver = function;
        receiver.is = Value::Is::Operand;
        return call_method(receiver, function.text, args, keywords);
      }
    case Value::Is::Operand:
      return call_method(function, "forward", args, keywords);
    default:
      fail(c10::str("'", function.text, "' cannot be called"));
    }
  }

  Value construct(Class& cls, const std::vector<Value>& args, const Keywords& keywords) {
    if (cls.type->kind != Kind::Tuple) {
      const Value made = result(Opcode::NewObject, {}, cls.type, type_index(cls.type));
      call_method(made, "__init__", args, keywords);
      return made;
    }
    std::vector<int32_t> inputs;
    for (size_t i = 0; i < cls.type->inner.size(); ++i) {
      const std::string& field = cls.type->fields[i];
      std::optional<Value> item;
      if (i < args.size()) item = args[i];
      for (const auto& [key, given] : keywords)
        if (key == field) item = given;
      if (!item && cls.constants.count(field)) item = constant(cls.constants.at(field));
      if (!item) fail(c10::str(cls.type->name, " is missing a value for '", field, "'"));
      inputs.push_back(fitted(*item, cls.type->inner[i], "a field").operand);
    }
    return result(Opcode::MakeTuple, inputs, cls.type, type_index(cls.type));
  }

  Value call_method(const Value& receiver, const std::string& method, std::vector<Value> args,
                    const Keywords& keywords) {
    const Type& type = *receiver.type;
    args.insert(args.begin(), receiver);
    if (type.kind != Kind::Class && type.kind != Kind::Interface)
      return call_operator("aten::" + method, args, keywords);
    Class* cls = unit_.class_of(type);
    if (!cls || cls->methods.count(method) == 0)
      fail(c10::str(type.name, " has no method '", method, "'"));
    Callable& callable = *cls->methods.at(method);
    if (type.kind == Kind::Class) return call_function(callable, args, keywords);
    f_.names.push_back(method);
    return result(Opcode::CallMethod, arguments(callable, args, keywords, 1), callable.returns,
                  static_cast<int32_t>(f_.names.size() - 1));
  }

  // Operands in the order of the parameters. The first `free` are taken as they are.
  std::vector<int32_t> arguments(const Callable& callable, const std::vector<Value>& args,
                                 const Keywords& keywords, size_t free = 0) {
    if (args.size() > callable.arguments.size())
      fail(c10::str(callable.name, "() takes ", callable.arguments.size(), " arguments"));
    std::vector<int32_t> out;
    for (size_t i = 0; i < callable.arguments.size(); ++i) {
      const Formal& formal = callable.arguments[i];
      std::optional<Value> given;
      if (i < args.size()) given = args[i];
      for (const auto& [key, item] : keywords)
        if (key == formal.name) given = item;
      if (!given && formal.has_default) given = constant(formal.value, formal.type);
      if (!given) fail(c10::str(callable.name, "() is missing the argument '", formal.name, "'"));
      out.push_back(i < free ? given->operand : fitted(*given, formal.type, "an argument").operand);
    }
    return out;
  }
  Value call_function(Callable& callable, const std::vector<Value>& args,
                      const Keywords& keywords) {
    return result(Opcode::Call, arguments(callable, args, keywords), callable.returns,
                  function_index(callable.function));
  }

  Value call_operator(const std::string& name, const std::vector<Value>& args,
                      const Keywords& keywords) {
    const std::vector<Schema>& known = unit_.schemas(name);
    if (known.empty()) fail(c10::str("Unknown builtin op: ", name));
    std::string reasons;
    for (const bool convert : {false, true})
      for (const Schema& schema : known) {
        const size_t code = f_.code.size(), operands = f_.operands.size();
        try {
          return emit_call(schema, args, keywords, convert);
        } catch (const Mismatch& mismatch) {
          f_.code.resize(code);
          f_.operands.resize(operands);
          if (convert) reasons += c10::str("\n  ", schema.text, ": ", mismatch.why);
        }
      }
    fail(c10::str("no overload of ", name, " fits the call:", reasons));
  }
  Value emit_call(const Schema& schema, const std::vector<Value>& args, const Keywords& keywords,
                  bool convert) {
    std::vector<int32_t> inputs;
    Bindings bound;
    size_t used = 0, named = 0;
    for (const Formal& formal : schema.arguments) {
      const Value* given = nullptr;
      if (used < args.size() && !formal.kwarg_only) given = &args[used++];
      for (const auto& [key, item] : keywords)
        if (key == formal.name) given = &item, ++named;
      if (given) {
        inputs.push_back(argument(*given, formal, bound, convert).operand);
      } else if (formal.has_default) {
        inputs.push_back(constant(formal.value).operand);
        if (is_list(formal.value)) inputs.back() = fresh_list(formal).operand;
      } else {
        throw Mismatch{c10::str("the argument '", formal.name, "' is missing")};
      }
    }
    if (named != keywords.size()) throw Mismatch{"a keyword is not known"};
    if (used < args.size()) {
      if (!schema.vararg) throw Mismatch{"too many arguments"};
      for (; used < args.size(); ++used) inputs.push_back(args[used].operand);
    }
    std::vector<int32_t> outputs;
    Value out;
    out.is = Value::Is::Several;
    for (const TypePtr& type : schema.returns) {
      outputs.push_back(new_register());
      out.parts.push_back(operand(outputs.back(), substitute(type, bound), true));
    }
    Instruction& in =
        f_.code[emit(schema.entry ? Opcode::Operator : Opcode::Builtin, inputs, outputs)];
    in.builtin = schema.builtin;
    in.entry = schema.entry;
    if (schema.entry)
      for (size_t i = 0; i < schema.arguments.size() && i < 64; ++i)
        if (schema.arguments[i].type->kind == Kind::Tensor) in.tensors |= uint64_t(1) << i;
    if (out.parts.size() == 1) return enum_value(schema, out.parts[0], args);
    return out.parts.empty() ? constant(IValue()) : out;
  }
  // The type of x.value is that of the enumeration's members.
  Value enum_value(const Schema& schema, Value v, const std::vector<Value>& args) {
    if (schema.name == "prim::EnumValue" && !args.empty() && !args[0].type->inner.empty())
      v.type = args[0].type->inner[0];
    return v;
  }
  // Lists can be changed by who gets them: a default is made anew for each call.
  Value fresh_list(const Formal& formal) {
    std::vector<int32_t> items;
    for (size_t i = 0; i < list_size(formal.value); ++i)
      items.push_back(constant(list_get(formal.value, i)).operand);
    const TypePtr& type = plain(formal.type);
    return result(Opcode::MakeList, items, type, type_index(type->inner[0]));
  }
  Value argument(const Value& v, const Formal& formal, Bindings& bound, bool convert) {
    const TypePtr& wanted = plain(formal.type);
    if (wanted->kind == Kind::List && formal.size > 0 && same(v.type, wanted->inner[0]) &&
        (v.type->kind == Kind::Int || v.type->kind == Kind::Float))
      return result(Opcode::MakeList, std::vector<int32_t>(size_t(formal.size), v.operand), wanted,
                    type_index(wanted->inner[0]));
    if (bind_type(formal.type, v.type, bound)) return v;
    const bool open = has_variable(*formal.type);
    if (!open || v.untyped) {
      const std::optional<Value> fit =
          try_fit(v, open ? substitute(formal.type, bound) : formal.type, convert);
      if (fit) return *fit;
    }
    throw Mismatch{c10::str("'", formal.name, "' should be of type ", formal.type->name, " but is ",
                            v.type->name)};
  }

  Value form(const std::string& name, const Expr& e, const TypePtr& hint) {
    const size_t n = e.items.size() - 1;
    const auto need = [&](size_t count) {
      if (n != count) fail(c10::str(name, " takes ", count, " arguments, not ", n));
    };
    if (name == "annotate") {
      need(2);
      return typed(value(*e.items[2], unit_.type_of(*e.items[1])), *e.items[1]);
    }
    if (name == "unchecked_cast") {
      need(2);
      Value v = value(*e.items[2]);
      v.type = unit_.type_of(*e.items[1]);
      v.fresh = false;
      return v;
    }
    if (name == "uninitialized") {
      need(1);
      return constant(IValue(), unit_.type_of(*e.items[1]));
    }
    if (name == "getattr") {
      need(2);
      return attribute(expression(*e.items[1]), e.items[2]->text);
    }
    if (name == "isinstance") {
      need(2);
      const Value v = value(*e.items[1]);
      const auto first = static_cast<int32_t>(f_.types.size());
      const Expr& types = *e.items[2];
      const bool several = types.kind == Expr::Kind::List || types.kind == Expr::Kind::Tuple;
      const size_t count = several ? types.items.size() : 1;
      for (size_t i = 0; i < count; ++i)
        type_index(unit_.type_of(several ? *types.items[i] : types));
      return result(Opcode::IsInstance, {v.operand}, simple_type(Kind::Bool), first,
                    static_cast<int32_t>(count));
    }
    if (name == "fork") return fork(e);
    std::vector<Value> args;
    for (size_t i = 1; i <= n; ++i) args.push_back(value(*e.items[i]));
    static const std::unordered_map<std::string, std::pair<const char*, Kind>> casts = {
        {"int", {"aten::Int", Kind::Int}},    {"float", {"aten::Float", Kind::Float}},
        {"bool", {"aten::Bool", Kind::Bool}}, {"complex", {"aten::Complex", Kind::Complex}},
        {"str", {"aten::str", Kind::Str}},
    };
    const auto cast = casts.find(name);
    if (cast != casts.end())
      return n == 1 && args[0].type->kind == cast->second.second
                 ? args[0]
                 : call_operator(cast->second.first, args, {});
    const bool tensor = !args.empty() && args[0].type->kind == Kind::Tensor;
    if (name == "print") return call_operator("prim::Print", args, {});
    if (name == "len" || name == "list" || tensor) return call_operator("aten::" + name, args, {});
    return call_operator("prim::" + name, args, {});
  }

  Value fork(const Expr& e) {
    if (e.items.size() < 2) fail("fork takes a function");
    const Value target = expression(*e.items[1]);
    std::vector<Value> args;
    for (size_t i = 2; i < e.items.size(); ++i) args.push_back(value(*e.items[i]));
    if (target.is == Value::Is::Function) {
      Callable& callable = *target.function;
      return result(Opcode::Fork, arguments(callable, args, {}), future_of(callable.returns),
                    function_index(callable.function));
    }
    if (target.is != Value::Is::Nested) fail("fork takes a function");
    std::vector<std::pair<std::string, TypePtr>> captured;
    std::vector<int32_t> inputs;
    for (const std::string& name : free_names(*target.node)) {
      const auto variable = variables_.find(name);
      if (variable == variables_.end()) continue;
      captured.emplace_back(name, variable->second.type);
      inputs.push_back(variable->second.reg * 2);
    }
    nested_.push_back(unit_.declare(*target.node, callable_.path, target.node->name));
    Callable& callable = *nested_.back();
    Compiler inner(unit_, callable);
    inner.statics_ = statics_;
    inner.run(captured);
    const std::vector<int32_t> own = arguments(callable, args, {});
    inputs.insert(inputs.end(), own.begin(), own.end());
    const TypePtr returns = target.node->type ? callable.returns : inner.returned_;
    return result(Opcode::Fork, inputs, future_of(returns ? returns : simple_type(Kind::None)),
                  function_index(callable.function));
  }

  Unit& unit_;
  Callable& callable_;
  Function f_;
  Variables variables_;
  std::map<std::string, int32_t> registers_of_;
  std::map<std::string, Value> statics_;
  std::map<int, int32_t> places_;
  std::vector<std::pair<size_t, size_t>> loops_;
  std::vector<Exits> exits_;
  std::vector<std::unique_ptr<Callable>> nested_;
  TypePtr returned_;
  int32_t registers_ = 0;
  int line_ = 0;
};

} // namespace

void compile(Unit& unit, Callable& callable,
             const std::vector<std::pair<std::string, TypePtr>>& captured) {
  if (std::exchange(callable.begun, true)) return;
  Compiler(unit, callable).run(captured);
}

} // namespace torch::jit::source
