"""Compiled functions in files: saved with graph and conditions, loaded where the program is not;
frames that failed to compile, recorded and replayed."""

from __future__ import annotations

import io
import json
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import torch
from torch._dynamo import stored_graph

SCALE = 3


@pytest.fixture(autouse=True)
def fresh():
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


def affine(x, y, *, alpha=2.0):
    z = torch.relu(x) * alpha + y.sum(0, keepdim=True)
    return {"out": z @ z.t(), "pair": (z, alpha), "grad": torch.nn.functional.gelu(z)}


def saved(fn, *args, backend="eager", **kwargs) -> io.BytesIO:
    """What a file of the compiled function holds."""
    compiled = torch.compile(fn, fullgraph=True, backend=backend).aot_compile((args, kwargs))
    file = io.BytesIO()
    compiled.save_compiled_function(file)
    file.seek(0)
    return file


def inputs(rows=3):
    generator = torch.Generator().manual_seed(rows)
    return torch.randn(rows, 4, generator=generator), torch.randn(5, 4, generator=generator)


@pytest.mark.parametrize("backend", ["eager", "aot_eager", "inductor"])
def test_loaded_function_computes_what_the_function_does(backend):
    x, y = inputs()
    loaded = torch.compiler.load_compiled_function(saved(affine, x, y, backend=backend))
    got, want = loaded(x, y), affine(x, y)
    assert got["pair"][1] == 2.0
    torch.testing.assert_close(got["out"], want["out"])
    torch.testing.assert_close(got["grad"], want["grad"])
    torch.testing.assert_close(got["pair"][0], want["pair"][0])


def test_loaded_function_is_differentiable():
    x, y = inputs()
    x.requires_grad_()
    loaded = torch.compiler.load_compiled_function(saved(affine, x, y))
    loaded(x, y)["out"].sum().backward()
    got, x.grad = x.grad, None
    affine(x, y)["out"].sum().backward()
    assert torch.equal(got, x.grad)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda x, y: ((x.double(), y), {}), "dtype"),
        (lambda x, y: ((x[:2], y), {}), "sizes"),
        (lambda x, y: ((x, y), {"alpha": 2.5}), "2.5"),
        (lambda x, y: ((x, y.requires_grad_()), {}), "requires_grad"),
        (lambda x, y: ((x, [y]), {}), "expected"),
    ],
)
def test_loaded_function_refuses_arguments_it_was_not_compiled_for(change, words):
    x, y = inputs()
    loaded = torch.compiler.load_compiled_function(saved(affine, x, y))
    args, kwargs = change(x, y)
    assert not loaded.guard_check(*args, **kwargs)
    with pytest.raises(RuntimeError, match=f"GuardManager check failed.*{words}"):
        loaded(*args, **kwargs)


def test_sizes_marked_dynamic_vary_and_their_relations_are_checked():
    def fn(x, y):
        return x + y

    x, y = torch.randn(6, 3), torch.randn(6, 3)
    for tensor in (x, y):
        torch._dynamo.mark_dynamic(tensor, 0)
    loaded = torch.compiler.load_compiled_function(saved(fn, x, y, backend="aot_eager"))
    for rows in (6, 9, 2):
        a, b = torch.randn(rows, 3), torch.randn(rows, 3)
        assert torch.equal(loaded(a, b), a + b)
    with pytest.raises(RuntimeError, match="sizes"):
        loaded(torch.randn(4, 3), torch.randn(5, 3))


def test_parameters_of_a_module_are_in_the_file_and_can_be_replaced():
    model = torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.ReLU())
    x = inputs()[0]
    compiled = torch.compile(model, fullgraph=True, backend="eager").aot_compile(((x,), {}))
    file = io.BytesIO()
    compiled.save_compiled_function(file)
    file.seek(0)
    loaded = torch.compiler.load_compiled_function(file)
    assert torch.equal(loaded(x), model(x))
    weight = next(n for n in loaded._stored.state if "weight" in n)
    file.seek(0)
    other = torch.compiler.load_compiled_function(
        file, external_data={weight: torch.zeros(3, 4, requires_grad=True)}
    )
    assert torch.equal(other(x), torch.relu(model[0].bias).expand(3, 3))
    file.seek(0)
    with pytest.raises(ValueError, match="external_data names 'nothing'"):
        torch.compiler.load_compiled_function(file, external_data={"nothing": x})


def test_global_constants_of_the_graph_are_compared_with_the_callers():
    def fn(x):
        return x * SCALE

    file = saved(fn, torch.ones(2))
    loaded = torch.compiler.load_compiled_function(file, f_globals={"SCALE": 3})
    assert torch.equal(loaded(torch.ones(2)), torch.full((2,), 3.0))
    with pytest.raises(RuntimeError, match="compiled with SCALE = 3, which is 4 now"):
        torch.compiler.load_compiled_function(file, f_globals={"SCALE": 4})


def test_saved_function_loads_in_a_process_without_its_program(tmp_path):
    path = tmp_path / "affine.zip"
    x, y = inputs()
    path.write_bytes(saved(affine, x, y).read())
    torch.save((x, y, affine(x, y)["out"]), tmp_path / "values.pt")
    program = (
        "import torch\n"
        f"x, y, want = torch.load({str(tmp_path / 'values.pt')!r})\n"
        f"fn = torch.compiler.load_compiled_function(open({str(path)!r}, 'rb'))\n"
        "assert torch.equal(fn(x, y)['out'], want)\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True, cwd=tmp_path)


def with_step(file: io.BytesIO, change) -> io.BytesIO:
    """A file whose graph was changed by hand."""
    made = io.BytesIO()
    with zipfile.ZipFile(file) as old, zipfile.ZipFile(made, "w") as new:
        content = json.loads(old.read("function.json"))
        change(content)
        new.writestr("function.json", json.dumps(content))
        new.writestr("tensors.pt", old.read("tensors.pt"))
    made.seek(0)
    return made


@pytest.mark.parametrize(
    "step",
    [
        {"op": "call_function", "name": "a", "target": {"function": "os.system"}},
        {"op": "call_function", "name": "a", "target": {"function": "torch.load"}},
        {"op": "call_function", "name": "a", "target": {"function": "torch.os.system"}},
        {"op": "call_method", "name": "a", "target": "no_such_method"},
        {"op": "placeholder", "name": "a", "target": "a=print(1)"},
        {"op": "get_attr", "name": "a", "target": "__class__"},
    ],
)
def test_files_cannot_name_other_functions_than_those_of_graphs(step):
    file = saved(affine, *inputs())
    bad = with_step(
        file, lambda c: c["graph"]["steps"].insert(0, {**step, "args": ["true"], "kwargs": {}})
    )
    with pytest.raises(ValueError, match="stored graph"):
        torch.compiler.load_compiled_function(bad)


def test_functions_with_breaks_are_not_compiled_ahead():
    with pytest.raises(RuntimeError, match="fullgraph=True"):
        torch.compile(affine, backend="eager").aot_compile((inputs(), {}))


def test_backend_without_a_name_cannot_be_saved(tmp_path):
    compiled = torch.compile(affine, fullgraph=True, backend=lambda gm, _: gm.forward)
    made = compiled.aot_compile((inputs(), {}))
    assert torch.equal(made(*inputs())["out"], affine(*inputs())["out"])
    with pytest.raises(RuntimeError, match="register_backend"):
        made.save_compiled_function(tmp_path / "f.zip")


def test_graph_with_a_function_of_the_program_is_refused():
    graph = torch.fx.Graph()
    x = graph.placeholder("x")
    graph.output(graph.call_function(affine, (x, x)))
    with pytest.raises(NotImplementedError, match="affine"):
        stored_graph.write_graph(torch.fx.GraphModule(torch.nn.Module(), graph))


def test_marking_steps_counts_them():
    before = torch.compiler.cudagraph_steps
    torch.compiler.cudagraph_mark_step_begin()
    assert torch.compiler.cudagraph_steps == before + 1


# ---- frames that failed

PROGRAM = """
import torch

class Layer(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(3))

def outer(bias):
    def fn(layer, x, *rest, k=1):
        y = x * layer.weight + bias + rest[0][0] * k
        torch._dynamo.graph_break()
        return y
    return fn
"""


def test_failed_frame_is_recorded_and_raises_again_when_replayed(tmp_path, monkeypatch):
    Path(tmp_path / "replayed_program.py").write_text(PROGRAM)
    monkeypatch.syspath_prepend(str(tmp_path))
    import replayed_program as program

    fn = torch.compile(program.outer(torch.full((3,), 2.0)), fullgraph=True, backend="eager")
    settings = {"replay_record_enabled": True, "debug_dir_root": str(tmp_path)}
    with torch._dynamo.config.patch(settings), pytest.raises(Exception) as caught:
        fn(program.Layer(), torch.ones(3), [torch.ones(3)], k=2)
    path = caught.value.record_filename
    torch._dynamo.replay(path)  # without fullgraph it compiles, with a break
    broken = pytest.raises(torch._dynamo.exc.Unsupported, match="graph_break")
    with torch._dynamo.error_on_graph_break(True), broken:
        torch._dynamo.replay(path)
    sys.modules.pop("replayed_program")


def test_replay_refuses_a_program_that_changed(tmp_path, monkeypatch):
    file = tmp_path / "changed_program.py"
    file.write_text(PROGRAM)
    monkeypatch.syspath_prepend(str(tmp_path))
    import changed_program as program

    fn = torch.compile(program.outer(0.0), fullgraph=True, backend="eager")
    settings = {"replay_record_enabled": True, "debug_dir_root": str(tmp_path)}
    with torch._dynamo.config.patch(settings), pytest.raises(Exception) as caught:
        fn(program.Layer(), torch.ones(3), [torch.ones(3)])
    file.write_text(PROGRAM + "\n# more\n")
    with pytest.raises(RuntimeError, match="not what it was"):
        torch._dynamo.replay(caught.value.record_filename)
    sys.modules.pop("changed_program")
