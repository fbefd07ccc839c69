"""torch.compile where the machine gives less than usual: no compiler, no place to write, a full
disk, interrupts, forks, many processes on one cold cache, damaged entries. Each program runs in a
process of its own with a time limit: it computes what eager code computes, or says what is wrong,
and ends."""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys
import textwrap

import pytest

ROOT = pathlib.Path(__file__).parents[2]

START = """
import os, sys, torch
from torch._dynamo.utils import counters
from torch._inductor import codecache, config

def steps(x, w):
    for i in range(2):
        x = torch.relu(x @ w + i).sin() * 0.5 + x
    return x.softmax(-1).sum(0)

def close(x, w, fn=None):
    fn = fn or torch.compile(steps)
    torch.testing.assert_close(fn(x, w), steps(x, w))
    return fn

x, w = torch.randn(32, 16), torch.randn(16, 16)
"""


def run(program: str, folder: pathlib.Path, **env: str | None) -> str:
    """What a program says; its status must be 0. None takes a variable away."""
    given = {**os.environ, "TORCHINDUCTOR_CACHE_DIR": str(folder / "cache"), **env}
    done = subprocess.run(
        [sys.executable, "-c", START + textwrap.dedent(program)],
        env={key: value for key, value in given.items() if value is not None},
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


HOT = """
with config.patch({"cpp.hot_kernel_elements": 1}):
    fn = close(x, w)
    codecache.wait_for_kernels()
    for _ in range(3):
        close(x, w, fn)
print(counters["inductor"]["kernels_compiled"] > 0)
"""


def test_without_a_compiler_all_is_computed(tmp_path: pathlib.Path) -> None:
    assert run(HOT, tmp_path, PATH="", CXX=None) == "False"


def test_home_and_cache_that_cannot_be_written_to_cost_nothing_else(tmp_path: pathlib.Path) -> None:
    # Nobody, not even root, can make a file there.
    said = run(
        HOT,
        tmp_path,
        HOME="/proc/self",
        XDG_CACHE_HOME="/proc/self",
        TMPDIR="/proc/self",
        TORCHINDUCTOR_CACHE_DIR="/proc/self/cache",
    )
    assert said in ("True", "False")


def test_full_disk_costs_nothing_else(tmp_path: pathlib.Path) -> None:
    program = "import resource\nresource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))\n" + HOT
    assert run(program, tmp_path) == "False"
    left = [p for p in (tmp_path / "cache").rglob("*") if p.is_file() and p.stat().st_size]
    assert left == []


def test_disk_that_fills_while_writing_leaves_no_half_entries(tmp_path: pathlib.Path) -> None:
    program = "import resource\nresource.setrlimit(resource.RLIMIT_FSIZE, (900, 900))\n" + HOT
    run(program, tmp_path)
    names = [p.name for p in (tmp_path / "cache").rglob("*") if p.is_file()]
    assert not [name for name in names if name.startswith(".tmp")]
    assert run(HOT, tmp_path) in ("True", "False")


INTERRUPTIBLE = """
import signal, time

def stop(*unused):
    raise KeyboardInterrupt

def compile_anew():
    torch._dynamo.reset()
    return close(x, w)

signal.signal(signal.SIGALRM, stop)
"""

AT_ANY_TIME = """
compile_anew()
begin = time.perf_counter()
compile_anew()
whole = time.perf_counter() - begin
for round in range(20):
    try:
        signal.setitimer(signal.ITIMER_REAL, whole * (round + 1) / 20)
        compile_anew()
        signal.setitimer(signal.ITIMER_REAL, 0)
    except KeyboardInterrupt:
        pass
    close(x, w)
    compile_anew()
print("done")
"""

IN_A_STAGE = """
def interrupted(graph):
    signal.raise_signal(signal.SIGALRM)

for stage in ("joint_custom_pre_pass", "post_grad_custom_pre_pass", "post_grad_custom_post_pass"):
    stopped = False
    weight = w.clone().requires_grad_()
    with config.patch({stage: interrupted}):
        torch._dynamo.reset()
        try:
            torch.compile(steps)(x, weight)
        except KeyboardInterrupt:
            stopped = True
    print(stage, stopped)
    close(x, weight)
    compile_anew()
"""


def test_interrupt_at_any_time_of_a_compilation_leaves_everything_usable(
    tmp_path: pathlib.Path,
) -> None:
    assert run(INTERRUPTIBLE + AT_ANY_TIME, tmp_path) == "done"


def test_interrupt_inside_a_stage_reaches_the_caller_and_leaves_everything_usable(
    tmp_path: pathlib.Path,
) -> None:
    said = run(INTERRUPTIBLE + IN_A_STAGE, tmp_path)
    assert [line.split()[1] for line in said.splitlines()] == ["True"] * 3, said


def test_interrupt_from_the_terminal_ends_the_program(tmp_path: pathlib.Path) -> None:
    program = """
    print("begins", flush=True)
    while True:
        torch._dynamo.reset()
        close(x, w)
    """
    child = subprocess.Popen(
        [sys.executable, "-c", START + textwrap.dedent(program)],
        env={**os.environ, "TORCHINDUCTOR_CACHE_DIR": str(tmp_path)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert child.stdout.readline() == "begins\n"
    # Python drops an interrupt that falls into a finalizer, so the key is pressed until it works.
    for _ in range(12):
        child.send_signal(2)
        try:
            _, said = child.communicate(timeout=5)
            break
        except subprocess.TimeoutExpired:
            continue
    else:
        child.kill()
        pytest.fail("twelve interrupts did not end the program")
    assert child.returncode != 0 and said.splitlines()[-1] == "KeyboardInterrupt"


MANY = """
children = []
for i in range(16):
    child = os.fork()
    if child == 0:
        try:
            with config.patch({"cpp.hot_kernel_elements": 1}):
                fn = close(x, w)
                codecache.wait_for_kernels()
                close(x, w, fn)
            os._exit(0)
        finally:
            os._exit(1)
    children.append(child)
print([os.waitpid(child, 0)[1] for child in children] == [0] * 16)
"""


@pytest.mark.slow
def test_sixteen_processes_share_one_cold_cache(tmp_path: pathlib.Path) -> None:
    assert run(MANY, tmp_path) == "True"
    names = [p.name for p in (tmp_path / "cache").rglob("*") if p.is_file()]
    assert names and not [name for name in names if name.startswith(".tmp")]


def test_child_after_a_fork_compiles_and_runs_what_the_parent_compiled(
    tmp_path: pathlib.Path,
) -> None:
    program = """
    fn = close(x, w)
    child = os.fork()
    if child == 0:
        try:
            close(x, w, fn)
            close(x[:7], w, fn)
            torch._dynamo.reset()
            close(x, w)
            os._exit(0)
        finally:
            os._exit(1)
    print(os.waitpid(child, 0)[1])
    close(x, w, fn)
    """
    assert run(program, tmp_path) == "0"


def test_mutated_entries_are_never_taken(tmp_path: pathlib.Path) -> None:
    done = subprocess.run(
        [sys.executable, str(ROOT / "tools" / "fuzz" / "cache_entries.py"), "--n", "300"],
        env={**os.environ, "TMPDIR": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stdout + done.stderr
