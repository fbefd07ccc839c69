"""What a process without a CUDA driver sees: questions are answered, use raises, nothing is loaded.
Each case runs in an interpreter of its own, because other tests of this run may have CUDA."""

import json
import os
import pathlib
import subprocess
import sys

import pytest

import torch

ROOT = pathlib.Path(torch.__file__).parent.parent
# What builds of PyTorch for the CPU and for CUDA say; programs look for the one or the other.
NO_DRIVER = ("Torch not compiled with CUDA enabled", "Found no NVIDIA driver on your system")


def run(code):
    """Runs code that prints one JSON value, on a machine that seems to have no driver."""
    environment = dict(os.environ, PYTHONPATH=str(ROOT), CUDA_VISIBLE_DEVICES="")
    environment.pop("LD_LIBRARY_PATH", None)
    done = subprocess.run(
        [sys.executable, "-c", "import json, torch\n" + code],
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


pytestmark = pytest.mark.skipif(
    not torch._C._has_cuda or os.path.exists("/dev/nvidiactl"),
    reason="needs a build with the CUDA part on a machine without a GPU",
)


def test_questions_are_answered():
    found = run("""
found = [torch.cuda.is_available(), torch.cuda.device_count(), torch.cuda.is_initialized(),
    torch.cuda.memory_allocated(), torch.cuda.memory_reserved(), torch.cuda.memory_stats(),
    torch.cuda.memory_snapshot(), torch.ones(2).is_pinned(), torch.cuda.is_bf16_supported(),
    torch.cuda.is_current_stream_capturing(), torch.cuda.get_arch_list()]
torch.cuda.empty_cache()
torch.cuda.manual_seed(1)
torch.cuda.manual_seed_all(2)
print(json.dumps(found))
""")
    assert found == [False, 0, False, 0, 0, {}, [], False, False, False, []]


USES = [
    "torch.zeros(1, device='cuda')",
    "torch.empty(0, device='cuda')",
    "torch.tensor([1.0], device='cuda')",
    "torch.randn(3, device='cuda')",
    "torch.ones(3).cuda()",
    "torch.ones(3).to('cuda:1')",
    "torch.ones(3).pin_memory()",
    "torch.empty(3, pin_memory=True)",
    "torch.UntypedStorage(4, device='cuda')",
    "torch.cuda.current_device()",
    "torch.cuda.set_device(0)",
    "torch.cuda.synchronize()",
    "torch.cuda.Stream()",
    "torch.cuda.current_stream()",
    "torch.cuda.get_device_name()",
    "torch.cuda.get_device_properties(0)",
    "torch.cuda.get_rng_state()",
    "torch.cuda.mem_get_info()",
    "torch.cuda.Event().record()",
    "torch.cuda.init()",
    "torch.nn.Linear(2, 2).cuda()",
]


def test_use_raises():
    found = run(f"""
found = []
for text in {USES!r}:
    try:
        eval(text)
        found.append([text, None, ''])
    except Exception as error:
        kinds = isinstance(error, AssertionError), isinstance(error, RuntimeError)
        found.append([text, kinds, str(error)])
print(json.dumps(found))
""")
    for text, kinds, message in found:
        assert kinds == [True, True], (text, kinds, message)
        assert all(phrase in message for phrase in NO_DRIVER), (text, message)


def test_questions_by_which_programs_choose_a_device_agree():
    found = run("""
from torch.version import cuda
print(json.dumps([torch.version.cuda, cuda, torch.backends.cuda.is_built(), torch.has_cuda,
    torch.cuda.is_available(), torch.cuda.device_count(), hasattr(torch.version, 'absent')]))
""")
    assert found == [None, None, False, False, False, 0, False]


def test_files_of_a_device_say_what_to_do(tmp_path):
    path = str(tmp_path / "x.pt")
    found = run(f"""
torch.save(torch.ones(2), {path!r})
try:
    torch.load({path!r}, map_location='cuda:0')
except RuntimeError as error:
    print(json.dumps(str(error)))
""")
    assert "torch.cuda.is_available() is False" in found and "map_location" in found


def test_a_bare_index_is_no_device():
    found = run("""
try:
    torch.device(0)
except RuntimeError as error:
    print(json.dumps(str(error)))
""")
    assert found.startswith("Cannot access accelerator device when none is available.")


def test_a_cpu_process_loads_no_driver():
    found = run("""
a = torch.randn(4, 4, requires_grad=True)
(a @ a).sum().backward()
torch.manual_seed(0)
torch.cuda.manual_seed_all(0)
assert not a.is_pinned()
maps = open('/proc/self/maps').read()
print(json.dumps([name for name in ('libcuda', 'libnvrtc', 'libcublas') if name in maps]))
""")
    assert found == []


def test_import_does_not_import_torch_cuda():
    assert run("import sys; print(json.dumps('torch.cuda' in sys.modules))") is False


def test_seeds_wait_for_the_device():
    found = run("""
torch.manual_seed(17)
g = torch.Generator('cuda')
print(json.dumps([torch._C._cuda_getDefaultGenerator(None).initial_seed(), g.initial_seed()]))
""")
    assert found == [17, 67280421310721]


def test_what_needs_a_driver_says_so():
    found = run("""
found = []
for text in ('torch.cuda.make_graphed_callables(abs, (torch.ones(1),))', 'torch.cuda.MemPool()',
             'torch.cuda.nccl.all_reduce([torch.ones(1)])', 'torch.cuda.utilization()',
             'torch.cuda.cudart()', 'torch.cuda._sleep(1)', 'torch.cuda.current_blas_handle()'):
    try:
        eval(text)
    except (RuntimeError, AssertionError, ImportError) as error:
        found.append(str(error))
print(json.dumps(found))
""")
    assert len(found) == 7 and all(found)


def test_settings_exist():
    found = run("""
torch.backends.cuda.matmul.allow_tf32 = True
first = torch.get_float32_matmul_precision()
torch.backends.cuda.matmul.allow_tf32 = False
with torch.backends.cudnn.flags(enabled=False, benchmark=True):
    inside = [torch.backends.cudnn.enabled, torch.backends.cudnn.benchmark]
with torch.backends.cuda.sdp_kernel(enable_flash=False):
    inside.append(torch.backends.cuda.flash_sdp_enabled())
try:
    torch.backends.cudnn.bencmark = True
    inside.append('accepted')
except AttributeError:
    inside.append('refused')
print(json.dumps([first, torch.get_float32_matmul_precision(), inside,
    torch.backends.cudnn.enabled, torch.backends.cuda.flash_sdp_enabled(),
    torch.backends.cuda.is_built(), torch.backends.mps.is_available()]))
""")
    assert found == ["high", "highest", [False, True, False, "refused"], True, True, False, False]
