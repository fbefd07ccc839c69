"""Backward passes: what arrives where, hooks and their order, modes, depth, threads and memory.
Formulas of single operators are checked elsewhere."""

import gc
import threading
import weakref

import numpy as np
import pytest

import torch
from torch.autograd import Function


def leaf(*shape, dtype=torch.float64):
    return torch.randn(*shape, dtype=dtype, requires_grad=True)


# ---- backward and grad ------------------------------------------------------------------


def test_backward_of_product_gives_other_factor():
    a, b = leaf(3), leaf(3)
    (a * b).sum().backward()
    assert torch.equal(a.grad, b.detach()) and torch.equal(b.grad, a.detach())


def test_backward_twice_accumulates():
    a = leaf(3)
    a.sum().backward()
    a.sum().backward()
    assert torch.equal(a.grad, torch.full((3,), 2.0, dtype=torch.float64))


def test_backward_without_retain_graph_raises_the_second_time():
    a = leaf(3)
    y = (a * a).sum()
    y.backward()
    with pytest.raises(RuntimeError, match="Trying to backward through the graph a second time"):
        y.backward()


def test_backward_with_retain_graph_runs_again():
    a = leaf(3)
    y = (a * a).sum()
    y.backward(retain_graph=True)
    y.backward()
    assert torch.allclose(a.grad, 4 * a.detach())


def test_backward_of_vector_needs_gradient():
    with pytest.raises(
        RuntimeError, match="grad can be implicitly created only for scalar outputs"
    ):
        (leaf(3) * 2).backward()


def test_backward_with_gradient_of_other_shape_raises():
    with pytest.raises(RuntimeError, match="Mismatch in shape"):
        (leaf(3) * 2).backward(torch.ones(2, dtype=torch.float64))


def test_backward_of_tensor_without_history_raises():
    with pytest.raises(RuntimeError, match="does not require grad and does not have a grad_fn"):
        torch.ones(()).backward()


def test_backward_inputs_leaves_others_alone():
    a, b = leaf(3), leaf(3)
    (a * b).sum().backward(inputs=[a])
    assert a.grad is not None and b.grad is None


def test_backward_inputs_non_leaf_gets_grad():
    a = leaf(3)
    b = a * 2
    (b * b).sum().backward(inputs=[b])
    assert a.grad is None and torch.allclose(b.grad, 2 * b.detach())


def test_backward_inputs_empty_raises():
    with pytest.raises(RuntimeError, match="cannot be empty"):
        leaf(3).sum().backward(inputs=[])


def test_autograd_backward_of_several_tensors_sums():
    a = leaf(3)
    torch.autograd.backward([a.sum(), (2 * a).sum()])
    assert torch.equal(a.grad, torch.full((3,), 3.0, dtype=torch.float64))


def test_grad_answers_and_does_not_accumulate():
    a = leaf(3)
    (g,) = torch.autograd.grad((a * a).sum(), a)
    assert torch.allclose(g, 2 * a.detach()) and a.grad is None


def test_grad_of_unused_input():
    a, b = leaf(3), leaf(3)
    y = a.sum()
    with pytest.raises(RuntimeError, match="appears to not have been used in the graph"):
        torch.autograd.grad(y, (a, b), retain_graph=True)
    assert torch.autograd.grad(y, (a, b), allow_unused=True, retain_graph=True)[1] is None
    zeros = torch.autograd.grad(y, (a, b), materialize_grads=True)[1]
    assert torch.equal(zeros, torch.zeros(3, dtype=torch.float64))


def test_grad_of_input_without_gradient_raises():
    with pytest.raises(
        RuntimeError, match="One of the differentiated Tensors does not require grad"
    ):
        torch.autograd.grad(leaf(3).sum(), torch.ones(3))


def test_grad_of_output_by_itself_is_the_gradient_given():
    y = (leaf(3) * 2).sum()
    assert torch.autograd.grad(y, y)[0].item() == 1


def test_grad_of_inner_and_outer_inputs_together():
    a = leaf(3)
    b = a * 3
    ga, gb = torch.autograd.grad((b * b).sum(), (a, b))
    assert torch.allclose(gb, 2 * b.detach()) and torch.allclose(ga, 6 * b.detach())


def test_grad_batched_stacks_the_single_gradients():
    a = leaf(3)
    y = a * a
    batch = torch.eye(3, dtype=torch.float64)
    (rows,) = torch.autograd.grad(y, a, batch, is_grads_batched=True)
    assert torch.allclose(rows, torch.diag(2 * a.detach()))


def test_create_graph_gives_higher_derivatives():
    a = leaf(3)
    value = (a**4).sum()
    for factor, power in ((4, 3), (12, 2), (24, 1)):
        (grad,) = torch.autograd.grad(value, a, create_graph=True)
        assert torch.allclose(grad, factor * a**power)
        value = grad.sum()


def test_second_use_of_a_tensor_sums_its_gradients():
    a = leaf(3)
    b = a * 2
    (b + b * b).sum().backward()
    assert torch.allclose(a.grad, 2 + 4 * b.detach())


def test_broadcast_gradient_has_the_shape_of_its_input():
    a, b = leaf(3, 1), leaf(4)
    (a * b).sum().backward()
    assert a.grad.shape == (3, 1) and b.grad.shape == (4,)


def test_gradient_has_the_strides_of_a_dense_leaf():
    a = torch.randn(3, 4).t().requires_grad_()
    (a * torch.randn(4, 3)).sum().backward()
    assert a.grad.stride() == a.stride()


def test_accumulation_keeps_the_grad_object():
    a = leaf(3)
    a.sum().backward()
    first = a.grad
    a.sum().backward()
    assert a.grad is first


# ---- metadata ---------------------------------------------------------------------------


def test_leaf_and_non_leaf():
    a = leaf(3)
    b = a * 2
    assert a.is_leaf and a.grad_fn is None and not b.is_leaf and b.requires_grad
    assert a.detach().requires_grad is False and a.data.is_leaf


def test_requires_grad_of_non_leaf_cannot_be_switched_off():
    with pytest.raises(
        RuntimeError, match="you can only change requires_grad flags of leaf variables"
    ):
        (leaf(3) * 2).requires_grad = False


def test_integer_tensor_cannot_require_grad():
    with pytest.raises(RuntimeError, match="floating point"):
        torch.ones(3, dtype=torch.int64).requires_grad_()


def test_detach_shares_versions_and_data_does_not():
    a = torch.zeros(3)
    before = a._version
    a.detach().add_(1)
    assert a._version == before + 1
    a.data.add_(1)
    assert a._version == before + 1 and a.sum() == 6


def test_node_shows_name_edges_and_metadata():
    a, b = leaf(3), leaf(3)
    fn = (a * b).grad_fn
    assert fn.name() == "MulBackward0" == type(fn).__name__
    assert [n.name() for n, _ in fn.next_functions] == ["torch::autograd::AccumulateGrad"] * 2
    assert fn.next_functions[0][0].variable is a
    assert isinstance(fn, torch.autograd.graph.Node) and not isinstance(
        a, torch.autograd.graph.Node
    )
    fn.metadata["key"] = 1
    assert fn.metadata == {"key": 1}


def test_node_can_be_called():
    a = leaf(3)
    grads = (a * 2).sum().grad_fn(torch.ones((), dtype=torch.float64))
    assert torch.equal(grads, torch.ones(3, dtype=torch.float64))


# ---- hooks ------------------------------------------------------------------------------


def test_tensor_hook_sees_and_replaces_the_gradient():
    a = leaf(3)
    b = a * 2
    seen = []
    b.register_hook(seen.append)
    b.register_hook(lambda g: g * 10)
    b.sum().backward()
    assert torch.equal(seen[0], torch.ones(3, dtype=torch.float64))
    assert torch.equal(a.grad, torch.full((3,), 20.0, dtype=torch.float64))


def test_hook_of_leaf_runs_in_backward_and_in_grad():
    a = leaf(3)
    a.register_hook(lambda g: g * 2)
    (g,) = torch.autograd.grad(a.sum(), a)
    a.sum().backward()
    assert torch.equal(g, a.grad) and a.grad[0] == 2


def test_removed_hook_does_not_run():
    a = leaf(3)
    handle = a.register_hook(lambda g: g * 2)
    handle.remove()
    a.sum().backward()
    assert a.grad[0] == 1


def test_hook_that_changes_the_shape_raises():
    a = leaf(3)
    a.register_hook(lambda g: g[:1])
    with pytest.raises(RuntimeError, match="has changed the size of value"):
        a.sum().backward()


def test_hooks_run_in_order():
    a = leaf(3)
    order = []
    b = a * 2
    b.register_hook(lambda g: order.append("tensor"))
    b.grad_fn.register_prehook(lambda grads: order.append("pre"))
    b.grad_fn.register_hook(lambda gi, go: order.append("post"))
    a.register_hook(lambda g: order.append("leaf"))
    a.register_post_accumulate_grad_hook(lambda p: order.append("accumulated"))
    b.sum().backward()
    assert order == ["tensor", "pre", "post", "leaf", "accumulated"]


def test_node_hooks_replace_gradients():
    a = leaf(3)
    b = a * 2
    b.grad_fn.register_prehook(lambda grads: (grads[0] * 5,))
    b.grad_fn.register_hook(lambda gi, go: (gi[0] + go[0], *gi[1:]))
    b.sum().backward()
    assert a.grad[0] == 15


def test_post_accumulate_hook_gets_the_leaf():
    a = leaf(3)
    seen = []
    handle = a.register_post_accumulate_grad_hook(lambda p: seen.append(p.grad.clone()))
    a.sum().backward()
    handle.remove()
    a.sum().backward()
    assert len(seen) == 1 and seen[0][0] == 1
    with pytest.raises(RuntimeError, match="cannot be registered on non-leaf"):
        (a * 2).register_post_accumulate_grad_hook(print)


def test_hook_stays_with_the_value_before_an_inplace_write():
    a = leaf(3)
    b = a * 2
    seen = []
    b.register_hook(lambda g: seen.append(("before", g[0].item())))
    b.mul_(10)
    b.register_hook(lambda g: seen.append(("after", g[0].item())))
    b.sum().backward()
    assert seen == [("after", 1.0), ("before", 10.0)]


def test_retain_grad_keeps_the_gradient_of_a_non_leaf():
    a = leaf(3)
    b = a * 2
    b.retain_grad()
    assert b.retains_grad and not a.retains_grad
    (b * b).sum().backward()
    assert torch.allclose(b.grad, 2 * b.detach())


def test_retained_gradient_follows_an_inplace_write():
    a = leaf(3)
    b = a * 2
    b.retain_grad()
    b.mul_(10)
    (b * 3).sum().backward()
    assert b.grad[0] == 3


def test_retained_gradients_of_views_follow_a_write_to_one_of_them():
    base = leaf(3).clone()
    written, other = base[:2], base[1:]
    written.retain_grad()
    other.retain_grad()
    written.mul_(2)
    (3 * written).sum().backward(retain_graph=True)
    assert written.grad.tolist() == [3, 3] and other.grad is None
    (5 * other).sum().backward()
    assert other.grad.tolist() == [5, 5]


def test_exception_in_hook_reaches_the_caller():
    a = leaf(3)
    a.register_hook(lambda g: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        a.sum().backward()


def test_multi_grad_hook_gets_all_gradients_once():
    a, b, c = leaf(2), leaf(2), leaf(2)
    seen = []
    torch.autograd.graph.register_multi_grad_hook((a, b, c), seen.append)
    (a * b).sum().backward()
    assert len(seen) == 1 and seen[0][2] is None and torch.equal(seen[0][0], b.detach())


def test_multi_grad_hook_any_gets_the_first():
    a, b = leaf(2), leaf(2)
    seen = []
    handle = torch.autograd.graph.register_multi_grad_hook((a, b), seen.append, mode="any")
    (a * b).sum().backward()
    handle.remove()
    (a * b).sum().backward()
    assert len(seen) == 1


# ---- edges ------------------------------------------------------------------------------


def test_gradient_edge_stands_for_its_tensor():
    a = leaf(3)
    b = a * 2
    edge = torch.autograd.graph.get_gradient_edge(b)
    y = (b * b).sum()
    expected = 2 * b.detach()
    del b
    (g,) = torch.autograd.grad(y, edge)
    assert torch.allclose(g, expected)


def test_gradient_edge_as_output():
    a = leaf(3)
    edge = torch.autograd.graph.get_gradient_edge(a * 2)
    (g,) = torch.autograd.grad(edge, a, torch.ones(3, dtype=torch.float64))
    assert torch.equal(g, torch.full((3,), 2.0, dtype=torch.float64))


# ---- modes ------------------------------------------------------------------------------


def test_no_grad_does_not_record():
    a = leaf(3)
    with torch.no_grad():
        assert not (a * 2).requires_grad
        with torch.enable_grad():
            assert (a * 2).requires_grad
    assert (a * 2).requires_grad


@pytest.mark.parametrize("decorate", [torch.no_grad(), torch.no_grad, torch.inference_mode()])
def test_mode_decorates_functions(decorate):
    @decorate
    def run(t):
        return t * 2, torch.is_grad_enabled()

    result, enabled = run(leaf(3))
    assert not result.requires_grad and not enabled and torch.is_grad_enabled()


def test_mode_holds_inside_a_generator_only():
    @torch.no_grad()
    def count():
        for _ in range(2):
            yield torch.is_grad_enabled()

    for inside in count():
        assert not inside and torch.is_grad_enabled()


def test_set_grad_enabled_as_function_and_context():
    torch.set_grad_enabled(False)
    try:
        assert not torch.is_grad_enabled()
        with torch.set_grad_enabled(True):
            assert torch.is_grad_enabled()
        assert not torch.is_grad_enabled()
    finally:
        torch.set_grad_enabled(True)


def test_mode_is_left_after_an_exception():
    with pytest.raises(KeyError), torch.no_grad():
        raise KeyError
    assert torch.is_grad_enabled()


def test_inference_tensor_cannot_be_saved_or_written():
    with torch.inference_mode():
        a = torch.ones(3)
    assert a.is_inference()
    with pytest.raises(RuntimeError, match="Inference tensors"):
        (leaf(3, dtype=torch.float32) * a).sum().backward()


# ---- depth, threads, memory -------------------------------------------------------------


def test_chain_of_a_million_nodes_runs_and_is_freed():
    a = torch.ones(1, requires_grad=True)
    x = a
    for _ in range(1_000_000):
        x = x + 1
    x.backward()
    assert a.grad.item() == 1
    y = a
    for _ in range(1_000_000):
        y = y * 1.0
    del x, y


class Nested(Function):
    """Its backward runs a backward, and so on; the innermost raises the error, if any."""

    @staticmethod
    def forward(ctx, x, depth, error):
        ctx.depth, ctx.error = depth, error
        return x.clone()

    @staticmethod
    def backward(ctx, g):
        if ctx.depth > 0:
            with torch.enable_grad():
                inner = torch.ones(1, requires_grad=True)
                Nested.apply(inner, ctx.depth - 1, ctx.error).sum().backward()
        elif ctx.error is not None:
            raise ctx.error
        return g, None, None


def test_reentrant_backward_twenty_thousand_deep():
    a = torch.ones(1, requires_grad=True)
    Nested.apply(a, 20_000, None).sum().backward()
    assert a.grad.item() == 1


def test_exception_from_a_deep_pass_reaches_the_caller():
    a = torch.ones(1, requires_grad=True)
    with pytest.raises(KeyError, match="deep"):
        Nested.apply(a, 200, KeyError("deep")).sum().backward()


def test_exception_leaves_the_engine_usable():
    a = leaf(3)
    handle = a.register_hook(lambda g: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        a.sum().backward()
    handle.remove()
    a.sum().backward()
    assert a.grad[0] == 1 and torch.is_grad_enabled()


def test_backward_from_several_threads_accumulates_everything():
    a = torch.zeros(100_000, requires_grad=True)

    def run():
        for _ in range(20):
            (a * 1.0).sum().backward()

    threads = [threading.Thread(target=run) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert torch.equal(a.grad, torch.full_like(a, 80.0))


def test_graph_is_freed_with_its_outputs():
    a = leaf(3)
    seen = []

    class Owner(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.mark = Mark()
            seen.append(weakref.ref(ctx.mark))
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return g * 2

    class Mark:
        pass

    y = Owner.apply(a) * 3
    assert seen[0]() is not None
    del y
    assert seen[0]() is None


def test_leaf_is_freed_after_backward():
    a = leaf(3)
    ref = weakref.ref(a)
    (a * a).sum().backward()
    del a
    assert ref() is None


@pytest.mark.parametrize("make", [lambda a: a, lambda a: a * 2])
def test_hook_that_refers_to_its_tensor_is_collected(make):
    def hooked():
        t = make(leaf(3))
        t.register_hook(lambda g: t * g)
        return weakref.ref(t)

    ref = hooked()
    gc.collect()
    assert ref() is None


@pytest.mark.parametrize(
    "make", [torch.exp, torch.tanh, torch.sigmoid, lambda t: torch.softmax(t, 0)]
)
def test_saved_output_does_not_keep_the_graph_alive(make):
    y = make(leaf(3))
    ref = weakref.ref(y)
    del y
    assert ref() is None


def test_detached_tensor_does_not_keep_the_graph_alive():
    y = leaf(3) * 2
    z = y.detach()
    ref = weakref.ref(y)
    version = z._version
    y.detach().add_(1)
    assert z._version == version + 1
    del y
    assert ref() is None


def test_training_steps_leave_no_objects_behind():
    w = torch.randn(8, 8, requires_grad=True)
    x = torch.randn(4, 8)

    def step():
        loss = (x @ w).relu().pow(2).mean()
        loss.backward()
        with torch.no_grad():
            w.sub_(w.grad, alpha=0.01)
        w.grad = None

    step()
    gc.collect()
    before = len(gc.get_objects())
    for _ in range(1000):
        step()
    gc.collect()
    assert len(gc.get_objects()) - before < 20


def test_queued_callback_runs_at_the_end():
    order = []
    a = leaf(3)
    a.register_hook(
        lambda g: torch.autograd.Variable._execution_engine.queue_callback(
            lambda: order.append("end")
        )
    )
    a.register_post_accumulate_grad_hook(lambda p: order.append("accumulated"))
    a.sum().backward()
    assert order == ["accumulated", "end"]


def test_second_derivative_through_a_write_to_a_view_follows_the_formula():
    # f = sum(s(1.5 x)^2) over the first two and sum((1.5 x)^2) over the rest, s the sigmoid.
    x = torch.tensor([0.3, -0.4, 0.5, 2.0], dtype=torch.float64, requires_grad=True)
    a = x * 1.5
    a[:2].sigmoid_()
    (g,) = torch.autograd.grad((a * a).sum(), x, create_graph=True)
    (h,) = torch.autograd.grad(g.sum(), x)
    s = 1 / (1 + np.exp(-1.5 * x.detach().numpy()))
    d = s * (1 - s)
    first = np.where([1, 1, 0, 0], 2 * s * d * 1.5, 4.5 * x.detach().numpy())
    second = np.where([1, 1, 0, 0], 2 * (d * d + s * d * (1 - 2 * s)) * 2.25, 4.5)
    np.testing.assert_allclose(g.detach().numpy(), first)
    np.testing.assert_allclose(h.numpy(), second)


def test_gradient_set_to_none_during_a_backward_pass_of_another_thread_is_safe():
    x = torch.zeros(200_000, requires_grad=True)
    done = threading.Event()

    def drop():
        while not done.is_set():
            x.grad = None
            x.grad = torch.zeros_like(x)

    thread = threading.Thread(target=drop)
    thread.start()
    try:
        for _ in range(150):
            (x * 2).sum().backward()
    finally:
        done.set()
        thread.join()
    x.grad = None
    (x * 2).sum().backward()
    assert torch.equal(x.grad, torch.full_like(x, 2))
