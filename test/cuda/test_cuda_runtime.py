"""The CUDA runtime: devices, streams, events, memory, copies and generators. Runs on a GPU, or on
the emulator of test/cuda_emulator."""

import copy
import gc
import json
import pickle
import random
import threading

import pytest
from cuda_support import EMULATED, cuda, emulator_environment, run_python

import torch

needs_two = pytest.mark.skipif(torch.cuda.device_count() < 2, reason="needs two devices")
# A real GPU has the memory it has; only the emulator can be told to have little.
needs_emulator = pytest.mark.skipif(not EMULATED, reason="sets the memory of an emulated GPU")


def emulated(code, **settings):
    """Runs code that prints one JSON value on an emulated GPU with these settings."""
    done = run_python("import json, torch\n" + code, emulator_environment(**settings))
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


# ---- devices


def test_available():
    assert torch.cuda.is_available() and torch.cuda.device_count() >= 1
    assert torch.accelerator.current_accelerator() == torch.device("cuda")
    assert torch.device(0) == torch.device("cuda:0")


def test_properties():
    found = torch.cuda.get_device_properties(0)
    assert found.name == torch.cuda.get_device_name("cuda:0")
    assert (found.major, found.minor) == torch.cuda.get_device_capability()
    assert found.total_memory == torch.cuda.mem_get_info()[1]
    assert "_CudaDeviceProperties(name=" in repr(found)
    with pytest.raises(AssertionError, match="Invalid device id"):
        torch.cuda.get_device_properties(99)


def test_tensor_without_index_is_on_current_device():
    x = torch.empty(2, device="cuda")
    assert x.device == torch.device("cuda", torch.cuda.current_device())
    assert x.is_cuda and x.get_device() == torch.cuda.current_device()
    assert x.type() == "torch.cuda.FloatTensor" and isinstance(x, torch.cuda.FloatTensor)
    assert not isinstance(x, torch.FloatTensor)


def test_missing_device_raises():
    with pytest.raises(torch.AcceleratorError, match="invalid device ordinal") as caught:
        torch.empty(1, device="cuda:15")
    assert caught.value.error_code == 101
    with pytest.raises(RuntimeError, match="invalid device ordinal"):
        torch.cuda.set_device(15)


@needs_two
def test_current_device():
    assert torch.cuda.current_device() == 0
    with torch.cuda.device(1):
        assert torch.cuda.current_device() == 1
        assert torch.empty(1, device="cuda").device.index == 1
        with torch.cuda.device("cuda:0"):
            assert torch.cuda.current_device() == 0
        assert torch.cuda.current_device() == 1
    assert torch.cuda.current_device() == 0
    x = torch.zeros(2, device="cuda:1")
    with torch.cuda.device_of(x):
        assert torch.cuda.current_device() == 1
    torch.cuda.set_device("cuda:1")
    assert x.to("cuda") is x
    torch.cuda.set_device(0)
    assert x.to("cuda").device.index == 0
    with pytest.raises(ValueError, match="Expected a cuda device"):
        torch.cuda.set_device("cpu")


@needs_two
def test_threads_have_their_own_current_device():
    seen = []

    def work():
        seen.append(torch.cuda.current_device())
        torch.cuda.set_device(1)
        seen.append(torch.zeros(3, device="cuda").cpu().tolist())

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert seen == [0, [0.0, 0.0, 0.0]] and torch.cuda.current_device() == 0


# ---- copies

DTYPES = [torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.int64, torch.int32]
DTYPES += [torch.int16, torch.int8, torch.uint8, torch.bool, torch.complex64, torch.complex128]


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_round_trip(dtype):
    x = torch.arange(24).to(dtype).reshape(2, 3, 4)
    y = x.cuda()
    assert y.is_cuda and y.dtype is dtype and y.stride() == x.stride()
    assert torch.equal(y.cpu(), x)


@pytest.mark.parametrize(
    "make",
    [
        lambda: torch.arange(12.0).reshape(3, 4).t(),
        lambda: torch.arange(24.0).reshape(2, 3, 4)[:, 1:, ::2],
        lambda: torch.arange(3.0).expand(4, 3),
        lambda: torch.tensor(5.0),
        lambda: torch.empty(0, 3),
        lambda: torch.arange(48.0).reshape(2, 2, 3, 4).to(memory_format=torch.channels_last),
    ],
)
def test_layouts_to_device_and_back(make):
    x = make()
    y = x.cuda()
    assert torch.equal(y.cpu(), x)
    assert y.stride() == x.to("cpu", copy=True).stride()
    assert y.is_contiguous(memory_format=torch.channels_last) == x.is_contiguous(
        memory_format=torch.channels_last
    )


def test_copy_into_strided_parts():
    x = torch.zeros(3, 4)
    x[:, ::2].copy_(torch.arange(6.0).reshape(3, 2).cuda())
    assert x.tolist() == [[0, 0, 1, 0], [2, 0, 3, 0], [4, 0, 5, 0]]
    y = torch.zeros(3, 4, device="cuda")
    y[:, 1::2].copy_(torch.arange(6.0).reshape(3, 2))
    assert y.tolist() == [[0, 0, 0, 1], [0, 2, 0, 3], [0, 4, 0, 5]]
    y.copy_(torch.tensor([1, 2, 3, 4]))
    assert y.tolist() == [[1, 2, 3, 4]] * 3


def test_conversion_on_the_way():
    assert torch.tensor([1.5, -2.5]).to("cuda", torch.int32).cpu().tolist() == [1, -2]
    assert torch.tensor([1, 2], device="cuda").to("cpu", torch.float16).tolist() == [1.0, 2.0]
    assert torch.tensor([1, 0], device="cuda").bool().tolist() == [True, False]


@needs_two
def test_between_devices():
    x = torch.arange(12.0).reshape(3, 4)
    a = x.to("cuda:0")
    b = a.to("cuda:1")
    assert b.device.index == 1 and torch.equal(b.cpu(), x)
    assert torch.equal(a.t().to("cuda:1").cpu(), x.t())
    b[:, 1:3].copy_(a[:, :2].long())
    assert b[:, 1].tolist() == [0, 4, 8]


def test_copy_shape_mismatch_raises():
    with pytest.raises(RuntimeError, match=r"doesn't match the broadcast shape|must match"):
        torch.zeros(3, device="cuda").copy_(torch.zeros(4))


def test_meta_cannot_be_copied():
    with pytest.raises(NotImplementedError, match="Cannot copy out of meta tensor"):
        torch.zeros(3, device="meta").cuda()


def test_items_and_lists():
    x = torch.tensor([[1, 2], [3, 4]], device="cuda")
    assert x[1, 0].item() == 3 and int(x[0, 1]) == 2 and x.tolist() == [[1, 2], [3, 4]]
    assert bool(torch.tensor(True, device="cuda")) is True
    assert torch.tensor(2.5, device="cuda").item() == 2.5
    with pytest.raises(RuntimeError, match="cannot be converted to Scalar"):
        x.item()
    with pytest.raises(TypeError, match="can't convert cuda:0 device type tensor to numpy"):
        x.numpy()


def test_repr():
    assert (
        repr(torch.tensor([1.0, 2.5], device="cuda")) == "tensor([1.0000, 2.5000], device='cuda:0')"
    )


def test_operands_on_two_devices_raise():
    with pytest.raises(RuntimeError, match="Expected all tensors to be on the same device"):
        torch.zeros(3, device="cuda") + torch.zeros(3)


def test_factories():
    assert torch.zeros(3, device="cuda").tolist() == [0, 0, 0]
    assert torch.ones(2, dtype=torch.int64, device=cuda).tolist() == [1, 1]
    assert torch.full((2,), 7.5, device="cuda").tolist() == [7.5, 7.5]
    x = torch.zeros(2, 2, device="cuda")
    assert torch.zeros_like(x).device == x.device and x.new_ones(2).tolist() == [1, 1]
    assert torch.empty(2, device="cuda").fill_(3).tolist() == [3, 3]
    assert x.t()[:, :1].zero_().shape == (2, 1)
    with pytest.raises(RuntimeError, match="Only dense CPU tensors can be pinned"):
        torch.empty(2, device="cuda", pin_memory=True)


def test_deepcopy_and_module():
    x = torch.arange(3.0).cuda()
    assert torch.equal(copy.deepcopy(x).cpu(), x.cpu())
    layer = torch.nn.Linear(3, 2).cuda()
    assert all(p.is_cuda for p in layer.parameters())
    assert not any(p.is_cuda for p in layer.cpu().parameters())


# ---- storages and files


def test_storages():
    x = torch.arange(4, dtype=torch.uint8).cuda()
    storage = x.untyped_storage()
    assert storage.device == x.device and storage.nbytes() == 4 and storage.is_cuda
    assert storage[2] == 2 and storage.tolist() == [0, 1, 2, 3]
    assert storage.cpu().tolist() == [0, 1, 2, 3] and storage.cuda() is storage
    storage.resize_(6)
    assert storage.nbytes() == 6 and storage.cpu().tolist()[:4] == [0, 1, 2, 3]
    assert storage.clone().device == x.device
    assert isinstance(torch.zeros(2, device="cuda").storage(), torch.cuda.FloatStorage)


def test_resize():
    x = torch.arange(3.0).cuda()
    x.resize_(5)
    assert x.shape == (5,) and x[:3].tolist() == [0, 1, 2]


def test_save_and_load(tmp_path):
    x = torch.arange(5.0).cuda()
    torch.save({"x": x, "y": x[1:3]}, tmp_path / "x.pt")
    back = torch.load(tmp_path / "x.pt")
    assert back["x"].device == x.device and back["x"].tolist() == x.tolist()
    assert back["x"].untyped_storage().data_ptr() == back["y"].untyped_storage().data_ptr()
    host = torch.load(tmp_path / "x.pt", map_location="cpu")
    assert host["y"].device.type == "cpu" and host["y"].tolist() == [1, 2]
    torch.save(torch.arange(3.0), tmp_path / "y.pt")
    assert torch.load(tmp_path / "y.pt", map_location="cuda").is_cuda
    if torch.cuda.device_count() > 1:
        moved = torch.load(tmp_path / "x.pt", map_location={"cuda:0": "cuda:1"})
        assert moved["x"].device.index == 1
    with pytest.raises(RuntimeError, match=r"device_count\(\) is"):
        torch.load(tmp_path / "y.pt", map_location="cuda:9")


# ---- streams and events


def test_streams():
    default = torch.cuda.default_stream()
    assert torch.cuda.current_stream() == default and default.cuda_stream == 0
    s = torch.cuda.Stream()
    assert s != default and isinstance(s, torch.Stream) and s.device == torch.device("cuda:0")
    with torch.cuda.stream(s) as entered:
        assert entered is None and torch.cuda.current_stream() == s
        x = torch.ones(4, device="cuda")
        with torch.cuda.stream(None):
            assert torch.cuda.current_stream() == s
    assert torch.cuda.current_stream() == default
    with s:
        assert torch.cuda.current_stream() == s
    default.wait_stream(s)
    assert x.tolist() == [1, 1, 1, 1] and s.query()
    s.synchronize()
    assert hash(s) == hash(torch.cuda.ExternalStream(s.cuda_stream)) and s == torch.cuda.Stream(
        stream_id=s.stream_id, device_index=0, device_type=1
    )
    with pytest.raises(RuntimeError, match="priority"):
        torch.cuda.Stream(priority=1)
    least, greatest = torch.cuda.Stream.priority_range()
    assert greatest <= least == 0
    assert repr(s).startswith("<torch.cuda.Stream device=cuda:0 cuda_stream=0x")


def test_streams_come_from_a_pool():
    handles = {torch.cuda.Stream().cuda_stream for _ in range(100)}
    assert len(handles) == 32


@needs_two
def test_stream_of_another_device_makes_it_current():
    s = torch.cuda.Stream("cuda:1")
    with torch.cuda.stream(s):
        assert torch.cuda.current_device() == 1 and torch.cuda.current_stream() == s
        assert torch.cuda.current_stream("cuda:0") == torch.cuda.default_stream("cuda:0")
    assert torch.cuda.current_device() == 0
    assert torch.cuda.current_stream("cuda:1") == torch.cuda.default_stream("cuda:1")


def test_events():
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    assert repr(start) == "<torch.cuda.Event uninitialized>" and start.query()
    with pytest.raises(ValueError, match="must be recorded"):
        start.elapsed_time(end)
    start.record()
    torch.zeros(10, device="cuda")
    end.record()
    end.synchronize()
    assert end.query() and start.elapsed_time(end) >= 0
    plain = torch.cuda.current_stream().record_event()
    assert isinstance(plain, torch.cuda.Event)
    with pytest.raises(ValueError, match="enable_timing=True"):
        plain.elapsed_time(end)
    torch.cuda.Stream().wait_event(plain)
    plain.wait(torch.cuda.Stream())
    if torch.cuda.device_count() > 1:
        with pytest.raises(RuntimeError, match="does not match recording stream's device"):
            plain.record(torch.cuda.Stream("cuda:1"))


# ---- page-locked memory


def test_pinned_memory():
    x = torch.arange(6.0).reshape(2, 3)
    p = x.pin_memory()
    assert not x.is_pinned() and p.is_pinned() and p[1:].is_pinned() and torch.equal(p, x)
    assert p.pin_memory() is p and not p.cuda().is_pinned()
    y = p.to("cuda", non_blocking=True)
    back = torch.empty(2, 3, pin_memory=True)
    back.copy_(y, non_blocking=True)
    torch.cuda.current_stream().synchronize()
    assert torch.equal(back, x)
    assert torch.tensor([1, 2], pin_memory=True).is_pinned()
    with pytest.raises(RuntimeError, match="only dense CPU tensors can be pinned"):
        y.pin_memory()
    assert torch.cuda.host_memory_stats()["allocated_bytes.current"] > 0


def test_pinned_gradient_passes():
    x = torch.ones(3, requires_grad=True)
    x.pin_memory().sum().backward()
    assert x.grad.tolist() == [1, 1, 1]


# ---- memory


def test_statistics_follow_tensors():
    gc.collect()  # what earlier tests left must not be freed between two readings
    torch.cuda.empty_cache()
    before = torch.cuda.memory_allocated()
    torch.cuda.reset_peak_memory_stats()
    x = torch.empty(1000, device="cuda")
    assert torch.cuda.memory_allocated() - before == 4096
    y = torch.empty(1 << 20, device="cuda")
    assert torch.cuda.memory_allocated() - before == 4096 + (4 << 20)
    assert torch.cuda.memory_reserved() >= torch.cuda.memory_allocated()
    del y
    assert torch.cuda.memory_allocated() - before == 4096
    assert torch.cuda.max_memory_allocated() - before == 4096 + (4 << 20)
    stats = torch.cuda.memory_stats()
    assert stats["allocated_bytes.all.current"] == torch.cuda.memory_allocated()
    assert stats["allocation.small_pool.current"] >= 1
    assert "PyTorch CUDA memory summary" in torch.cuda.memory_summary()
    del x
    torch.cuda.empty_cache()


def test_freed_memory_is_reused():
    x = torch.empty(5000, device="cuda")
    address = x.data_ptr()
    del x
    assert torch.empty(5000, device="cuda").data_ptr() == address


def test_memory_of_another_stream_is_not_reused_early():
    s = torch.cuda.Stream()
    with torch.cuda.stream(s):
        x = torch.empty(5000, device="cuda")
        address = x.data_ptr()
    del x
    assert torch.empty(5000, device="cuda").data_ptr() != address
    y = torch.empty(5000, device="cuda")
    y.record_stream(s)
    del y
    torch.cuda.synchronize()
    assert torch.empty(5000, device="cuda") is not None


def test_small_blocks_another_stream_used_survive_their_neighbours():
    torch.cuda.empty_cache()
    side = torch.cuda.Stream()
    row = [torch.full((128,), float(i), device="cuda") for i in range(12)]
    for used in row[1::2]:
        used.record_stream(side)
    del used, row[1::2]
    torch.cuda.synchronize()
    for size in (128, 64, 300):
        again = [torch.full((size,), 50.0 + i, device="cuda") for i in range(20)]
        torch.cuda.empty_cache()
        more = [torch.full((size,), 90.0 + i, device="cuda") for i in range(20)]
        assert [t[0].item() for t in again] == [50.0 + i for i in range(20)]
        assert [t[0].item() for t in more] == [90.0 + i for i in range(20)]
        assert [t[0].item() for t in row] == [0.0, 2.0, 4.0, 6.0, 8.0, 10.0]
        del again, more


def test_snapshot_covers_what_is_allocated():
    gc.collect()  # the snapshot's many dicts may start the collector between the two readings
    keep = [torch.empty(n, device="cuda") for n in (10, 100000, 3 << 20)]
    segments = torch.cuda.memory_snapshot()
    allocated = sum(s["allocated_size"] for s in segments if s["device"] == 0)
    assert allocated == torch.cuda.memory_allocated()
    for segment in segments:
        assert sum(b["size"] for b in segment["blocks"]) == segment["total_size"]
    del keep


def test_raw_allocation():
    address = torch.cuda.caching_allocator_alloc(1000)
    assert address != 0
    torch.cuda.caching_allocator_delete(address)
    with pytest.raises(ValueError, match="invalid device pointer"):
        torch.cuda.caching_allocator_delete(address)


def test_failure_on_demand():
    torch._C._cuda_setAllocFailure(2)
    try:
        torch.empty(3, device="cuda")
        with pytest.raises(torch.OutOfMemoryError, match="CUDA out of memory"):
            torch.empty(3, device="cuda")
        torch.empty(3, device="cuda")
    finally:
        torch._C._cuda_setAllocFailure(0)


FUZZ = """
import random
random.seed(1)
live = {}
for step in range(400):
    if live and random.random() < 0.5:
        key = random.choice(list(live))
        tensor, value = live.pop(key)
        assert tensor.cpu().eq(value).all(), (step, key)
    else:
        size = random.choice([1, 100, 3000, 70000, 600000, 2500000])
        value = step % 251
        live[step] = (torch.full((size,), value, dtype=torch.uint8).cuda(), value)
    if step % 97 == 0:
        torch.cuda.empty_cache()
for tensor, value in live.values():
    assert tensor.cpu().eq(value).all()
tensor = None
live.clear()
torch.cuda.empty_cache()
stats = torch.cuda.memory_stats()
print(json.dumps([torch.cuda.memory_allocated(), torch.cuda.memory_reserved(),
                  stats["num_device_alloc"] == stats["num_device_free"]]))
"""


@needs_emulator
@pytest.mark.parametrize("virtual_memory", [0, 1])
def test_random_allocations_keep_their_contents(virtual_memory):
    assert emulated(FUZZ, VMM=virtual_memory, MEMORY=512 << 20) == [0, 0, True]


@needs_emulator
@pytest.mark.parametrize("virtual_memory", [0, 1])
def test_out_of_memory_names_the_holders_and_leaves_all_intact(virtual_memory):
    text, retries, ooms, fits = emulated(
        """
keep = [torch.empty(4 << 20, dtype=torch.uint8, device='cuda') for _ in range(5)]
cached = [torch.empty(9 << 20, dtype=torch.uint8, device='cuda') for _ in range(2)]
del cached
try:
    torch.empty(60 << 20, dtype=torch.uint8, device='cuda')
    text = ''
except torch.OutOfMemoryError as error:
    text = str(error)
del keep
fits = torch.zeros(40 << 20, dtype=torch.uint8, device='cuda')[-1].item()
stats = torch.cuda.memory_stats()
print(json.dumps([text, stats['num_alloc_retries'], stats['num_ooms'], fits]))
""",
        VMM=virtual_memory,
        MEMORY=64 << 20,
    )
    assert text.startswith("CUDA out of memory. Tried to allocate 60.00 MiB. GPU 0 has a total")
    assert "5 x 4.00 MiB (20.00 MiB)" in text
    assert retries >= 1 and ooms == 1 and fits == 0


@needs_emulator
def test_growable_segments_join_small_pieces():
    fits = emulated(
        """
parts = [torch.empty(5 << 20, dtype=torch.uint8, device='cuda') for _ in range(10)]
del parts
whole = torch.empty(48 << 20, dtype=torch.uint8, device='cuda')
print(json.dumps(torch.cuda.memory_stats()['num_alloc_retries']))
""",
        MEMORY=64 << 20,
    )
    assert fits == 0


@needs_emulator
def test_memory_fraction():
    found = emulated(
        """
torch.cuda.set_per_process_memory_fraction(0.5)
found = [torch.cuda.get_per_process_memory_fraction()]
try:
    torch.empty(40 << 20, dtype=torch.uint8, device='cuda')
except torch.OutOfMemoryError as error:
    found.append('limited to 50.00 %' in str(error))
torch.empty(20 << 20, dtype=torch.uint8, device='cuda')
print(json.dumps(found))
""",
        MEMORY=64 << 20,
    )
    assert found == [0.5, True]
    with pytest.raises(ValueError, match="Allowed range: 0~1"):
        torch.cuda.set_per_process_memory_fraction(1.5)


@needs_emulator
def test_forked_process_cannot_use_cuda():
    text = emulated(
        """
import os, sys
x = torch.zeros(1, device='cuda')
pinned = torch.empty(4, pin_memory=True)
read, write = os.pipe()
if os.fork() == 0:
    del x, pinned
    try:
        torch.zeros(1, device='cuda')
        text = 'no error'
    except RuntimeError as error:
        text = str(error)
    os.write(write, (text + str(torch.cuda.is_available())).encode())
    os._exit(0)
os.close(write)
os.wait()
print(json.dumps(os.read(read, 10000).decode()))
"""
    )
    assert text.startswith("Cannot re-initialize CUDA in forked subprocess. To use CUDA with")
    assert text.endswith("False")


def test_many_threads_allocate():
    failures = []

    def work(seed):
        rng = random.Random(seed)
        try:
            for _ in range(60):
                value = rng.randrange(250)
                x = torch.full((rng.randrange(1, 3000),), value, dtype=torch.uint8).cuda()
                if not bool(x.cpu().eq(value).all()):
                    failures.append(seed)
        except Exception as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []


# ---- generators


def test_generator_state():
    g = torch.Generator("cuda")
    assert g.device.type == "cuda" and g.initial_seed() == 67280421310721
    g.manual_seed(5)
    assert g.get_state().tolist() == [5, 0, 0, 0, 0, 0, 0, 0] + [0] * 8
    g.set_offset(8)
    assert g.get_offset() == 8 and g.get_state().tolist()[8:] == [8] + [0] * 7
    h = g.clone_state()
    assert torch.equal(h.get_state(), g.get_state())
    with pytest.raises(RuntimeError, match="multiple of 4"):
        g.set_offset(3)
    with pytest.raises(RuntimeError, match="RNG state is wrong size"):
        g.set_state(torch.zeros(5, dtype=torch.uint8))
    with pytest.raises(RuntimeError, match="does not use offset"):
        torch.Generator().get_offset()


def test_seeds():
    torch.manual_seed(11)
    assert torch.cuda.initial_seed() == 11
    torch.cuda.manual_seed(12)
    assert torch.cuda.initial_seed() == 12
    state = torch.cuda.get_rng_state()
    torch.cuda.manual_seed_all(13)
    assert [g.initial_seed() for g in torch.cuda.default_generators] == (
        [13] * torch.cuda.device_count()
    )
    torch.cuda.set_rng_state(state)
    assert torch.cuda.initial_seed() == 12
    assert len(torch.cuda.get_rng_state_all()) == torch.cuda.device_count()
    with torch.random.fork_rng(devices=[0]):
        torch.cuda.manual_seed(99)
    assert torch.cuda.initial_seed() == 12


# ---- errors and other libraries


def test_operators_without_a_cuda_kernel_say_so():
    with pytest.raises(NotImplementedError, match=r"'aten::histogram.* 'CUDA' backend") as caught:
        torch.histogram(torch.ones(3).cuda(), 4)
    assert "CPU" in str(caught.value)


def test_other_libraries_see_the_memory():
    x = torch.arange(6.0).reshape(2, 3).cuda()
    found = x.t().__cuda_array_interface__
    assert found["data"] == (x.data_ptr(), False) and found["typestr"] == "<f4"
    assert found["shape"] == (3, 2) and found["strides"] == (4, 12)
    assert torch.from_dlpack(x).data_ptr() == x.data_ptr()


def test_pickle_keeps_the_device():
    x = torch.arange(3.0).cuda()
    back = pickle.loads(pickle.dumps(x))
    assert back.device == x.device and back.tolist() == [0, 1, 2]


def test_data_loader_pins():
    loader = torch.utils.data.DataLoader(torch.arange(8), batch_size=4, pin_memory=True)
    assert [batch.is_pinned() for batch in loader] == [True, True]


def test_bad_index_raises_at_the_next_wait_and_the_process_goes_on():
    weight = torch.ones(3, 2, device="cuda")
    torch.nn.functional.embedding(torch.tensor([1, 7]).cuda(), weight)
    with pytest.raises(IndexError, match="index 7 is out of") as caught:
        torch.cuda.synchronize()
    assert "size 3" in str(caught.value) and str(caught.value).endswith("on cuda:0")
    torch.cuda.synchronize()
    good = torch.nn.functional.embedding(torch.tensor([1, 2]).cuda(), weight)
    assert good.tolist() == [[1, 1], [1, 1]]
    torch.nn.functional.embedding(torch.tensor([-1]).cuda(), weight)
    with pytest.raises(IndexError, match="index -1"):
        weight.sum().item()
