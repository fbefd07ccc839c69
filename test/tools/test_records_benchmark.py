"""benchmarks/records.py: the table of operator times beside another torch, with this torch as the
peer."""

import pathlib
import subprocess
import sys

import pytest

import torch

ROOT = pathlib.Path(torch.__file__).parent.parent
BENCHMARKS = ROOT / "benchmarks"


@pytest.fixture
def programs(monkeypatch):
    """The two programs as modules: the one that asks and the one that answers."""
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    import records
    import records_worker

    return records, records_worker


@pytest.mark.parametrize(
    "dtype", [torch.float32, torch.bfloat16, torch.complex64, torch.bool, torch.int64]
)
def test_tensor_sent_to_a_worker_arrives_with_dtype_shape_and_values(programs, dtype):
    asks, answers = programs
    sent = torch.arange(6).reshape(2, 3).to(dtype)
    arrived = answers.decode(asks.encode(sent.t()))
    assert arrived.dtype is dtype and arrived.tolist() == sent.t().tolist()
    empty = answers.decode(asks.encode(torch.empty(0, 3, dtype=dtype)))
    assert empty.shape == (0, 3) and empty.dtype is dtype


def test_other_arguments_arrive_as_they_were(programs):
    asks, answers = programs
    arguments = [None, 1, 2.5, "mean", (1, (2, 3)), [True], {"dim": 0}, slice(0, 2), torch.float16]
    assert answers.decode(asks.encode(arguments)) == arguments
    with pytest.raises(asks.NotPortable, match="Generator"):
        asks.encode(torch.Generator())


def test_slow_record_without_a_cause_is_named(programs, monkeypatch, capsys):
    asks, _ = programs
    rows = [asks.Row("slow", "float32[2]", 2.0, 1.0), asks.Row("fast", "float32[2]", 1.0, 2.0)]
    monkeypatch.setattr(asks, "CAUSES", {})
    assert asks.show(rows) == ["slow"]
    monkeypatch.setattr(asks, "CAUSES", {"slow": "why", "fast": "why it was"})
    assert asks.show(rows) == []
    printed = capsys.readouterr().out
    assert "why" in printed and "cause no longer needed: fast" in printed


def test_program_prints_a_ratio_for_each_sample():
    command = [sys.executable, "-W", "ignore", str(BENCHMARKS / "records.py"), "--rounds", "1"]
    command += ["--peer", sys.executable, "--filter", "special.entr", "--dtypes", "float32"]
    done = subprocess.run(command, capture_output=True, text=True, cwd="/", timeout=120)
    assert done.returncode in (0, 1), done.stderr
    assert "special.entr(float32[" in done.stdout and "samples, geometric mean" in done.stdout
