// A few registers of sums stay in the processor while all rows of a bag pass by. The last register
// of a width that is no multiple begins earlier, so that it ends with the row: the columns that two
// registers share get the same sum twice. Narrower rows are summed element by element.
#include <ATen/native/index/BagRows.h>
#include <ATen/vec/ValueMath.h>

namespace at::native::bag_rows {
namespace CRESSET_ISA {
namespace {

template <class T> struct Rows {
  const T* table;
  int64_t width;
  const int64_t* index;
  int64_t count;
  const T* scale;
  int64_t padding;
};

// Sums of kRegisters registers that begin at the given columns.
template <int kRegisters, class T>
void add_columns(const Rows<T>& r, const int64_t* columns, T divisor, T* out) {
  using V = vec::Vec<T>;
  V sum[kRegisters];
#pragma GCC unroll 4
  for (int k = 0; k < kRegisters; ++k) sum[k] = V(T(0));
  for (int64_t i = 0; i < r.count; ++i) {
    if (r.index[i] == r.padding) continue;
    const T* row = r.table + r.index[i] * r.width;
    const V scale(r.scale != nullptr ? r.scale[i] : T(1));
#pragma GCC unroll 4
    for (int k = 0; k < kRegisters; ++k) sum[k] = vm::fma(V::load(row + columns[k]), scale, sum[k]);
  }
#pragma GCC unroll 4
  for (int k = 0; k < kRegisters; ++k) (sum[k] / V(divisor)).store(out + columns[k]);
}

template <class T> void add_narrow(const Rows<T>& r, T divisor, T* out) {
  for (int64_t j = 0; j < r.width; ++j) {
    T sum = 0;
    for (int64_t i = 0; i < r.count; ++i) {
      if (r.index[i] == r.padding) continue;
      const T element = r.table[r.index[i] * r.width + j];
      sum += r.scale != nullptr ? r.scale[i] * element : element;
    }
    out[j] = sum / divisor;
  }
}

template <class T> int64_t sum_rows(const void* table, int64_t width, const int64_t* index,
                                    int64_t count, const void* scale, int64_t padding, bool mean,
                                    void* result) {
  constexpr int64_t lanes = vec::Vec<T>::kLanes;
  const Rows<T> rows{static_cast<const T*>(table), width,  index, count,
                     static_cast<const T*>(scale), padding};
  T* out = static_cast<T*>(result);
  int64_t used = 0;
  for (int64_t i = 0; i < count; ++i) used += index[i] != padding;
  const T divisor = mean && used > 0 ? static_cast<T>(used) : T(1);
  if (width < lanes) {
    add_narrow(rows, divisor, out);
    return used;
  }
  for (int64_t first = 0; first < width; first += 4 * lanes) {
    int64_t columns[4];
    int registers = 0;
    for (; registers < 4 && first + registers * lanes < width; ++registers) {
      const int64_t column = first + registers * lanes;
      columns[registers] = column + lanes <= width ? column : width - lanes;
    }
    if (registers == 4) add_columns<4>(rows, columns, divisor, out);
    if (registers == 3) add_columns<3>(rows, columns, divisor, out);
    if (registers == 2) add_columns<2>(rows, columns, divisor, out);
    if (registers == 1) add_columns<1>(rows, columns, divisor, out);
  }
  return used;
}

} // namespace

void fill(Table& table) {
  table.sum[static_cast<int>(c10::ScalarType::Float)] = &sum_rows<float>;
  table.sum[static_cast<int>(c10::ScalarType::Double)] = &sum_rows<double>;
}

} // namespace CRESSET_ISA
} // namespace at::native::bag_rows
