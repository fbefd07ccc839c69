// cuDNN's own header, for extensions that call cuDNN and link it. The library itself needs neither:
// it loads cuDNN at run time, where it is installed.
#pragma once
#if !__has_include(<cudnn.h>)
#error "cudnn.h was not found: an extension that uses cuDNN needs its headers (nvidia-cudnn-cu12)"
#else
#include <cudnn.h>
#endif
