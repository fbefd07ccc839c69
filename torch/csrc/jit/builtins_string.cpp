// Strings of scripted code, conversions between numbers and text, printing, errors.
#include <torch/csrc/jit/builtins.h>

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <cstdlib>

namespace torch::jit {

void (*print_line)(const std::string& text) = [](const std::string& text) {
  std::fputs(text.c_str(), stdout);
  std::fflush(stdout);
};

namespace {

const std::string& text(const IValue& v) { return v.toStringRef(); }
using Test = int (*)(int);
template <Test test> IValue every(const IValue* a, size_t) {
  const std::string& s = text(a[0]);
  return IValue(!s.empty() &&
                std::all_of(s.begin(), s.end(), [](unsigned char c) { return test(c) != 0; }));
}
template <Test change> IValue each(const IValue* a, size_t) {
  std::string s = text(a[0]);
  for (char& c : s) c = static_cast<char>(change(static_cast<unsigned char>(c)));
  return IValue(std::move(s));
}
int swap_case(int c) { return std::isupper(c) ? std::tolower(c) : std::toupper(c); }

std::string strip(const std::string& s, const std::string& chars, bool left, bool right) {
  size_t from = 0, to = s.size();
  while (left && from < to && chars.find(s[from]) != chars.npos) ++from;
  while (right && to > from && chars.find(s[to - 1]) != chars.npos) --to;
  return s.substr(from, to - from);
}

// The part of a string that start and end choose, with its offset.
std::pair<std::string_view, int64_t> part(const std::string& s, const IValue& from,
                                          const IValue& to) {
  const int64_t n = int64_t(s.size());
  int64_t lo = from.toInt(), hi = to.isNone() ? n : to.toInt();
  if (lo < 0) lo = std::max<int64_t>(lo + n, 0);
  // -1 is the default and means the end.
  if (hi < 0) hi = hi == -1 ? n : std::max<int64_t>(hi + n, 0);
  lo = std::min(lo, n), hi = std::min(hi, n);
  return {std::string_view(s).substr(size_t(lo), hi > lo ? size_t(hi - lo) : 0), lo};
}

IValue strings(std::vector<std::string> parts) {
  std::vector<IValue> out;
  for (std::string& p : parts) out.emplace_back(std::move(p));
  return IValue(std::move(out));
}

std::vector<std::string> split(const std::string& s, const IValue& separator, int64_t most) {
  std::vector<std::string> out;
  if (separator.isNone()) {
    size_t i = 0;
    while (i < s.size()) {
      while (i < s.size() && std::isspace(static_cast<unsigned char>(s[i]))) ++i;
      if (i >= s.size()) break;
      if (most >= 0 && int64_t(out.size()) == most) {
        out.push_back(strip(s.substr(i), " \t\n\r\f\v", false, true));
        break;
      }
      const size_t start = i;
      while (i < s.size() && !std::isspace(static_cast<unsigned char>(s[i]))) ++i;
      out.push_back(s.substr(start, i - start));
    }
    return out;
  }
  const std::string& mark = text(separator);
  TORCH_CHECK_VALUE(!mark.empty(), "empty separator");
  size_t start = 0;
  for (;;) {
    const size_t next = s.find(mark, start);
    if (next == s.npos || (most >= 0 && int64_t(out.size()) == most)) break;
    out.push_back(s.substr(start, next - start));
    start = next + mark.size();
  }
  out.push_back(s.substr(start));
  return out;
}

std::string pad(const std::string& s, int64_t width, const std::string& fill, int side) {
  TORCH_CHECK_TYPE(fill.size() == 1, "The fill character must be exactly one character long");
  TORCH_CHECK(width < (int64_t(1) << 30), "the width of a string is too large");
  const int64_t missing = width - int64_t(s.size());
  if (missing <= 0) return s;
  const int64_t before = side < 0 ? 0 : side > 0 ? missing : missing / 2 + (missing & width & 1);
  return std::string(size_t(before), fill[0]) + s + std::string(size_t(missing - before), fill[0]);
}

std::string title_or_capital(const std::string& s, bool every_word) {
  std::string out = s;
  bool start = true;
  for (char& c : out) {
    const auto u = static_cast<unsigned char>(c);
    c = static_cast<char>(start ? std::toupper(u) : std::tolower(u));
    start = every_word && !std::isalpha(u);
  }
  return out;
}

// "{}" fields are filled in turn or by number; "{{" and "}}" are braces.
IValue format(const IValue* a, size_t n) {
  const std::string& pattern = text(a[0]);
  std::string out;
  size_t next = 1;
  for (size_t i = 0; i < pattern.size(); ++i) {
    const char c = pattern[i];
    if ((c == '{' || c == '}') && i + 1 < pattern.size() && pattern[i + 1] == c) {
      out += c;
      ++i;
    } else if (c == '{') {
      const size_t end = pattern.find('}', i);
      TORCH_CHECK_VALUE(end != pattern.npos, "Single '{' encountered in format string");
      const std::string field = pattern.substr(i + 1, end - i - 1);
      const bool numbered = !field.empty() && std::isdigit(static_cast<unsigned char>(field[0]));
      TORCH_CHECK(field.empty() || numbered, "aten::format has no field '", field, "'");
      const size_t which = numbered ? size_t(std::atoi(field.c_str())) + 1 : next++;
      TORCH_CHECK(which < n, "Too few arguments for format string: ", pattern);
      out += value_text(a[which]);
      i = end;
    } else {
      out += c;
    }
  }
  return IValue(std::move(out));
}

// One value by a conversion of the printf family; only numbers reach snprintf.
std::string percent_field(const std::string& spec, const IValue& value) {
  const char kind = spec.back();
  if (kind == 's') return value_text(value);
  if (kind == 'r') return value_text(value, true);
  if (kind == 'c') {
    if (value.isString()) {
      TORCH_CHECK(text(value).size() == 1, "%c requires an int or char for formatting, but got ",
                  quoted_text(text(value)));
      return text(value);
    }
    TORCH_CHECK(value.isInt() && value.bits.i >= 0 && value.bits.i < 128,
                "%c requires an int or char for formatting, but got ", value.kind());
    return std::string(1, static_cast<char>(value.bits.i));
  }
  const bool number_given = value.isInt() || value.isDouble() || value.isBool() ||
                            value.tag == IValue::Tag::Complex || value.isTensor();
  TORCH_CHECK(number_given, "%", kind, " requires a number for formatting, but got ",
              value.isString() ? "String" : value.kind());
  TORCH_CHECK(spec.size() < 16, "unsupported format '", spec, "'");
  char buffer[512];
  if (std::string("diouxX").find(kind) != std::string::npos) {
    const std::string c_spec = spec.substr(0, spec.size() - 1) + "ll" + kind;
    const auto number = value.tag == IValue::Tag::Double ? int64_t(value.bits.d[0]) : value.toInt();
    std::snprintf(buffer, sizeof buffer, c_spec.c_str(), static_cast<long long>(number));
    return buffer;
  }
  if (std::string("eEfFgG").find(kind) != std::string::npos) {
    std::snprintf(buffer, sizeof buffer, spec.c_str(), value.toScalar().toDouble());
    return buffer;
  }
  throw c10::Error(c10::str("The specifier '", spec,
                            "' is not supported in TorchScript format "
                            "strings"));
}
IValue percent_format(const IValue* a, size_t n) {
  const std::string& pattern = text(a[0]);
  std::vector<IValue> values(a + 1, a + n);
  if (values.size() == 1)
    if (const Tuple* tuple = as<Tuple>(values[0])) values = std::vector<IValue>(tuple->items);
  std::string out;
  size_t next = 0;
  for (size_t i = 0; i < pattern.size(); ++i) {
    if (pattern[i] != '%') {
      out += pattern[i];
      continue;
    }
    const size_t start = i++;
    while (i < pattern.size() &&
           std::string("0123456789.+- #").find(pattern[i]) != std::string::npos)
      ++i;
    TORCH_CHECK(i < pattern.size(), "Incomplete format specifier");
    if (pattern[i] == '%') {
      out += '%';
      continue;
    }
    TORCH_CHECK(next < values.size(), "Too few arguments for format string");
    out += percent_field(pattern.substr(start, i - start + 1), values[next++]);
  }
  TORCH_CHECK(next == values.size(), "Too many arguments for format string");
  return IValue(std::move(out));
}

double parse_float(const std::string& s) {
  const std::string body = strip(s, " \t\n\r", true, true);
  char* end = nullptr;
  const double v = std::strtod(body.c_str(), &end);
  TORCH_CHECK_VALUE(!body.empty() && *end == 0,
                    "could not convert string to float: ", quoted_text(s));
  return v;
}
int64_t parse_int(const std::string& s) {
  const std::string body = strip(s, " \t\n\r", true, true);
  char* end = nullptr;
  const int64_t v = std::strtoll(body.c_str(), &end, 10);
  TORCH_CHECK_VALUE(!body.empty() && *end == 0,
                    "invalid literal for int() with base 10: ", quoted_text(s));
  return v;
}
std::string digits(int64_t v, unsigned base, const char* prefix) {
  uint64_t rest = v < 0 ? -uint64_t(v) : uint64_t(v);
  std::string out;
  do out.insert(out.begin(), "0123456789abcdef"[rest % base]);
  while (rest /= base);
  return (v < 0 ? "-" : "") + std::string(prefix) + out;
}

constexpr Entry kMethods[] = {
    {"aten::upper(str self) -> str", each<std::toupper>},
    {"aten::lower(str self) -> str", each<std::tolower>},
    {"aten::swapcase(str self) -> str", each<swap_case>},
    {"aten::isspace(str self) -> bool", every<std::isspace>},
    {"aten::isdigit(str self) -> bool", every<std::isdigit>},
    {"aten::isdecimal(str self) -> bool", every<std::isdigit>},
    {"aten::isnumeric(str self) -> bool", every<std::isdigit>},
    {"aten::isalpha(str self) -> bool", every<std::isalpha>},
    {"aten::isalnum(str self) -> bool", every<std::isalnum>},
    {"aten::isprintable(str self) -> bool",
     [](const IValue* a, size_t n) {
       return text(a[0]).empty() ? IValue(true) : every<std::isprint>(a, n);
     }},
    {"aten::isupper(str self) -> bool",
     [](const IValue* a, size_t) {
       const std::string& s = text(a[0]);
       return IValue(
           std::any_of(s.begin(), s.end(), [](unsigned char c) { return std::isupper(c); }) &&
           std::none_of(s.begin(), s.end(), [](unsigned char c) { return std::islower(c); }));
     }},
    {"aten::islower(str self) -> bool",
     [](const IValue* a, size_t) {
       const std::string& s = text(a[0]);
       return IValue(
           std::any_of(s.begin(), s.end(), [](unsigned char c) { return std::islower(c); }) &&
           std::none_of(s.begin(), s.end(), [](unsigned char c) { return std::isupper(c); }));
     }},
    {"aten::isidentifier(str self) -> bool",
     [](const IValue* a, size_t) {
       const std::string& s = text(a[0]);
       return IValue(!s.empty() && !std::isdigit(static_cast<unsigned char>(s[0])) &&
                     std::all_of(s.begin(), s.end(),
                                 [](unsigned char c) { return std::isalnum(c) || c == '_'; }));
     }},
    {"aten::istitle(str self) -> bool",
     [](const IValue* a, size_t) {
       const std::string& s = text(a[0]);
       return IValue(
           std::any_of(s.begin(), s.end(), [](unsigned char c) { return std::isalpha(c); }) &&
           title_or_capital(s, true) == s);
     }},
    {"aten::capitalize(str self) -> str",
     [](const IValue* a, size_t) { return IValue(title_or_capital(text(a[0]), false)); }},
    {"aten::title(str self) -> str",
     [](const IValue* a, size_t) { return IValue(title_or_capital(text(a[0]), true)); }},
    {"aten::center(str self, int width, str fillchar=\" \") -> str",
     [](const IValue* a, size_t) { return IValue(pad(text(a[0]), a[1].toInt(), text(a[2]), 0)); }},
    {"aten::ljust(str self, int width, str fillchar=\" \") -> str",
     [](const IValue* a, size_t) { return IValue(pad(text(a[0]), a[1].toInt(), text(a[2]), -1)); }},
    {"aten::rjust(str self, int width, str fillchar=\" \") -> str",
     [](const IValue* a, size_t) { return IValue(pad(text(a[0]), a[1].toInt(), text(a[2]), 1)); }},
    {"aten::zfill(str self, int width) -> str",
     [](const IValue* a, size_t) {
       const std::string& s = text(a[0]);
       const bool sign = !s.empty() && (s[0] == '-' || s[0] == '+');
       const std::string body = pad(s.substr(sign), a[1].toInt() - sign, "0", 1);
       return IValue((sign ? s.substr(0, 1) : "") + body);
     }},
    {"aten::strip(str self, str chars=\" \\n\\t\\f\\v\") -> str",
     [](const IValue* a, size_t) { return IValue(strip(text(a[0]), text(a[1]), true, true)); }},
    {"aten::lstrip(str self, str chars=\" \\n\\t\\f\\v\") -> str",
     [](const IValue* a, size_t) { return IValue(strip(text(a[0]), text(a[1]), true, false)); }},
    {"aten::rstrip(str self, str chars=\" \\n\\t\\f\\v\") -> str",
     [](const IValue* a, size_t) { return IValue(strip(text(a[0]), text(a[1]), false, true)); }},
    {"aten::replace(str self, str old, str new, int max=-1) -> str",
     [](const IValue* a, size_t) {
       const std::string &s = text(a[0]), &from = text(a[1]), &to = text(a[2]);
       TORCH_CHECK_VALUE(!from.empty(), "replace() of an empty string");
       std::string out;
       size_t at = 0;
       for (int64_t left = a[3].toInt(); left != 0; --left) {
         const size_t next = s.find(from, at);
         if (next == s.npos) break;
         out += s.substr(at, next - at) + to;
         at = next + from.size();
       }
       return IValue(out + s.substr(at));
     }},
    {"aten::split.str(str self, str? separator=None, int max=-1) -> str[]",
     [](const IValue* a, size_t) { return strings(split(text(a[0]), a[1], a[2].toInt())); }},
    {"aten::rsplit(str self, str separator=\" \", int max=-1) -> str[]",
     [](const IValue* a, size_t) {
       auto parts = split(text(a[0]), a[1], -1);
       const int64_t most = a[2].toInt();
       while (most >= 0 && int64_t(parts.size()) > most + 1) {
         parts[1] = parts[0] + text(a[1]) + parts[1];
         parts.erase(parts.begin());
       }
       return strings(std::move(parts));
     }},
    {"aten::splitlines(str self, bool keepends=False) -> str[]",
     [](const IValue* a, size_t) {
       std::vector<std::string> lines;
       const std::string& s = text(a[0]);
       size_t at = 0;
       while (at < s.size()) {
         const size_t end = s.find('\n', at);
         const size_t stop = end == s.npos ? s.size() : end;
         lines.push_back(s.substr(at, stop - at + (a[1].toBool() && end != s.npos)));
         at = end == s.npos ? s.size() : end + 1;
       }
       return strings(std::move(lines));
     }},
    {"aten::partition(str self, str separator) -> (str, str, str)",
     [](const IValue* a, size_t) {
       const std::string &s = text(a[0]), &mark = text(a[1]);
       const size_t at = s.find(mark);
       if (at == s.npos) return make_tuple({IValue(s), IValue(""), IValue("")});
       return make_tuple({IValue(s.substr(0, at)), a[1], IValue(s.substr(at + mark.size()))});
     }},
    {"aten::rpartition(str self, str separator) -> (str, str, str)",
     [](const IValue* a, size_t) {
       const std::string &s = text(a[0]), &mark = text(a[1]);
       const size_t at = s.rfind(mark);
       if (at == s.npos) return make_tuple({IValue(""), IValue(""), IValue(s)});
       return make_tuple({IValue(s.substr(0, at)), a[1], IValue(s.substr(at + mark.size()))});
     }},
    {"aten::join(str self, str[] values) -> str",
     [](const IValue* a, size_t) {
       std::string out;
       for (size_t i = 0; i < list_size(a[1]); ++i)
         out += (i ? text(a[0]) : "") + list_get(a[1], i).toStringRef();
       return IValue(std::move(out));
     }},
    {"aten::startswith(str self, str substr, int start=0, int end=-1) -> bool",
     [](const IValue* a, size_t) {
       const auto p = part(text(a[0]), a[2], a[3]).first;
       return IValue(p.substr(0, text(a[1]).size()) == text(a[1]));
     }},
    {"aten::endswith(str self, str substr, int start=0, int end=-1) -> bool",
     [](const IValue* a, size_t) {
       const auto p = part(text(a[0]), a[2], a[3]).first;
       const size_t n = text(a[1]).size();
       return IValue(p.size() >= n && p.substr(p.size() - n) == text(a[1]));
     }},
    {"aten::find(str self, str substr, int start=0, int end=-1) -> int",
     [](const IValue* a, size_t) {
       const auto [p, offset] = part(text(a[0]), a[2], a[3]);
       const size_t at = p.find(text(a[1]));
       return IValue(at == p.npos ? int64_t(-1) : int64_t(at) + offset);
     }},
    {"aten::rfind(str self, str substr, int start=0, int end=-1) -> int",
     [](const IValue* a, size_t) {
       const auto [p, offset] = part(text(a[0]), a[2], a[3]);
       const size_t at = p.rfind(text(a[1]));
       return IValue(at == p.npos ? int64_t(-1) : int64_t(at) + offset);
     }},
    {"aten::index.str(str self, str substr, int start=0, int end=-1) -> int",
     [](const IValue* a, size_t) {
       const auto [p, offset] = part(text(a[0]), a[2], a[3]);
       const size_t at = p.find(text(a[1]));
       TORCH_CHECK_VALUE(at != p.npos, "ValueError: substring not found");
       return IValue(int64_t(at) + offset);
     }},
    {"aten::rindex(str self, str substr, int start=0, int end=-1) -> int",
     [](const IValue* a, size_t) {
       const auto [p, offset] = part(text(a[0]), a[2], a[3]);
       const size_t at = p.rfind(text(a[1]));
       TORCH_CHECK_VALUE(at != p.npos, "ValueError: substring not found");
       return IValue(int64_t(at) + offset);
     }},
    {"aten::count(str self, str substr, int start=0, int end=-1) -> int",
     [](const IValue* a, size_t) {
       const auto p = part(text(a[0]), a[2], a[3]).first;
       const std::string& s = text(a[1]);
       if (s.empty()) return IValue(int64_t(p.size()) + 1);
       int64_t n = 0;
       for (size_t at = p.find(s); at != p.npos; at = p.find(s, at + s.size())) ++n;
       return IValue(n);
     }},
    {"aten::expandtabs(str self, int tabsize=8) -> str",
     [](const IValue* a, size_t) {
       std::string out;
       int64_t column = 0;
       const int64_t tab = std::clamp<int64_t>(a[1].toInt(), 0, 1024);
       for (const char c : text(a[0])) {
         if (c == '\t') {
           const int64_t n = tab ? tab - column % tab : 0;
           out.append(size_t(n), ' ');
           column += n;
         } else {
           out += c;
           column = c == '\n' ? 0 : column + 1;
         }
       }
       return IValue(std::move(out));
     }},
};

void add_methods(Builtins& out) { add_entries(out, kMethods); }

constexpr Entry kConversions[] = {
    {"aten::len.str(str s) -> int",
     [](const IValue* a, size_t) { return IValue(int64_t(text(a[0]).size())); }},
    {"aten::__getitem__.str(str s, int index) -> str",
     [](const IValue* a, size_t) {
       const std::string& s = text(a[0]);
       return IValue(std::string(1, s[checked_index(a[1].toInt(), s.size(), "string")]));
     }},
    {"aten::slice.str(str string, int? start=None, int? end=None, int step=1) -> str",
     [](const IValue* a, size_t) {
       const std::string& s = text(a[0]);
       const SliceRange r = slice_range(int64_t(s.size()), a[1], a[2], a[3]);
       std::string out;
       for (int64_t i = 0; i < r.count; ++i) out += s[size_t(r.start + i * r.step)];
       return IValue(std::move(out));
     }},
    {"aten::__contains__.str_str(str l, str item) -> bool",
     [](const IValue* a, size_t) {
       return IValue(text(a[0]).find(text(a[1])) != std::string::npos);
     }},
    {"aten::add.str(str a, str b) -> str",
     [](const IValue* a, size_t) { return IValue(text(a[0]) + text(a[1])); }},
    {"aten::mul.str(str a, int b) -> str",
     [](const IValue* a, size_t) {
       const int64_t n = std::max<int64_t>(a[1].toInt(), 0);
       TORCH_CHECK(int64_t(text(a[0]).size()) <= (int64_t(1) << 30) / std::max<int64_t>(n, 1),
                   "the string is too long");
       std::string out;
       for (int64_t i = 0; i < n; ++i) out += text(a[0]);
       return IValue(std::move(out));
     }},
    {"aten::list(str t) -> str[]",
     [](const IValue* a, size_t) {
       std::vector<std::string> out;
       for (const char c : text(a[0])) out.emplace_back(1, c);
       return strings(std::move(out));
     }},
    {"aten::str(t elem) -> str", [](const IValue* a, size_t) { return IValue(value_text(a[0])); }},
    {"prim::repr(t elem) -> str",
     [](const IValue* a, size_t) { return IValue(value_text(a[0], true)); }},
    {"aten::format(str self, ...) -> str", format},
    {"aten::percentFormat(str self, ...) -> str", percent_format},
    {"aten::ord(str string) -> int",
     [](const IValue* a, size_t) {
       TORCH_CHECK(text(a[0]).size() == 1, "String for ord() must be 1 character, found ",
                   text(a[0]).size());
       return IValue(int64_t(static_cast<unsigned char>(text(a[0])[0])));
     }},
    {"aten::chr(int i) -> str",
     [](const IValue* a, size_t) {
       TORCH_CHECK(a[0].toInt() >= 0 && a[0].toInt() < 256, "chr() arg not in range(256)");
       return IValue(std::string(1, static_cast<char>(a[0].toInt())));
     }},
    {"aten::bin(int i) -> str",
     [](const IValue* a, size_t) { return IValue(digits(a[0].toInt(), 2, "0b")); }},
    {"aten::oct(int i) -> str",
     [](const IValue* a, size_t) { return IValue(digits(a[0].toInt(), 8, "0o")); }},
    {"aten::hex(int i) -> str",
     [](const IValue* a, size_t) { return IValue(digits(a[0].toInt(), 16, "0x")); }},
    {"aten::Int.str(str a) -> int",
     [](const IValue* a, size_t) { return IValue(parse_int(text(a[0]))); }},
    {"aten::Float.str(str a) -> float",
     [](const IValue* a, size_t) { return IValue(parse_float(text(a[0]))); }},
    {"prim::RaiseException(str msg, str? cls=None) -> ()",
     [](const IValue* a, size_t) -> IValue {
       const std::string cls = a[1].isNone() ? "" : text(a[1]);
       throw ScriptError((cls.empty() ? "" : cls + ": ") + text(a[0]), cls, text(a[0]));
     }},
    {"prim::Print(...) -> ()",
     [](const IValue* a, size_t n) {
       std::string line;
       for (size_t i = 0; i < n; ++i) line += (i ? " " : "") + value_text(a[i]);
       print_line(line + "\n");
       return IValue();
     }},
    {"aten::warn(str message, int stacklevel=2) -> ()",
     [](const IValue* a, size_t) {
       TORCH_WARN(text(a[0]));
       return IValue();
     }},
};

void add_conversions(Builtins& out) { add_entries(out, kConversions); }

} // namespace

void add_string_builtins(Builtins& out) {
  add_methods(out);
  add_conversions(out);
}

} // namespace torch::jit
