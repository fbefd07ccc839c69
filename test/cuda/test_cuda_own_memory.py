"""Memory that a program manages itself on CUDA (pools, its own allocator), passes recorded as
graphs, and what the driver's other libraries are asked."""

import os
import subprocess

import pytest
from cuda_support import EMULATED, cuda, emulator_environment, run_python

import torch


def test_what_is_allocated_in_a_pool_lies_in_its_segments():
    pool = torch.cuda.MemPool()
    with torch.cuda.use_mem_pool(pool):
        inside = torch.ones(1000, device=cuda)
    outside = torch.ones(1000, device=cuda)
    ranges = [(s["address"], s["address"] + s["total_size"]) for s in pool.snapshot()]

    def lies_inside(tensor):
        return any(low <= tensor.data_ptr() < high for low, high in ranges)

    assert lies_inside(inside) and not lies_inside(outside)
    assert all(s["segment_pool_id"] == pool.id for s in pool.snapshot())
    assert pool.use_count() == 1


def test_a_pool_hands_its_own_memory_out_again_and_no_other():
    pool = torch.cuda.MemPool()
    with torch.cuda.use_mem_pool(pool):
        first = torch.ones(5000, device=cuda)
        address = first.data_ptr()
        del first
        assert torch.ones(5000, device=cuda).data_ptr() == address
    assert torch.ones(5000, device=cuda).data_ptr() != address


def test_a_pool_with_an_allocator_is_refused_with_what_to_use():
    with pytest.raises(NotImplementedError, match="change_current_allocator"):
        torch.cuda.MemPool(allocator=object())


def test_the_pool_is_left_after_an_error():
    pool = torch.cuda.MemPool()
    with pytest.raises(ValueError), torch.cuda.use_mem_pool(pool):
        raise ValueError
    count = len(pool.snapshot())
    keep = torch.ones(4 << 20, device=cuda)
    assert len(pool.snapshot()) == count and keep.is_cuda


SOURCE = """
#include <dlfcn.h>
#include <stdio.h>
#include <sys/types.h>
static void* of_driver(const char* name) { return dlsym(dlopen("libcuda.so.1", RTLD_NOW), name); }
extern "C" void* give(ssize_t size, int device, void*) {
  unsigned long long memory = 0;
  fprintf(stderr, "give %d\\n", device);
  auto alloc = (int (*)(unsigned long long*, size_t))of_driver("cuMemAlloc_v2");
  return alloc(&memory, size) == 0 ? (void*)memory : nullptr;
}
extern "C" void take(void* memory, ssize_t size, int, void*) {
  fprintf(stderr, "take %ld\\n", (long)size);
  ((int (*)(unsigned long long))of_driver("cuMemFree_v2"))((unsigned long long)memory);
}
"""


def test_a_programs_own_allocator_is_asked_for_every_tensor(tmp_path):
    source, library = tmp_path / "own.cpp", tmp_path / "own.so"
    source.write_text(SOURCE)
    build = ["g++", "-shared", "-fPIC", str(source), "-o", str(library), "-ldl"]
    subprocess.run(build, check=True)
    code = f"""
import torch
own = torch.cuda.CUDAPluggableAllocator({str(library)!r}, "give", "take")
torch.cuda.change_current_allocator(own)
assert torch.cuda.get_allocator_backend() == "pluggable"
x = torch.full((3,), 2.0, device="cuda")
print((x + 1).tolist())
del x
try:
    torch.cuda.change_current_allocator(own)
except RuntimeError as error:
    print(error)
"""
    environment = (
        emulator_environment() if EMULATED else {**os.environ, "CUDA_VISIBLE_DEVICES": "0"}
    )
    found = run_python(code, environment)
    assert "[3.0, 3.0, 3.0]" in found.stdout and "already initialized" in found.stdout
    assert "give 0" in found.stderr and "take 12" in found.stderr


def test_an_allocator_is_not_changed_once_memory_was_given():
    torch.ones(1, device=cuda)
    own = torch.cuda.memory._CUDAAllocator(1, 1)
    with pytest.raises(RuntimeError, match="already initialized"):
        torch.cuda.change_current_allocator(own)
    with pytest.raises(TypeError, match="CUDAPluggableAllocator"):
        torch.cuda.change_current_allocator("none")


class Scaled(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.tensor([2.0, 3.0]))

    def forward(self, x):
        return torch.tanh(x * self.weight) + x


def test_a_graphed_module_computes_what_the_module_does_with_gradients():
    plain, graphed = Scaled().to(cuda), Scaled().to(cuda)
    sample = torch.randn(4, 2, device=cuda, requires_grad=True)
    made = torch.cuda.make_graphed_callables(graphed, (sample,))
    assert made is graphed
    for seed in range(3):
        torch.manual_seed(seed)
        x = torch.randn(4, 2, device=cuda)
        a, b = x.clone().requires_grad_(), x.clone().requires_grad_()
        want, got = plain(a), made(b)
        torch.testing.assert_close(got.detach().cpu(), want.detach().cpu())
        for result in (want, got):
            (result * result).sum().backward()
        torch.testing.assert_close(b.grad.cpu(), a.grad.cpu())
        torch.testing.assert_close(graphed.weight.grad.cpu(), plain.weight.grad.cpu())
    made.eval()  # another mode than that of the recording
    torch.testing.assert_close(made(x).detach().cpu(), plain(x).detach().cpu())


def test_several_callables_are_recorded_in_order():
    first = lambda x: x * 2
    second = lambda x: (x + 1, x - 1)
    sample = torch.ones(3, device=cuda)
    double, around = torch.cuda.make_graphed_callables((first, second), ((sample,), (sample,)))
    above, below = around(double(torch.full((3,), 5.0, device=cuda)))
    assert above.tolist() == [11.0] * 3 and below.tolist() == [9.0] * 3


def test_what_cannot_be_graphed_is_named():
    module = Scaled().to(cuda)
    module.register_forward_hook(lambda *given: None)
    with pytest.raises(RuntimeError, match="must not have hooks"):
        torch.cuda.make_graphed_callables(module, (torch.ones(2, device=cuda),))
    with pytest.raises(TypeError, match="only Tensors"):
        torch.cuda.make_graphed_callables(lambda x: x, (3,))


def test_the_calls_of_the_runtime_go_to_the_driver():
    runtime = torch.cuda.cudart()
    free, total = runtime.cudaMemGetInfo(0)
    assert 0 < free <= total
    assert runtime.cudaProfilerStart() == runtime.cudaError.success
    assert runtime.cudaProfilerStop() == 0
    memory = torch.zeros(4096, dtype=torch.uint8)
    assert runtime.cudaHostRegister(memory.data_ptr(), 4096, 0) == 0
    assert memory.is_pinned()
    assert runtime.cudaHostUnregister(memory.data_ptr()) == 0
    assert isinstance(runtime.cudaGetErrorString(runtime.cudaError.invalidValue), str)


def test_sleeping_keeps_the_stream_busy_and_ends():
    torch.cuda._sleep(100_000)
    torch.cuda.synchronize()


def test_counts_of_page_locked_memory_have_a_peak_and_a_sum():
    torch.cuda.reset_peak_host_memory_stats()
    torch.cuda.reset_accumulated_host_memory_stats()
    before = torch.cuda.host_memory_stats()["allocated_bytes.current"]
    block = torch.empty(1 << 16, dtype=torch.uint8).pin_memory()
    del block
    stats = torch.cuda.host_memory_stats()
    assert stats["allocated_bytes.current"] == before
    assert stats["allocated_bytes.peak"] >= before + (1 << 16)
    assert stats["allocated_bytes.allocated"] >= 1 << 16


def test_the_management_library_is_asked_or_named():
    try:
        assert 0 <= torch.cuda.utilization() <= 100
    except ModuleNotFoundError as error:
        assert "libnvidia-ml.so.1" in str(error)
        return
    assert torch.cuda.temperature() > 0 and torch.cuda.power_draw() > 0
    assert torch.cuda.clock_rate() > 0 and torch.cuda.device_memory_used() > 0
    assert torch.cuda.list_gpu_processes().startswith("GPU:")


def test_collectives_of_one_process_use_nccl_or_name_it():
    try:
        assert torch.cuda.nccl.version() >= (2, 0, 0)
    except RuntimeError as error:
        assert "NCCL cannot be loaded" in str(error)
        return
    x = torch.arange(4.0, device=cuda)
    torch.cuda.nccl.all_reduce([x])
    assert x.tolist() == [0.0, 1.0, 2.0, 3.0]
    gathered = torch.zeros(4, device=cuda)
    torch.cuda.nccl.all_gather([x], [gathered])
    assert gathered.tolist() == x.tolist()
    with pytest.raises(RuntimeError, match="GPU of its own"):
        torch.cuda.nccl.broadcast([torch.ones(2)])
