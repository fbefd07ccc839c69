"""Op records moved to CUDA: a slice of what tools/gpu/records.py runs whole on a machine with a
GPU (values against the record's reference, gradients against the CPU's), and that program's
counting. The slice changes with the records, the rule does not: every n-th by name."""

import importlib.util
import io
import pathlib

import pytest
from cuda_support import EMULATED

PATH = pathlib.Path(__file__).resolve().parents[2] / "tools" / "gpu" / "records.py"


def _loaded():
    spec = importlib.util.spec_from_file_location("gpu_records", PATH)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


gpu = _loaded()
# The emulator compiles each program with g++, about a second of it, where a GPU has them ready.
STEP = 53 if EMULATED else 4


RECORDS = [r for r in gpu.records() if r.family not in gpu.OUTSIDE]


@pytest.mark.parametrize("record", RECORDS[::STEP], ids=lambda r: r.full_name)
def test_record_matches_on_the_device(record):
    done = gpu.run_record(record, thin=1)
    if not done.get("passed") and not done.get("failed"):
        pytest.skip("no kernel on CUDA")
    if all("this operator needs LAPACK" in line for line in done["lines"]) and done["lines"]:
        pytest.skip("the CPU's values need LAPACK, which is not installed")
    assert not done.get("failed"), done["lines"]


def outcome(name, **counts):
    lines = [f"value float32 (): {k}" for k in counts if k != "passed"]
    return {"name": name, "family": "pointwise", "lines": lines, **counts}


def test_an_operator_without_any_kernel_does_not_count(capsys):
    share = gpu.table([outcome("a", passed=3), outcome("b", refused=5)], io.StringIO())
    assert share == 1.0
    assert "absent: b" in capsys.readouterr().out


def test_failures_refusals_and_crashes_count(capsys):
    found = [outcome("a", passed=6, failed=1, refused=2), outcome("b", crashed=1)]
    stream = io.StringIO()
    assert gpu.table(found, stream) == 0.6
    assert stream.getvalue().splitlines()[0] == "a value float32 (): failed"
    assert "6 of 10 calls match" in capsys.readouterr().out


def test_a_wrong_value_is_a_failure():
    record = next(r for r in gpu.records() if r.full_name == "exp")
    sample = record.sample_inputs("cpu", gpu.torch.float32)[0]

    def wrong(record, sample):
        gpu.compare(record, record.apply(sample) + 1, gpu.reference(record, sample))

    kind, what = gpu.attempt(wrong, record, sample)
    assert kind == "failed" and "AssertionError" in what


def test_a_missing_kernel_is_a_refusal():
    record = next(r for r in gpu.records() if r.full_name == "exp")

    def missing(record, sample):
        raise NotImplementedError("no kernel")

    assert gpu.attempt(missing, record, None) == ("refused", "no kernel")
