"""torch.export: what exported programs compute, compared with the modules they come from and with
plain numbers; what their signatures say; sizes that vary and errors that propose fixes."""

import pytest

import torch
from torch import nn
from torch._dynamo.exc import UserError
from torch.export import Dim, ShapesCollection, export, unflatten
from torch.export.graph_signature import InputKind, OutputKind


class Counter(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(3, 2)
        self.register_buffer("calls", torch.zeros(1))
        self.register_buffer("scale", torch.ones(2), persistent=False)
        self.shift = torch.full((2,), 5.0)

    def forward(self, x, extra, factor=2):
        self.calls.add_(1)
        return {"y": self.linear(x) * factor * self.scale + self.shift, "z": extra[0] + 1}


def counted(rows=4):
    return (torch.randn(rows, 3), [torch.randn(rows)])


def test_export_program_computes_what_its_module_computes():
    mod, args = Counter(), counted()
    ep = export(mod, args)
    out = ep.module()(*args)
    weight, bias = mod.linear.weight.detach().numpy(), mod.linear.bias.detach().numpy()
    want = args[0].numpy() @ weight.T + bias
    assert torch.allclose(out["y"], torch.from_numpy(want * 2 + 5))
    assert torch.equal(out["z"], args[1][0] + 1)


def test_export_signature_names_every_input_by_where_it_comes_from():
    signature = export(Counter(), counted(), {"factor": 3}).graph_signature
    rows = [(s.arg.name, s.kind, s.target) for s in signature.input_specs]
    assert rows == [
        ("p_linear_weight", InputKind.PARAMETER, "linear.weight"),
        ("p_linear_bias", InputKind.PARAMETER, "linear.bias"),
        ("b_calls", InputKind.BUFFER, "calls"),
        ("b_scale", InputKind.BUFFER, "scale"),
        ("c_shift", InputKind.CONSTANT_TENSOR, "shift"),
        ("x", InputKind.USER_INPUT, None),
        ("extra_0", InputKind.USER_INPUT, None),
        ("factor", InputKind.USER_INPUT, None),
    ]
    assert signature.user_inputs == ("x", "extra_0", 3)
    assert signature.non_persistent_buffers == ("scale",)


def test_module_writes_buffers_as_the_program_did():
    ep = export(Counter(), counted())
    for program in (ep, ep.run_decompositions()):
        module = program.module()
        module.calls.zero_()
        module(*counted())
        module(*counted())
        assert module.calls.item() == 2


def test_run_decompositions_returns_new_values_of_buffers_and_core_operators():
    ep = export(Counter(), counted()).run_decompositions()
    kinds = [s.kind for s in ep.graph_signature.output_specs]
    assert kinds[0] is OutputKind.BUFFER_MUTATION
    targets = {n.target for n in ep.graph.nodes if n.op == "call_function"}
    assert torch.ops.aten.addmm.default in targets
    assert torch.ops.aten.linear.default not in targets
    assert not any(t._schema.is_mutable for t in targets if hasattr(t, "_schema"))


def test_run_decompositions_of_an_empty_table_keeps_composite_operators():
    ep = export(nn.Linear(3, 2), (torch.randn(4, 3),)).run_decompositions({})
    targets = [n.target for n in ep.graph.nodes if n.op == "call_function"]
    assert targets == [torch.ops.aten.linear.default]


def test_named_dim_lets_the_program_run_on_other_sizes_within_its_bounds():
    batch = Dim("batch", max=16)
    ep = export(Counter(), counted(), dynamic_shapes=({0: batch}, [{0: batch}]))
    assert ep.module()(*counted(9))["y"].shape == (9, 2)
    with pytest.raises(AssertionError, match=r"Guard failed: x.size\(\)\[0\] <= 16"):
        ep.module()(*counted(17))
    with pytest.raises(AssertionError, match=r"extra\[0\].size\(\)\[0\] == x.size\(\)\[0\]"):
        ep.module()(torch.randn(5, 3), [torch.randn(6)])


def test_static_sizes_and_constants_are_checked_when_the_module_runs():
    module = export(Counter(), counted(), {"factor": 3}).module()
    with pytest.raises(AssertionError, match=r"x.size\(\)\[0\] == 4"):
        module(*counted(5), factor=3)
    with pytest.raises(AssertionError, match="factor == 3"):
        module(*counted(), factor=4)
    with pytest.raises(ValueError, match="Trying to flatten user inputs"):
        module(torch.randn(4, 3), torch.randn(4), factor=3)


class Branch(nn.Module):
    def forward(self, x):
        return x + 1 if x.shape[0] <= 6 else x - 1


class Add(nn.Module):
    def forward(self, x, y):
        return x + y


class Shifted(nn.Module):
    def forward(self, x, y):
        return x + y[1:]


@pytest.mark.parametrize(
    ("mod", "sizes", "dims", "text"),
    [
        (Branch(), [5], [Dim("n", min=3)], r"n = Dim\('n', min=3, max=6\)"),
        (Add(), [5, 5], [Dim("a"), Dim("b")], "b = a"),
        (Add(), [5, 5], [Dim("a"), None], "a = 5"),
        (Shifted(), [5, 6], [Dim("a"), Dim("b")], r"b = a \+ 1"),
    ],
)
def test_dim_that_the_program_does_not_allow_raises_with_a_definition_that_fits(
    mod, sizes, dims, text
):
    shapes = tuple({0: d} for d in dims)
    with pytest.raises(UserError, match=rf"(?s)\(\w+\)!.*Suggested fixes:\n\s+{text}"):
        export(mod, tuple(torch.randn(n) for n in sizes), dynamic_shapes=shapes)


def test_derived_dim_relates_sizes_of_two_inputs():
    dim = Dim("dim", min=2)
    args = (torch.randn(4), torch.randn(5))
    ep = export(Shifted(), args, dynamic_shapes=({0: dim}, {0: dim + 1}))
    assert ep.module()(torch.ones(7), torch.ones(8)).tolist() == [2.0] * 7
    with pytest.raises(AssertionError, match="equal to 8, but got 9"):
        ep.module()(torch.ones(7), torch.ones(9))


def test_auto_size_that_the_program_fixes_becomes_static():
    class Fixed(nn.Module):
        def forward(self, x):
            return x + torch.ones(5)

    ep = export(Fixed(), (torch.randn(3, 5),), dynamic_shapes=((Dim.AUTO, Dim.AUTO),))
    value = ep.graph.find_nodes(op="placeholder")[0].meta["val"]
    assert isinstance(value.shape[0], torch.SymInt) and value.shape[1] == 5
    assert ep.module()(torch.zeros(8, 5)).shape == (8, 5)


def test_shapes_collection_names_sizes_by_tensor():
    args = counted()
    collection = ShapesCollection()
    dim = Dim("dim")
    collection[args[0]] = (dim, None)
    collection[args[1][0]] = (dim,)
    ep = export(Counter(), args, dynamic_shapes=collection)
    assert ep.module()(*counted(11))["z"].shape == (11,)


def test_value_read_from_data_is_checked_at_run_time():
    class Ones(nn.Module):
        def forward(self, n):
            size = n.item()
            torch._check(size >= 2)
            torch._check(size <= 7)
            return torch.ones(size)

    module = export(Ones(), (torch.tensor(4),)).module()
    assert module(torch.tensor(6)).shape == (6,)
    with pytest.raises(RuntimeError, match=r"Runtime assertion failed for expression u0 >= 2"):
        module(torch.tensor(1))


def test_no_grad_region_becomes_a_graph_under_a_switch():
    class Partly(nn.Module):
        def forward(self, x):
            with torch.no_grad():
                y = x * 2
            return x + y

    ep = export(Partly(), (torch.ones(2),))
    x = torch.ones(2, requires_grad=True)
    ep.module()(x).sum().backward()
    assert x.grad.tolist() == [1.0, 1.0]
    targets = [n.target for n in ep.graph.nodes if n.op == "call_function"]
    assert torch.ops.higher_order.wrap_with_set_grad_enabled in targets


def test_assigned_buffer_is_written_and_other_attributes_are_as_before():
    class Assigns(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("last", torch.zeros(2))
            self.seen, self.log = 0, [1]

        def forward(self, x):
            self.last = x + 1
            self.seen += 1
            self.log.append(self.seen)
            return x * self.seen

    mod = Assigns()
    module = export(mod, (torch.ones(2),)).module()
    assert (mod.seen, mod.log, mod.last.tolist()) == (0, [1], [0.0, 0.0])
    assert module(torch.full((2,), 4.0)).tolist() == [4.0, 4.0]
    assert module.last.tolist() == [5.0, 5.0]


def test_assigned_tensor_attribute_raises_with_its_name():
    class Assigns(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.last = torch.zeros(2)

        def forward(self, x):
            self.last = x + 1
            return x

    with pytest.raises(ValueError, match=r"The tensor attribute self\.last was assigned"):
        export(Assigns(), (torch.ones(2),))


def test_strict_export_gives_the_same_results_and_signature():
    args = counted()
    mod = Counter()
    ep = export(mod, args, strict=True)
    assert torch.allclose(ep.module()(*args)["y"], mod(*args)["y"])
    assert ep.graph_signature.parameters == ("linear.weight", "linear.bias")


def test_exporting_flag_is_set_while_a_program_is_exported():
    class Asks(nn.Module):
        def forward(self, x):
            return x + 1 if torch.compiler.is_exporting() else x - 1

    assert export(Asks(), (torch.zeros(2),)).module()(torch.zeros(2)).tolist() == [1.0, 1.0]
    assert not torch.compiler.is_exporting()


class Twice(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = Counter()

    def forward(self, x, e):
        first = self.inner(x, [e])
        return self.inner(first["y"] @ torch.ones(2, 3), extra=[e])["y"] + self.inner.calls


@pytest.mark.parametrize("preserved", [(), ("inner",)])
def test_unflatten_runs_as_the_program_and_has_its_modules(preserved):
    mod, args = Twice(), (torch.randn(4, 3), torch.randn(4))
    ep = export(mod, args, preserve_module_call_signature=preserved)
    want = ep.module()(*args)
    mod.inner.calls.zero_()
    tree = unflatten(ep)
    assert torch.allclose(tree(*args), want)
    assert tree.get_submodule("inner.linear") is tree.inner.linear
    assert set(tree.state_dict()) == set(mod.state_dict())


def test_unflatten_with_a_kept_signature_lets_a_module_be_exchanged():
    class Zero(nn.Module):
        def forward(self, x, extra, factor=2):
            return {"y": torch.zeros(4, 2), "z": extra[0]}

    class Once(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = Counter()

        def forward(self, x, e):
            return self.inner(x, extra=[e])["y"] + 1

    args = (torch.randn(4, 3), torch.randn(4))
    tree = unflatten(export(Once(), args, preserve_module_call_signature=("inner",)))
    tree.inner = Zero()
    assert torch.equal(tree(*args), torch.ones(4, 2))


def test_deferred_assertion_on_sizes_of_two_inputs_reads_both_first():
    class Views(nn.Module):
        def forward(self, x, y):
            return y.view(x.shape[0], -1)

    free = {0: Dim.DYNAMIC, 1: Dim.DYNAMIC}
    program = export(
        Views(),
        (torch.ones(2, 8), torch.ones(2, 8)),
        dynamic_shapes={"x": free, "y": free},
        prefer_deferred_runtime_asserts_over_guards=True,
    )
    assert program.module()(torch.ones(3, 4), torch.ones(6, 2)).shape == (3, 4)
    with pytest.raises(RuntimeError, match="Runtime assertion failed"):
        program.module()(torch.ones(4, 4), torch.ones(3, 2))


def test_constant_that_is_returned_twice() -> None:
    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.constant = torch.ones(2, 2)

        def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
            return x + self.constant, self.constant, self.constant

    program = export(Net(), (torch.ones(2, 2),)).run_decompositions()
    assert [n.name for n in program.graph.nodes if n.op == "call_function"] == ["add"]
    for got, wanted in zip(program.module()(torch.zeros(2, 2)), [1, 1, 1], strict=True):
        assert torch.equal(got, torch.full((2, 2), float(wanted)))


class CastsInside(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(2, 2)

    def forward(self, x):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            low = self.layer(x)
            with torch.autocast("cpu", enabled=False):
                full = self.layer(x)
        return low, full, self.layer(x)


@pytest.mark.parametrize("strict", [False, True])
def test_autocast_inside_of_a_program_stays_in_all_its_forms(strict):
    module, x = CastsInside(), torch.randn(3, 2)
    expected = module(x)
    assert [t.dtype for t in expected] == [torch.bfloat16, torch.float32, torch.float32]
    program = export(module, (torch.randn(3, 2),), strict=strict)
    forms = [program.module(), program.run_decompositions().module(), unflatten(program)]
    for form in forms:
        for found, wanted in zip(form(x), expected, strict=True):
            assert found.dtype == wanted.dtype and torch.equal(found, wanted)


class AsksData(nn.Module):
    """Questions about values that no symbol answers."""

    def forward(self, x, n):
        k = n.item()
        rows = x[:k] if k > 3 else x
        found = rows.nonzero()
        if found.shape[0] > 2:
            found = found + 1
        return found * 2 if rows.sum() > 0 else found


def test_draft_export_answers_questions_about_data_by_the_example():
    module, x = AsksData(), torch.tensor([1.0, 0.0, 2.0, 3.0, 1.0, 1.0, 0.0])
    program = torch.export.draft_export(module, (x, torch.tensor(5)))
    kinds = {str(failure.failure_type) for failure in program._report.failures}
    assert kinds == {"DATA_DEPENDENT_ERROR"} and not program._report.successful()
    for n in (5, 6):  # other values on the same way
        n = torch.tensor(n)
        assert torch.equal(program.module()(x, n), module(x, n))
    program = torch.export.draft_export(nn.Linear(2, 2), (torch.ones(1, 2),))
    assert program._report.successful() and "Nothing stopped" in str(program._report)
