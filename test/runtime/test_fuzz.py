"""The fuzzer of operator calls notices a crash and a hang, covers what is bound, and a short run of
it is clean. REGRESSIONS holds calls that once ended the process or went on for ever: each has to
return or raise."""

import contextlib
import pathlib
import subprocess
import sys

import pytest

FUZZ = pathlib.Path(__file__).resolve().parents[2] / "tools" / "fuzz"
sys.path.insert(0, str(FUZZ))

import targets  # noqa: E402
import values  # noqa: E402

import torch  # noqa: E402

REGRESSIONS = (pathlib.Path(__file__).parent / "fuzz_regressions.txt").read_text().splitlines()


def ops(*arguments, **settings):
    command = [sys.executable, str(FUZZ / "ops.py"), *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=300, **settings)


def test_planted_crash_and_hang_are_found_and_a_planted_file_does_not_stay(tmp_path):
    done = ops("--self-test", cwd=tmp_path)
    assert done.returncode == 0, done.stdout
    assert list(tmp_path.iterdir()) == []


def test_replayed_call_that_writes_a_file_leaves_none_behind(tmp_path):
    done = ops("--replay", "torch.save(T((2,), 'int8'), 'written')", cwd=tmp_path)
    assert done.stdout == "None\n", done.stdout + done.stderr
    assert list(tmp_path.iterdir()) == []


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


def test_tensor_whose_storage_was_freed_raises():
    x = torch.arange(6.0).reshape(2, 3)
    storage = x.untyped_storage()
    storage.resize_(0)
    for call in (lambda: x + 1, lambda: x.sum(), lambda: x.tolist(), lambda: x[0].clone(), x.item):
        with pytest.raises(RuntimeError):
            call()
    storage.resize_(24)
    assert (x.zero_() + 1).sum().item() == 6


@pytest.mark.parametrize("sizes", [(4,), (4, 8), (0, 4), (8, 0, 1)])
def test_tensor_whose_storage_was_shrunk_reads_within_its_memory(sizes):
    x = torch.ones(1000)
    storage = x.untyped_storage()
    for size in sizes:
        storage.resize_(size)
    assert storage.nbytes() == sizes[-1]
    x.fill_(2)
    assert x.sum().item() == 2000


@pytest.mark.parametrize("lower", [True, False])
def test_triangle_indices_count_matches_a_plain_loop(lower):
    make = torch.tril_indices if lower else torch.triu_indices
    for rows in range(5):
        for columns in range(5):
            for offset in range(-6, 7):
                inside = [
                    (i, j)
                    for i in range(rows)
                    for j in range(columns)
                    if (j - i <= offset if lower else j - i >= offset)
                ]
                assert make(rows, columns, offset).t().tolist() == [list(p) for p in inside]


@pytest.mark.parametrize("call", [line for line in REGRESSIONS if line and line[0] != "#"])
def test_call_that_once_crashed_returns_or_raises(call):
    expected = (RuntimeError, TypeError, ValueError, IndexError, NotImplementedError, MemoryError)
    with contextlib.suppress(*expected):
        eval(call, values.namespace())
