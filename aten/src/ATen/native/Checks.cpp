// The messages of Checks.h.
#include <ATen/native/Checks.h>

namespace at::native {
namespace {

// "a and b", "a, b and c"; in the list of values a comma stands before "and" where there are three.
template <class Text>
std::string listed(Checker::Arguments arguments, bool comma_before_and, Text text) {
  std::string out;
  size_t left = arguments.size();
  for (const Argument& argument : arguments) {
    out += text(argument);
    --left;
    const bool comma = left > 1 || (left == 1 && comma_before_and && arguments.size() > 2);
    out += comma ? "," : "";
    out += left > 1 ? " " : left == 1 ? " and " : "";
  }
  return out;
}

template <class Property> void check_equal(const char* op, Checker::Arguments arguments,
                                           const char* expected, const char* suffix,
                                           Property property) {
  const auto first = property(arguments.begin()->tensor);
  for (const Argument& argument : arguments) {
    if (property(argument.tensor) == first) continue;
    const auto name = [](const Argument& a) { return std::string(a.name); };
    const auto value = [&](const Argument& a) {
      return c10::str(a.name, suffix, " = ", property(a.tensor));
    };
    TORCH_CHECK(false, op, ": ", listed(arguments, false, name), " expected to ", expected,
                ", but got ", listed(arguments, true, value));
  }
}

} // namespace

const Checker& Checker::same_dtype(Arguments arguments) const {
  check_equal(op_, arguments, "have the same dtype", ".dtype",
              [](const Tensor& t) { return t.scalar_type(); });
  return *this;
}

const Checker& Checker::same_device(Arguments arguments) const {
  check_equal(op_, arguments, "be in the same device", ".device",
              [](const Tensor& t) { return t.device(); });
  return *this;
}

const Checker& Checker::index_is_long(const Tensor& index) const {
  TORCH_CHECK(index.scalar_type() == kLong, op_, ": Expected a long tensor for index, but got ",
              index.scalar_type());
  return *this;
}

const Checker& Checker::rank(Argument argument, int64_t dim) const {
  TORCH_CHECK(argument.tensor.dim() == dim, op_, ": Expected ", argument.name,
              " to be of dimension ", dim, " but got ", argument.tensor.dim());
  return *this;
}

std::string matrix_size(const Tensor& t, const char* by) {
  return c10::str(t.size(-2), by, t.size(-1));
}

void check_multiplies(const Tensor& mat1, const Tensor& mat2) {
  const c10::SymInt columns = mat1.sym_size(1), rows = mat2.sym_size(0);
  if (C10_LIKELY(columns.raw() == rows.raw())) return; // the same number or the same symbol
  TORCH_CHECK(c10::expect_true(c10::sym_eq(columns, rows)),
              "mat1 and mat2 shapes cannot be multiplied (", matrix_size(mat1), " and ",
              matrix_size(mat2), ")");
}

void check_one_device(Checker::Arguments arguments) {
  for (const Argument& argument : arguments) {
    if (argument.tensor.device() == arguments.begin()->tensor.device()) continue;
    const auto place = [](const Argument& a) {
      return c10::str(a.name, " on ", a.tensor.device());
    };
    TORCH_CHECK(false, "Expected all tensors to be on the same device, but got ",
                listed(arguments, false, place));
  }
}

} // namespace at::native
