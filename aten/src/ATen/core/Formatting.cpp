// Tensors on C++ streams. Numbers are formatted first, so that every column has the width of the
// widest number of the tensor.
#undef CRESSET_KERNEL_TU // methods of Tensor for users
#include <ATen/core/DeprecatedTypeProperties.h>
#include <ATen/core/Formatting.h>
#include <ATen/ops/imag.h>
#include <ATen/ops/real.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <ostream>

namespace at {
namespace {

// How the numbers of one tensor are written: as integers, with four digits, or with an exponent.
struct NumberStyle {
  bool integers = true;
  bool exponent = false;

  explicit NumberStyle(const std::vector<double>& values) {
    double least = INFINITY, most = 0;
    for (const double v : values) {
      if (!std::isfinite(v)) continue;
      if (std::ceil(v) != v) integers = false;
      const double size = std::fabs(v);
      if (size > most) most = size;
      if (size != 0 && size < least) least = size;
    }
    if (integers)
      exponent = most >= 1e15;
    else
      exponent = most >= 1e5 || (most > 0 && most < 1e-4) || most / least >= 1e8;
  }
  std::string write(double value) const {
    char text[48];
    if (std::isnan(value)) return "nan";
    if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
    std::snprintf(text, sizeof text, exponent ? "%.4e" : integers ? "%.0f" : "%.4f", value);
    return text;
  }
};

std::vector<double> numbers(const Tensor& tensor) {
  const Tensor plain = tensor.detach().to(kCPU, false, false).to(kDouble).contiguous();
  const double* data = plain.data_ptr<double>();
  return std::vector<double>(data, data + plain.numel());
}

// The elements as texts, row-major, and their common width.
struct Cells {
  std::vector<std::string> texts;
  size_t width = 0;

  explicit Cells(const Tensor& tensor) {
    if (tensor.is_complex()) {
      const std::vector<double> re = numbers(at::real(tensor)), im = numbers(at::imag(tensor));
      const NumberStyle re_style(re), im_style(im);
      for (size_t i = 0; i < re.size(); ++i)
        texts.push_back(
            c10::str(re_style.write(re[i]), im[i] < 0 ? "" : "+", im_style.write(im[i]), "i"));
    } else {
      const std::vector<double> values = numbers(tensor);
      const NumberStyle style(values);
      for (const double v : values) texts.push_back(style.write(v));
    }
    for (const std::string& text : texts) width = std::max(width, text.size());
  }
  std::string cell(size_t i) const {
    return std::string(width - texts[i].size() + 1, ' ') + texts[i];
  }
};

void print_matrix(std::ostream& out, const Cells& cells, size_t from, int64_t rows, int64_t columns,
                  int64_t line_width) {
  const int64_t per_line = std::max<int64_t>(1, line_width / int64_t(cells.width + 1));
  for (int64_t first = 0; first < columns; first += per_line) {
    const int64_t last = std::min(first + per_line, columns);
    if (per_line < columns) out << "Columns " << first + 1 << " to " << last << "\n";
    for (int64_t r = 0; r < rows; ++r) {
      for (int64_t c = first; c < last; ++c) out << cells.cell(from + r * columns + c);
      out << "\n";
    }
    if (last < columns) out << "\n";
  }
}

void print_type(std::ostream& out, const Tensor& tensor) {
  out << "[ " << tensor.toString() << "{";
  const char* separator = "";
  for (const int64_t size : tensor.sizes()) {
    out << separator << size;
    separator = ",";
  }
  out << "}";
  if (tensor.is_quantized()) out << ", quantized";
  out << " ]";
}

void print_dense(std::ostream& out, const Tensor& tensor, int64_t line_width) {
  const Cells cells(tensor);
  const int64_t dims = tensor.dim();
  if (dims <= 1) {
    for (size_t i = 0; i < cells.texts.size(); ++i)
      out << (dims == 0 ? cells.texts[i] : cells.cell(i)) << "\n";
    return;
  }
  const int64_t rows = tensor.size(-2), columns = tensor.size(-1);
  const int64_t matrices = rows * columns == 0 ? 0 : tensor.numel() / (rows * columns);
  std::vector<int64_t> position(dims - 2, 0);
  for (int64_t m = 0; m < matrices; ++m) {
    if (dims > 2) {
      if (m > 0) out << "\n";
      out << "(";
      for (const int64_t p : position) out << p + 1 << ",";
      out << ".,.) = \n";
    }
    print_matrix(out, cells, m * rows * columns, rows, columns, line_width);
    for (int64_t d = dims - 3; d >= 0 && ++position[d] == tensor.size(d); --d) position[d] = 0;
  }
}

} // namespace

void print(std::ostream& out, const Tensor& tensor, int64_t line_width) {
  if (!tensor.defined()) {
    out << "[ Tensor (undefined) ]";
    return;
  }
  if (tensor.is_sparse()) {
    out << "[ " << tensor.toString() << "{}\nindices:\n";
    print(out, tensor._indices(), line_width);
    out << "\nvalues:\n";
    print(out, tensor._values(), line_width);
    out << "\nsize:\n" << tensor.sizes() << "\n]";
    return;
  }
  if (!tensor.is_meta()) print_dense(out, tensor, line_width);
  print_type(out, tensor);
}

std::ostream& operator<<(std::ostream& out, const Tensor& tensor) {
  print(out, tensor);
  return out;
}

} // namespace at

namespace c10 {
std::ostream& operator<<(std::ostream& out, const Scalar& value) { return out << str(value); }
} // namespace c10
