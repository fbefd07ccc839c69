"""Ctrl-C, fork and affinity: a long operator answers a signal within a second and leaves the
library usable, a forked child can compute, and the pool is no larger than the cores it may
run on."""

import os
import subprocess
import sys
import time

import pytest

import torch

LONG = {
    "pointwise": lambda: torch.zeros(()).expand(1 << 34).sum(),
    "matmul": lambda: torch.mm(torch.zeros(1, 1).expand(20000, 20000), torch.zeros(20000, 20000)),
    "prod_of_expanded": lambda: torch.ones((), dtype=torch.int8).expand(1 << 20, 1 << 40).prod(),
    "mv_of_expanded": lambda: torch.ones(()).expand(1 << 21, 1 << 20).mv(torch.ones(1 << 20)),
    "scatter_add_of_expanded": lambda: torch.zeros(3).scatter_add_(
        0, torch.zeros((), dtype=torch.int64).expand(1 << 40), torch.ones(()).expand(1 << 40)
    ),
    "chain": lambda: [torch.rand(4_000_000).exp_() for _ in range(100000)],
    "randperm": lambda: torch.randperm(1 << 27),
    "exponential": lambda: torch.empty(1 << 27, dtype=torch.float64).exponential_(),
    "cumsum": lambda: torch.zeros(1, 1).expand(1, 1 << 29).cumsum(1),
}


def interrupted_after(call, delay=0.3):
    """Seconds from the signal to KeyboardInterrupt. Another process sends it: a thread of this one
    would have to wait for the interpreter."""
    sender = subprocess.Popen(["sh", "-c", f"sleep {delay}; kill -INT {os.getpid()}"])
    sent = time.monotonic() + delay
    try:
        call()
        sender.wait()
    except KeyboardInterrupt:
        return time.monotonic() - sent
    finally:
        sender.wait()
    raise AssertionError("the call ended by itself")


@pytest.mark.parametrize("name", LONG)
def test_ctrl_c_inside_a_long_operator_raises_within_a_second(name):
    assert interrupted_after(LONG[name]) < 1
    x = torch.rand(1000, 500)
    assert torch.equal(x + x, x * 2)
    assert torch.ones(300_000).sum().item() == 300_000


def test_operators_go_on_after_many_interrupts():
    for delay in (0.05, 0.1, 0.15, 0.2):
        interrupted_after(LONG["pointwise"], delay)
    assert torch.ones(1000, 1000).mm(torch.ones(1000, 8))[0, 0].item() == 1000


def run(code):
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False
    )


def test_fork_after_parallel_work_child_can_compute():
    done = run(
        "import os, torch\n"
        "x = torch.rand(2_000_000); total = x.sum().item()\n"
        "pid = os.fork()\n"
        "if pid == 0:\n"
        "    ok = x.sum().item() == total and (x + x).sum().item() > 0\n"
        "    os._exit(0 if ok else 3)\n"
        "_, status = os.waitpid(pid, 0)\n"
        "assert (x * 2).sum().item() > 0\n"
        "print(os.waitstatus_to_exitcode(status))\n"
    )
    assert done.stdout.strip() == "0", done.stderr


def test_fork_while_another_thread_computes_child_can_compute():
    done = run(
        "import os, threading, torch\n"
        "x = torch.rand(1_000_000); stop = False\n"
        "def spin():\n"
        "    while not stop: (x + x).sum()\n"
        "t = threading.Thread(target=spin); t.start()\n"
        "codes = []\n"
        "for _ in range(20):\n"
        "    pid = os.fork()\n"
        "    if pid == 0:\n"
        "        torch.rand(500_000).exp().sum(); os._exit(0)\n"
        "    codes.append(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))\n"
        "stop = True; t.join()\n"
        "print(set(codes))\n"
    )
    assert done.stdout.strip() == "{0}", done.stderr


def test_pool_is_sized_by_affinity():
    first = min(os.sched_getaffinity(0))
    done = run(
        f"import os; os.sched_setaffinity(0, {{{first}}})\n"
        "import torch; print(torch.get_num_threads())"
    )
    assert done.stdout.strip() == "1", done.stderr


def test_number_of_threads_from_the_environment():
    code = "import torch; print(torch.get_num_threads())"
    environment = dict(os.environ, OMP_NUM_THREADS="3")
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=True
    )
    assert done.stdout.strip() == "3"
