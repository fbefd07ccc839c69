"""What a user of torch.compile does when something is slow, wrong or refused, step by step: the
switches, files and errors that guides name."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import torch
from torch._dynamo.exc import (
    BackendCompilerFailed,
    FailOnRecompileLimitHit,
    RecompileError,
    Unsupported,
)
from torch._inductor import config
from torch._inductor.compiler_bisector import CompilerBisector
from torch._inductor.utils import fresh_inductor_cache, run_and_get_code


@pytest.fixture(autouse=True)
def _fresh() -> Iterator[None]:
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


def _python(folder: Path, program: str, *args: str, **env: str) -> subprocess.CompletedProcess[str]:
    (folder / "program.py").write_text(program)
    return subprocess.run(
        [sys.executable, "program.py", *args],
        cwd=folder,
        env={**os.environ, **env},
        capture_output=True,
        text=True,
        check=False,
    )


# ---- which mode am I in


def test_state_functions_are_constants_of_the_trace() -> None:
    def fn(x: torch.Tensor) -> torch.Tensor:
        if torch.compiler.is_compiling() and torch.compiler.is_dynamo_compiling():
            return x + 1
        return x - 1

    x = torch.zeros(2)
    assert torch.equal(fn(x), x - 1)
    assert torch.equal(torch.compile(fn, fullgraph=True)(x), x + 1)
    assert not torch.compiler.is_exporting()


# ---- look

PROGRAM = """
import torch

@torch.compile
def f(x, y):
    z = torch.relu(x @ y) * 2
    torch._dynamo.graph_break()
    return z.sum(0) + 1

f(torch.ones(3, 4), torch.ones(4, 5))
f(torch.ones(6, 4), torch.ones(4, 5))
"""


@pytest.mark.slow
def test_logs_show_breaks_recompiles_guards_and_code(tmp_path: Path) -> None:
    done = _python(
        tmp_path, PROGRAM, TORCH_LOGS="+dynamo,graph_breaks,recompiles,guards,output_code"
    )
    assert done.returncode == 0, done.stderr
    for text in ("Graph break", "Recompiling function", "GUARDS", "def call(args)"):
        assert text in done.stderr


@pytest.mark.slow
def test_debug_folder_holds_all_stages_and_programs_that_run(tmp_path: Path) -> None:
    done = _python(tmp_path, PROGRAM, TORCH_COMPILE_DEBUG="1", TORCHINDUCTOR_COMPILE_THREADS="1")
    assert done.returncode == 0 and "debug trace: " in done.stderr
    folders = sorted(tmp_path.glob("torch_compile_debug/run_*/torchinductor/*"))
    assert len(folders) >= 2
    names = {
        "fx_graph_readable.py",
        "fx_graph_runnable.py",
        "fx_graph_transformed.py",
        "ir_pre_fusion.txt",
        "ir_post_fusion.txt",
        "output_code.py",
    }
    for folder in folders:
        assert {p.name for p in folder.iterdir()} == names
    assert "aten.mm" in (folders[0] / "fx_graph_readable.py").read_text()
    assert "FusedSchedulerNode" in (folders[0] / "ir_post_fusion.txt").read_text()
    for name in ("output_code.py", "fx_graph_runnable.py"):
        alone = subprocess.run(
            [sys.executable, str(folders[0] / name)], capture_output=True, text=True, check=False
        )
        assert alone.returncode == 0, alone.stderr


def _compiled_text(fn, *args):
    with fresh_inductor_cache():
        return run_and_get_code(torch.compile(fn), *args)


@pytest.mark.parametrize(
    "fn",
    [
        lambda x, w: torch.relu(x @ w + 1).mean(1),
        lambda x, w: (x.t().sin(), w.cos() @ w.t(), x.softmax(0)),
        lambda x, w: torch.cat([x, w.t()[:, :4]]).to(torch.float64).cumsum(0),
        lambda x, w: torch.where(x > 0, x, w[:, :3].t()[0, 0]) + torch.tensor([1.0, 2, 3, 4]),
        lambda x, w: x.view(2, 6).amax(1).exp() - w.std(),
        lambda x, w: torch.softmax((x @ w).masked_fill(w[:3] > 0, -float("inf")) / 3, -1) @ w.t(),
    ],
)
def test_output_code_runs_by_itself_with_the_same_bits(fn) -> None:
    torch.manual_seed(3)
    args = (torch.randn(3, 4), torch.randn(4, 5))
    if fn.__code__.co_names.count("cat"):
        args = (torch.randn(3, 4), torch.randn(5, 4).t())
    result, codes = _compiled_text(fn, *args)
    assert len(codes) == 1
    space: dict[str, object] = {"__name__": "compiled"}
    exec(compile(codes[0], "output_code.py", "exec"), space)
    alone = space["call"](list(args))
    wanted = result if isinstance(result, tuple) else (result,)
    for got, want in zip(alone, wanted, strict=True):
        assert torch.equal(got, want)


# ---- classify by what is raised


def test_code_that_cannot_be_traced_is_unsupported_with_reason_and_line() -> None:
    def fn(x: torch.Tensor) -> torch.Tensor:
        torch._dynamo.graph_break()
        return x + 1

    with pytest.raises(Unsupported, match=r"(?s)Explanation.*from user code"):
        torch.compile(fn, fullgraph=True)(torch.ones(2))


def test_backend_that_raises_is_named_with_its_error() -> None:
    def backend(gm, inputs):
        raise ValueError("no such instruction")

    with pytest.raises(BackendCompilerFailed) as caught:
        torch.compile(lambda x: x + 1, backend=backend)(torch.ones(2))
    assert "backend='backend' raised:\nValueError: no such instruction" in str(caught.value)
    assert isinstance(caught.value.inner_exception, ValueError)


def test_recompiling_where_it_is_forbidden_raises() -> None:
    fn = torch.compile(lambda x: x + 1, dynamic=False)
    fn(torch.ones(2))
    with torch._dynamo.config.patch(error_on_recompile=True), pytest.raises(RecompileError):
        fn(torch.ones(3))
    with (
        torch._dynamo.config.patch(recompile_limit=1, fail_on_recompile_limit_hit=True),
        pytest.raises(FailOnRecompileLimitHit),
    ):
        fn(torch.ones(4))


def test_nan_asserts_name_the_first_bad_operator() -> None:
    def fn(x: torch.Tensor) -> torch.Tensor:
        y = x * 2 + 1
        z = torch.log(y - 4)
        return z.exp() + y

    with config.patch(nan_asserts=True):
        compiled = torch.compile(fn)
        assert torch.equal(compiled(torch.full((3,), 5.0)), fn(torch.full((3,), 5.0)))
        with pytest.raises(AssertionError, match=r"log \(aten.log.default\) has NaN"):
            compiled(torch.ones(3))


def test_compile_times_list_the_phases() -> None:
    torch.compile(lambda x: x + 1)(torch.ones(2))
    text = torch._dynamo.utils.compile_times()
    assert "compile_fx_inner" in text and "_compile.compile_inner" in text


# ---- which part is wrong


def _agrees(fn, x: torch.Tensor) -> bool:
    return torch.allclose(torch.compile(fn)(x), fn(x))


def test_bisector_finds_the_operator_whose_kernel_is_wrong() -> None:
    x = torch.randn(6)

    def fn(x: torch.Tensor) -> torch.Tensor:
        return torch.log1p(torch.relu(x.sin())).cos()

    with config.patch({"cpp.inject_relu_bug_TESTING_ONLY": "accuracy"}):
        found = CompilerBisector.do_bisect(lambda: _agrees(fn, x))
    assert (found.backend, found.subsystem, found.bisect_number) == ("inductor", "lowerings", 1)
    assert "relu" in found.debug_info


def test_bisector_finds_the_pass_that_is_wrong() -> None:
    from torch._inductor.fx_passes import post_grad
    from torch._inductor.pattern_matcher import (
        Arg,
        CallFunction,
        Match,
        PatternMatcherPass,
        register_graph_pattern,
    )

    wrong = PatternMatcherPass(pass_name="cos_for_sin")

    @register_graph_pattern(CallFunction(torch.ops.aten.sin.default, Arg()), pass_dict=wrong)
    def spoil(match: Match, x: torch.fx.Node) -> None:
        match.output_node().target = torch.ops.aten.cos.default

    x = torch.randn(6)
    post_grad.pass_patterns.append(wrong)
    try:
        found = CompilerBisector.do_bisect(lambda: _agrees(lambda x: x.sin() + 1, x))
    finally:
        post_grad.pass_patterns.remove(wrong)
    assert (found.backend, found.subsystem) == ("inductor", "post_grad_passes")
    assert found.debug_info == "cos_for_sin"


def test_bisector_says_nothing_where_all_is_well_and_eager_where_nothing_helps() -> None:
    assert CompilerBisector.do_bisect(lambda: True) is None
    assert CompilerBisector.do_bisect(lambda: False).backend == "eager"


@pytest.mark.slow
def test_bisector_runs_a_command(tmp_path: Path) -> None:
    program = """
import sys, torch
torch._inductor.config.cpp.inject_relu_bug_TESTING_ONLY = "accuracy"
x = torch.randn(5)
fn = lambda x: torch.relu(x.sin())
sys.exit(not torch.allclose(torch.compile(fn)(x), fn(x)))
"""
    (tmp_path / "program.py").write_text(program)
    done = subprocess.run(
        [sys.executable, "-m", "torch._inductor.compiler_bisector", "run", sys.executable,
         str(tmp_path / "program.py")],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert "backend='inductor', subsystem='lowerings', bisect_number=1" in done.stdout


# ---- one page of a trace


@pytest.mark.slow
def test_trace_becomes_one_page(tmp_path: Path) -> None:
    logs = tmp_path / "trace"
    done = _python(tmp_path, PROGRAM, TORCH_TRACE=str(logs))
    assert done.returncode == 0, done.stderr
    assert list(logs.iterdir())
    page = tmp_path / "report.html"
    made = subprocess.run(
        [sys.executable, "-m", "torch.compile_report", str(logs), "--out", str(page)],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert made.returncode == 0, made.stderr
    text = page.read_text()
    assert text.startswith("<!DOCTYPE html>")
    for part in ("Graph breaks", "Recompiles", "Compilations", "[0/0]"):
        assert part in text


def test_benchmarker_times_functions_of_the_device_of_their_tensors() -> None:
    from torch._dynamo.utils import counters
    from torch._inductor.runtime.benchmarking import Benchmarker, benchmarker

    counters.clear()
    assert benchmarker.benchmark_cpu(lambda: sum(range(10)), warmup=1, rep=1) > 0
    assert Benchmarker().benchmark(torch.sum, (torch.ones(3),), {}, warmup=1, rep=1) > 0
    assert counters["inductor"]["benchmarking.Benchmarker.benchmark_cpu"] == 1
    with pytest.raises(ValueError, match="on one device"):
        benchmarker.benchmark(sum, ([1, 2],), {})
    with pytest.raises(NotImplementedError, match="benchmark_gpu"):
        Benchmarker().benchmark_gpu(lambda: None)
