"""Functional tensors: writes become values, views follow them, and reports tell what was written.
Random programs compare all ways of functionalising with running the program as it is."""

import importlib.util
import pathlib
import sys

import pytest

import torch
import torch.utils._pytree as pytree
from torch._dispatch.python import enable_crossref_functionalize
from torch._subclasses.functional_tensor import (
    CppFunctionalizeAPI,
    FunctionalTensor,
    FunctionalTensorMode,
    PythonFunctionalizeAPI,
    disable_functional_mode,
    dispatch_functionalize,
    mb_unwrap_functional_tensor,
)
from torch.fx.experimental.proxy_tensor import make_fx

aten = torch.ops.aten


def _random_programs():
    path = pathlib.Path(__file__).parents[2] / "tools" / "fuzz" / "graphs.py"
    spec = importlib.util.spec_from_file_location("fuzz_graphs", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def functionalized(f, reapply_views=True):
    """f on functional tensors of the dispatch key; writes to inputs are made at the end."""

    def wrapped(*inputs):
        inside = [torch._to_functional_tensor(t) for t in inputs]
        torch._enable_functionalization(reapply_views=reapply_views)
        try:
            out = f(*inside)
        finally:
            torch._disable_functionalization()
        for plain, wrapper in zip(inputs, inside, strict=True):
            torch._sync(wrapper)
            value = torch._from_functional_tensor(wrapper)
            if value is not plain and value.shape == plain.shape:
                plain.copy_(value)
        pytree.tree_map_only(torch.Tensor, torch._sync, out)
        return pytree.tree_map_only(torch.Tensor, torch._from_functional_tensor, out)

    return wrapped


def statements(f, *inputs, reapply_views=True):
    """The lines of the functionalised program's graph, without what frees values."""
    module = make_fx(functionalized(f, reapply_views))(*inputs)
    return [line.split(";")[0].strip() for line in module.code.strip().splitlines()[1:]]


@pytest.mark.parametrize("block", range(8))
def test_random_programs_give_the_same_bits_in_every_way(block):
    graphs = _random_programs()
    failures = {}
    for i in range(block * 30, block * 30 + 30):
        program = graphs.number(7, i)
        if found := graphs.differences(program):
            failures[i] = (program.text(), found)
    assert not failures


def test_the_random_programs_notice_a_write_that_is_lost(monkeypatch):
    graphs = _random_programs()
    monkeypatch.setitem(graphs.WAYS, "planted", lambda p, i: p.run([t.clone() for t in i]))
    assert any(graphs.differences(graphs.number(7, i)) for i in range(20))


# ---- the graph of a functionalised program
def test_a_write_to_a_view_is_carried_back_and_the_view_made_anew():
    def f(x):
        y = x.view(8)
        y.add_(1)
        return y * x.sum()

    assert statements(f, torch.ones(4, 2)) == [
        "view = torch.ops.aten.view.default(arg0_1, [8])",
        "add = torch.ops.aten.add.Tensor(view, 1)",
        "view_1 = torch.ops.aten.view.default(add, [4, 2])",
        "view_2 = torch.ops.aten.view.default(view_1, [8])",
        "sum_1 = torch.ops.aten.sum.default(view_1)",
        "mul = torch.ops.aten.mul.Tensor(view_2, sum_1)",
        "copy_ = torch.ops.aten.copy_.default(arg0_1, view_1)",
        "return mul",
    ]


def test_without_reapplied_views_the_graph_has_copying_forms():
    def f(x):
        y = x.t()[0]
        y.mul_(2)
        return x

    found = statements(f, torch.ones(3, 2), reapply_views=False)
    assert "t_copy = torch.ops.aten.t_copy.default(arg0_1)" in found
    assert "select_copy = torch.ops.aten.select_copy.int(t_copy, 0, 0)" in found
    assert not any(".select.int" in line or ".t.default" in line for line in found)


def test_an_out_argument_of_another_shape_takes_the_result():
    def f(x):
        z = torch.empty(())
        torch.add(x, x, out=z)
        return z * z

    assert statements(f, torch.ones(2))[-2:] == [
        "mul = torch.ops.aten.mul.Tensor(add, add)",
        "return mul",
    ]


@pytest.mark.parametrize(
    "view",
    [
        lambda x: x.select(0, 1),
        lambda x: x[1:, ::2],
        lambda x: x.diagonal(),
        lambda x: x.transpose(0, 1),
        lambda x: x.permute(1, 0),
        lambda x: x.unbind(1)[2],
        lambda x: x.split(2)[1],
        lambda x: x.split_with_sizes([1, 3])[1],
        lambda x: x.as_strided((2, 2), (5, 1), 3),
        lambda x: x.view(2, 8),
        lambda x: x.unsqueeze(1),
        lambda x: x.unsqueeze(0).squeeze(0),
        lambda x: x.unfold(0, 2, 2),
        lambda x: x.detach(),
        lambda x: x.view(torch.int32).view(torch.float32),
        lambda x: torch.view_as_complex(x.view(4, 2, 2)),
        lambda x: torch.view_as_real(torch.view_as_complex(x.view(4, 2, 2))),
        lambda x: x.T[0].view(2, 2) if x.T[0].is_contiguous() else x.T[0],
    ],
)
@pytest.mark.parametrize("reapply_views", [True, False])
def test_a_write_through_a_view_changes_the_elements_that_it_shows(view, reapply_views):
    def f(x):
        view(x).mul_(3)
        return x + 0

    x = torch.arange(16.0).view(4, 4)
    expected = f(x.clone())
    mine = x.clone()
    assert torch.equal(functionalized(f, reapply_views)(mine), expected)
    assert torch.equal(mine, expected)


def test_geometry_of_a_functional_view_is_that_of_a_real_one():
    def f(x):
        y = x.t()[1:]
        assert y.stride() == (1, 3) and y.storage_offset() == 1
        assert not y.is_contiguous()
        z = torch.sin(y)
        assert z.stride() == (1, 2)
        return z

    functionalized(f, reapply_views=False)(torch.ones(2, 3))


# ---- reports
def test_reports_tell_what_was_written_and_how():
    x = torch._to_functional_tensor(torch.ones(2, 3))
    assert not torch._functionalize_has_data_mutation(x)
    assert not torch._functionalize_has_metadata_mutation(x)
    with torch.no_grad():
        x.view(6).add_(1)
    assert torch._functionalize_has_data_mutation(x)
    assert torch._functionalize_mutation_counter(x) == 1
    assert torch._functionalize_are_all_mutations_under_no_grad_or_inference_mode(x)
    assert not torch._functionalize_are_all_mutations_hidden_from_autograd(x)
    torch._functionalize_mark_mutation_hidden_from_autograd(x)
    assert torch._functionalize_are_all_mutations_hidden_from_autograd(x)
    x.transpose_(0, 1)
    assert torch._functionalize_has_metadata_mutation(x) and x.shape == (3, 2)
    assert not torch._is_functional_tensor_base(x)


def test_tensors_that_share_memory_have_one_storage():
    x = torch._to_functional_tensor(torch.ones(4))
    y, z = x.view(2, 2), torch._to_functional_tensor(torch.ones(4))
    assert x.untyped_storage()._cdata == y.untyped_storage()._cdata
    assert x.untyped_storage()._cdata != z.untyped_storage()._cdata
    assert torch._functionalize_get_storage_size(x, True) == 16


def test_set_makes_a_tensor_share_the_memory_of_another():
    x = torch._to_functional_tensor(torch.ones(4))
    y = torch._to_functional_tensor(torch.zeros(2))
    y.set_(x)
    x.add_(1)
    torch._sync(y)
    assert torch._from_functional_tensor(y).tolist() == [2.0] * 4
    assert torch._functionalize_was_storage_changed(y)


def test_resize_keeps_the_elements_that_fit():
    x = torch._to_functional_tensor(torch.arange(6.0))
    x.resize_(2, 2)
    torch._sync(x)
    assert torch._from_functional_tensor(x).tolist() == [[0.0, 1.0], [2.0, 3.0]]
    x.resize_(8)
    assert x.shape == (8,)


def test_replace_and_commit_write_a_value_from_outside():
    x = torch._to_functional_tensor(torch.ones(3))
    view = x[1:]
    torch._functionalize_replace(view, torch.full((2,), 5.0))
    torch._functionalize_commit_update(view)
    torch._functionalize_sync(x)
    assert torch._from_functional_tensor(x).tolist() == [1.0, 5.0, 5.0]


def test_a_frozen_tensor_refuses_writes_to_itself_and_its_views():
    x = torch._to_functional_tensor(torch.ones(3))
    view = x[0]
    torch._freeze_functional_tensor(x)
    for t in (x, view):
        with pytest.raises(RuntimeError, match="frozen"):
            t.add_(1)


def test_wrong_arguments_are_refused():
    plain = torch.ones(2)
    with pytest.raises(TypeError, match=r"_to_functional_tensor.*expected a Tensor, got int"):
        torch._to_functional_tensor(3)
    for function in (torch._from_functional_tensor, torch._sync, torch._freeze_functional_tensor):
        with pytest.raises(RuntimeError, match="expected a functional tensor"):
            function(plain)
    inside = torch._to_functional_tensor(plain)
    with pytest.raises(RuntimeError, match="functional tensor already"):
        torch._to_functional_tensor(inside)
    with pytest.raises(RuntimeError, match="mutating a non-functional tensor"):
        plain.add_(inside)
    with pytest.raises(RuntimeError, match="doesn't match the broadcast shape"):
        inside.add_(torch.ones(3, 2))


def test_a_view_cannot_grow():
    x = torch._to_functional_tensor(torch.ones(4))
    with pytest.raises(RuntimeError, match="resize a view tensor to a larger size"):
        x[:2].resize_(9)


def test_copying_into_a_tensor_with_gaps_keeps_its_strides():
    def f(x):
        y = torch.empty_strided((2, 2), (5, 1))
        y.copy_(x)
        return y

    assert functionalized(f)(torch.ones(2, 2)).stride() == (5, 1)


def test_crossref_lets_right_programs_pass_and_ends_with_its_block():
    def f(x):
        y = x.t()[0]
        y.add_(1)
        return x.reshape(-1), y.expand(3, 2)

    x = torch.arange(6.0).view(2, 3)
    expected = f(x.clone())
    with enable_crossref_functionalize():
        assert torch._C._functionalize_enable_crossref(True)
        found = functionalized(f)(x.clone())
    assert not torch._C._functionalize_enable_crossref(False)
    assert all(map(torch.equal, found, expected))


# ---- the mode
def test_the_mode_gives_graphs_without_writes():
    def f(x):
        with FunctionalTensorMode():
            y = FunctionalTensor.to_functional(x)
            y.view(-1)[0].mul_(5)
            torch.ones(2).add_(y.sum())
            out = y + 1
        return out.from_functional()

    module = make_fx(f)(torch.ones(2, 2))
    ops = [n.target for n in module.graph.nodes if n.op == "call_function"]
    assert not any(op._schema.is_mutable for op in ops)
    assert module(torch.full((2, 2), 2.0)).tolist() == [[11.0, 3.0], [3.0, 3.0]]


def test_the_mode_returns_the_same_object_from_a_write():
    plain = torch.ones(2)
    with FunctionalTensorMode():
        x = FunctionalTensor.to_functional(plain)
        with pytest.raises(AssertionError, match="functional already"):
            FunctionalTensor.to_functional(x)
        assert x.add_(1) is x
        y = x.unsqueeze_(0)
        assert y is x and x.shape == (1, 2) and x.elem.shape == (1, 2)
        assert isinstance(torch.zeros(3), FunctionalTensor)
        with disable_functional_mode():
            assert not isinstance(torch.zeros(3), FunctionalTensor)
    assert mb_unwrap_functional_tensor(x).tolist() == [[2.0, 2.0]]


def test_gradients_pass_through_writes_to_views_in_the_mode():
    def slope(x):
        y = x.clone()
        y.mul_(x)
        y.view(-1).sin_()
        return torch.autograd.grad(y.sum(), x)[0]

    x = torch.tensor([0.5, 1.0, 2.0], requires_grad=True)
    expected = torch.cos(x * x) * 2 * x
    with FunctionalTensorMode():
        inside = FunctionalTensor.to_functional(x)
        found = slope(inside)
    assert torch.allclose(found.from_functional(), expected.detach())


def test_a_functional_tensor_outside_of_its_mode_says_so():
    plain = torch.ones(2)
    with FunctionalTensorMode():
        x = FunctionalTensor.to_functional(plain)
    with pytest.raises(RuntimeError, match="on its own"):
        x + 1
    with pytest.raises(AssertionError, match="needs a FunctionalTensorMode"):
        FunctionalTensor.to_functional(torch.ones(2))


def test_dispatch_functionalize_takes_and_returns_plain_tensors():
    def f(x):
        assert isinstance(x, FunctionalTensor)
        x.add_(1)
        return x * 2

    x = torch.ones(2)
    assert dispatch_functionalize(f)(x).tolist() == [4.0, 4.0]


@pytest.mark.parametrize("api", [PythonFunctionalizeAPI, CppFunctionalizeAPI])
def test_the_apis_of_higher_order_operators_replace_values(api):
    api = api()
    (x,) = api.wrap_tensors((torch.ones(2),))
    api.replace(x, torch.zeros(2))
    api.commit_update(x)
    api.sync(x)
    assert api.unwrap_tensors(x).tolist() == [0.0, 0.0]


def test_func_functionalize_of_views_of_what_is_written_equals_eager():
    def f(x):
        y = x.clone()
        z = y.t().reshape(-1)
        y.t()[0].add_(10)
        return y, z

    x = torch.arange(6.0).view(2, 3)
    for remove in ("mutations", "mutations_and_views"):
        for a, b in zip(torch.func.functionalize(f, remove=remove)(x), f(x), strict=True):
            assert torch.equal(a, b)


def test_a_strided_view_that_is_a_copy_converts_to_another_dtype():
    out = functionalized(lambda t: t.as_strided((3,), (2,), 0).double(), reapply_views=False)(
        torch.arange(6.0)
    )
    assert out.dtype is torch.float64 and out.tolist() == [0, 2, 4]


def test_a_tensor_made_of_numbers_is_functional():
    def f(x):
        made = torch.tensor((1, 2, 3))
        made.view(-1).add_(1)
        return made

    assert functionalized(f)(torch.ones(1)).tolist() == [2, 3, 4]


def test_tensor_of_numbers_may_be_written_inside_of_functionalize():
    def f(x):
        made = torch.tensor([1.0, 2.0])
        made.add_(x)
        return made

    assert torch.func.functionalize(f)(torch.ones(2)).tolist() == [2.0, 3.0]


def test_one_hot_inside_of_the_mode_looks_at_no_values():
    classes = torch.tensor([0, 3, 1])

    def inside(given):
        with FunctionalTensorMode():
            found = torch.nn.functional.one_hot(FunctionalTensor.to_functional(given), 4)
        return FunctionalTensor.from_functional(found)

    wanted = torch.eye(4, dtype=torch.int64)[classes]
    assert torch.equal(inside(classes), wanted)
    graph = make_fx(inside)(classes)
    assert torch.equal(graph(classes.flip(0)), wanted.flip(0))


AS_STRIDED = {
    "other dtype": lambda x: x.view(torch.int32).as_strided((2,), (1,), 3),
    "smaller dtype": lambda x: x.view(torch.int16).as_strided((2,), (1,), 5),
    "parts": lambda x: torch.view_as_real(torch.complex(x, x)).as_strided((3,), (1,), 2),
    "conjugate": lambda x: torch.complex(x, x).conj().as_strided((2,), (1,), 1),
    "imaginary part": lambda x: torch.complex(x, x).conj().imag.as_strided((2,), (2,), 1),
    "write": lambda x: x.view(torch.int16).as_strided((2,), (1,), 3).zero_(),
}


@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
@pytest.mark.parametrize("name", AS_STRIDED)
def test_as_strided_of_a_view_reads_elements_as_the_view_does(name, backend):
    function = AS_STRIDED[name]
    torch._dynamo.reset()
    ours = torch.randn(4, 2)
    theirs = ours.clone()
    got = torch.compile(function, backend=backend, fullgraph=True)(ours)
    wanted = function(theirs)
    assert got.dtype == wanted.dtype
    assert torch.equal(got, wanted) and torch.equal(ours, theirs)
