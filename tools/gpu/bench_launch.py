"""What one kernel launch costs by itself, without any torch: the floor of launch-bound work.

    python tools/gpu/bench_launch.py

A C++ loop, compiled here by g++, adds one to a number on the device by kernel after kernel through
the driver. It varies the size of the arguments, how they are handed over, the stream, the entry
point and programmatic serialisation (a kernel starts while its predecessor ends, and waits for it
inside). Per variant: the host's time to queue one launch, the time per launch of 200 with the final
wait, and that of 6,000 in a row, where the slower of host and device decides.
"""

import ctypes
import os
import pathlib
import subprocess
import sys
import tempfile

KERNELS = """
template <int kBytes> struct Args { float* p; char rest[kBytes - 8]; };
#define ADD(name, bytes, before, after) \\
  extern "C" __global__ void name(const Args<bytes> a) { \\
    before; if (threadIdx.x == 0) a.p[0] += 1.0f; after; }
#ifdef CRESSET_EMULATOR
#define WAIT
#define RELEASE
#else
#define WAIT asm volatile("griddepcontrol.wait;" ::: "memory")
#define RELEASE asm volatile("griddepcontrol.launch_dependents;")
#endif
ADD(add_16, 16, , )
ADD(add_72, 72, , )
ADD(add_192, 192, , )
ADD(serial_192, 192, WAIT, )
ADD(early_192, 192, RELEASE; WAIT, )
"""

LOOP = r"""
#include <chrono>
#include <cstddef>
struct Attribute { int id; char pad[4]; union { char bytes[64]; int on; } value; };
struct Config {
  unsigned grid[3], block[3], shared; void* stream; Attribute* attributes; unsigned count;
};
using Launch = int (*)(void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                       void*, void**, void**);
using LaunchEx = int (*)(const Config*, void*, void**, void**);
using Wait = int (*)();
static double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}
// way: 0 pointers to arguments, 1 one buffer, 2 the extended entry, 3 with serialisation
extern "C" int run(Launch launch, LaunchEx launch_ex, Wait wait, void* function, void* stream,
                   void* args, size_t bytes, int way, int count, double* queued, double* done) {
  void* pointers[] = {args};
  void* extra[] = {(void*)1, args, (void*)2, &bytes, nullptr};
  Attribute attribute = {};
  attribute.id = 6;
  attribute.value.on = 1;
  const Config config = {{1, 1, 1}, {128, 1, 1}, 0, stream, &attribute, way == 3 ? 1u : 0u};
  if (int code = wait()) return code;
  const double start = now();
  for (int i = 0; i < count; ++i) {
    int code = 0;
    if (way >= 2)
      code = launch_ex(&config, function, pointers, nullptr);
    else
      code = launch(function, 1, 1, 1, 128, 1, 1, 0, stream, way ? nullptr : pointers,
                    way ? extra : nullptr);
    if (code) return code;
  }
  *queued = (now() - start) / count;
  const int code = wait();
  *done = (now() - start) / count;
  return code;
}
"""

VARIANTS = [  # name, kernel, bytes of arguments, way, own stream
    ("16 bytes of arguments", "add_16", 16, 0, False),
    ("72 bytes", "add_72", 72, 0, False),
    ("192 bytes", "add_192", 192, 0, False),
    ("192 bytes in one buffer", "add_192", 192, 1, False),
    ("192 bytes, a stream of its own", "add_192", 192, 0, True),
    ("192 bytes, extended entry", "add_192", 192, 2, False),
    ("192 bytes, serialised", "serial_192", 192, 3, False),
    ("192 bytes, serialised, early", "early_192", 192, 3, False),
]


def ok(code, what) -> None:
    if code:
        sys.exit(f"bench_launch: {what} answered {code}")


def compiled_loop(folder):
    source, library = folder / "loop.cpp", folder / "loop.so"
    source.write_text(LOOP)
    compiler = [os.environ.get("CXX", "g++"), "-O2", "-shared", "-fPIC"]
    subprocess.run([*compiler, str(source), "-o", str(library)], check=True)
    return ctypes.CDLL(str(library))


def loaded_module(cuda):
    """The kernels, compiled by NVRTC for the device."""
    for name in ("libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"):
        try:
            nvrtc = ctypes.CDLL(name)
            break
        except OSError:
            continue
    else:
        sys.exit("bench_launch: there is no NVRTC")
    major, minor = ctypes.c_int(), ctypes.c_int()
    ok(cuda.cuDeviceGetAttribute(ctypes.byref(major), 75, 0), "cuDeviceGetAttribute")
    ok(cuda.cuDeviceGetAttribute(ctypes.byref(minor), 76, 0), "cuDeviceGetAttribute")
    program, size, module = ctypes.c_void_p(), ctypes.c_size_t(), ctypes.c_void_p()
    text = KERNELS.encode()
    ok(nvrtc.nvrtcCreateProgram(ctypes.byref(program), text, b"adds", 0, None, None), "nvrtc")
    option = f"--gpu-architecture=sm_{major.value}{minor.value}".encode()
    options = (ctypes.c_char_p * 1)(option)
    ok(nvrtc.nvrtcCompileProgram(program, 1, options), "nvrtcCompileProgram")
    ok(nvrtc.nvrtcGetCUBINSize(program, ctypes.byref(size)), "nvrtcGetCUBINSize")
    image = ctypes.create_string_buffer(size.value)
    ok(nvrtc.nvrtcGetCUBIN(program, image), "nvrtcGetCUBIN")
    ok(cuda.cuModuleLoadData(ctypes.byref(module), image), "cuModuleLoadData")
    return module


def main() -> None:
    cuda = ctypes.CDLL("libcuda.so.1")
    context, memory, stream = ctypes.c_void_p(), ctypes.c_uint64(), ctypes.c_void_p()
    ok(cuda.cuInit(0), "cuInit")
    ok(cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0), "cuDevicePrimaryCtxRetain")
    ok(cuda.cuCtxSetCurrent(context), "cuCtxSetCurrent")
    ok(cuda.cuMemAlloc_v2(ctypes.byref(memory), ctypes.c_size_t(512)), "cuMemAlloc")
    ok(cuda.cuStreamCreateWithPriority(ctypes.byref(stream), 1, 0), "cuStreamCreate")
    module = loaded_module(cuda)
    with tempfile.TemporaryDirectory() as folder:
        loop = compiled_loop(pathlib.Path(folder))
    args = (ctypes.c_uint64 * 24)(memory.value)
    print(f"{'one kernel after another':34} {'queue us':>9} {'200: us':>9} {'6000: us':>9}")
    for name, kernel, size, way, own in VARIANTS:
        function = ctypes.c_void_p()
        code = cuda.cuModuleGetFunction(ctypes.byref(function), module, kernel.encode())
        ok(code, "cuModuleGetFunction")
        best = {}
        for count in (200, 200, 200, 200, 200, 6000, 6000):
            queued, done = ctypes.c_double(), ctypes.c_double()
            code = loop.run(
                cuda.cuLaunchKernel,
                cuda.cuLaunchKernelEx,
                cuda.cuCtxSynchronize,
                function,
                stream if own else None,
                args,
                ctypes.c_size_t(size),
                way,
                count,
                ctypes.byref(queued),
                ctypes.byref(done),
            )
            if code:
                break
            now = (queued.value * 1e6, done.value * 1e6)
            best[count] = min(best.get(count, now), now, key=lambda t: t[1])
        if code:
            print(f"{name:34} refused: error {code}")
            continue
        print(f"{name:34} {best[200][0]:9.3f} {best[200][1]:9.3f} {best[6000][1]:9.3f}", flush=True)


if __name__ == "__main__":
    main()
