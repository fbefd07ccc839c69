"""Programs that the bytecode tracer makes (strict=True) hold for no more than the tracer saw, and
say as much as those that run."""

from __future__ import annotations

import copy
import io

import pytest

import torch
from torch import nn
from torch._dynamo.exc import UserError
from torch.export import Dim, export

BOTH = pytest.mark.parametrize("strict", [False, True], ids=["runs", "bytecode"])


class Branch(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.sin() if x.shape[0] > 4 else x.cos()


class Even(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.sin() if x.shape[0] % 2 == 0 else x.cos()


@BOTH
@pytest.mark.parametrize(("model", "fix"), [(Branch(), "min=5"), (Even(), r"d = 2\*_d")])
def test_branch_on_a_promised_size_is_an_error(model: nn.Module, fix: str, strict: bool) -> None:
    with pytest.raises(UserError, match=fix):
        export(model, (torch.ones(6, 2),), dynamic_shapes=({0: Dim("d")},), strict=strict)


@BOTH
@pytest.mark.parametrize("hint", [Dim.AUTO, Dim.DYNAMIC], ids=["auto", "dynamic"])
@pytest.mark.parametrize(("model", "other"), [(Branch(), 3), (Even(), 5)])
def test_branch_on_a_size_is_checked_where_the_program_runs(
    model: nn.Module, other: int, hint: object, strict: bool
) -> None:
    program = export(model, (torch.ones(6, 2),), dynamic_shapes=({0: hint},), strict=strict)
    x = torch.randn(8, 2)
    assert torch.equal(program.module()(x), x.sin())
    with pytest.raises(AssertionError, match=r"Guard failed: x\.size"):
        program.module()(torch.randn(other, 2))


@BOTH
def test_sizes_that_happen_to_be_equal_stay_apart(strict: bool) -> None:
    class Net(nn.Module):
        def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
            assert y.shape[1] == 4
            assert x.shape[0] == y.shape[0] - 1
            return x * 2

    auto = (Dim.AUTO, Dim.AUTO)
    given = (torch.randn(4, 4), torch.randn(5, 4))
    program = export(Net(), given, dynamic_shapes={"x": auto, "y": auto}, strict=strict)
    assert program.module()(torch.randn(6, 3), torch.randn(7, 4)).shape == (6, 3)


def test_arguments_are_not_marked() -> None:
    x = torch.randn(6, 2)
    torch._dynamo.mark_static(x, 1)
    before = copy.deepcopy(vars(x))
    export(nn.ReLU(), (x,), dynamic_shapes=({0: Dim("d", min=2, max=9)},), strict=True)
    assert vars(x) == before


def test_bounds_of_marked_sizes_are_copied() -> None:
    x = torch.randn(6)
    torch._dynamo.mark_dynamic(x, 0, min=2, max=9)
    assert vars(copy.deepcopy(x)) == vars(x)


def test_branch_on_data_is_an_error_of_the_user() -> None:
    class Net(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x.cos() if x.nonzero().shape[0] > 2 else x.sin()

    with pytest.raises(UserError, match="Could not guard on data-dependent expression"):
        export(Net(), (torch.ones(9),), strict=True)


# ---- what nodes say


class Nested(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(2, 2)])
        self.block = nn.Sequential(nn.Linear(2, 2), nn.ReLU())

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.block(self.block(self.layers[0](x)).sin())


def test_modules_are_named_by_their_paths() -> None:
    program = export(Nested(), (torch.randn(3, 2),), strict=True)
    linear = [n for n in program.graph.nodes if n.target is torch.ops.aten.linear.default]
    stacks = [n.meta["nn_module_stack"] for n in linear]
    paths = [[path for path, _ in stack.values()] for stack in stacks]
    assert paths == [["", "layers.0"], *[["", "block", "block.0"]] * 2]
    assert stacks[0]["layers.0"][1] == "torch.nn.modules.linear.Linear"
    assert len({*stacks[1]} & {*stacks[2]}) == 1  # two calls of one module: the root is common
    x = torch.randn(3, 2)
    tree = torch.export.unflatten(program)
    assert {"layers.0", "block.0"} <= {name for name, _ in tree.named_modules()}
    assert torch.equal(tree(x), program.module()(x))


def test_archives_keep_what_nodes_say() -> None:
    program = export(Nested(), (torch.randn(3, 2),), strict=True)
    file = io.BytesIO()
    torch.export.save(program, file)
    file.seek(0)
    loaded = torch.export.load(file)
    for name in ("nn_module_stack", "source_fn_stack", "torch_fn", "stack_trace"):
        told = [n.meta.get(name) for n in program.graph.nodes if n.op == "call_function"]
        assert any(told)
        assert told == [n.meta.get(name) for n in loaded.graph.nodes if n.op == "call_function"]


@pytest.mark.parametrize("text", ["os.system", "builtins.__import__", "torch.ops.aten.__class__"])
def test_names_in_archives_stand_for_nothing_that_acts(text: str) -> None:
    from torch._export.serde._metadata import metadata_of

    (_, found), *_ = metadata_of({"source_fn_stack": f"x,{text}"})["source_fn_stack"]
    assert found == text


# ---- programs of programs


class Layer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(2, 2)

    def forward(self, x: torch.Tensor, *, scale: torch.Tensor) -> torch.Tensor:
        return self.linear(x).relu() * scale


@BOTH
def test_program_exported_again_keeps_its_conditions(strict: bool) -> None:
    layer, x, scale = Layer(), torch.randn(6, 2), {"scale": torch.tensor(2.0)}
    shapes = {"x": {0: Dim("d", min=4)}, "scale": None}
    module = export(layer, (x,), scale, dynamic_shapes=shapes).module()
    again = export(module, (x,), scale, dynamic_shapes=shapes, strict=strict)
    y = torch.randn(9, 2)
    assert torch.equal(again.module()(y, **scale), layer(y, **scale))
    with pytest.raises(UserError, match="min=4"):
        export(
            module, (x,), scale, dynamic_shapes={"x": {0: Dim("d")}, "scale": None}, strict=strict
        )


@BOTH
def test_program_with_derived_sizes_exported_again(strict: bool) -> None:
    class Net(nn.Module):
        def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
            return x[::2] + y

    d = Dim("d")
    given, shapes = (torch.ones(8), torch.ones(4)), ({0: 2 * d}, {0: d})
    module = export(Net(), given, dynamic_shapes=shapes).module()
    again = export(module, given, dynamic_shapes=shapes, strict=strict).module()
    assert again(torch.ones(6), torch.ones(3)).tolist() == [2, 2, 2]
    with pytest.raises(AssertionError, match="Guard failed"):
        again(torch.ones(6), torch.ones(2))


def test_graphs_inside_of_compiled_modules() -> None:
    class Outer(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = torch.fx.symbolic_trace(nn.Sequential(nn.Linear(2, 2), nn.ReLU()))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.inner(x) * 2

    outer, x = Outer(), torch.randn(3, 2)
    assert torch.equal(torch.compile(outer, backend="eager", fullgraph=True)(x), outer(x))


# ---- operators that take functions


class Called(nn.Module):
    def __init__(self, function: object) -> None:
        super().__init__()
        self.function = function

    def forward(self, *args: torch.Tensor) -> torch.Tensor:
        return self.function(*args)


def test_branch_on_a_number_of_found_elements() -> None:
    def program(x: torch.Tensor) -> torch.Tensor:
        found = x.nonzero()
        return torch.cond(found.size(0) > 3, lambda t: t + 1, lambda t: t - 1, (found,))

    module = export(Called(program), (torch.ones(8),)).module()
    for x in (torch.ones(8), torch.zeros(8)):
        assert torch.equal(module(x), program(x))


@BOTH
def test_branches_read_numbers_of_their_own(strict: bool) -> None:
    def program(p: torch.Tensor, a: torch.Tensor, b: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        return torch.cond(p, lambda t: t * a.item(), lambda t: t * b.item(), (x,))

    rest = (torch.tensor([3.0]), torch.tensor([5.0]), torch.ones(2))
    module = export(Called(program), (torch.tensor(True), *rest), strict=strict).module()
    assert module(torch.tensor(False), *rest).tolist() == [5, 5]


def test_equal_parts_are_one_operator_of_the_core() -> None:
    program = export(Called(lambda x: x.split(2)), (torch.ones(5),)).run_decompositions()
    called = [n for n in program.graph.nodes if n.op == "call_function"]
    assert called[0].target is torch.ops.aten.split_with_sizes.default
    assert called[0].args[1] == [2, 2, 1]


@pytest.mark.parametrize(
    "function",
    [
        lambda x: torch.stack([x, x * 2], 1),
        lambda x: torch.stack([x, x * 2], -1),
        lambda x: torch.diff(x, prepend=x[:, :1]),
        lambda x: torch.diff(x, 1, 0),
        lambda x: x.repeat_interleave(3, 1),
        lambda x: x.reshape(-1).repeat_interleave(2),
        lambda x: torch.ops.aten.lstm.input(
            x.unsqueeze(-1),
            [x.new_zeros(1, x.shape[1], 3)] * 2,
            [x.new_full(shape, 0.1) for shape in ((12, 1), (12, 3), (12,), (12,))],
            *(True, 1, 0.0, False, False, False),
        )[0],
    ],
    ids=["stack", "stack_last", "diff_with_border", "diff", "repeat", "repeat_flat", "lstm"],
)
def test_operators_leave_sizes_free(function: object) -> None:
    shapes = (({0: Dim("rows", min=2), 1: Dim("columns", min=2)},),)  # of *args
    module = export(Called(function), (torch.randn(3, 4),), dynamic_shapes=shapes).module()
    x = torch.randn(5, 6)
    assert torch.equal(module(x), function(x))
