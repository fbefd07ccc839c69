"""The emulated CUDA libraries themselves: what they run, and the mistakes they must catch."""

import pytest
from cuda_support import EMULATED, emulator_environment, run_python

if not EMULATED:
    pytest.skip("tests of the emulator, on a machine with a GPU", allow_module_level=True)

# Compiles SOURCE, and launches kernels of it by name with 64-bit arguments.
HARNESS = r"""
import ctypes as C
cu, rtc = C.CDLL("libcuda.so.1"), C.CDLL("libnvrtc.so.13")

def ok(code):
    assert code == 0, code

ok(cu.cuInit(0))
context = C.c_void_p()

def use(device):
    ok(cu.cuDevicePrimaryCtxRetain(C.byref(context), device))
    ok(cu.cuCtxSetCurrent(context))

def load(source):
    program, size, module = C.c_void_p(), C.c_size_t(), C.c_void_p()
    ok(rtc.nvrtcCreateProgram(C.byref(program), source.encode(), b"test", 0, None, None))
    ok(rtc.nvrtcCompileProgram(program, 0, None))
    ok(rtc.nvrtcGetCUBINSize(program, C.byref(size)))
    image = C.create_string_buffer(size.value)
    ok(rtc.nvrtcGetCUBIN(program, image))
    ok(cu.cuModuleLoadData(C.byref(module), image))
    return module

def launch(module, name, block, *values, shared=0):
    function = C.c_void_p()
    ok(cu.cuModuleGetFunction(C.byref(function), module, name.encode()))
    held = [C.c_ulonglong(v) for v in values]
    args = (C.c_void_p * len(held))(*[C.addressof(h) for h in held])
    return cu.cuLaunchKernel(function, 2, 1, 1, block, 1, 1, shared, None, args, None)

def alloc(size):
    p = C.c_ulonglong()
    ok(cu.cuMemAlloc_v2(C.byref(p), C.c_size_t(size)))
    return p.value

def read(p, n):
    host = (C.c_uint * n)()
    ok(cu.cuMemcpyDtoH_v2(host, C.c_ulonglong(p), C.c_size_t(4 * n)))
    return list(host)

use(0)
"""


def run(body, **settings):
    return run_python(HARNESS + body, emulator_environment(**settings))


def test_threads_barriers_and_shuffles_compute():
    done = run(r"""
m = load('''
extern "C" __global__ void sums(unsigned* out) {
  __shared__ unsigned part[4];
  unsigned v = threadIdx.x;
  for (int step = 16; step; step /= 2) v += __shfl_xor_sync(0xffffffffu, v, step);
  if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = v;
  __syncthreads();
  if (threadIdx.x == 0) out[blockIdx.x] = part[0] + part[1] + part[2] + part[3] + blockIdx.x;
}''')
p = alloc(8)
ok(launch(m, "sums", 128, p))
assert read(p, 2) == [128 * 127 // 2, 128 * 127 // 2 + 1]
""")
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    "kernel, code, words",
    [
        ("if (threadIdx.x < 5) __syncthreads();", 719, "__syncthreads"),
        ("if (threadIdx.x < 5) __syncwarp();", 719, "warp"),
        ("p[1ul << 40] = 1;", 700, "touched memory"),
        ("__trap();", 719, "trapped"),
    ],
)
def test_faulty_kernels_end_in_a_sticky_error(kernel, code, words):
    done = run(rf"""
m = load('''extern "C" __global__ void k(unsigned* p) {{ {kernel} }}''')
assert launch(m, "k", 64, alloc(8)) == {code}
assert cu.cuCtxSynchronize() == {code}
use(1)  # the other device lives on
ok(cu.cuCtxSynchronize())
""")
    assert done.returncode == 0, done.stderr
    assert words in done.stderr


def test_memory_of_another_device_and_of_the_host_is_closed():
    done = run(r"""
m = load('''extern "C" __global__ void k(unsigned* p) { p[0] = 7; }''')
use(1)
other = alloc(8)
use(0)
assert launch(m, "k", 1, other) == 700
""")
    assert done.returncode == 0, done.stderr
    done = run("C.string_at(alloc(8), 4)")
    assert done.returncode == -11  # the host read device memory


def test_launches_are_checked_like_the_hardwares():
    done = run(r"""
m = load('''extern "C" __global__ void k(unsigned* p) {}''')
p = alloc(8)
assert launch(m, "k", 1025, p) == 1
assert launch(m, "k", 32, p, shared=49 * 1024) == 1
ok(launch(m, "k", 32, p, shared=48 * 1024))
use(1)
assert launch(m, "k", 32, p) == 400  # a function of another device
assert cu.cuMemAlloc_v2(C.byref(C.c_ulonglong()), C.c_size_t(1 << 30)) == 2
""", MEMORY=64 << 20)  # fmt: skip
    assert done.returncode == 0, done.stderr


def test_fresh_memory_is_not_zero_and_real_machine_code_is_refused():
    done = run(r"""
assert read(alloc(8), 2) == [0xffffffff] * 2
elf = C.create_string_buffer(b"\x7fELF" + bytes(64))
assert cu.cuModuleLoadData(C.byref(C.c_void_p()), elf) == 209
""")
    assert done.returncode == 0, done.stderr


def test_threads_may_compile_one_program_at_the_same_time(tmp_path):
    body = """
import threading
use(0)
barrier, loaded = threading.Barrier(8), []
SOURCE = 'extern "C" __global__ void nothing(long) {}'

def compile_it():
    ok(cu.cuCtxSetCurrent(context))
    barrier.wait()
    loaded.append(launch(load(SOURCE), "nothing", 1, 0))

threads = [threading.Thread(target=compile_it) for _ in range(8)]
[t.start() for t in threads]
[t.join() for t in threads]
assert loaded == [0] * 8, loaded
"""
    result = run_python(HARNESS + body, emulator_environment(CACHE=tmp_path))
    assert result.returncode == 0, result.stderr
