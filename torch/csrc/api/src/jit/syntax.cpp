// A tokenizer and a recursive-descent parser.
#include <torch/csrc/api/src/jit/syntax.h>

#include <c10/util/Exception.h>

#include <cctype>
#include <cstdlib>

namespace torch::jit::source {

std::string Expr::dotted() const {
  if (kind == Kind::Name) return text;
  if (kind != Kind::Attribute) return "";
  const std::string before = items[0]->dotted();
  return before.empty() ? "" : before + "." + text;
}

namespace {

constexpr int kMaxDepth = 400;

struct Token {
  enum class Kind : uint8_t {
    Name,
    Int,
    Float,
    Complex,
    String,
    Mark,
    Newline,
    Indent,
    Dedent,
    End
  };
  Kind kind = Kind::End;
  int line = 0;
  std::string text; // a name, the characters of a string or number, or a mark
};

class Tokenizer {
 public:
  Tokenizer(std::string_view text, const std::string& path) : text_(text), path_(path) {}

  std::vector<Token> run() {
    bool line_starts = true;
    while (at_ < text_.size()) {
      if (line_starts && open_ == 0) {
        indentation();
        line_starts = false;
        continue;
      }
      const char c = text_[at_];
      if (c == '\n') {
        ++at_, ++line_;
        if (open_ == 0) {
          if (!out_.empty() && out_.back().kind != Token::Kind::Newline)
            add(Token::Kind::Newline, "");
          line_starts = true;
        }
      } else if (c == ' ' || c == '\t' || c == '\r') {
        ++at_;
      } else if (c == '#') {
        skip_comment();
      } else {
        token(c);
      }
    }
    add(Token::Kind::Newline, "");
    while (levels_.size() > 1) levels_.pop_back(), add(Token::Kind::Dedent, "");
    add(Token::Kind::End, "");
    return std::move(out_);
  }

 private:
  [[noreturn]] void fail(const std::string& why) const {
    throw c10::Error(c10::str(path_, ":", line_, ": ", why));
  }
  void add(Token::Kind kind, std::string text) { out_.push_back({kind, line_, std::move(text)}); }
  void skip_comment() {
    while (at_ < text_.size() && text_[at_] != '\n') ++at_;
  }
  char peek(size_t ahead = 0) const {
    return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0';
  }

  void indentation() {
    size_t width = 0;
    while (peek() == ' ' || peek() == '\t') ++at_, ++width;
    if (peek() == '#') skip_comment();
    if (peek() == '\n' || peek() == '\r' || at_ >= text_.size()) return; // an empty line
    if (width > levels_.back()) {
      if (levels_.size() > size_t(kMaxDepth)) fail("blocks are nested too deep");
      levels_.push_back(width);
      add(Token::Kind::Indent, "");
    }
    while (width < levels_.back()) {
      levels_.pop_back();
      add(Token::Kind::Dedent, "");
    }
    if (width != levels_.back()) fail("the indentation fits no block");
  }

  void token(char c) {
    if (std::isalpha(static_cast<unsigned char>(c)) || c == '_' || (c & 0x80)) {
      const size_t start = at_;
      while (std::isalnum(static_cast<unsigned char>(peek())) || peek() == '_' || (peek() & 0x80))
        ++at_;
      add(Token::Kind::Name, std::string(text_.substr(start, at_ - start)));
    } else if (std::isdigit(static_cast<unsigned char>(c)) ||
               (c == '.' && std::isdigit(static_cast<unsigned char>(peek(1))))) {
      number();
    } else if (c == '"' || c == '\'') {
      string(c);
    } else {
      mark(c);
    }
  }
  void number() {
    const size_t start = at_;
    bool real = false;
    while (std::isdigit(static_cast<unsigned char>(peek())) || peek() == '.' || peek() == 'e' ||
           peek() == 'E' ||
           ((peek() == '-' || peek() == '+') && at_ > start &&
            (text_[at_ - 1] == 'e' || text_[at_ - 1] == 'E'))) {
      real = real || !std::isdigit(static_cast<unsigned char>(peek()));
      ++at_;
    }
    const std::string digits(text_.substr(start, at_ - start));
    if (peek() == 'j') {
      ++at_;
      add(Token::Kind::Complex, digits);
    } else {
      add(real ? Token::Kind::Float : Token::Kind::Int, digits);
    }
  }
  void string(char quote) {
    ++at_;
    std::string out;
    while (peek() != quote) {
      if (at_ >= text_.size() || peek() == '\n') fail("a string has no end");
      if (peek() != '\\') {
        out += text_[at_++];
        continue;
      }
      ++at_;
      escape(out);
    }
    ++at_;
    add(Token::Kind::String, std::move(out));
  }
  void escape(std::string& out) {
    const char c = peek();
    ++at_;
    if (c >= '0' && c <= '7') {
      int code = c - '0';
      for (int i = 0; i < 2 && peek() >= '0' && peek() <= '7'; ++i)
        code = code * 8 + text_[at_++] - '0';
      out += static_cast<char>(code);
    } else if (c == 'x') {
      out += static_cast<char>(std::strtol(std::string(text_.substr(at_, 2)).c_str(), nullptr, 16));
      at_ += 2;
    } else {
      constexpr std::string_view names = "ntrabfv", codes = "\n\t\r\a\b\f\v";
      const size_t found = names.find(c);
      out += found == std::string_view::npos ? c : codes[found];
    }
  }
  void mark(char c) {
    static constexpr std::string_view kLong[] = {"**=", "//=", "<<=", ">>=", "->", "**", "//", "<<",
                                                 ">>",  "==",  "!=",  "<=",  ">=", "+=", "-=", "*=",
                                                 "/=",  "%=",  "@=",  "&=",  "|=", "^="};
    for (const std::string_view mark : kLong)
      if (text_.substr(at_, mark.size()) == mark) {
        at_ += mark.size();
        return add(Token::Kind::Mark, std::string(mark));
      }
    if (std::string_view("()[]{}").find(c) != std::string_view::npos)
      open_ += c == '(' || c == '[' || c == '{' ? 1 : -1;
    if (open_ < 0 || open_ > kMaxDepth) fail("brackets do not match");
    ++at_;
    add(Token::Kind::Mark, std::string(1, c));
  }

  std::string_view text_;
  const std::string& path_;
  size_t at_ = 0;
  int line_ = 1, open_ = 0;
  std::vector<size_t> levels_{0};
  std::vector<Token> out_;
};

class Parser {
 public:
  Parser(std::vector<Token> tokens, const std::string& path)
      : tokens_(std::move(tokens)), path_(path) {}

  Body file() {
    Body out;
    while (now().kind != Token::Kind::End) {
      if (now().kind == Token::Kind::Newline)
        ++at_;
      else
        out.push_back(statement());
    }
    return out;
  }

 private:
  struct Deeper {
    explicit Deeper(Parser& p) : parser(p) {
      if (++parser.depth_ > kMaxDepth) parser.fail("the code is nested too deep");
    }
    ~Deeper() { --parser.depth_; }
    Parser& parser;
  };
  const Token& now() const { return tokens_[at_]; }
  bool is(std::string_view text) const {
    return (now().kind == Token::Kind::Mark || now().kind == Token::Kind::Name) &&
           now().text == text;
  }
  bool accept(std::string_view text) {
    if (!is(text)) return false;
    ++at_;
    return true;
  }
  void expect(std::string_view text) {
    if (!accept(text)) fail(c10::str("expected '", text, "' but found '", now().text, "'"));
  }
  [[noreturn]] void fail(const std::string& why) const {
    throw c10::Error(c10::str(path_, ":", now().line, ": ", why));
  }
  std::string name() {
    if (now().kind != Token::Kind::Name) fail("expected a name");
    return tokens_[at_++].text;
  }
  ExprPtr make(Expr::Kind kind) const {
    auto out = std::make_unique<Expr>();
    out->kind = kind;
    out->line = now().line;
    return out;
  }

  // ---- statements
  Body block() {
    expect(":");
    Body out;
    if (now().kind != Token::Kind::Newline) {
      out.push_back(statement());
      return out;
    }
    ++at_;
    if (now().kind != Token::Kind::Indent) fail("expected an indented block");
    ++at_;
    while (now().kind != Token::Kind::Dedent) {
      if (now().kind == Token::Kind::End) fail("a block has no end");
      if (now().kind == Token::Kind::Newline)
        ++at_;
      else
        out.push_back(statement());
    }
    ++at_;
    return out;
  }
  void end_line() {
    if (now().kind != Token::Kind::Newline) fail(c10::str("unexpected '", now().text, "'"));
    ++at_;
  }

  StmtPtr statement() {
    const Deeper deeper(*this);
    auto out = std::make_unique<Stmt>();
    out->line = now().line;
    if (accept("pass")) {
      end_line();
    } else if (accept("return")) {
      out->kind = Stmt::Kind::Return;
      if (now().kind != Token::Kind::Newline) out->value = expressions();
      end_line();
    } else if (accept("def")) {
      definition(*out);
    } else if (accept("class")) {
      class_definition(*out);
    } else if (accept("if")) {
      out->kind = Stmt::Kind::If;
      out->value = expression();
      out->body = block();
      if (accept("else")) {
        out->other = block();
      } else if (is("elif")) {
        tokens_[at_].text = "if";
        out->other.push_back(statement());
      }
    } else if (accept("while")) {
      out->kind = Stmt::Kind::While;
      out->value = expression();
      out->body = block();
    } else if (accept("for")) {
      out->kind = Stmt::Kind::For;
      out->target = targets();
      expect("in");
      out->value = expression();
      out->body = block();
      if (!counts_up(*out)) return over_items(std::move(out));
    } else if (accept("break")) {
      out->kind = Stmt::Kind::Break;
      end_line();
    } else if (accept("continue")) {
      out->kind = Stmt::Kind::Continue;
      end_line();
    } else if (accept("assert")) {
      assertion(*out);
    } else if (accept("with")) {
      out->kind = Stmt::Kind::With;
      out->value = expression();
      if (accept("as")) out->target = expression();
      out->body = block();
    } else {
      simple(*out);
    }
    return out;
  }
  void simple(Stmt& out) {
    ExprPtr first = expressions();
    if (accept(":")) {
      out.kind = Stmt::Kind::Declare;
      out.target = std::move(first);
      out.type = expression();
      if (accept("=")) out.value = expressions();
    } else if (accept("=")) {
      out.kind = Stmt::Kind::Assign;
      out.target = std::move(first);
      out.value = expressions();
    } else if (const char* name = in_place_operator()) {
      // The target is evaluated twice: as what is read and as what is written.
      out.kind = Stmt::Kind::Assign;
      out.in_place = true;
      out.value = call(name, copy(*first), expressions());
      out.target = std::move(first);
    } else {
      out.kind = Stmt::Kind::Expr;
      out.value = std::move(first);
    }
    end_line();
  }
  void definition(Stmt& out) {
    out.kind = Stmt::Kind::Def;
    out.name = name();
    expect("(");
    while (!accept(")")) {
      Parameter p;
      accept("*"); // what follows is given by name; positions are kept
      if (is(",")) {
        ++at_;
        continue;
      }
      p.name = name();
      if (accept(":")) p.type = expression();
      if (accept("=")) p.value = expression();
      out.parameters.push_back(std::move(p));
      if (!is(")")) expect(",");
    }
    if (accept("->")) out.type = expression();
    out.body = block();
  }
  void class_definition(Stmt& out) {
    out.kind = Stmt::Kind::Class;
    out.name = name();
    if (accept("(")) {
      while (!accept(")")) {
        out.bases.push_back(expression());
        if (!is(")")) expect(",");
      }
    }
    out.body = block();
  }

  // ---- statements that archives say in other words
  // for i in range(n), which the compiler knows.
  static bool counts_up(const Stmt& loop) {
    const Expr& range = *loop.value;
    return loop.target->kind == Expr::Kind::Name && range.kind == Expr::Kind::Call &&
           range.items[0]->dotted() == "range" && range.items.size() == 2;
  }
  StmtPtr assignment(ExprPtr target, ExprPtr value) const {
    auto out = std::make_unique<Stmt>();
    out->kind = Stmt::Kind::Assign;
    out->line = target->line;
    out->target = std::move(target);
    out->value = std::move(value);
    return out;
  }
  // for x in items: every item by its number; for x in range(a, b, step): every number by its
  // place.
  StmtPtr over_items(StmtPtr loop) {
    const std::string number = std::to_string(hidden_++);
    const ExprPtr place = named("for_place_" + number + "$");
    auto block = std::make_unique<Stmt>();
    block->kind = Stmt::Kind::Block;
    block->line = loop->line;
    const Expr& range = *loop->value;
    ExprPtr item, count;
    if (range.kind == Expr::Kind::Call && range.items[0]->dotted() == "range" &&
        range.items.size() > 2 && range.items.size() < 5) {
      std::vector<ExprPtr> bounds; // first, end, step
      for (size_t i = 0; i < 3; ++i) {
        bounds.push_back(named("for_bound_" + number + "$" + std::to_string(i)));
        ExprPtr given = i + 1 < range.items.size() ? copy(*range.items[i + 1]) : integer(1);
        block->body.push_back(assignment(copy(*bounds[i]), std::move(given)));
      }
      item = call("__derive_index", copy(*place), copy(*bounds[0]));
      item->items.push_back(copy(*bounds[2]));
      count = call("__range_length", copy(*bounds[0]), copy(*bounds[1]));
      count->items.push_back(copy(*bounds[2]));
    } else {
      const ExprPtr items = named("for_items_" + number + "$");
      block->body.push_back(assignment(copy(*items), std::move(loop->value)));
      item = make(Expr::Kind::Subscript);
      item->items.push_back(copy(*items));
      item->items.push_back(copy(*place));
      count = call("len", copy(*items), nullptr);
    }
    loop->value = make(Expr::Kind::Call);
    loop->value->items.push_back(named("range"));
    loop->value->items.push_back(std::move(count));
    loop->body.insert(loop->body.begin(), assignment(std::move(loop->target), std::move(item)));
    loop->target = copy(*place);
    block->body.push_back(std::move(loop));
    return block;
  }
  // if not condition: raise.
  void assertion(Stmt& out) {
    out.kind = Stmt::Kind::If;
    out.value = select(expression(), make(Expr::Kind::False), make(Expr::Kind::True));
    ExprPtr text = make(Expr::Kind::String);
    text->text = "AssertionError: ";
    if (accept(",")) text = call("add", std::move(text), expression());
    auto raise = std::make_unique<Stmt>();
    raise->kind = Stmt::Kind::Expr;
    raise->line = out.line;
    raise->value = make(Expr::Kind::Call);
    raise->value->items.push_back(member(member(named("ops"), "prim"), "RaiseException"));
    raise->value->items.push_back(std::move(text));
    out.body.push_back(std::move(raise));
    end_line();
  }
  // The operator of `+=` and the like.
  const char* in_place_operator() {
    if (now().kind != Token::Kind::Mark || now().text.size() < 2 || now().text.back() != '=')
      return nullptr;
    const Infix* found = infix(std::string_view(now().text).substr(0, now().text.size() - 1));
    if (found == nullptr || found->level < kBitOr) return nullptr;
    ++at_;
    return found->function;
  }

  // ---- making expressions
  ExprPtr named(std::string text) const {
    ExprPtr out = make(Expr::Kind::Name);
    out->text = std::move(text);
    return out;
  }
  ExprPtr integer(int64_t value) const {
    ExprPtr out = make(Expr::Kind::Int);
    out->integer = value;
    return out;
  }
  ExprPtr member(ExprPtr owner, std::string text) const {
    ExprPtr out = make(Expr::Kind::Attribute);
    out->text = std::move(text);
    out->items.push_back(std::move(owner));
    return out;
  }
  // torch.function(a, b); b may be missing.
  ExprPtr call(const char* function, ExprPtr a, ExprPtr b) const {
    ExprPtr out = make(Expr::Kind::Call);
    out->items.push_back(member(named("torch"), function));
    out->items.push_back(std::move(a));
    if (b) out->items.push_back(std::move(b));
    return out;
  }
  ExprPtr select(ExprPtr condition, ExprPtr then, ExprPtr other) const {
    ExprPtr out = make(Expr::Kind::Select);
    out->items.push_back(std::move(condition));
    out->items.push_back(std::move(then));
    out->items.push_back(std::move(other));
    return out;
  }
  static ExprPtr copy(const Expr& e) {
    auto out = std::make_unique<Expr>();
    out->kind = e.kind;
    out->line = e.line;
    out->text = e.text;
    out->integer = e.integer;
    out->real = e.real;
    for (const ExprPtr& item : e.items) out->items.push_back(copy(*item));
    for (const auto& [key, item] : e.keywords) out->keywords.emplace_back(key, copy(*item));
    return out;
  }

  // ---- operators
  // Which binds stronger. Comparisons do not chain.
  enum Level {
    kOr,
    kAnd,
    kNot,
    kCompare,
    kBitOr,
    kBitXor,
    kBitAnd,
    kShift,
    kSum,
    kProduct,
    kPower
  };
  struct Infix {
    std::string_view mark;
    Level level;
    const char* function;
  };
  static const Infix* infix(std::string_view mark) {
    static constexpr Infix kInfix[] = {
        {"<", kCompare, "lt"},        {">", kCompare, "gt"},        {"<=", kCompare, "le"},
        {">=", kCompare, "ge"},       {"==", kCompare, "eq"},       {"!=", kCompare, "ne"},
        {"|", kBitOr, "__or__"},      {"^", kBitXor, "__xor__"},    {"&", kBitAnd, "__and__"},
        {"<<", kShift, "__lshift__"}, {">>", kShift, "__rshift__"}, {"+", kSum, "add"},
        {"-", kSum, "sub"},           {"*", kProduct, "mul"},       {"/", kProduct, "div"},
        {"//", kProduct, "floordiv"}, {"%", kProduct, "remainder"}, {"@", kProduct, "matmul"},
        {"**", kPower, "pow"}};
    for (const Infix& each : kInfix)
      if (each.mark == mark) return &each;
    return nullptr;
  }
  ExprPtr expression() {
    const Deeper deeper(*this);
    ExprPtr out = disjunction();
    if (!accept("if")) return out;
    ExprPtr condition = disjunction();
    expect("else");
    return select(std::move(condition), std::move(out), expression());
  }
  // `a or b` is a where a holds, and b without looking at it otherwise; `a and b` likewise.
  ExprPtr disjunction() {
    ExprPtr out = conjunction();
    while (accept("or")) out = select(std::move(out), make(Expr::Kind::True), conjunction());
    return out;
  }
  ExprPtr conjunction() {
    ExprPtr out = negation();
    while (accept("and")) {
      ExprPtr then = negation();
      out = select(std::move(out), std::move(then), make(Expr::Kind::False));
    }
    return out;
  }
  ExprPtr negation() {
    const Deeper deeper(*this);
    if (!accept("not")) return comparison();
    return select(negation(), make(Expr::Kind::False), make(Expr::Kind::True));
  }
  ExprPtr comparison() {
    ExprPtr out = binary(kBitOr);
    if (accept("is")) {
      const char* function = accept("not") ? "__isnot__" : "__is__";
      return call(function, std::move(out), binary(kBitOr));
    }
    const bool negated = is("not") && tokens_[at_ + 1].text == "in";
    if (negated) ++at_;
    if (accept("in")) {
      ExprPtr owner = binary(kBitOr);
      ExprPtr found = call("__contains__", std::move(owner), std::move(out));
      return negated ? call("__not__", std::move(found), nullptr) : std::move(found);
    }
    const Infix* found = now().kind == Token::Kind::Mark ? infix(now().text) : nullptr;
    if (found == nullptr || found->level != kCompare) return out;
    ++at_;
    return call(found->function, std::move(out), binary(kBitOr));
  }
  ExprPtr binary(int level) {
    if (level >= kPower) return unary();
    ExprPtr out = binary(level + 1);
    while (true) {
      const Infix* found = now().kind == Token::Kind::Mark ? infix(now().text) : nullptr;
      if (found == nullptr || found->level != level) return out;
      ++at_;
      out = call(found->function, std::move(out), binary(level + 1));
      if (++chain_ > 100000) fail("an expression is too long");
    }
  }
  ExprPtr unary() {
    const Deeper deeper(*this);
    if (is("-")) {
      ExprPtr out = make(Expr::Kind::Negate);
      ++at_;
      out->items.push_back(unary());
      return out;
    }
    if (accept("+")) return unary();
    if (accept("~")) return call("bitwise_not", unary(), nullptr);
    ExprPtr out = postfix();
    return accept("**") ? call("pow", std::move(out), unary()) : std::move(out);
  }

  // ---- expressions
  // What a loop assigns: `in` comes behind it.
  ExprPtr targets() {
    ExprPtr first = postfix();
    if (!is(",")) return first;
    ExprPtr out = make(Expr::Kind::Tuple);
    out->items.push_back(std::move(first));
    while (accept(","))
      if (!is("in")) out->items.push_back(postfix());
    return out;
  }
  // One expression, or several with commas between: a tuple.
  ExprPtr expressions() {
    ExprPtr first = expression();
    if (!is(",")) return first;
    ExprPtr out = make(Expr::Kind::Tuple);
    out->items.push_back(std::move(first));
    while (accept(",")) {
      if (is("=") || is(")") || now().kind == Token::Kind::Newline) break;
      out->items.push_back(expression());
    }
    return out;
  }
  ExprPtr postfix() {
    ExprPtr out = atom();
    while (true) {
      if (accept(".")) {
        ExprPtr next = make(Expr::Kind::Attribute);
        next->text = name();
        next->items.push_back(std::move(out));
        out = std::move(next);
      } else if (accept("(")) {
        ExprPtr next = make(Expr::Kind::Call);
        next->items.push_back(std::move(out));
        arguments(*next);
        out = std::move(next);
      } else if (accept("[")) {
        out = subscript(std::move(out));
      } else {
        return out;
      }
      if (++chain_ > 100000) fail("an expression is too long");
    }
  }
  // x[i], or a slice x[first:end:step] as the call that archives have for it.
  ExprPtr subscript(ExprPtr owner) {
    static constexpr const char* kNames[] = {"start", "end", "step"};
    ExprPtr index = is(":") ? nullptr : expressions();
    if (!is(":")) {
      ExprPtr out = make(Expr::Kind::Subscript);
      out->items.push_back(std::move(owner));
      out->items.push_back(std::move(index));
      expect("]");
      return out;
    }
    ExprPtr out = call("slice", std::move(owner), nullptr);
    for (size_t i = 0; i < 3; ++i) {
      if (i > 0 && !is("]")) index = is(":") ? nullptr : expression();
      if (index) out->keywords.emplace_back(kNames[i], std::move(index));
      if (!accept(":")) break;
    }
    expect("]");
    return out;
  }
  void arguments(Expr& call) {
    while (!accept(")")) {
      const bool named = now().kind == Token::Kind::Name &&
                         tokens_[at_ + 1].kind == Token::Kind::Mark && tokens_[at_ + 1].text == "=";
      if (named) {
        std::string key = name();
        expect("=");
        call.keywords.emplace_back(std::move(key), expression());
      } else {
        call.items.push_back(expression());
      }
      if (!is(")")) expect(",");
    }
  }
  ExprPtr sequence(Expr::Kind kind, std::string_view end) {
    ExprPtr out = make(kind);
    while (!accept(end)) {
      out->items.push_back(expression());
      if (kind == Expr::Kind::Dict) {
        expect(":");
        out->items.push_back(expression());
      }
      if (!is(end)) expect(",");
    }
    return out;
  }
  ExprPtr parenthesis() {
    if (accept(")")) return make(Expr::Kind::Tuple);
    ExprPtr out = expressions();
    expect(")");
    return out;
  }
  ExprPtr atom() {
    if (accept("(")) return parenthesis();
    if (accept("[")) return sequence(Expr::Kind::List, "]");
    if (accept("{")) return sequence(Expr::Kind::Dict, "}");
    ExprPtr out = make(Expr::Kind::Name);
    const Token& token = now();
    switch (token.kind) {
    case Token::Kind::Name:
      if (token.text == "None") out->kind = Expr::Kind::None;
      if (token.text == "True") out->kind = Expr::Kind::True;
      if (token.text == "False") out->kind = Expr::Kind::False;
      out->text = token.text;
      break;
    case Token::Kind::Int: {
      out->kind = Expr::Kind::Int;
      char* end = nullptr;
      errno = 0;
      out->integer = std::strtoll(token.text.c_str(), &end, 10);
      if (errno == ERANGE) fail("an integer has more than 64 bits");
      break;
    }
    case Token::Kind::Float:
      out->kind = Expr::Kind::Float;
      out->real = std::strtod(token.text.c_str(), nullptr);
      break;
    case Token::Kind::Complex:
      out->kind = Expr::Kind::Complex;
      out->real = std::strtod(token.text.c_str(), nullptr);
      break;
    case Token::Kind::String:
      out->kind = Expr::Kind::String;
      out->text = token.text;
      break;
    default:
      fail(c10::str("unexpected '", token.text, "'"));
    }
    ++at_;
    // Neighbouring strings are one.
    while (out->kind == Expr::Kind::String && now().kind == Token::Kind::String)
      out->text += tokens_[at_++].text;
    return out;
  }

  std::vector<Token> tokens_;
  const std::string& path_;
  size_t at_ = 0;
  int depth_ = 0, chain_ = 0, hidden_ = 0;
};

} // namespace

Body parse(std::string_view text, const std::string& path) {
  return Parser(Tokenizer(text, path).run(), path).file();
}

} // namespace torch::jit::source
