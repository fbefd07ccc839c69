"""Compiled graphs on CUDA whose kernels are compiled beside the program: the operators run one by
one until then, with the same bits, and nobody waits for a compiler, not even the end of the
program."""

import pathlib
import subprocess
import sys
import time

from cuda_support import EMULATED, cuda, emulator_environment

import torch
from torch._inductor.compile_fx import compile_fx_inner
from torch.fx.experimental.proxy_tensor import make_fx


def in_background(body, args):
    with torch._inductor.config.patch({"triton.compile_in_background": True}):
        return compile_fx_inner(make_fx(body)(*args), args)


def agree(got, want):
    assert all(torch.equal(a.cpu(), b.cpu()) for a, b in zip(got, want, strict=True))


def body(number):
    # Another kernel for each number of operators, so that none is found on disk.
    def function(x, w):
        y = torch.relu(x @ w)
        for k in range(number):
            y = torch.tanh(y * (k + 1)) + x
        return [y, y.sum(0)]

    return function


def test_results_are_those_of_the_operators_before_and_after_the_kernels_are_there():
    args = [torch.randn(4, 4, device=cuda), torch.randn(4, 4, device=cuda)]
    function = body(3)
    compiled = in_background(function, args)
    want = function(*args)
    deadline = time.monotonic() + 60
    for _ in range(3):
        agree(compiled(list(args)), want)
    while time.monotonic() < deadline and compiled.missing_kernels():
        time.sleep(0.05)
    assert compiled.missing_kernels() == 0
    for _ in range(5):
        agree(compiled(list(args)), want)


def test_the_end_of_the_program_waits_for_no_queue_of_kernels():
    text = """
import sys
import cuda_support
import torch
torch._inductor.config.triton.compile_in_background = True
from torch._inductor.compile_fx import compile_fx_inner
from torch.fx.experimental.proxy_tensor import make_fx
x = torch.randn(8, device="cuda")
for n in range(2, 8):
    def body(x):
        y = x
        for k in range(n):
            y = torch.cos(y) * 1.5 if k % 2 else torch.erf(y) - k
        return [y]
    compiled = compile_fx_inner(make_fx(body)(x), [x])
    assert torch.equal(compiled([x])[0].cpu(), body(x)[0].cpu())
print("done", flush=True)
"""
    environment = emulator_environment() if EMULATED else None
    support = str(pathlib.Path(__file__).parents[1] / "support")
    found = subprocess.run(
        [sys.executable, "-c", f"import sys; sys.path.insert(0, {support!r})\n" + text],
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert found.returncode == 0, found.stderr
    assert found.stdout.strip() == "done"
