// Calls that nothing can stop. A routine of LAPACK on one large matrix runs for seconds or minutes
// and knows nothing of Ctrl-C, so it runs on a thread of its own, on copies of its arrays, while
// the caller waits and looks for signals. When one comes the caller leaves; the routine goes on to
// its end and nobody looks at what it found. The copies cost n^2 where the routine costs n^3.
#pragma once
#include <cstddef>
#include <functional>

#include <c10/util/ArrayRef.h>

namespace at::native::lapack {

// An array of a call: read by it, written by it, or both.
struct CallArray {
  void* data;
  size_t bytes;
  bool in, out;
};
template <class T> CallArray read_array(const T* data, int64_t count) {
  return {const_cast<T*>(data), static_cast<size_t>(count) * sizeof(T), true, false};
}
template <class T> CallArray written_array(T* data, int64_t count) {
  return {data, static_cast<size_t>(count) * sizeof(T), false, true};
}
template <class T> CallArray changed_array(T* data, int64_t count) {
  return {data, static_cast<size_t>(count) * sizeof(T), true, true};
}

// Whether a call of about so many multiplications is long: a tenth of a second or more. Not inside
// of a long call.
bool is_long(double multiplications);

// run(arrays) on copies of the arrays, then the written ones copied back; returns what it returns.
// `run` must own or copy all else that it needs. Throws what it throws, and c10::InterruptedError.
int long_call(c10::ArrayRef<CallArray> arrays, std::function<int(void* const*)> run);

} // namespace at::native::lapack
