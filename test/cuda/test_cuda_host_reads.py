"""No kernel of the CPU is given the memory of a device. Every op record runs on CUDA tensors in all
its dtypes, on the emulator in a mode where nothing is compiled or computed: what remains is the
host's part, and the memory of a device is closed to it. A process that reads it ends with a signal,
and what it wrote last names the operator."""

import pathlib

import pytest
from cuda_support import EMULATED, emulator_environment, run_python

if not EMULATED:
    pytest.skip("tests of the emulator, on a machine with a GPU", allow_module_level=True)

ROOT = pathlib.Path(__file__).resolve().parents[2]
RECORDS = f"""
import sys, warnings
sys.path.insert(0, {str(ROOT / "tools" / "gpu")!r})
import records
warnings.simplefilter("ignore")
made = 0
for record in records.records():
    if record.family in records.OUTSIDE:
        continue
    print(record.full_name, flush=True)
    for dtype in record.dtypes:
        for sample in record.sample_inputs("cpu", dtype)[:3]:
            try:
                record.apply(records.on_device(record, sample))
                made += 1
            except Exception:  # a combination without a kernel, or a result that makes no sense
                pass
print(made)
"""
READ = """
import ctypes, torch
x = torch.ones(1000, device="cuda")
assert x.sum().cpu().numel() == 1  # opens the memory for as long as it takes
print("reads", flush=True)
ctypes.string_at({}, 1)
"""


def run(code, tmp_path, **settings):
    """What a process prints; its programs, which are empty, stay out of the others' caches."""
    environment = emulator_environment(**settings) | {
        "CRESSET_EMULATOR_CACHE": str(tmp_path / "programs"),
        "CRESSET_CACHE_DIR": str(tmp_path / "cache"),
    }
    return run_python(code, environment, timeout=280)


@pytest.mark.parametrize("address", ["x.data_ptr()", "x[7:].data_ptr()", "(x + 1).data_ptr()"])
@pytest.mark.parametrize("virtual", [0, 1])
def test_host_that_reads_a_device_tensor_ends_with_a_signal(address, virtual, tmp_path):
    done = run(READ.format(address), tmp_path, DRY=1, VMM=virtual)
    assert (done.returncode, done.stdout) == (-11, "reads\n"), done.stderr


@pytest.mark.slow
def test_no_operator_reads_the_memory_of_a_device_from_the_host(tmp_path):
    done = run(RECORDS, tmp_path, DRY=1)
    assert any((tmp_path / "cache").rglob("*.cubin"))  # and not in the cache of other tests
    *names, last = done.stdout.split()
    assert done.returncode == 0, f"{last}: {done.stderr}"
    assert int(last) > 10 * len(names)
