// See Nvtx.h.
#include <ATen/cuda/Nvtx.h>

#include <ATen/cuda/VendorLibrary.h>

namespace at::cuda {
namespace {

struct Library {
  int (*nvtxRangePushA)(const char*);
  int (*nvtxRangePop)();
  uint64_t (*nvtxRangeStartA)(const char*);
  void (*nvtxRangeEnd)(uint64_t);
  void (*nvtxMarkA)(const char*);
};

const Library* library() {
#define CRESSET_FIND(name) CRESSET_VENDOR_FUNCTION(Library, name)
  static const Library* const loaded = vendor_table<Library>(
      {"libnvtx3interop.so.1", "libnvToolsExt.so.1"},
      {CRESSET_FIND(nvtxRangePushA), CRESSET_FIND(nvtxRangePop), CRESSET_FIND(nvtxRangeStartA),
       CRESSET_FIND(nvtxRangeEnd), CRESSET_FIND(nvtxMarkA)});
#undef CRESSET_FIND
  return loaded;
}

} // namespace

int nvtx_push(const char* name) {
  const Library* const lib = library();
  return lib == nullptr ? -1 : lib->nvtxRangePushA(name);
}
int nvtx_pop() {
  const Library* const lib = library();
  return lib == nullptr ? -1 : lib->nvtxRangePop();
}
uint64_t nvtx_start(const char* name) {
  const Library* const lib = library();
  return lib == nullptr ? 0 : lib->nvtxRangeStartA(name);
}
void nvtx_end(uint64_t range) {
  if (const Library* const lib = library()) lib->nvtxRangeEnd(range);
}
void nvtx_mark(const char* name) {
  if (const Library* const lib = library()) lib->nvtxMarkA(name);
}

} // namespace at::cuda
