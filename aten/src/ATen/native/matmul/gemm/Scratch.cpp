// The per-thread store of scratch blocks. It is small and bounded: a thread keeps at most
// kKeptBlocks blocks of kKeptBytes each, and frees them when it ends.
#include <ATen/native/matmul/gemm/Scratch.h>

#include <new>

namespace at::native::gemm {
namespace {

constexpr std::align_val_t kAlignment{64};
constexpr size_t kKeptBytes = size_t{8} << 20;
constexpr int kKeptBlocks = 3;

struct Kept {
  char* block[kKeptBlocks] = {};
  size_t bytes[kKeptBlocks] = {};

  ~Kept() {
    for (int i = 0; i < kKeptBlocks; ++i) {
      ::operator delete(block[i], kAlignment);
      block[i] = nullptr;
      bytes[i] = kKeptBytes; // keeps nothing that is given back later while the thread ends
    }
  }
};

thread_local Kept kept;

} // namespace

Scratch::Scratch(size_t bytes) : bytes_(bytes) {
  if (bytes == 0) {
    return;
  }
  int best = -1;
  for (int i = 0; i < kKeptBlocks; ++i) {
    if (kept.block[i] != nullptr && kept.bytes[i] >= bytes &&
        (best < 0 || kept.bytes[i] < kept.bytes[best])) {
      best = i;
    }
  }
  if (best < 0) {
    block_ = static_cast<char*>(::operator new(bytes, kAlignment));
    return;
  }
  block_ = kept.block[best];
  bytes_ = kept.bytes[best];
  kept.block[best] = nullptr;
  kept.bytes[best] = 0;
}

Scratch::~Scratch() {
  if (block_ == nullptr) {
    return;
  }
  int smallest = 0; // an empty place counts as size 0
  for (int i = 1; i < kKeptBlocks; ++i) {
    if (kept.bytes[i] < kept.bytes[smallest]) {
      smallest = i;
    }
  }
  if (bytes_ <= kKeptBytes && bytes_ > kept.bytes[smallest]) {
    ::operator delete(kept.block[smallest], kAlignment);
    kept.block[smallest] = block_;
    kept.bytes[smallest] = bytes_;
    return;
  }
  ::operator delete(block_, kAlignment);
}

} // namespace at::native::gemm
