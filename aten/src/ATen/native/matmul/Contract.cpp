// Products written with other operators: outer products, contractions over chosen dimensions,
// einsum.
#include <algorithm>
#include <cctype>
#include <map>

#include <ATen/core/EmptyTensor.h>
#include <ATen/iter/TensorIterator.h>
#include <ATen/native/matmul/Native.h>
#include <ATen/ops/add.h>
#include <ATen/ops/bmm.h>
#include <ATen/ops/conj.h>
#include <ATen/ops/diagonal.h>
#include <ATen/ops/dot.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/movedim.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/resolve_conj.h>
#include <ATen/ops/sum.h>

namespace at::native {

void vdot_cpu(const Tensor& self, const Tensor& other, const Tensor& out) {
  dot_cpu(self.is_complex() ? at::resolve_conj(at::conj(self)) : self, other, out);
}

Tensor outer(const Tensor& self, const Tensor& vec2) {
  TORCH_CHECK(self.dim() == 1, "outer: Expected 1-D argument self, but got ", self.dim(), "-D");
  TORCH_CHECK(vec2.dim() == 1, "outer: Expected 1-D argument vec2, but got ", vec2.dim(), "-D");
  return at::mul(self.unsqueeze(1), vec2);
}

Tensor addr(const Tensor& self, const Tensor& vec1, const Tensor& vec2, const Scalar& beta,
            const Scalar& alpha) {
  TORCH_CHECK(vec1.dim() == 1, "addr: Expected 1-D argument vec1, but got ", vec1.dim(), "-D");
  TORCH_CHECK(vec2.dim() == 1, "addr: Expected 1-D argument vec2, but got ", vec2.dim(), "-D");
  const DimVector shape{vec1.size(0), vec2.size(0)};
  TORCH_CHECK(broadcast_shapes(self.sizes(), shape) == shape, "The expanded size of the tensor (",
              shape[1], ") must match the existing size (", self.dim() ? self.sizes().back() : 1,
              ") at non-singleton dimension ", shape.size() - 1,
              ".  Target sizes: ", IntArrayRef(shape), ".  Tensor sizes: ", self.sizes());
  const ScalarType type = c10::promoteTypes(
      self.scalar_type(), c10::promoteTypes(vec1.scalar_type(), vec2.scalar_type()));
  TORCH_CHECK(type == kBool || (!beta.isBoolean() && !alpha.isBoolean()),
              "Boolean beta and alpha only supported for Boolean results.");
  TORCH_CHECK(
      !c10::isIntegralType(type, true) || (beta.isIntegral(true) && alpha.isIntegral(true)),
      "For integral input tensors, argument beta and alpha must not be a floating point number.");
  // Narrow floats are rounded once, at the end; bool results are logic, whatever the factors.
  const ScalarType compute = c10::toOpMathType(type);
  Tensor product = outer(vec1.to(compute), vec2.to(compute));
  if (!alpha.equal(1.0)) product = at::mul(product, alpha);
  if (beta.equal(0.0)) return product.to(type);
  const Tensor base = beta.equal(1.0) ? self.to(compute) : at::mul(self.to(compute), beta);
  return at::add(base, product).to(type);
}

Tensor inner(const Tensor& self, const Tensor& other) {
  if (self.dim() == 0 || other.dim() == 0) return at::mul(self, other);
  TORCH_CHECK(self.size(-1) == other.size(-1),
              "inner() the last dimension must match on both input tensors but got shapes ",
              self.sizes(), " and ", other.sizes());
  return tensordot(self, other, {int64_t(-1)}, {int64_t(-1)});
}

Tensor kron(const Tensor& self, const Tensor& other) {
  // Every dimension is split in two, one of each operand, multiplied, and joined again.
  const int64_t n = std::max(self.dim(), other.dim());
  DimVector a_shape(2 * n), b_shape(2 * n), shape(n);
  for (int64_t i = 0; i < n; ++i) {
    const int64_t sa = i < n - self.dim() ? 1 : self.sizes()[i - (n - self.dim())];
    const int64_t sb = i < n - other.dim() ? 1 : other.sizes()[i - (n - other.dim())];
    a_shape[2 * i] = sa, a_shape[2 * i + 1] = 1;
    b_shape[2 * i] = 1, b_shape[2 * i + 1] = sb;
    shape[i] = sa * sb;
  }
  return at::mul(self.reshape(a_shape), other.reshape(b_shape)).reshape(shape);
}

// ---- tensordot --------------------------------------------------------------------------------
namespace {
int64_t wrap(int64_t dim, int64_t n) {
  TORCH_CHECK_INDEX(dim >= -std::max<int64_t>(n, 1) && dim < std::max<int64_t>(n, 1),
                    "Dimension out of range (expected to be in range of [",
                    -std::max<int64_t>(n, 1), ", ", std::max<int64_t>(n, 1) - 1, "], but got ", dim,
                    ")");
  return dim < 0 ? dim + n : dim;
}
} // namespace

Tensor tensordot(const Tensor& self, const Tensor& other, IntArrayRef dims_self,
                 IntArrayRef dims_other) {
  TORCH_CHECK(dims_self.size() == dims_other.size(),
              "both dimension lists should have same length");
  TORCH_CHECK(self.scalar_type() == other.scalar_type(), "both inputs should have same dtype");
  Tensor a = self, b = other;
  DimVector da, db;
  int64_t contracted = 1;
  for (size_t i = 0; i < dims_self.size(); ++i) {
    da.push_back(wrap(dims_self[i], self.dim()));
    db.push_back(wrap(dims_other[i], other.dim()));
    const int64_t sa = self.size(da[i]), sb = other.size(db[i]);
    if (sb == 1 && sa != 1) {
      a = at::sum(a, at::OptionalIntArrayRef(IntArrayRef(da[i])), true, a.scalar_type());
    } else if (sa == 1 && sb != 1) {
      b = at::sum(b, at::OptionalIntArrayRef(IntArrayRef(db[i])), true, b.scalar_type());
    } else {
      TORCH_CHECK(sa == sb, "contracted dimensions need to match, but first has size ", sa,
                  " in dim ", dims_self[i], " and second has size ", sb, " in dim ", dims_other[i]);
      contracted *= sa;
    }
  }
  DimVector order_a, order_b, shape;
  int64_t rows = 1, cols = 1;
  for (int64_t d = 0; d < a.dim(); ++d) {
    if (std::find(da.begin(), da.end(), d) != da.end()) continue;
    order_a.push_back(d);
    shape.push_back(a.size(d));
    rows *= a.size(d);
  }
  for (int64_t d : da) order_a.push_back(d);
  for (int64_t d : db) order_b.push_back(d);
  for (int64_t d = 0; d < b.dim(); ++d) {
    if (std::find(db.begin(), db.end(), d) != db.end()) continue;
    order_b.push_back(d);
    shape.push_back(b.size(d));
    cols *= b.size(d);
  }
  return at::mm(a.permute(order_a).reshape({rows, contracted}),
                b.permute(order_b).reshape({contracted, cols}))
      .reshape(shape);
}

Tensor bilinear(const Tensor& input1, const Tensor& input2, const Tensor& weight,
                const std::optional<Tensor>& bias) {
  TORCH_CHECK(input1.dim() == input2.dim(), "bilinear(): input dimensions do not match: got ",
              input1.dim(), " and ", input2.dim());
  for (int64_t i = 0; i + 1 < input1.dim(); ++i)
    TORCH_CHECK(input1.size(i) == input2.size(i),
                "bilinear(): input batch dimensions do not match at dim ", i, ": got ",
                input1.size(i), " and ", input2.size(i));
  TORCH_CHECK(input1.size(-1) == weight.size(1),
              "bilinear(): input1 size does not match weight size: got ", input1.size(-1),
              " but expected ", weight.size(1));
  TORCH_CHECK(input2.size(-1) == weight.size(2),
              "bilinear(): input2 size does not match weight size: got ", input2.size(-1),
              " but expected ", weight.size(2));
  TORCH_CHECK(!bias || !bias->defined() || bias->size(0) == weight.size(0),
              "bilinear(): bias size does not match weight size: got ", bias ? bias->size(0) : 0,
              " but expected ", weight.size(0));
  DimVector shape(input1.sizes());
  shape.back() = weight.size(0);
  int64_t rows = 1;
  for (int64_t i = 0; i + 1 < input1.dim(); ++i) rows *= input1.size(i);
  const Tensor x = input1.reshape({rows, input1.size(-1)}),
               y = input2.reshape({rows, input2.size(-1)});
  // (rows, out * in2), then a sum against y.
  const Tensor left = tensordot(x, weight, {int64_t(1)}, {int64_t(1)});
  Tensor out = at::bmm(left, y.unsqueeze(2)).reshape(shape);
  return bias && bias->defined() ? at::add(out, *bias) : out;
}

// ---- einsum -----------------------------------------------------------------------------------
namespace {
constexpr int kEllipsis = 1000; // labels from here on stand for dimensions covered by '...'

struct Term {
  Tensor tensor;
  std::vector<int> labels;
};

std::vector<int> parse_labels(const std::string& text, size_t operand, int64_t dim,
                              int64_t* ellipsis) {
  std::vector<int> labels;
  bool dots = false;
  size_t letters = 0;
  for (char c : text) letters += std::isalpha(static_cast<unsigned char>(c)) ? 1 : 0;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == ' ') continue;
    if (c == '.') {
      TORCH_CHECK(i + 2 < text.size() && text[i + 1] == '.' && text[i + 2] == '.' && !dots,
                  "einsum(): found '.' for operand ", operand, " that is not part of any ellipsis");
      dots = true;
      const int64_t covered = dim - static_cast<int64_t>(letters);
      TORCH_CHECK(covered >= 0, "einsum(): the number of subscripts in the equation (", letters,
                  ") is more than the number of dimensions (", dim, ") for operand ", operand);
      for (int64_t d = 0; d < covered; ++d)
        labels.push_back(kEllipsis + static_cast<int>(covered - 1 - d));
      *ellipsis = std::max(*ellipsis, covered);
      i += 2;
      continue;
    }
    TORCH_CHECK(std::isalpha(static_cast<unsigned char>(c)),
                "einsum(): invalid subscript given at index ", i,
                " in the equation string, subscripts must be in [a-zA-Z]");
    labels.push_back(c);
  }
  TORCH_CHECK(static_cast<int64_t>(labels.size()) == dim,
              "einsum(): the number of subscripts in the equation (", letters, ") ",
              static_cast<int64_t>(letters) > dim ? "is more than" : "does not match",
              " the number of dimensions (", dim, ") for operand ", operand,
              dots ? "" : " and no ellipsis was given");
  return labels;
}

// Repeated labels inside a term become its diagonal.
void take_diagonals(Term& term) {
  for (size_t i = 0; i < term.labels.size(); ++i) {
    for (size_t j = i + 1; j < term.labels.size();) {
      if (term.labels[i] != term.labels[j]) {
        ++j;
        continue;
      }
      TORCH_CHECK(term.tensor.size(i) == term.tensor.size(j), "einsum(): subscript ",
                  static_cast<char>(term.labels[i]),
                  " is repeated for operand 0 but the sizes don't match, ", term.tensor.size(j),
                  " != ", term.tensor.size(i));
      term.tensor = at::movedim(
          at::diagonal(term.tensor, 0, static_cast<int64_t>(i), static_cast<int64_t>(j)), -1,
          static_cast<int64_t>(i));
      term.labels.erase(term.labels.begin() + static_cast<std::ptrdiff_t>(j));
    }
  }
}

bool contains(const std::vector<int>& labels, int label) {
  return std::find(labels.begin(), labels.end(), label) != labels.end();
}

// Sums away labels that nothing else needs.
void sum_unneeded(Term& term, const std::vector<int>& needed, std::optional<ScalarType> dtype) {
  DimVector dims;
  std::vector<int> kept;
  for (size_t i = 0; i < term.labels.size(); ++i) {
    if (contains(needed, term.labels[i]))
      kept.push_back(term.labels[i]);
    else
      dims.push_back(static_cast<int64_t>(i));
  }
  if (dims.empty()) return;
  term.tensor = at::sum(term.tensor, at::OptionalIntArrayRef(IntArrayRef(dims)), false, dtype);
  term.labels = kept;
}

// The term with dimensions in the order of `labels`, size 1 where it has none.
Tensor align(const Term& term, const std::vector<int>& labels) {
  DimVector order;
  std::vector<bool> present;
  for (int label : labels) {
    const auto it = std::find(term.labels.begin(), term.labels.end(), label);
    present.push_back(it != term.labels.end());
    if (it != term.labels.end()) order.push_back(it - term.labels.begin());
  }
  Tensor out = term.tensor.permute(order);
  for (size_t i = 0; i < present.size(); ++i)
    if (!present[i]) out = out.unsqueeze(static_cast<int64_t>(i));
  return out;
}

// Contracts two terms into one batched product: labels are batch (in both and needed), contracted
// (in both, not needed), or belong to one side.
Term contract(Term a, Term b, const std::vector<int>& needed) {
  std::vector<int> batch, only_a, only_b, shared;
  for (int label : a.labels) {
    if (!contains(b.labels, label))
      only_a.push_back(label);
    else if (contains(needed, label))
      batch.push_back(label);
    else
      shared.push_back(label);
  }
  for (int label : b.labels)
    if (!contains(a.labels, label)) only_b.push_back(label);
  if (shared.empty()) {
    std::vector<int> all = batch;
    all.insert(all.end(), only_a.begin(), only_a.end());
    all.insert(all.end(), only_b.begin(), only_b.end());
    return {at::mul(align(a, all), align(b, all)), all};
  }
  auto size_of = [](const Term& t, int label) {
    return t.tensor.size(std::find(t.labels.begin(), t.labels.end(), label) - t.labels.begin());
  };
  int64_t nb = 1, nk = 1, na = 1, nn = 1;
  DimVector shape;
  std::vector<int> labels = batch;
  DimVector batch_sizes, shared_sizes;
  for (int l : batch)
    batch_sizes.push_back(std::max(size_of(a, l), size_of(b, l))), nb *= batch_sizes.back(),
        shape.push_back(batch_sizes.back());
  for (int l : shared)
    shared_sizes.push_back(std::max(size_of(a, l), size_of(b, l))), nk *= shared_sizes.back();
  for (int l : only_a) na *= size_of(a, l), shape.push_back(size_of(a, l)), labels.push_back(l);
  for (int l : only_b) nn *= size_of(b, l), shape.push_back(size_of(b, l)), labels.push_back(l);
  auto matrix = [&](const Term& t, const std::vector<int>& own, bool own_first, int64_t own_size) {
    std::vector<int> order = batch;
    if (own_first) order.insert(order.end(), own.begin(), own.end());
    order.insert(order.end(), shared.begin(), shared.end());
    if (!own_first) order.insert(order.end(), own.begin(), own.end());
    DimVector full;
    for (size_t i = 0; i < batch.size(); ++i) full.push_back(batch_sizes[i]);
    if (own_first)
      for (int l : own) full.push_back(size_of(t, l));
    for (size_t i = 0; i < shared.size(); ++i) full.push_back(shared_sizes[i]);
    if (!own_first)
      for (int l : own) full.push_back(size_of(t, l));
    const Tensor spread = align(t, order).expand(full);
    return own_first ? spread.reshape({nb, own_size, nk}) : spread.reshape({nb, nk, own_size});
  };
  const Tensor product = at::bmm(matrix(a, only_a, true, na), matrix(b, only_b, false, nn));
  return {product.reshape(shape), labels};
}
} // namespace

Tensor einsum(std::string_view equation, TensorList tensors, OptionalIntArrayRef path) {
  TORCH_CHECK(!tensors.empty(), "einsum(): must provide at least one operand");
  const size_t arrow = equation.find("->");
  const std::string left(equation.substr(0, arrow));
  std::vector<std::string> parts(1);
  for (char c : left) {
    if (c == ',')
      parts.emplace_back();
    else
      parts.back() += c;
  }
  TORCH_CHECK(parts.size() <= tensors.size(),
              "einsum(): fewer operands were provided than specified in the equation");
  TORCH_CHECK(parts.size() >= tensors.size(),
              "einsum(): more operands were provided than specified in the equation");
  int64_t ellipsis = 0;
  std::vector<Term> terms;
  std::map<int, int> uses;
  for (size_t i = 0; i < parts.size(); ++i) {
    terms.push_back({tensors[i], parse_labels(parts[i], i, tensors[i].dim(), &ellipsis)});
    take_diagonals(terms.back());
  }
  for (const Term& t : terms)
    for (int label : t.labels) ++uses[label];
  for (char c : left)
    if (std::isalpha(static_cast<unsigned char>(c)) && uses.count(c) &&
        std::count(left.begin(), left.end(), c) > 1)
      uses[c] = 2;
  std::map<int, int64_t> sizes;
  for (size_t i = 0; i < terms.size(); ++i) {
    for (size_t d = 0; d < terms[i].labels.size(); ++d) {
      int64_t& size = sizes.emplace(terms[i].labels[d], 1).first->second;
      const int64_t here = terms[i].tensor.size(static_cast<int64_t>(d));
      TORCH_CHECK(size == 1 || here == 1 || size == here,
                  "einsum(): operands do not broadcast with remapped shapes [original->remapped]: ",
                  "subscript has size ", here, " for operand ", i,
                  " which does not broadcast with previously seen size ", size);
      if (here != 1) size = here;
    }
  }
  std::vector<int> output;
  for (int64_t d = 0; d < ellipsis; ++d)
    output.push_back(kEllipsis + static_cast<int>(ellipsis - 1 - d));
  if (arrow == std::string_view::npos) {
    for (const auto& [label, count] : uses)
      if (label < kEllipsis && count == 1) output.push_back(label);
  } else {
    const std::string right(equation.substr(arrow + 2));
    std::vector<int> listed;
    for (size_t i = 0; i < right.size(); ++i) {
      const char c = right[i];
      if (c == ' ') continue;
      if (c == '.') {
        listed.insert(listed.end(), output.begin(), output.end());
        i += 2;
        continue;
      }
      TORCH_CHECK(std::isalpha(static_cast<unsigned char>(c)),
                  "einsum(): invalid subscript given at index ", arrow + 2 + i,
                  " in the equation string, subscripts must be in [a-zA-Z]");
      TORCH_CHECK(!contains(listed, c), "einsum(): output subscript ", c,
                  " appears more than once in the output");
      TORCH_CHECK(uses.count(c), "einsum(): output subscript ", c,
                  " does not appear in the equation for any input operand");
      listed.push_back(c);
    }
    output = listed;
  }
  Term result = terms[0];
  for (size_t i = 0; i < terms.size(); ++i) {
    std::vector<int> needed = output;
    for (size_t j = i + 1; j < terms.size(); ++j)
      needed.insert(needed.end(), terms[j].labels.begin(), terms[j].labels.end());
    if (i > 0) result = contract(std::move(result), terms[i], needed);
    // A sum of one operand widens integers as sum does; products keep their dtype.
    sum_unneeded(result, needed,
                 terms.size() == 1 ? std::nullopt
                                   : std::optional<ScalarType>(result.tensor.scalar_type()));
  }
  // A label of size 1 in every operand met so far may still have to be widened.
  Tensor out = align(result, output);
  DimVector shape;
  for (int label : output) shape.push_back(sizes[label]);
  return out.expand(shape);
}

Tensor chain_matmul(TensorList matrices) {
  TORCH_CHECK(!matrices.empty(), "chain_matmul(): Expected one or more matrices");
  for (size_t i = 0; i < matrices.size(); ++i)
    TORCH_CHECK(matrices[i].dim() == 2, "Tensor dimension is ", matrices[i].dim(),
                ", expected 2 instead.");
  Tensor out = matrices[0];
  for (size_t i = 1; i < matrices.size(); ++i) out = at::mm(out, matrices[i]);
  return out;
}

Tensor linalg_vecdot(const Tensor& x, const Tensor& y, int64_t dim) {
  TORCH_CHECK(x.is_floating_point() || x.is_complex(),
              "linalg.vecdot: Expected a floating point or complex tensor as input. Got ",
              x.scalar_type());
  return at::sum(at::mul(x.is_complex() ? at::conj(x) : x, y),
                 at::OptionalIntArrayRef(IntArrayRef(dim)), false, std::nullopt);
}

} // namespace at::native
