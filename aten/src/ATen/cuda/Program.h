// Device programs: from the texts and machine code embedded in the library to loaded functions.
// Machine code made by the build serves where the GPU accepts it; everything else is compiled by
// NVRTC from the embedded text and kept on disk under a name that is the hash of the text, the
// options, the architecture and the compiler's version, so that a change of any of them is another
// file and concurrent processes never see half of one.
//
// CRESSET_CACHE_DIR names the folder (default $XDG_CACHE_HOME/cresset or ~/.cache/cresset);
// CRESSET_CUDA_JIT=1 ignores the embedded machine code.
#pragma once

#include <string>
#include <vector>

#include <c10/cuda/CUDADevice.h>

namespace at::cuda {

// A function of the device source `path` (below aten/src/ATen). `options` are separated by spaces.
// The device's context is current. Throws c10::Error. Any thread.
c10::cuda::CUfunction load_function(int device, const char* path, const char* options,
                                    const char* name);

// A function of the embedded machine code called `image` or, where the GPU does not accept that or
// `image` is null, of `text`, a program that may include the embedded headers.
c10::cuda::CUfunction load_generated(int device, const char* image, const std::string& text,
                                     const std::vector<std::string>& options, const char* name);
// The same of `text`, where it is loaded or lies on disk; null where it would have to be compiled.
c10::cuda::CUfunction find_generated(int device, const std::string& text,
                                     const std::vector<std::string>& options, const char* name);

// The text of an embedded file with everything it includes in its place; what is not embedded
// (standard headers) stays as an include. For `text` itself see expand_text.
std::string expand_file(const std::string& path);
std::string expand_text(const std::string& text);

// ---- what the build embeds (cuda_embedded.cpp, written by tools/build/cuda_embed.py) -----------
namespace embedded {
struct File {
  const char* path; // as included
  size_t offset, size;
};
struct Image {
  const char* program;
  size_t offset, size;
};
extern const File files[];
extern const size_t file_count;
extern const Image images[]; // for sm_90
extern const size_t image_count;
const char* text_data();
const char* image_data();
} // namespace embedded

} // namespace at::cuda
