// Einstein summation: the equation is parsed into terms with labelled dimensions, and terms are
// contracted two by two as batched matrix products. With three and more operands the order of the
// contractions is the caller's path or a greedy choice: the pair whose result is smallest compared
// with what it replaces.
#include <algorithm>
#include <cctype>
#include <map>

#include <ATen/core/EmptyTensor.h>
#include <ATen/native/matmul/Native.h>
#include <ATen/ops/bmm.h>
#include <ATen/ops/diagonal.h>
#include <ATen/ops/movedim.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/sum.h>

namespace at::native {
namespace {

constexpr int kEllipsis = 1000; // labels from here on stand for dimensions covered by '...'
using Labels = std::vector<int>;

struct Term {
  Tensor tensor;
  Labels labels;
  bool is_product = false, is_sum = false; // what made it last: a matrix product, a sum
};

bool is_letter(char c) { return std::isalpha(static_cast<unsigned char>(c)) != 0; }
bool contains(const Labels& labels, int label) {
  return std::find(labels.begin(), labels.end(), label) != labels.end();
}
int64_t size_of(const Term& t, int label) {
  return t.tensor.size(std::find(t.labels.begin(), t.labels.end(), label) - t.labels.begin());
}

// ---- parsing -----------------------------------------------------------------------------------
// The labels of one operand; `start` is where its text stands in the equation.
Labels parse_operand(std::string_view text, size_t start, size_t operand, int64_t dim,
                     int64_t* ellipsis) {
  Labels labels;
  bool dots = false;
  const auto letters = std::count_if(text.begin(), text.end(), is_letter);
  const int64_t covered = dim - static_cast<int64_t>(letters);
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == ' ') continue;
    if (c == '.') {
      TORCH_CHECK(!dots, "einsum(): found '.' for operand ", operand,
                  " for which an ellipsis was already found");
      TORCH_CHECK(text.substr(i, 3) == "...", "einsum(): found '.' for operand ", operand,
                  " that is not part of any ellipsis");
      dots = true;
      TORCH_CHECK(covered >= 0, "einsum(): the number of subscripts in the equation (", letters,
                  ") is more than the number of dimensions (", dim, ") for operand ", operand);
      for (int64_t d = covered; d-- > 0;) labels.push_back(kEllipsis + static_cast<int>(d));
      *ellipsis = std::max(*ellipsis, covered);
      i += 2;
      continue;
    }
    TORCH_CHECK(is_letter(c), "einsum(): invalid subscript given at index ", start + i,
                " in the equation string, subscripts must be in [a-zA-Z]");
    labels.push_back(c);
  }
  TORCH_CHECK(dots || covered == 0, "einsum(): the number of subscripts in the equation (", letters,
              ") does not match the number of dimensions (", dim, ") for operand ", operand,
              " and no ellipsis was given");
  return labels;
}

// Repeated labels inside a term become its diagonal.
void take_diagonals(Term& term, size_t operand) {
  for (size_t i = 0; i < term.labels.size(); ++i) {
    for (size_t j = i + 1; j < term.labels.size();) {
      if (term.labels[i] != term.labels[j]) {
        ++j;
        continue;
      }
      const auto first = static_cast<int64_t>(i), second = static_cast<int64_t>(j);
      TORCH_CHECK(term.tensor.size(first) == term.tensor.size(second), "einsum(): subscript ",
                  static_cast<char>(term.labels[i]), " is repeated for operand ", operand,
                  " but the sizes don't match, ", term.tensor.size(second),
                  " != ", term.tensor.size(first));
      term.tensor = at::movedim(at::diagonal(term.tensor, 0, first, second), -1, first);
      term.labels.erase(term.labels.begin() + second);
    }
  }
}

std::vector<Term> parse_operands(std::string_view left, TensorList tensors, int64_t* ellipsis) {
  std::vector<Term> terms;
  const auto commas = static_cast<size_t>(std::count(left.begin(), left.end(), ','));
  TORCH_CHECK(commas + 1 <= tensors.size(),
              "einsum(): fewer operands were provided than specified in the equation");
  TORCH_CHECK(commas + 1 >= tensors.size(),
              "einsum(): more operands were provided than specified in the equation");
  size_t start = 0;
  for (size_t i = 0; i < tensors.size(); ++i) {
    const size_t end = std::min(left.find(',', start), left.size());
    terms.push_back({tensors[i], parse_operand(left.substr(start, end - start), start, i,
                                               tensors[i].dim(), ellipsis)});
    take_diagonals(terms.back(), i);
    start = end + 1;
  }
  return terms;
}

// The common size of each label.
std::map<int, int64_t> sizes_of(const std::vector<Term>& terms) {
  std::map<int, int64_t> sizes;
  for (size_t i = 0; i < terms.size(); ++i) {
    for (int label : terms[i].labels) {
      int64_t& size = sizes.emplace(label, 1).first->second;
      const int64_t here = size_of(terms[i], label);
      const std::string name =
          label < kEllipsis ? std::string(1, static_cast<char>(label)) : std::string("...");
      TORCH_CHECK(size == 1 || here == 1 || size == here, "einsum(): subscript ", name,
                  " has size ", here, " for operand ", i,
                  " which does not broadcast with previously seen size ", size);
      if (here != 1) size = here;
    }
  }
  return sizes;
}

Labels covered_labels(int64_t ellipsis) {
  Labels labels;
  for (int64_t d = ellipsis; d-- > 0;) labels.push_back(kEllipsis + static_cast<int>(d));
  return labels;
}

// What follows the arrow; `start` is where it stands in the equation.
Labels parse_output(std::string_view text, size_t start, int64_t ellipsis,
                    const std::map<int, int64_t>& sizes) {
  Labels listed;
  bool dots = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == ' ') continue;
    if (c == '.') {
      TORCH_CHECK(!dots, "einsum(): found '.' for output but an ellipsis (...) was already found");
      TORCH_CHECK(text.substr(i, 3) == "...",
                  "einsum(): found '.' for output that is not part of any ellipsis (...)");
      dots = true;
      for (int label : covered_labels(ellipsis)) listed.push_back(label);
      i += 2;
      continue;
    }
    TORCH_CHECK(is_letter(c), "einsum(): invalid subscript given at index ", start + i,
                " in the equation string, subscripts must be in [a-zA-Z]");
    TORCH_CHECK(!contains(listed, c), "einsum(): output subscript ", c,
                " appears more than once in the output");
    TORCH_CHECK(sizes.count(c), "einsum(): output subscript ", c,
                " does not appear in the equation for any input operand");
    listed.push_back(c);
  }
  return listed;
}

// Without an arrow: the ellipsis, then the letters that occur once, in order.
Labels implied_output(std::string_view left, int64_t ellipsis) {
  Labels labels = covered_labels(ellipsis);
  std::map<char, int> uses;
  for (char c : left)
    if (is_letter(c)) ++uses[c];
  for (const auto& [letter, count] : uses)
    if (count == 1) labels.push_back(letter);
  return labels;
}

// ---- contraction -------------------------------------------------------------------------------
// Sums away labels that nothing else needs. Integers widen as in sum().
void sum_unneeded(Term& term, const Labels& needed) {
  DimVector dims;
  Labels kept;
  for (size_t i = 0; i < term.labels.size(); ++i) {
    if (contains(needed, term.labels[i]))
      kept.push_back(term.labels[i]);
    else
      dims.push_back(static_cast<int64_t>(i));
  }
  if (dims.empty()) return;
  term.is_product = false;
  term.is_sum = true;
  term.tensor = at::sum(term.tensor, OptionalIntArrayRef(IntArrayRef(dims)), false, std::nullopt);
  term.labels = kept;
}

// The term with dimensions in the order of `labels`, size 1 where it has none.
Tensor align(const Term& term, const Labels& labels) {
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

template <class... More> Labels joined(Labels all, const More&... more) {
  (all.insert(all.end(), more.begin(), more.end()), ...);
  return all;
}

size_t place_of(int label, const Labels& order) {
  return static_cast<size_t>(std::find(order.begin(), order.end(), label) - order.begin());
}

// Whether every label of `first` stands in `order` before every one of `second`.
bool all_before(const Labels& first, const Labels& second, const Labels& order) {
  if (first.empty() || second.empty()) return false;
  size_t last = 0, start = order.size();
  for (int label : first) last = std::max(last, place_of(label, order));
  for (int label : second) start = std::min(start, place_of(label, order));
  return last < start;
}

// Contracts two terms into one batched product: labels are batch (in both and needed), contracted
// (in both, not needed), or belong to one side. `order`, that of the output or empty, decides which
// side is the rows of the product, so that a transposed result is stored as the caller sees it.
Term contract(const Term& a, const Term& b, const Labels& needed, const Labels& order) {
  Labels batch, only_a, only_b, shared;
  for (int label : a.labels)
    (!contains(b.labels, label) ? only_a
     : contains(needed, label)  ? batch
                                : shared)
        .push_back(label);
  for (int label : b.labels)
    if (!contains(a.labels, label)) only_b.push_back(label);
  if (all_before(only_b, only_a, order)) return contract(b, a, needed, order);
  Labels labels = joined(batch, only_a, only_b);
  if (shared.empty()) {
    std::stable_sort(labels.begin(), labels.end(),
                     [&](int x, int y) { return place_of(x, order) < place_of(y, order); });
    return {at::mul(align(a, labels), align(b, labels)), labels};
  }
  // A label of size 1 on one side is spread over the other's.
  const auto wide = [&](int label) { return std::max(size_of(a, label), size_of(b, label)); };
  DimVector batch_sizes, shared_sizes, a_sizes, b_sizes;
  int64_t nb = 1, nk = 1, na = 1, nn = 1;
  for (int l : batch) batch_sizes.push_back(wide(l)), nb *= wide(l);
  for (int l : shared) shared_sizes.push_back(wide(l)), nk *= wide(l);
  for (int l : only_a) a_sizes.push_back(size_of(a, l)), na *= size_of(a, l);
  for (int l : only_b) b_sizes.push_back(size_of(b, l)), nn *= size_of(b, l);
  const auto sizes = [](const DimVector& x, const DimVector& y, const DimVector& z) {
    DimVector all = x;
    for (int64_t s : y) all.push_back(s);
    for (int64_t s : z) all.push_back(s);
    return all;
  };
  const ScalarType type = c10::promoteTypes(a.tensor.scalar_type(), b.tensor.scalar_type());
  const Tensor left = align(a, joined(batch, only_a, shared))
                          .expand(sizes(batch_sizes, a_sizes, shared_sizes))
                          .reshape({nb, na, nk});
  const Tensor right = align(b, joined(batch, shared, only_b))
                           .expand(sizes(batch_sizes, shared_sizes, b_sizes))
                           .reshape({nb, nk, nn});
  const bool same = a.tensor.scalar_type() == b.tensor.scalar_type();
  const Tensor product = same || c10::isFloatingType(type) || c10::isComplexType(type)
                             ? at::bmm(left, right)
                             : at::bmm(left.to(type), right.to(type));
  return {product.reshape(sizes(batch_sizes, a_sizes, b_sizes)), labels, true};
}

// ---- order -------------------------------------------------------------------------------------
double volume(const Labels& labels, const std::map<int, int64_t>& sizes) {
  double v = 1;
  for (int label : labels) v *= static_cast<double>(sizes.at(label));
  return v;
}

// Labels that the result of contracting terms i and j must keep.
Labels needed_after(const std::vector<Term>& terms, size_t i, size_t j, const Labels& output) {
  Labels needed = output;
  for (size_t k = 0; k < terms.size(); ++k)
    if (k != i && k != j)
      needed.insert(needed.end(), terms[k].labels.begin(), terms[k].labels.end());
  return needed;
}

std::pair<size_t, size_t> cheapest_pair(const std::vector<Term>& terms, const Labels& output,
                                        const std::map<int, int64_t>& sizes) {
  std::pair<size_t, size_t> best{0, 1};
  if (terms.size() == 2) return best;
  double least = 0;
  for (size_t i = 0; i < terms.size(); ++i)
    for (size_t j = i + 1; j < terms.size(); ++j) {
      const Labels needed = needed_after(terms, i, j, output);
      Labels kept;
      for (const Term* t : {&terms[i], &terms[j]})
        for (int label : t->labels)
          if (contains(needed, label) && !contains(kept, label)) kept.push_back(label);
      const double cost =
          volume(kept, sizes) - volume(terms[i].labels, sizes) - volume(terms[j].labels, sizes);
      if ((i == 0 && j == 1) || cost < least) least = cost, best = {i, j};
    }
  return best;
}

std::pair<size_t, size_t> next_of_path(IntArrayRef path, size_t step, size_t count) {
  const int64_t i = std::min(path[2 * step], path[2 * step + 1]);
  const int64_t j = std::max(path[2 * step], path[2 * step + 1]);
  TORCH_CHECK(i != j, "einsum(): invalid contraction (", i, ", ", j,
              ") cannot contract an operand with itself");
  TORCH_CHECK(i >= 0 && j < static_cast<int64_t>(count), "einsum(): invalid contraction (", i, ", ",
              j, ") operand index is out of bounds");
  return {static_cast<size_t>(i), static_cast<size_t>(j)};
}

} // namespace

Tensor einsum(std::string_view equation, TensorList tensors, OptionalIntArrayRef path) {
  TORCH_CHECK(!tensors.empty(), "einsum(): must provide at least one operand");
  TORCH_CHECK(!path || path->size() == 2 * (tensors.size() - 1),
              "einsum(): expected contraction path given in path parameter to have size ",
              2 * (tensors.size() - 1), " but got ", path ? path->size() : 0);
  const size_t arrow = equation.find("->");
  const std::string_view left = equation.substr(0, arrow);
  int64_t ellipsis = 0;
  std::vector<Term> terms = parse_operands(left, tensors, &ellipsis);
  const std::map<int, int64_t> sizes = sizes_of(terms);
  const Labels output = arrow == std::string_view::npos
                            ? implied_output(left, ellipsis)
                            : parse_output(equation.substr(arrow + 2), arrow + 2, ellipsis, sizes);
  for (size_t i = 0; i < terms.size(); ++i)
    sum_unneeded(terms[i], needed_after(terms, i, i, output));
  for (size_t step = 0; terms.size() > 1; ++step) {
    const auto [i, j] =
        path ? next_of_path(*path, step, terms.size()) : cheapest_pair(terms, output, sizes);
    const Labels needed = needed_after(terms, i, j, output);
    // Of more than two operands the order that was found stays.
    Term product = contract(terms[i], terms[j], needed, tensors.size() == 2 ? output : Labels());
    sum_unneeded(product, needed);
    terms.erase(terms.begin() + static_cast<std::ptrdiff_t>(j));
    terms.erase(terms.begin() + static_cast<std::ptrdiff_t>(i));
    // Found orders keep the result in place of its first part; a path counts it last.
    terms.insert(path ? terms.end() : terms.begin() + static_cast<std::ptrdiff_t>(i), product);
  }
  // A label of size 1 in every operand it was met in may still have to be widened.
  DimVector shape;
  for (int label : output) shape.push_back(sizes.at(label));
  const Term& last = terms[0];
  const bool in_order = last.labels == output && (tensors.size() > 1 || last.is_sum);
  const Tensor result = in_order ? last.tensor : align(last, output);
  if (result.sizes() != IntArrayRef(shape)) return result.expand(shape);
  // In PyTorch's graphs a matrix product ends in a view.
  return last.is_product && !in_order ? result.view(shape) : result;
}

} // namespace at::native
