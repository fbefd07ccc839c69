"""Failing programs made smaller by the documented commands: a program with a planted fault is run
with TORCHDYNAMO_REPRO_AFTER, the launcher it leaves reduces it, and what is left still fails."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import pytest

import torch
from torch import fx
from torch._dynamo import debug_utils
from torch._dynamo.repro import after_aot
from torch._functorch.fx_minifier import minifier
from torch.fx.experimental.proxy_tensor import make_fx

CHAIN = """
@torch.compile(backend={backend!r})
def run(x):
    for _ in range(6):
        x = torch.sin(x)
    x = torch.{op}(x)
    for _ in range(6):
        x = torch.cos(x)
    return x

run(torch.rand(4, 5))
"""
LAYERS = """
model = torch.nn.Sequential(
    torch.nn.Linear(4, 8), torch.nn.LayerNorm(8), torch.nn.ReLU(), torch.nn.Linear(8, 2)
)
run = torch.compile(model)
with torch.no_grad():
    run(torch.randn(3, 4))
"""
TRAINING = """
layer = torch.nn.Linear(4, 4)

@torch.compile
def loss(x):
    return torch.log1p(layer(x).sigmoid()).sum()

loss(torch.randn(3, 4)).backward()
"""


class Fault(NamedTuple):
    """A program that fails, how it is told to, and what it says."""

    after: str
    level: int
    program: str
    error: str
    injected: str = ""
    minify: tuple[str, ...] = ()


def _injected(op: str, kind: str) -> str:
    return f"torch._inductor.config.cpp.inject_{op}_bug_TESTING_ONLY = {kind!r}"


def _chain(op: str, backend: str = "inductor") -> str:
    return CHAIN.format(op=op, backend=backend)


FAULTS = {
    "backend crashes while compiling": Fault(
        "dynamo", 2, _chain("relu", "relu_compile_error_TESTING_ONLY"), "ReluCompileError"
    ),
    "backend crashes while running": Fault(
        "dynamo", 2, _chain("relu", "relu_runtime_error_TESTING_ONLY"), "ReluRuntimeError"
    ),
    "backend computes something else": Fault(
        "dynamo", 4, _chain("relu", "relu_accuracy_error_TESTING_ONLY"), "AccuracyError"
    ),
    "default backend fails after dynamo": Fault(
        "dynamo", 2, _chain("relu"), "CppCompileError", _injected("relu", "compile_error")
    ),
    "kernel of relu does not compile": Fault(
        "aot", 2, _chain("relu"), "CppCompileError", _injected("relu", "compile_error")
    ),
    "kernel of log1p does not compile in training": Fault(
        "aot", 2, TRAINING, "CppCompileError", _injected("log1p", "compile_error")
    ),
    "kernel of relu is wrong": Fault(
        "aot", 4, _chain("relu"), "AccuracyError", _injected("relu", "accuracy")
    ),
    "kernel of log1p is wrong": Fault(
        "aot", 4, _chain("log1p"), "AccuracyError", _injected("log1p", "accuracy")
    ),
    "kernel of relu makes NaN": Fault(
        "aot", 4, _chain("relu"), "AccuracyError", _injected("relu", "nan")
    ),
    "kernel of a layer makes NaN": Fault(
        "aot", 4, LAYERS, "AccuracyError", _injected("relu", "nan")
    ),
    "kernel of relu ends the process": Fault(
        "aot", 3, _chain("relu"), "", _injected("relu", "runtime_error"), ("--isolate",)
    ),
}


def _run(folder: Path, *command: str, **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *command],
        cwd=folder,
        env={**os.environ, **env},
        capture_output=True,
        text=True,
        check=False,
    )


def _operators(program: str) -> list[str]:
    body = program.partition("def forward")[2].partition("return")[0]
    return re.findall(r"= (torch\.[\w.]+|self\.\w+)\(", body)


def _walk(folder: Path, fault: Fault) -> str:
    """The three commands; returns the smallest program."""
    (folder / "program.py").write_text(
        f"import torch\nimport torch._inductor.config\n{fault.injected}\n{fault.program}"
    )
    failed = _run(
        folder,
        "program.py",
        TORCHDYNAMO_REPRO_AFTER=fault.after,
        TORCHDYNAMO_REPRO_LEVEL=str(fault.level),
    )
    assert failed.returncode != 0 and fault.error in failed.stderr
    (launcher,) = folder.glob("torch_compile_debug/run_*/minifier/minifier_launcher.py")
    reduced = _run(folder, str(launcher), "minify", *fault.minify)
    assert reduced.returncode == 0, reduced.stderr
    again = _run(folder, "repro.py", "run")
    assert again.returncode != 0 and fault.error in again.stderr
    return (folder / "repro.py").read_text()


@pytest.mark.slow
@pytest.mark.parametrize("name", FAULTS)
def test_planted_fault_is_reduced_to_three_operators_at_most(name: str, tmp_path: Path) -> None:
    smallest = _walk(tmp_path, FAULTS[name])
    assert 1 <= len(_operators(smallest)) <= 3, smallest


PACKAGED = """
class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.norm = torch.nn.Linear(4, 8), torch.nn.LayerNorm(8)

    def forward(self, x):
        return torch.{op}(self.norm(self.first(x.sin())).abs()).cos(), x + 1

program = torch.export.export(Model(), (torch.randn(3, 4),))
torch._inductor.aoti_compile_and_package(program)
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "level", "error"),
    [("compile_error", 2, "CppCompileError"), ("accuracy", 4, "AccuracyError"),
     ("nan", 4, "AccuracyError"), ("compile_error", 3, "CppCompileError")],
)  # fmt: skip
@pytest.mark.parametrize("op", ["relu", "log1p"])
def test_fault_of_a_compiled_file_is_reduced(
    op: str, kind: str, level: int, error: str, tmp_path: Path
) -> None:
    injected = _injected(op, kind)
    (tmp_path / "program.py").write_text(
        f"import torch\nimport torch._inductor.config\n{injected}\n{PACKAGED.format(op=op)}"
    )
    env = {"DUMP_AOTI_MINIFIER": "1", "AOTINDUCTOR_REPRO_LEVEL": str(level)}
    failed = _run(tmp_path, "program.py", **env)
    assert failed.returncode != 0 and error in failed.stderr
    (launcher,) = tmp_path.glob("torch_compile_debug/run_*/minifier/minifier_launcher.py")
    reduced = _run(tmp_path, str(launcher), "minify")
    assert reduced.returncode == 0, reduced.stderr
    again = _run(tmp_path, "repro.py", "run")
    assert again.returncode != 0 and error in again.stderr
    assert 1 <= len(_operators((tmp_path / "repro.py").read_text())) <= 3


def test_file_that_compiles_leaves_no_launcher(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    program = torch.export.export(torch.nn.Linear(2, 2), (torch.ones(1, 2),))
    settings = {"aot_inductor.dump_aoti_minifier": True, "aot_inductor.repro_level": 4}
    path = torch._inductor.aoti_compile_and_package(program, inductor_configs=settings)
    assert torch._inductor.aoti_load_package(path)(torch.ones(1, 2)).shape == (1, 2)
    assert not list(tmp_path.rglob("minifier_launcher.py"))


@pytest.mark.slow
def test_repro_level_one_leaves_the_graph_as_it_is(tmp_path: Path) -> None:
    injected = _injected("relu", "compile_error")
    (tmp_path / "program.py").write_text(
        f"import torch\nimport torch._inductor.config\n{injected}\n{_chain('relu')}"
    )
    _run(tmp_path, "program.py", TORCHDYNAMO_REPRO_AFTER="aot", TORCHDYNAMO_REPRO_LEVEL="1")
    assert len(_operators((tmp_path / "repro.py").read_text())) == 13
    assert "CppCompileError" in _run(tmp_path, "repro.py").stderr


# ---- the parts ------------------------------------------------------------------------------


def _graph(fn: Callable, *args: torch.Tensor) -> fx.GraphModule:
    return make_fx(lambda *a: (fn(*a),))(*args)


def test_minifier_keeps_what_the_check_asks_for() -> None:
    def fails(gm: fx.GraphModule, inputs: Sequence[object]) -> bool:
        targets = {n.target for n in gm.graph.nodes}
        return {torch.ops.aten.sin.default, torch.ops.aten.tanh.default} <= targets

    gm = _graph(lambda x: ((x.cos().sin() * 2).exp().tanh() + x).sum(), torch.rand(3))
    found, inputs = minifier(gm, [torch.rand(3)], fails, dump_state=lambda *_: None)
    calls = [n.target for n in found.graph.nodes if n.op == "call_function"]
    assert torch.ops.aten.sin.default in calls and torch.ops.aten.tanh.default in calls
    assert len(calls) <= 4
    assert len(inputs) == sum(n.op == "placeholder" for n in found.graph.nodes)


def test_minifier_refuses_a_graph_that_does_not_fail() -> None:
    gm = _graph(torch.sin, torch.rand(2))
    with pytest.raises(RuntimeError, match="did not fail"):
        minifier(gm, [torch.rand(2)], lambda *_: False, dump_state=lambda *_: None)


def test_inputs_are_written_and_read_back(tmp_path: Path) -> None:
    base = torch.arange(12.0)
    given = [base[2:8].view(2, 3).t(), base, torch.tensor([True, False]), 7]
    given.append(torch.randn(2, requires_grad=True))
    writer = debug_utils.InputWriter(str(tmp_path))
    for i, value in enumerate(given):
        writer.any(f"x{i}", value)
    space: dict[str, object] = {"torch": torch, "device": torch.device}
    exec("\n".join(writer.lines()), space)
    reader = debug_utils.InputReader(str(tmp_path))
    space["load_args"](reader)
    assert reader.args[3] == 7 and reader.args[4].requires_grad
    for got, value in zip(reader.args[:3], given[:3], strict=True):
        assert torch.equal(got, value) and got.stride() == value.stride()
    # Views of one storage stay views of one.
    reader.args[1][2] = 99
    assert reader.args[0][0, 0] == 99


def test_models_are_compared_with_the_result_in_double_precision() -> None:
    gm = _graph(lambda x: (x * 3).sum(), torch.rand(4))
    given = [torch.rand(4)]
    assert debug_utils.same_two_models(gm, lambda x: ((x + x + x).sum(),), given)
    assert not debug_utils.same_two_models(gm, lambda x: ((x * 3.1).sum(),), given)
    assert not debug_utils.same_two_models(gm, lambda x: ((x * float("nan")).sum(),), given)


def test_tolerance_of_comparisons_is_a_setting() -> None:
    gm = _graph(lambda x: x + 0, torch.rand(4))
    near = [torch.full((4,), 1.0)]
    assert not debug_utils.same_two_models(gm, lambda x: (x + 0.01,), near)
    with torch._dynamo.config.patch(repro_tolerance=0.1):
        assert debug_utils.same_two_models(gm, lambda x: (x + 0.01,), near)


def test_failing_operator_is_found_by_the_check_of_graphs() -> None:
    gm = _graph(lambda x: torch.relu(x.sin()), torch.rand(3))
    given = [torch.rand(3)]
    assert not after_aot.inductor_fails(gm, given)
    with torch._inductor.config.patch({"cpp.inject_relu_bug_TESTING_ONLY": "compile_error"}):
        assert after_aot.inductor_fails(gm, given, check_str="CppCompileError")
        assert not after_aot.inductor_fails(gm, given, check_str="AnotherError")
    with torch._inductor.config.patch({"cpp.inject_relu_bug_TESTING_ONLY": "accuracy"}):
        assert after_aot.inductor_accuracy_fails(gm, given)


def test_annotated_function_gets_arguments_of_its_annotations() -> None:
    def forward(self, x: f32[3, s0], n: Sym(s0), y: i64[4]):  # noqa: F821
        _tensor_constant0: i64[2] = self._tensor_constant0  # noqa: F821

    made = debug_utils.aot_graph_input_parser(forward, device="cpu", sym_shapes={"s0": 5})
    assert made["x"].shape == (3, 5) and made["n"] == 5 and made["y"].dtype == torch.int64
    assert made["self"]._tensor_constant0.shape == (2,)
