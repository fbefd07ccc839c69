"""torch.autograd.Function: both styles of forward, what a context can do, and the errors of wrong
backwards."""

import gc
import weakref

import pytest

import torch
from torch.autograd import Function
from torch.autograd.function import NestedIOFunction, once_differentiable


class Square(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return 2 * g * x


class ScaledSum(Function):
    """With setup_context, a default and a non-tensor argument."""

    @staticmethod
    def forward(x, y, scale=2.0):
        return (x + y) * scale

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.scale = inputs[2]

    @staticmethod
    def backward(ctx, g):
        return g * ctx.scale, g * ctx.scale, None


def leaf(*shape):
    return torch.randn(*shape, dtype=torch.float64, requires_grad=True)


def test_function_gives_value_and_gradient():
    a = leaf(3)
    y = Square.apply(a)
    assert type(y.grad_fn).__name__ == "SquareBackward" and y.grad_fn.name() == "SquareBackward"
    y.sum().backward()
    assert torch.allclose(a.grad, 2 * a.detach())


def test_function_backward_can_be_differentiated():
    a = leaf(3)
    (g,) = torch.autograd.grad(Square.apply(a).sum(), a, create_graph=True)
    (gg,) = torch.autograd.grad(g.sum(), a)
    assert torch.equal(gg, torch.full((3,), 2.0, dtype=torch.float64))
    assert torch.autograd.gradcheck(Square.apply, (a,)) and torch.autograd.gradgradcheck(
        Square.apply, (a,)
    )


@pytest.mark.parametrize(
    "call", [lambda x, y: ScaledSum.apply(x, y), lambda x, y: ScaledSum.apply(x, y=y, scale=2.0)]
)
def test_setup_context_style_fills_defaults_and_keywords(call):
    a, b = leaf(3), leaf(3)
    y = call(a, b)
    y.sum().backward()
    assert torch.allclose(y, 2 * (a + b)) and a.grad[0] == 2 and b.grad[0] == 2


def test_forward_runs_without_recording():
    class Probe(Function):
        @staticmethod
        def forward(ctx, x):
            assert not torch.is_grad_enabled()
            return x.clone()

        @staticmethod
        def backward(ctx, g):
            return g

    Probe.apply(leaf(3))


def test_needs_input_grad_says_what_is_wanted():
    class Two(Function):
        @staticmethod
        def forward(ctx, x, y, z):
            assert ctx.needs_input_grad == (True, False, False)
            return x * y

        @staticmethod
        def backward(ctx, g):
            assert ctx.needs_input_grad == (True, False, False)
            return g, None, None

    a = leaf(3)
    Two.apply(a, torch.ones(3, dtype=torch.float64), 5).sum().backward()
    assert a.grad is not None


def test_no_grad_gives_result_without_history():
    with torch.no_grad():
        assert Square.apply(leaf(3)).grad_fn is None
    assert Square.apply(torch.ones(3)).grad_fn is None


def test_saved_tensors_are_freed_after_backward():
    a = leaf(3)
    y = Square.apply(a)
    y.sum().backward()
    with pytest.raises(RuntimeError, match="Trying to backward through the graph a second time"):
        y.grad_fn.saved_tensors  # noqa: B018


def test_saved_output_does_not_keep_itself_alive():
    class Exp(Function):
        @staticmethod
        def forward(ctx, x):
            y = x.exp()
            ctx.save_for_backward(y)
            return y

        @staticmethod
        def backward(ctx, g):
            (y,) = ctx.saved_tensors
            return g * y

    a = leaf(3)
    y = Exp.apply(a)
    assert torch.autograd.gradgradcheck(Exp.apply, (a,))
    ref = weakref.ref(y)
    node = weakref.ref(y.grad_fn)
    del y
    assert ref() is None and node() is None


def test_saved_tensor_written_since_raises():
    a = leaf(3)
    b = a * 1
    y = Square.apply(b)
    b.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()


def test_saving_other_objects_raises():
    class Bad(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(3)
            return x.clone()

    with pytest.raises(TypeError, match="save_for_backward can only save variables"):
        Bad.apply(leaf(3))


def test_none_can_be_saved():
    class WithNone(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(None, x)
            return x * 2

        @staticmethod
        def backward(ctx, g):
            nothing, x = ctx.saved_tensors
            assert nothing is None and x is not None
            return g * 2

    WithNone.apply(leaf(3)).sum().backward()


# ---- outputs ----------------------------------------------------------------------------


class Both(Function):
    @staticmethod
    def forward(ctx, x, materialize):
        ctx.set_materialize_grads(materialize)
        return x * 2, x * 3, "text"

    @staticmethod
    def backward(ctx, g, h, nothing):
        assert nothing is None
        ctx.seen.append(h)
        return (g if h is None else g + h), None


@pytest.mark.parametrize("materialize", [True, False])
def test_unused_output_gives_zeros_or_none(materialize):
    a = leaf(3)
    Both._backward_cls.seen = seen = []
    y, _, text = Both.apply(a, materialize)
    y.sum().backward()
    assert text == "text"
    assert (
        torch.equal(seen[0], torch.zeros(3, dtype=torch.float64))
        if materialize
        else seen[0] is None
    )


def test_non_differentiable_output_has_no_gradient():
    class Sorted(Function):
        @staticmethod
        def forward(ctx, x):
            values, order = x.sort()
            other = x * 2
            ctx.mark_non_differentiable(order, other)
            ctx.save_for_backward(order)
            return values, order, other

        @staticmethod
        def backward(ctx, g, _, __):
            (order,) = ctx.saved_tensors
            return torch.zeros_like(g).index_put((order,), g)

    a = leaf(5)
    values, order, other = Sorted.apply(a)
    assert values.requires_grad and not order.requires_grad and not other.requires_grad
    (values * torch.arange(5)).sum().backward()
    assert torch.equal(a.grad[order], torch.arange(5, dtype=torch.float64))


def test_input_returned_as_it_is_becomes_a_view():
    class Identity(Function):
        @staticmethod
        def forward(ctx, x):
            return x

        @staticmethod
        def backward(ctx, g):
            return g * 5

    a = leaf(3)
    y = Identity.apply(a)
    assert y is not a and y.grad_fn.name() == "IdentityBackward" and a.is_leaf
    y.sum().backward()
    assert a.grad[0] == 5
    with pytest.raises(RuntimeError, match="custom Function"):
        Identity.apply(a * 1).add_(1)


class DoubleInPlace(Function):
    @staticmethod
    def forward(ctx, x):
        x.mul_(2)
        ctx.mark_dirty(x)
        return x

    @staticmethod
    def backward(ctx, g):
        return g * 2


def test_dirty_input_is_recorded_as_written():
    a = leaf(3)
    b = a * 1
    version = b._version
    y = DoubleInPlace.apply(b)
    assert y is b and b.grad_fn.name() == "DoubleInPlaceBackward" and b._version > version
    b.sum().backward()
    assert a.grad[0] == 2


def test_dirty_leaf_raises():
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad"):
        DoubleInPlace.apply(leaf(3))


def test_dirty_view_goes_through_its_base():
    a = leaf(4)
    b = a * 1
    DoubleInPlace.apply(b[:2])
    b.sum().backward()
    assert a.grad.tolist() == [2, 2, 1, 1]


# ---- wrong backwards --------------------------------------------------------------------


def wrong(result):
    class Wrong(Function):
        @staticmethod
        def forward(ctx, x, n):
            return x.clone()

        @staticmethod
        def backward(ctx, g):
            return result(g)

    return Wrong.apply(leaf(3), 1).sum()


def test_too_few_gradients_raise():
    with pytest.raises(RuntimeError, match=r"incorrect number of gradients \(expected 2, got 1\)"):
        wrong(lambda g: g).backward()


def test_trailing_nones_are_accepted():
    wrong(lambda g: (g, None, None, None)).backward()


def test_gradient_for_a_number_raises():
    with pytest.raises(RuntimeError, match="different from None at position 2"):
        wrong(lambda g: (g, g)).backward()


def test_gradient_that_is_no_tensor_raises():
    with pytest.raises(TypeError, match="expected Variable or None"):
        wrong(lambda g: (1, None)).backward()


def test_gradient_of_wrong_shape_raises():
    with pytest.raises(RuntimeError, match="returned an invalid gradient at index 0"):
        wrong(lambda g: (g.new_ones(2, 5), None)).backward()


def test_missing_backward_raises():
    class NoBackward(Function):
        @staticmethod
        def forward(ctx, x):
            return x.clone()

    with pytest.raises(NotImplementedError, match="must implement either the backward or vjp"):
        NoBackward.apply(leaf(3)).sum().backward()


def test_vjp_is_another_name_for_backward():
    class Vjp(Function):
        @staticmethod
        def forward(ctx, x):
            return x * 4

        @staticmethod
        def vjp(ctx, g):
            return g * 4

    a = leaf(3)
    Vjp.apply(a).sum().backward()
    assert a.grad[0] == 4


def test_exception_in_backward_reaches_the_caller():
    with pytest.raises(ZeroDivisionError):
        wrong(lambda g: 1 / 0).backward()


# ---- the rest ---------------------------------------------------------------------------


def test_once_differentiable_raises_the_second_time():
    class Once(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        @once_differentiable
        def backward(ctx, g):
            assert not torch.is_grad_enabled()
            (x,) = ctx.saved_tensors
            return 2 * g * x

    a = leaf(3)
    Once.apply(a).sum().backward()
    assert torch.allclose(a.grad, 2 * a.detach())
    y = (Once.apply(a * 1) * a).sum()
    (g,) = torch.autograd.grad(y, a, create_graph=True)
    with pytest.raises(RuntimeError, match="once_differentiable"):
        g.sum().backward()


def test_context_hooks_run():
    order = []
    a = leaf(3)
    y = Square.apply(a)
    y.grad_fn.register_prehook(lambda g: order.append("pre"))
    y.grad_fn.register_hook(lambda gi, go: order.append("post"))
    y.sum().backward()
    assert order == ["pre", "post"] and isinstance(y.grad_fn, torch.autograd.graph.Node)


def test_context_has_edges_only_with_its_graph():
    y = Square.apply(leaf(3))
    fn = y.grad_fn
    assert fn.next_functions[0][0].name() == "torch::autograd::AccumulateGrad"
    del y
    with pytest.raises(RuntimeError, match="Attribute 'next_functions' is invalid"):
        fn.next_functions  # noqa: B018


def test_gradient_edge_keeps_the_node_of_a_function():
    a = leaf(3)
    edge = torch.autograd.graph.get_gradient_edge(Square.apply(a))
    (g,) = torch.autograd.grad(edge, a, torch.ones(3, dtype=torch.float64))
    assert torch.allclose(g, 2 * a.detach())


def test_instance_cannot_be_called():
    with pytest.warns(DeprecationWarning, match="should not be instantiated"):
        instance = Square()
    with pytest.raises(RuntimeError, match="Legacy autograd function"):
        instance(leaf(3))


def test_nested_inputs_and_outputs():
    class Nested(NestedIOFunction):
        @staticmethod
        def forward_extended(ctx, pair, other):
            x, (y,) = pair
            return (x * 2, [y + other])

        @staticmethod
        def backward_extended(ctx, gx, gy):
            return (gx * 2, (gy[0],)), gy[0]

    a, b, c = leaf(3), leaf(3), leaf(3)
    x, (y,) = Nested.apply((a, (b,)), c)
    (x.sum() + 3 * y.sum()).backward()
    assert a.grad[0] == 2 and b.grad[0] == 3 and c.grad[0] == 3


def test_saved_tensors_hooks_see_what_a_function_saves():
    seen = []
    a = leaf(3)
    with torch.autograd.graph.saved_tensors_hooks(lambda t: seen.append(t) or t, lambda t: t):
        y = Square.apply(a)
    y.sum().backward()
    assert len(seen) == 1 and torch.allclose(a.grad, 2 * a.detach())


def test_jvp_gives_the_tangent_of_the_output():
    from torch.autograd import forward_ad

    class SquareJvp(Square):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_forward(x)
            return Square.forward(ctx, x)

        @staticmethod
        def jvp(ctx, tangent):
            (x,) = ctx.saved_tensors
            return 2 * x * tangent

    x, t = torch.randn(3), torch.randn(3)
    with forward_ad.dual_level():
        out = forward_ad.unpack_dual(SquareJvp.apply(forward_ad.make_dual(x, t)))
        assert torch.allclose(out.primal, x * x) and torch.allclose(out.tangent, 2 * x * t)
        with pytest.raises(NotImplementedError, match="must implement the jvp function"):
            Square.apply(forward_ad.make_dual(x, t))


# ---- torch._C._functions


def test_undefined_grad_lets_no_gradient_through():
    x = torch.ones(2, requires_grad=True)
    y = torch._C._functions.UndefinedGrad()(x * 2)
    assert y.tolist() == [2.0, 2.0] and y.requires_grad
    y.sum().backward()
    assert x.grad is None


def test_delayed_error_raises_in_backward():
    x = torch.ones(2, requires_grad=True)
    y = torch._C._functions.DelayedError("too late", 1)(x * 2)
    with pytest.raises(RuntimeError, match="too late"):
        y.sum().backward()
    with pytest.raises(RuntimeError, match="expected 1 inputs, got 2"):
        torch._C._functions.DelayedError("too late", 1)(x, x)


def test_accumulate_grad_is_the_class_of_leaf_nodes():
    x = torch.ones(2, requires_grad=True)
    node = (x * 2).grad_fn.next_functions[0][0]
    assert isinstance(node, torch._C._functions.AccumulateGrad)


def test_output_kept_as_an_attribute_of_the_context_is_collected():
    class Keep(torch.autograd.Function):
        @staticmethod
        def forward(ctx, a):
            ctx.out = a * 2
            return ctx.out

        @staticmethod
        def backward(ctx, g):
            return g * 2

    x = torch.ones(3, requires_grad=True)
    direct, behind = Keep.apply(x), Keep.apply(x) * 3
    references = [weakref.ref(direct), weakref.ref(behind), weakref.ref(direct.grad_fn)]
    del direct, behind
    gc.collect()
    gc.collect()
    assert [r() for r in references] == [None, None, None]


def test_saved_variables_are_the_saved_tensors_with_a_warning():
    class Square(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_variables
            return 2 * g * x

    x = torch.tensor([3.0], requires_grad=True)
    with pytest.warns(DeprecationWarning, match="use 'saved_tensors'"):
        Square.apply(x).backward()
    assert x.grad.item() == 6


def test_gradient_that_is_returned_twice_for_one_input_counts_twice():
    class Add(Function):
        @staticmethod
        def forward(ctx, a, b):
            return a + b

        @staticmethod
        def backward(ctx, g):
            return g, g

    x = torch.tensor([3.0], requires_grad=True)
    y = x * 1
    Add.apply(y, y).backward()
    Add.apply(x, x).backward()
    assert x.grad.item() == 4
