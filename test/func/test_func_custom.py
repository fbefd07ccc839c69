"""What users bring to function transforms: custom autograd Functions and operators inside grad,
vmap and jvp, and programs with writes and views made functional."""

import pytest

import torch
from torch.func import functionalize, grad, jacrev, jvp, vmap
from torch.utils._python_dispatch import TorchDispatchMode

D = torch.float64


def rand(*shape, seed=0):
    g = torch.Generator().manual_seed(seed + 7)
    return torch.randn(shape, dtype=D, generator=g)


def _writes(x):
    y = x.clone()
    y[0] = y[1] * 2
    y[1:].mul_(x[:-1])
    y += x
    return (y**2).sum()


# ---- functionalize -------------------------------------------------------------------------


class Seen(TorchDispatchMode):
    """Records the operators that reach the backend."""

    def __init__(self):
        super().__init__()
        self.ops = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.ops.append(func)
        return func(*args, **(kwargs or {}))


def _views_and_writes(x):
    y = x.clone()
    first, rest = y[0], y[1:]
    rest.mul_(2)
    first.add_(rest.sum(0))
    y.t()[0].fill_(3)
    z = y.view(-1)
    z[2] = -1
    a, c = y.unbind(1)
    c.sub_(a)
    y.diagonal().zero_()
    y += first.clone()
    w = torch.empty(0)
    torch.add(y, 1, out=w)
    w.unsqueeze_(0).relu_()
    return y, z, w, first * 2


@pytest.mark.parametrize("remove", ["mutations", "mutations_and_views"])
def test_functionalize_leaves_no_writes(remove):
    x = torch.arange(6.0).view(3, 2)
    with Seen() as seen:
        got = functionalize(_views_and_writes, remove=remove)(x)
    torch.testing.assert_close(got, _views_and_writes(x))
    assert torch.equal(x, torch.arange(6.0).view(3, 2))
    names = {str(op) for op in seen.ops}
    assert not [op for op in seen.ops if op._schema.is_mutable], names
    assert "aten.select_scatter.default" in names
    views = {"aten.select.int", "aten.slice.Tensor", "aten.unbind.int", "aten.diagonal.default"}
    assert bool(names & views) == (remove == "mutations")


def test_functionalize_writes_inputs_at_the_end():
    x, y = torch.zeros(3), torch.ones(3)

    def f(a, b):
        a[1:].add_(b[1:])
        return a

    out = functionalize(f)(x, y)
    assert x.tolist() == [0, 1, 1] and out is x
    torch.testing.assert_close(
        vmap(functionalize(lambda t: t.clone().mul_(2)))(y), torch.full((3,), 2.0)
    )
    torch.testing.assert_close(grad(functionalize(_writes))(rand(4)), grad(_writes)(rand(4)))
    with pytest.raises(RuntimeError, match="received invalid argument for remove"):
        functionalize(torch.sin, remove="all")
    with pytest.raises(RuntimeError, match="mutating a non-functional tensor"):
        functionalize(lambda t: y.add_(t))(x)


# ---- custom functions ----------------------------------------------------------------------


class Cube(torch.autograd.Function):
    generate_vmap_rule = True

    @staticmethod
    def forward(x):
        return x**3, x * 0 + 3

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(inputs[0])
        ctx.save_for_forward(inputs[0])
        ctx.mark_non_differentiable(output[1])

    @staticmethod
    def backward(ctx, g, _):
        (x,) = ctx.saved_tensors
        return 3 * x**2 * g

    @staticmethod
    def jvp(ctx, t):
        (x,) = ctx.saved_tensors
        return 3 * x**2 * t, None


class Scale(torch.autograd.Function):
    @staticmethod
    def forward(x, factor):
        return x * factor

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx, g):
        x, factor = ctx.saved_tensors
        return g * factor, (g * x).sum()

    @staticmethod
    def vmap(info, in_dims, x, factor):
        assert info.batch_size == 4
        x = x if in_dims[0] is None else x.movedim(in_dims[0], 0)
        if in_dims[1] is not None:
            factor = factor.view(-1, *([1] * (x.dim() - (in_dims[0] is not None))))
        return x * factor, 0


def test_custom_function_in_grad_vmap_and_jvp():
    x = rand(4)
    cube = lambda t: Cube.apply(t)[0]
    torch.testing.assert_close(grad(lambda t: cube(t).sum())(x), 3 * x**2)
    torch.testing.assert_close(grad(lambda t: grad(lambda u: cube(u).sum())(t).sum())(x), 6 * x)
    torch.testing.assert_close(vmap(cube)(x), x**3)
    torch.testing.assert_close(vmap(grad(cube))(x), 3 * x**2)
    torch.testing.assert_close(grad(lambda t: vmap(cube)(t).sum())(x), 3 * x**2)
    torch.testing.assert_close(jvp(cube, (x,), (x,))[1], 3 * x**3)
    torch.testing.assert_close(jacrev(cube)(x), (3 * x**2).diag())
    torch.testing.assert_close(vmap(lambda t: jvp(cube, (t,), (t,))[1])(x), 3 * x**3)


def test_custom_function_with_its_own_vmap():
    x, f = rand(4, 3), rand(4, seed=2)
    torch.testing.assert_close(vmap(Scale.apply)(x, f), x * f[:, None])
    torch.testing.assert_close(vmap(Scale.apply, in_dims=(0, None))(x, f[0]), x * f[0])
    g = grad(lambda a: vmap(Scale.apply)(a, f).sum())(x)
    torch.testing.assert_close(g, f[:, None].expand(4, 3))


def test_custom_function_without_support_is_refused():
    class Old(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x

    class NoRule(torch.autograd.Function):
        @staticmethod
        def forward(x):
            return x * 1

        @staticmethod
        def setup_context(ctx, inputs, output):
            pass

    with pytest.raises(RuntimeError, match="must override the setup_context"):
        vmap(Old.apply)(rand(3))
    with pytest.raises(RuntimeError, match="does not have vmap support"):
        vmap(NoRule.apply)(rand(3))


# ---- operators made by users ----------------------------------------------------------------


def test_custom_operator_in_transforms():
    @torch.library.custom_op("test_func::double", mutates_args=())
    def double(x: torch.Tensor) -> torch.Tensor:
        return x.detach() * 2

    double.register_autograd(lambda ctx, g: g * 2)
    calls = []

    @double.register_vmap
    def _(info, in_dims, x):
        calls.append((info.batch_size, in_dims))
        return double(x), in_dims[0]

    x = rand(4)
    torch.testing.assert_close(grad(lambda t: (double(t) ** 2).sum())(x), 8 * x)
    torch.testing.assert_close(
        grad(lambda t: grad(lambda u: (double(u) ** 2).sum())(t).sum())(x),
        torch.full((4,), 8.0, dtype=D),
    )
    torch.testing.assert_close(vmap(double)(x), 2 * x)
    torch.testing.assert_close(vmap(grad(lambda t: double(t) ** 2))(x), 8 * x)
    assert calls[0] == (4, (0,))


def test_rearrange():
    from torch.func import rearrange

    x = torch.arange(24).view(2, 3, 4)
    assert torch.equal(rearrange(x, "a b c -> c (a b)"), x.permute(2, 0, 1).reshape(4, 6))
    assert rearrange(x, "... (h w) -> h ... w", w=2).shape == (2, 2, 3, 2)
    assert rearrange([x, x], "n a b c -> (n a) b c").shape == (4, 3, 4)
    with pytest.raises(ValueError, match="different names"):
        rearrange(x, "a b c -> a b")


def test_pattern_is_parsed_into_axes_of_each_dimension():
    from functorch.einops._parsing import ParsedExpression, parse_pattern

    parsed = ParsedExpression("b 1 (h 3) ...")
    assert parsed.composition[:2] == [["b"], []] and parsed.composition[2][1].value == 3
    assert parsed.has_ellipsis and not parsed.has_ellipsis_parenthesized
    for wrong in ("a a", "(a (b))", "(a", "a)", "... ...", "1a", "_a", "...a"):
        with pytest.raises(ValueError, match="expression"):
            ParsedExpression(wrong)
    for wrong in ("a", "a -> b -> c", "a -> ...", "(...) -> ..."):
        with pytest.raises(ValueError, match="->"):
            parse_pattern(wrong, {})


def test_rearranging_with_an_ellipsis_inside_parentheses_on_the_left_is_refused():
    with pytest.raises(ValueError, match="stands in parentheses"):
        torch.func.rearrange(torch.ones(2, 3), "(...) -> ...")
    with pytest.raises(TypeError, match="must be an int"):
        torch.func.rearrange(torch.ones(4), "(a b) -> a b", a="2")
