// The run-time compiler for device code, reached through a table of function pointers that is
// filled by dlopen of libnvrtc on first use: only a process that meets code which was not compiled
// with the library loads it.
#pragma once

#include <string>
#include <vector>

#include <c10/macros/Macros.h>

namespace at::cuda {

// "13.0", or empty where there is no libnvrtc. Loads the library.
const std::string& nvrtc_version();

// Compiles `source`, which includes nothing, to machine code for compute capability
// major.minor; `name` stands for it in messages. Throws c10::NotImplementedError where there is no
// libnvrtc and c10::Error with the compiler's messages when it refuses the text. Any thread.
std::string nvrtc_compile(const std::string& source, const char* name, int major, int minor,
                          const std::vector<std::string>& options);

} // namespace at::cuda
