"""Switches of the compiler that guides to debugging name: logs, variables of the environment,
synchronisation, backends of installed packages, and the functions that compare results."""

from __future__ import annotations

import copy
import os
import subprocess
import sys
from pathlib import Path

import pytest

import torch
from torch import fx
from torch._dynamo import debug_utils
from torch._dynamo.exc import BackendCompilerFailed, InternalTorchDynamoError
from torch._inductor import config, debug
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.proxy_tensor import make_fx


@pytest.fixture(autouse=True)
def _fresh():
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


def _python(folder: Path, program: str, **env: str) -> subprocess.CompletedProcess[str]:
    (folder / "program.py").write_text(program)
    return subprocess.run(
        [sys.executable, "program.py"],
        cwd=folder,
        env={**os.environ, **env},
        capture_output=True,
        text=True,
        check=False,
    )


# ---- logs

RECOMPILED = """
import torch

@torch.compile(dynamic=False)
def f(x, y):
    return torch.relu(x @ y) * 2

for n in (3, 6, 7):
    f(torch.ones(n, 4), torch.ones(4, 5))
"""


def test_verbose_log_of_recompilations_names_the_guards_of_all_forms(tmp_path: Path) -> None:
    done = _python(tmp_path, RECOMPILED, TORCH_LOGS="recompiles,recompiles_verbose,guards")
    assert done.returncode == 0, done.stderr
    assert "[__recompiles_verbose] Recompiling function f" in done.stderr
    lines = [line for line in done.stderr.splitlines() if "[__recompiles_verbose]" in line]
    for form, met in (("0/0", "expected 3, actual 7"), ("0/1", "expected 6, actual 7")):
        assert any(f"- {form}: tensor 'L['x']' size mismatch" in t and met in t for t in lines)


def test_log_of_the_schedule_lists_the_steps_with_their_operators(tmp_path: Path) -> None:
    done = _python(tmp_path, RECOMPILED, TORCH_LOGS="output_code,schedule")
    assert done.returncode == 0, done.stderr
    steps = [line.partition("[__schedule] ")[2] for line in done.stderr.splitlines()]
    assert "0: call aten::mm: mm (aten.mm.default)" in steps
    assert "1: fused fused_relu_mul: relu (aten.relu.default), mul (aten.mul.Tensor)" in steps
    assert "def call(args)" in done.stderr


def test_logs_are_silent_unless_asked_for(tmp_path: Path) -> None:
    done = _python(tmp_path, RECOMPILED)
    assert done.returncode == 0 and done.stderr == ""


# ---- variables of the environment

FAILING = """
import torch

def backend(gm, inputs):
    raise ValueError("no such instruction")

torch.compile(lambda x: x + 1, backend=backend)(torch.ones(2))
"""


@pytest.mark.parametrize("verbose", ["", "1"])
def test_message_of_a_failing_backend_says_how_to_see_more(verbose: str, tmp_path: Path) -> None:
    done = _python(tmp_path, FAILING, TORCHDYNAMO_VERBOSE=verbose)
    assert "BackendCompilerFailed: backend='backend' raised:\nValueError: no such" in done.stderr
    told = "Set TORCHDYNAMO_VERBOSE=1 for the internal stack trace" in done.stderr
    assert told == (not verbose)


def test_variable_turns_nan_asserts_on_and_stored_code_has_them_too(tmp_path: Path) -> None:
    program = (
        "import torch\nf = torch.compile(lambda x: torch.log(x) + 1)\n"
        "f(torch.ones(3))\nf(-torch.ones(3))\n"
    )
    kept = {"TORCHINDUCTOR_CACHE_DIR": str(tmp_path / "store")}
    for _ in range(2):
        done = _python(tmp_path, program, TORCHINDUCTOR_NAN_ASSERTS="1", **kept)
        assert "AssertionError: log (aten.log.default) has NaN" in done.stderr
    assert _python(tmp_path, program, **kept).returncode == 0


def test_index_beyond_the_end_is_an_error_and_no_wild_read() -> None:
    read = torch.compile(lambda x, i: x[i] * 2 + 1)
    x = torch.arange(4.0)
    assert torch.equal(read(x, torch.tensor([0, 3, -4])), torch.tensor([1.0, 7, 1]))
    for wrong in (4, -5, 1 << 40):
        with pytest.raises((IndexError, RuntimeError), match="out of bounds"):
            read(x, torch.tensor([0, wrong, 1]))


# ---- waiting for the device


def _graph_on_cuda() -> fx.GraphModule:
    """A graph whose values say that they are on a GPU; run here, it computes on the CPU."""
    gm = make_fx(lambda x: (x.sin() + 1).cos())(torch.ones(3))
    with FakeTensorMode(allow_non_fake_inputs=True):
        for node in gm.graph.nodes:
            if node.op != "output":
                node.meta["val"] = torch.empty(3, device="cuda")
    return gm


def test_host_waits_after_a_graph_or_after_each_operator(monkeypatch: pytest.MonkeyPatch) -> None:
    waits: list[None] = []
    monkeypatch.setattr(torch.cuda, "synchronize", lambda: waits.append(None))
    gm = _graph_on_cuda()
    x = torch.randn(3)

    def compiled(args: list) -> list:
        return [gm(*args)]

    assert debug.with_syncs(compiled, gm) is compiled
    for setting, count in (("debug_sync_graph", 1), ("debug_sync_kernel", 3)):
        waits.clear()
        with config.patch({f"triton.{setting}": True}):
            (found,) = debug.with_syncs(compiled, gm)([x])
        assert torch.equal(found, (x.sin() + 1).cos()) and len(waits) == count


def test_error_of_the_device_names_the_operator_it_came_from(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen: list[None] = []

    def wait() -> None:
        seen.append(None)
        if len(seen) == 2:
            raise RuntimeError("an illegal memory access was encountered")

    monkeypatch.setattr(torch.cuda, "synchronize", wait)
    gm = _graph_on_cuda()
    with config.patch({"triton.debug_sync_kernel": True}):
        run = debug.with_syncs(lambda args: [gm(*args)], gm)
    with pytest.raises(RuntimeError, match=r"add \(aten.add.Tensor\): an illegal memory access"):
        run([torch.ones(3)])


def test_graphs_of_the_cpu_wait_for_nothing() -> None:
    gm = make_fx(lambda x: x + 1, tracing_mode="fake")(torch.ones(2))
    with config.patch({"triton.debug_sync_kernel": True}):
        assert debug.with_syncs(gm, gm) is gm


# ---- backends of installed packages


def test_backend_of_an_installed_package_is_found_by_its_entry_point(tmp_path: Path) -> None:
    (tmp_path / "doubling.py").write_text(
        "def backend(gm, inputs):\n    return lambda *args: [2 * t for t in gm(*args)]\n"
    )
    info = tmp_path / "doubling-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: doubling\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[torch_dynamo_backends]\ndoubled = doubling:backend\n")
    program = (
        "import torch\nassert 'doubled' in torch._dynamo.list_backends()\n"
        "print(torch.compile(lambda x: x + 1, backend='doubled')(torch.ones(())).item())\n"
    )
    done = _python(tmp_path, program, PYTHONPATH=str(tmp_path))
    assert done.stdout == "4.0\n", done.stderr


# ---- comparisons


def test_models_and_inputs_are_cast_to_double_precision() -> None:
    gm = make_fx(lambda x, n: x.to(torch.float32) * n)(torch.rand(3, dtype=torch.float16), 2)
    given = [torch.rand(3, dtype=torch.float16), torch.arange(3)]
    wide, (x, n) = debug_utils.cast_to_fp64(copy.deepcopy(gm), given)
    assert x.dtype == torch.float64 and n.dtype == torch.int64
    assert wide(x, 2).dtype == torch.float64


def test_backend_whose_results_differ_is_found_out() -> None:
    gm = make_fx(lambda x: (x * 3, x.sin()))(torch.rand(4))

    def off_by(much: float):
        return lambda gm, inputs: lambda *args: [t + much for t in gm(*args)]

    given = [torch.rand(4)]
    assert debug_utils.backend_accuracy_fails(gm, given, off_by(0.1), only_fwd=True)
    assert not debug_utils.backend_accuracy_fails(gm, given, off_by(0.0), only_fwd=True)

    def raising(gm, inputs):
        raise ValueError("another failure")

    assert not debug_utils.backend_accuracy_fails(gm, given, raising, only_fwd=True)


def test_errors_are_those_that_guides_name() -> None:
    assert issubclass(InternalTorchDynamoError, torch._dynamo.exc.TorchDynamoException)
    error = BackendCompilerFailed(lambda gm, inputs: gm, ValueError("x"))
    assert isinstance(error, RuntimeError) and isinstance(error.inner_exception, ValueError)
