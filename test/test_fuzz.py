"""The fuzzer of operator calls notices a crash and a hang, covers what is bound, and a short run of
it is clean. REGRESSIONS holds calls that once ended the process or went on for ever: each has to
return or raise."""

import contextlib
import pathlib
import subprocess
import sys

import pytest

FUZZ = pathlib.Path(__file__).resolve().parents[1] / "tools" / "fuzz"
sys.path.insert(0, str(FUZZ))

import targets  # noqa: E402
import values  # noqa: E402

import torch  # noqa: E402

REGRESSIONS = (pathlib.Path(__file__).parent / "fuzz_regressions.txt").read_text().splitlines()


def ops(*arguments):
    command = [sys.executable, str(FUZZ / "ops.py"), *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)


def test_planted_crash_and_hang_are_found():
    done = ops("--self-test")
    assert done.returncode == 0, done.stdout


def test_short_run_has_no_signal_and_no_hang():
    done = ops("--n", "4000", "--seed", "20", "--jobs", "2")
    assert done.returncode == 0, done.stdout


def test_sequence_depends_on_the_seed_alone():
    every = targets.all_targets()
    first = [targets.call_text(every[i], values.Values(i)) for i in range(0, len(every), 50)]
    again = [targets.call_text(every[i], values.Values(i)) for i in range(0, len(every), 50)]
    assert first == again


def test_every_operator_overload_is_a_target():
    names = {targets.full_name(t) for t in targets.all_targets()}
    for qualified in torch._C._dispatch_get_all_op_names():
        name, _, overload = qualified.partition(".")
        space, _, base = name.partition("::")
        if space == "aten":
            assert f"torch.ops.aten.{base}.{overload or 'default'}" in names


def test_what_is_left_out_says_why():
    assert all(len(reason) > 8 for reason in targets.LEFT_OUT.values())


@pytest.mark.parametrize("call", [line for line in REGRESSIONS if line and line[0] != "#"])
def test_call_that_once_crashed_returns_or_raises(call):
    expected = (RuntimeError, TypeError, ValueError, IndexError, NotImplementedError, MemoryError)
    with contextlib.suppress(*expected):
        eval(call, values.namespace())
