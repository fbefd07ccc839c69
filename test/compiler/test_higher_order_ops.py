"""Operators that take functions: control flow, traced calls and functional forms of operators that
write. Each is run eagerly, differentiated, traced and batched, against plain Python."""

import io
import pickle

import pytest

import torch
from torch._higher_order_ops import associative_scan, map, scan, strict_mode
from torch._ops import HigherOrderOperator
from torch.fx.experimental.proxy_tensor import make_fx

HIGHER = torch.ops.higher_order


def calls(module):
    return [str(n.target) for n in module.graph.nodes if n.op == "call_function"]


# ---- the base class
def test_base_class_cannot_be_instantiated():
    with pytest.raises(RuntimeError, match="Direct instantiation of HigherOrderOperator"):
        HigherOrderOperator("nameless")


class Twice(HigherOrderOperator):
    def __init__(self, name):
        super().__init__(name)


def test_kernel_of_a_mode_class_runs_with_the_mode_off():
    op = Twice("test_twice_mode")
    seen = []

    class Mode(torch.utils._python_dispatch.TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            seen.append(str(func))
            return func(*args, **(kwargs or {}))

    op.py_impl(torch._C.DispatchKey.CompositeExplicitAutograd)(lambda f, x: f(f(x)))
    op.py_impl(Mode)(lambda mode, f, x: op(f, x))
    with Mode():
        result = op(torch.sin, torch.ones(2))
    torch.testing.assert_close(result, torch.ones(2).sin().sin())
    assert "aten.sin.default" not in seen


def test_mode_without_a_kernel_is_refused_by_name():
    op = Twice("test_twice_refused")
    op.py_impl(torch._C.DispatchKey.CompositeExplicitAutograd)(lambda f, x: f(f(x)))

    class Other(torch.utils._python_dispatch.TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            return func(*args, **(kwargs or {}))

    x = torch.ones(2)
    with Other(), pytest.raises(NotImplementedError, match="no rule registered for HOP test_twice"):
        op(torch.sin, x)


def test_operator_is_found_by_name_and_survives_pickle():
    op = Twice("test_twice_named")
    assert HIGHER.test_twice_named is op and op.namespace == "higher_order"
    assert pickle.loads(pickle.dumps(op)) is op
    with pytest.raises(AttributeError, match="no_such_operator"):
        _ = HIGHER.no_such_operator


def test_call_without_any_kernel_raises_naming_the_operator():
    with pytest.raises(NotImplementedError, match="test_twice_empty"):
        Twice("test_twice_empty")(torch.sin, torch.ones(2))


def test_call_with_an_overriding_argument_reaches_torch_function():
    op = Twice("test_twice_override")

    class Seen(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return ("seen", func)

    assert op(torch.sin, torch.ones(2).as_subclass(Seen)) == ("seen", op)


# ---- cond
@pytest.mark.parametrize("taken", [True, False])
def test_cond_runs_one_branch_and_differentiates_it(taken):
    x = torch.tensor([0.3, 0.7], requires_grad=True)
    y = torch.cond(torch.tensor(taken), torch.sin, torch.cos, (x,))
    y.sum().backward()
    expected = x.detach().cos() if taken else -x.detach().sin()
    torch.testing.assert_close(x.grad, expected)


@pytest.mark.parametrize("mode", ["real", "fake"])
def test_cond_in_a_trace_keeps_both_branches(mode):
    x = torch.tensor([0.3, 0.7])
    graph = make_fx(lambda p, x: torch.cond(p, torch.sin, torch.cos, (x,)), tracing_mode=mode)(
        torch.tensor(True), x
    )
    assert calls(graph)[0] == "cond"
    assert {name for name, _ in graph.named_children()} == {"true_graph_0", "false_graph_0"}
    torch.testing.assert_close(graph(torch.tensor(False), x), x.cos())
    torch.testing.assert_close(graph(torch.tensor(True), x), x.sin())


def test_cond_in_a_trace_of_a_gradient_keeps_a_branch_for_each_derivative():
    x = torch.tensor([0.3, 0.7], requires_grad=True)

    def gradient(p, x):
        return torch.autograd.grad(torch.cond(p, torch.sin, torch.cos, (x,)).sum(), x)[0]

    graph = make_fx(gradient)(torch.tensor(True), x)
    assert calls(graph).count("cond") == 2
    torch.testing.assert_close(graph(torch.tensor(True), x), x.detach().cos())
    torch.testing.assert_close(graph(torch.tensor(False), x), -x.detach().sin())


def test_cond_with_nested_operands_returns_the_structure_of_its_branches():
    def double(d):
        return {"y": d["x"] * 2}

    result = torch.cond(True, double, lambda d: {"y": d["x"]}, ({"x": torch.ones(2)},))
    assert result["y"].tolist() == [2.0, 2.0]


def test_cond_over_a_batch_of_conditions_chooses_for_each():
    x = torch.tensor([1.0, 2.0, 3.0])
    pred = torch.tensor([True, False, True])
    result = torch.vmap(lambda p, x: torch.cond(p, lambda x: x * 2, lambda x: -x, (x,)))(pred, x)
    assert result.tolist() == [2.0, -2.0, 6.0]


def test_cond_with_branches_of_different_shapes_raises_in_a_fake_trace():
    with pytest.raises(RuntimeError, match="same metadata"):
        make_fx(lambda p, x: torch.cond(p, lambda x: x, lambda x: x[0], (x,)), tracing_mode="fake")(
            torch.tensor(True), torch.ones(2)
        )


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("yes", torch.sin, torch.cos, ()), "Expected pred to be bool or tensor"),
        ((torch.ones(2), torch.sin, torch.cos, ()), "single-element tensor"),
        ((True, 1, torch.cos, ()), "both branches to be callable"),
        ((True, torch.sin, torch.cos, "ab"), "tuple of possibly nested"),
    ],
)
def test_cond_with_wrong_arguments_raises(args, message):
    with pytest.raises(RuntimeError, match=message):
        torch.cond(*args)


# ---- loops
@pytest.mark.parametrize("mode", [None, "real", "fake"])
def test_while_loop_doubles_until_the_counter_ends(mode):
    def loop(i, x):
        return torch.while_loop(lambda i, x: i < 3, lambda i, x: (i + 1, x * 2), (i, x))

    i, x = torch.tensor(0), torch.tensor([1.5])
    run = loop if mode is None else make_fx(loop, tracing_mode=mode)(i, x)
    counter, value = run(i, x)
    assert counter.item() == 3 and value.tolist() == [12.0]


def test_while_loop_whose_body_changes_the_count_of_values_raises():
    with pytest.raises(RuntimeError, match="body_fn should return 1 values, but got 2"):
        torch.while_loop(lambda x: x < 1, lambda x: (x, x), (torch.tensor(0),))


@pytest.mark.parametrize("mode", [None, "real", "fake"])
def test_map_stacks_the_function_of_each_row(mode):
    x, w = torch.arange(6.0).reshape(3, 2), torch.tensor([2.0, 3.0])

    def rows(x, w):
        return map(lambda row, w: {"y": row * w}, x, w)["y"]

    run = rows if mode is None else make_fx(rows, tracing_mode=mode)(x, w)
    assert run(x, w).tolist() == [[0.0, 3.0], [4.0, 9.0], [8.0, 15.0]]


def test_map_in_a_trace_differentiates_rows_and_shared_arguments():
    x = torch.arange(6.0).reshape(3, 2).requires_grad_()
    w = torch.tensor([2.0, 3.0], requires_grad=True)

    def gradient(x, w):
        return torch.autograd.grad(map(lambda row, w: row * w, x, w).sum(), (x, w))

    graph = make_fx(gradient)(x, w)
    assert calls(graph).count("map_impl") == 2
    of_x, of_w = graph(x, w)
    assert of_x.tolist() == [[2.0, 3.0]] * 3 and of_w.tolist() == [6.0, 9.0]


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("mode", [None, "real", "fake"])
def test_scan_carries_sums_and_stacks_them(mode, reverse):
    x = torch.arange(6.0).reshape(3, 2)

    def sums(x):
        return scan(lambda c, x: (c + x, c + x), torch.zeros(2), x, reverse=reverse)

    run = sums if mode is None else make_fx(sums, tracing_mode=mode)(x)
    last, all_sums = run(x)
    rows = x.numpy()[::-1] if reverse else x.numpy()
    expected = rows.cumsum(0)
    assert last.tolist() == expected[-1].tolist()
    assert all_sums.tolist() == (expected[::-1] if reverse else expected).tolist()


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("dim", [0, 1, 2, -1])
@pytest.mark.parametrize("mode", [None, "fake"])
def test_scan_stacks_outputs_along_the_dimension_of_its_slices(mode, dim, reverse):
    x = torch.arange(24.0).reshape(2, 3, 4)

    def sums(x):
        start = torch.zeros_like(x.select(dim, 0))

        def step(c, x):
            return c + x, (c + x, x.sum(), x.sum(0))

        return scan(step, start, x, dim=dim, reverse=reverse)

    run = sums if mode is None else make_fx(sums, tracing_mode=mode)(x)
    last, (all_sums, numbers, rows) = run(x)
    way = (lambda t: t.flip(dim)) if reverse else (lambda t: t)
    assert torch.equal(all_sums, way(way(x).cumsum(dim)))
    assert torch.equal(last, x.sum(dim))
    slices = x.unbind(dim)
    assert torch.equal(numbers, torch.stack([s.sum() for s in slices]))
    of_rows = torch.stack([s.sum(0) for s in slices])
    assert torch.equal(rows, of_rows.movedim(0, dim) if dim == 1 else of_rows)


def test_scan_without_slices_gives_back_the_start():
    start = torch.ones(2)
    last, outputs = scan(lambda c, x: (c + 1, c), start, [])
    assert last is start and outputs == []


def test_scan_over_slices_of_other_numbers_raises():
    with pytest.raises(RuntimeError, match="as many slices"):
        scan(lambda c, x: (c + x[0], x[1]), torch.zeros(2), (torch.ones(3, 2), torch.ones(4, 2)))
    with pytest.raises(IndexError, match="Dimension out of range"):
        scan(lambda c, x: (c + x, c), torch.zeros(2), torch.ones(3, 2), dim=5)


@pytest.mark.parametrize("length", [1, 2, 5, 8])
@pytest.mark.parametrize("reverse", [False, True])
def test_associative_scan_equals_the_running_product(length, reverse):
    x = torch.rand(2, length) + 0.5
    result = associative_scan(lambda a, b: a * b, x, 1, reverse=reverse)
    rows = x.numpy()[:, ::-1] if reverse else x.numpy()
    expected = rows.cumprod(1)
    expected = expected[:, ::-1] if reverse else expected
    torch.testing.assert_close(result, torch.from_numpy(expected.copy()))


@pytest.mark.parametrize("mode", ["real", "fake"])
def test_associative_scan_in_a_trace_is_one_call(mode):
    x = torch.arange(4.0)
    graph = make_fx(lambda x: associative_scan(torch.add, x, 0), tracing_mode=mode)(x)
    assert "associative_scan" in calls(graph)
    assert graph(x).tolist() == [0.0, 1.0, 3.0, 6.0]


# ---- the tools of tracing
def test_out_dtype_computes_a_product_of_bytes_in_wider_integers():
    x = torch.full((2, 4), 100, dtype=torch.int8)
    result = HIGHER.out_dtype(torch.ops.aten.mm.default, torch.int32, x, x.t())
    assert result.dtype == torch.int32 and result.tolist() == [[40000, 40000]] * 2
    graph = make_fx(lambda x: HIGHER.out_dtype(torch.ops.aten.mm.default, torch.int32, x, x.t()))(x)
    assert "out_dtype" in calls(graph) and torch.equal(graph(x), result)


@pytest.mark.parametrize(
    ("op", "message"),
    [
        (torch.ops.aten.mm, "must be an OpOverload"),
        (torch.ops.aten.add_.Tensor, "functional operator"),
        (torch.ops.aten.sin.default, "only allows the following operators"),
    ],
)
def test_out_dtype_of_an_operator_it_does_not_know_raises(op, message):
    x = torch.ones(2, 2)
    with pytest.raises(ValueError, match=message):
        HIGHER.out_dtype(op, torch.int32, x, x)


def test_invoke_subgraph_of_one_name_is_traced_once():
    def twice(x):
        once = HIGHER.invoke_subgraph(torch.sin, "part", x)
        return HIGHER.invoke_subgraph(torch.sin, "part", once)

    x = torch.tensor([0.5])
    graph = make_fx(twice)(x)
    assert calls(graph) == ["invoke_subgraph", "invoke_subgraph"]
    assert len(list(graph.named_children())) == 1
    torch.testing.assert_close(graph(x), x.sin().sin())


@pytest.fixture
def writer():
    with torch.library._scoped_library("higher_order_test", "FRAGMENT") as library:
        library.define("raise_by(Tensor(a!) x, Tensor y) -> Tensor")
        library.impl("raise_by", lambda x, y: x.add_(y) * 2, "CompositeExplicitAutograd")
        yield torch.ops.higher_order_test.raise_by.default


def test_auto_functionalized_returns_the_result_and_the_new_value(writer):
    x = torch.zeros(2)
    result, new = HIGHER.auto_functionalized(writer, x=x, y=torch.ones(2))
    assert (result.tolist(), new.tolist(), x.tolist()) == ([2.0, 2.0], [1.0, 1.0], [0.0, 0.0])


def test_auto_functionalized_v2_writes_to_a_view_of_a_copied_base(writer):
    base = torch.zeros(4)
    _, new = HIGHER.auto_functionalized_v2(
        writer,
        y=torch.ones(2),
        _x_base_index=0,
        _x_size=(2,),
        _x_stride=(1,),
        _x_storage_offset=1,
        _all_bases=[base],
    )
    assert new.tolist() == [0.0, 1.0, 1.0, 0.0] and base.tolist() == [0.0] * 4


def test_auto_functionalized_of_an_operator_that_writes_nothing_raises():
    with pytest.raises(RuntimeError, match="cannot stand for"):
        HIGHER.auto_functionalized(torch.ops.aten.sin.default, self=torch.ones(2))


def test_with_effects_returns_a_token_before_the_results():
    token, result = HIGHER.with_effects(
        torch.tensor([]), torch.ops.aten.sin.default, torch.zeros(2)
    )
    assert token.numel() == 0 and result.tolist() == [0.0, 0.0]


def test_checkpoint_tag_computes_again_in_the_backward_pass():
    runs = []

    def part(x):
        runs.append(1)
        return x.sin().sin()

    x = torch.tensor([0.5], requires_grad=True)
    HIGHER.tag_activation_checkpoint(part, x, use_reentrant=False).sum().backward()
    assert len(runs) == 2
    torch.testing.assert_close(x.grad, (x.sin().cos() * x.cos()).detach())


def test_random_operator_run_from_a_saved_state_draws_the_same_numbers_in_graphs():
    from torch._prims.rng_prims import run_and_save_rng_state, run_with_rng_state

    def twice(x):
        state, first = run_and_save_rng_state(torch.ops.aten.rand_like.default, x)
        between = torch.rand_like(x)
        return first, between, run_with_rng_state(state, torch.ops.aten.rand_like.default, x)

    for traced in (
        make_fx(twice, tracing_mode="fake")(torch.ones(3)),
        make_fx(torch.func.functionalize(twice))(torch.ones(3)),
    ):
        first, between, again = traced(torch.ones(3))
        assert torch.equal(first, again) and not torch.equal(first, between)
        targets = [n.target for n in traced.graph.nodes if n.op == "call_function"]
        assert run_and_save_rng_state in targets and run_with_rng_state in targets


def test_strict_mode_runs_what_can_be_captured_as_a_whole():
    x = torch.tensor([0.5, 2.0])
    result, [other] = strict_mode(lambda x, y: (x + y, [y.sin()]), (x, x))
    assert torch.equal(result, x * 2) and torch.equal(other, x.sin())

    def breaks(x):
        torch._dynamo.graph_break()
        return x

    with pytest.raises(torch._dynamo.exc.UncapturedHigherOrderOpError):
        strict_mode(breaks, (x,))
    with pytest.raises(torch._dynamo.exc.UncapturedHigherOrderOpError, match="tuple of tensors"):
        strict_mode(lambda d: d["a"] + 1, ({"a": x},))


@pytest.mark.parametrize("strict", [False, True])
def test_strict_mode_in_an_exported_program_is_one_call(strict):
    class Net(torch.nn.Module):
        def forward(self, x):
            return strict_mode(lambda x: x.sin() + 1, (x,))

    x = torch.tensor([0.5, 2.0])
    program = torch.export.export(Net(), (x,), strict=strict)
    assert calls(program.graph_module).count("strict_mode") == 1
    buffer = io.BytesIO()
    torch.export.save(program, buffer)
    buffer.seek(0)
    for form in (program, torch.export.load(buffer), program.run_decompositions()):
        assert torch.equal(form.module()(x), x.sin() + 1)


class Switches(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = torch.nn.Linear(2, 2)

    def forward(self, x):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            low = self.layer(x)
        with torch.no_grad():
            plain = x * 3
        return low.float() + plain


@pytest.mark.parametrize("decomposed", [False, True])
def test_exported_regions_under_switches_compile_to_what_they_do(decomposed):
    module, x = Switches(), torch.randn(3, 2)
    program = torch.export.export(module, (x,))
    program = program.run_decompositions() if decomposed else program
    compiled = torch.compile(program.module(), backend="aot_eager")
    ours, theirs = x.clone().requires_grad_(), x.clone().requires_grad_()
    result, expected = compiled(ours), module(theirs)
    assert torch.equal(result, expected)
    if not decomposed:  # graphs without composite operators have no switches of gradients
        result.sum().backward()
        expected.sum().backward()
        torch.testing.assert_close(ours.grad, theirs.grad)
