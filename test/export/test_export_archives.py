""".pt2 archives: programs come back as they were, also from PyTorch's own files; damaged and
hostile files raise and run nothing."""

import contextlib
import io
import json
import random
import zipfile

import pytest

import torch
from torch import nn
from torch._export.serde.serialize import SerializeError
from torch.export import Dim, export, load, save


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(4, 4)
        self.tied = self.first.weight
        self.register_buffer("count", torch.zeros(1))
        self.register_buffer("hidden", torch.ones(4), persistent=False)
        self.constant = torch.arange(4.0)

    def forward(self, x, ys, mode="plain"):
        self.count.add_(1)
        values, _ = torch.topk(self.first(x) + ys["a"], 2)
        parts = torch.split(x, [1, 3], 1)
        rows = x.shape[0]
        return values, parts[1], rows * 2, x.new_zeros(rows + 1), self.hidden + self.constant, None


def program():
    args = (torch.randn(3, 4), {"a": torch.randn(3, 4)})
    n = Dim("n", min=2, max=50)
    return export(Net(), args, {"mode": "plain"}, dynamic_shapes=({0: n}, {"a": {0: n}}, None))


def archive(ep) -> bytes:
    buffer = io.BytesIO()
    save(ep, buffer)
    return buffer.getvalue()


def test_saved_program_comes_back_equal():
    ep = program()
    back = load(io.BytesIO(archive(ep)))
    assert back.graph_module.code == ep.graph_module.code
    assert str(back.graph_signature) == str(ep.graph_signature)
    assert str(back.range_constraints) == str(ep.range_constraints)
    args = (torch.randn(7, 4), {"a": torch.randn(7, 4)})
    got, want = back.module()(*args, mode="plain"), ep.module()(*args, mode="plain")
    for a, b in zip(got, want, strict=True):
        assert torch.equal(a, b) if isinstance(a, torch.Tensor) else a == b
    with pytest.raises(AssertionError, match="<= 50"):
        back.module()(torch.randn(51, 4), {"a": torch.randn(51, 4)}, mode="plain")


def test_loaded_program_can_be_decomposed_and_keeps_tied_weights():
    back = load(io.BytesIO(archive(program())))
    assert back.state_dict["tied"] is back.state_dict["first.weight"]
    assert isinstance(back.state_dict["tied"], nn.Parameter)
    core = back.run_decompositions()
    args = (torch.randn(5, 4), {"a": torch.randn(5, 4)})
    assert torch.allclose(
        core.module()(*args, mode="plain")[0], back.module()(*args, mode="plain")[0]
    )


def test_save_keeps_extra_files_and_example_inputs(tmp_path):
    ep = program()
    save(ep, tmp_path / "net.pt2", extra_files={"note.txt": "hello"})
    extra = {"note.txt": ""}
    back = load(tmp_path / "net.pt2", extra_files=extra)
    assert extra["note.txt"] == "hello"
    assert torch.equal(back.example_inputs[0][0], ep.example_inputs[0][0])


def test_nested_graphs_come_back():
    class Choose(nn.Module):
        def forward(self, x):
            with torch.no_grad():
                y = x * 2
            return torch.cond(x.sum() > 0, lambda a, b: a + b, lambda a, b: a - b, (x, y))

    ep = export(Choose(), (torch.ones(2),))
    module = load(io.BytesIO(archive(ep))).module()
    assert module(torch.ones(2)).tolist() == [3.0, 3.0]
    assert module(-torch.ones(2)).tolist() == [1.0, 1.0]


def rewritten(data: bytes, change) -> io.BytesIO:
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as old, zipfile.ZipFile(out, "w") as new:
        for name in old.namelist():
            held = old.read(name)
            if name.endswith("models/model.json"):
                record = json.loads(held)
                change(record)
                held = json.dumps(record).encode()
            new.writestr(name, held)
    out.seek(0)
    return out


@pytest.mark.parametrize(
    "target", ["os.system", "torch.load", "builtins.eval", "torch.ops.aten.no_such.default", "#x:y"]
)
def test_archive_that_calls_something_else_than_an_operator_raises(target):
    def change(record):
        record["graph_module"]["graph"]["nodes"][0]["target"] = target

    with pytest.raises(SerializeError):
        load(rewritten(archive(program()), change))


@pytest.mark.parametrize(
    "text",
    [
        "__import__('os').system('false')",
        "Symbol('s0').__class__",
        "exit()",
        "Add(*[1])",
        "(lambda: 1)()",
    ],
)
def test_archive_with_code_for_a_size_raises_and_runs_nothing(text):
    def change(record):
        values = record["graph_module"]["graph"]["tensor_values"]
        values["x"]["sizes"][0] = {"as_expr": {"expr_str": text, "hint": {"as_int": 3}}}

    with pytest.raises(SerializeError):
        load(rewritten(archive(program()), change))


def test_archive_with_code_for_a_guard_runs_nothing():
    def change(record):
        record["guards_code"] = ["__import__('os').system('false') == 0"]

    module = load(rewritten(archive(program()), change)).module()
    with pytest.raises(ValueError, match="cannot evaluate"):
        module(torch.randn(5, 4), {"a": torch.randn(5, 4)}, mode="plain")


@pytest.mark.parametrize("entries", [[], [{"fqn": "", "signature": None}]])
def test_archive_that_does_not_say_how_it_is_called_raises(entries):
    def change(record):
        record["graph_module"]["module_call_graph"] = entries

    with pytest.raises(SerializeError, match="how it is called"):
        load(rewritten(archive(program()), change))


def test_archive_whose_weight_is_larger_than_its_bytes_raises():
    data = archive(program())
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as old, zipfile.ZipFile(out, "w") as new:
        for name in old.namelist():
            held = old.read(name)
            new.writestr(name, held[:8] if name.endswith("weight_0") else held)
    out.seek(0)
    with pytest.raises(SerializeError, match="damaged"):
        load(out)


def test_mutated_archives_raise_clearly_or_load():
    data = archive(program())
    choose = random.Random(0)
    for _ in range(150):
        changed = bytearray(data)
        for _ in range(choose.randrange(1, 6)):
            changed[choose.randrange(len(changed))] = choose.randrange(256)
        if choose.random() < 0.2:
            del changed[choose.randrange(len(changed)) :]
        with contextlib.suppress(RuntimeError, ValueError, AssertionError):
            load(io.BytesIO(bytes(changed)))


def test_names_with_capitals_survive_an_archive():
    class Named(nn.Module):
        def __init__(self):
            super().__init__()
            self.LayerNorm = nn.LayerNorm(2)

        def forward(self, inputIds):
            return self.LayerNorm(inputIds)

    net, x = Named(), torch.randn(3, 2)
    program = export(net, (x,))
    file = io.BytesIO()
    torch.export.save(program, file)
    file.seek(0)
    loaded = torch.export.load(file)
    names = [n.name for n in loaded.graph.nodes]
    assert names == ["p_layernorm_weight", "p_layernorm_bias", "inputids", "layer_norm", "output"]
    assert names == [n.name for n in program.graph.nodes]
    assert torch.equal(loaded.module()(x), net(x))


def test_archive_with_capitals_in_names_of_inputs_is_read():
    file = io.BytesIO()
    save(export(nn.Linear(2, 2), (torch.ones(1, 2),)), file)
    changed = io.BytesIO()
    with zipfile.ZipFile(file) as old, zipfile.ZipFile(changed, "w") as new:
        for name in old.namelist():
            data = old.read(name)
            if name.endswith(".json"):
                data = data.replace(b"p_weight", b"p_LayerNorm")
            new.writestr(name, data)
    changed.seek(0)
    assert load(changed).module()(torch.ones(1, 2)).shape == (1, 2)
