"""torch.func: gradients, products with Jacobians, their nesting with each other and with vmap,
modules as functions, and custom Functions inside transforms. References are finite differences,
plain autograd and loops."""

import pytest

import torch
import torch.nn.functional as F
from torch import nn
from torch.func import (
    debug_unwrap,
    functional_call,
    grad,
    grad_and_value,
    hessian,
    jacfwd,
    jacrev,
    jvp,
    linearize,
    replace_all_batch_norm_modules_,
    stack_module_state,
    vjp,
    vmap,
)

D = torch.float64


def rand(*shape, seed=0):
    g = torch.Generator().manual_seed(seed + 7)
    return torch.randn(shape, dtype=D, generator=g)


def numeric_jacobian(function, x, eps=1e-6):
    """By central differences: [*output, *input]."""
    columns = []
    for k in range(x.numel()):
        step = torch.zeros(x.numel(), dtype=D)
        step[k] = eps
        step = step.view_as(x)
        columns.append((function(x + step) - function(x - step)) / (2 * eps))
    return torch.stack(columns, -1).view(*columns[0].shape, *x.shape)


WEIGHT = rand(4, 3, seed=3)


def mixed(x):
    """A function of a vector with several outputs and kinds of operators."""
    h = torch.tanh(WEIGHT @ x) * x.sum().exp().log1p()
    return torch.cat([h[1:], (x**3).cumsum(0)]) / (1 + h[0] ** 2)


# ---- first order ---------------------------------------------------------------------------


def test_grad_equals_autograd():
    x = rand(3).requires_grad_()
    (want,) = torch.autograd.grad(mixed(x).sum(), x)
    torch.testing.assert_close(grad(lambda t: mixed(t).sum())(x.detach()), want)


def test_grad_and_value_with_aux_and_argnums():
    def f(x, y, scale):
        out = (x * y).sum() * scale
        return out, x + 1

    x, y = rand(3), rand(3, seed=1)
    (gx, gy), (value, aux) = grad_and_value(f, argnums=(0, 1), has_aux=True)(x, y, 2.0)
    torch.testing.assert_close((gx, gy, aux), (2 * y, 2 * x, x + 1))
    torch.testing.assert_close(value, (x * y).sum() * 2)
    g, aux = grad(f, argnums=-2, has_aux=True)(x, y, 2.0)
    torch.testing.assert_close(g, 2 * x)


def test_grad_of_a_tree():
    params = {"w": rand(2, 3), "b": [rand(2, seed=1)]}
    g = grad(lambda p, x: ((p["w"] @ x + p["b"][0]) ** 2).sum())(params, rand(3, seed=2))
    assert g["w"].shape == (2, 3) and g["b"][0].shape == (2,)


def test_unused_input_has_zero_gradient():
    g = grad(lambda x, y: x.sum(), argnums=(0, 1))(rand(2), rand(3))
    assert torch.equal(g[1], torch.zeros(3, dtype=D))
    assert torch.equal(grad(lambda x: torch.ones(()))(rand(2)), torch.zeros(2, dtype=D))


@pytest.mark.parametrize(
    ("call", "kind", "message"),
    [
        (
            lambda x: grad(torch.sin)(x),
            RuntimeError,
            "to return a scalar Tensor, got tensor with 1",
        ),
        (lambda x: grad(lambda t: 3)(x), RuntimeError, "to return a Tensor, got"),
        (lambda x: grad(torch.sum)(x.long()), RuntimeError, "floating point"),
        (lambda x: grad(torch.sum, argnums=2)(x), RuntimeError, "Got argnum=2"),
        (lambda x: grad(torch.sum, has_aux=True)(x), RuntimeError, "should be a tuple"),
        (lambda x: grad(torch.sum)(3), ValueError, "must be Tensor"),
        (lambda x: jvp(torch.sin, (x,), (x[:1],)), RuntimeError, "different size"),
        (lambda x: jvp(torch.sin, x, (x,)), RuntimeError, "Expected primals to be a tuple"),
        (lambda x: jvp(torch.sin, (x,), (x, x)), RuntimeError, "same python structure"),
        (lambda x: vjp(torch.sin, x)[1]((x, x)), RuntimeError, "pytree structure of cotangents"),
        (lambda x: jacrev(torch.sin, chunk_size=0), ValueError, "chunk_size"),
    ],
)
def test_wrong_calls(call, kind, message):
    with pytest.raises(kind, match=message):
        call(rand(3))


def test_vjp_and_jvp_are_products_with_the_jacobian():
    x, v = rand(3), rand(6, seed=5)
    jac = numeric_jacobian(mixed, x)
    out, pull_back = vjp(mixed, x)
    torch.testing.assert_close(out, mixed(x))
    torch.testing.assert_close(pull_back(v)[0], v @ jac, atol=1e-6, rtol=1e-5)
    t = rand(3, seed=6)
    out, tangent = jvp(mixed, (x,), (t,))
    torch.testing.assert_close(out, mixed(x))
    torch.testing.assert_close(tangent, jac @ t, atol=1e-6, rtol=1e-5)
    out, push = linearize(mixed, x)
    torch.testing.assert_close(push(t), tangent)
    torch.testing.assert_close(push(2 * t), 2 * tangent)


def test_vjp_can_be_called_again_and_later():
    _, pull_back = vjp(lambda x, y: (x * y, x.sin()), rand(3), rand(3, seed=1))
    first = pull_back((torch.ones(3, dtype=D), torch.zeros(3, dtype=D)))
    again = pull_back((torch.ones(3, dtype=D), torch.zeros(3, dtype=D)))
    torch.testing.assert_close(first, again)


def test_aux_of_vjp_and_jvp():
    x = rand(3)
    _, _, aux = vjp(lambda t: (t.sin(), t + 1), x, has_aux=True)
    torch.testing.assert_close(aux, x + 1)
    _, _, aux = jvp(lambda t: (t.sin(), t * 2), (x,), (x,), has_aux=True)
    torch.testing.assert_close(aux, x * 2)


# ---- Jacobians -----------------------------------------------------------------------------


@pytest.mark.parametrize("jacobian", [jacrev, jacfwd])
def test_jacobian_equals_finite_differences(jacobian):
    x = rand(3)
    torch.testing.assert_close(jacobian(mixed)(x), numeric_jacobian(mixed, x), atol=1e-6, rtol=1e-5)


def test_jacobian_of_matrices_and_several_arguments():
    def f(a, b):
        return a @ b, (a.sum(), b.T)

    a, b = rand(2, 3), rand(3, 4, seed=1)
    rev = jacrev(f, argnums=(0, 1))(a, b)
    fwd = jacfwd(f, argnums=(0, 1))(a, b)
    torch.testing.assert_close(rev, fwd)
    assert rev[0][1].shape == (2, 4, 3, 4) and rev[1][0][0].shape == (2, 3)


@pytest.mark.parametrize("chunk", [1, 2, 5, 100])
def test_jacrev_in_chunks(chunk):
    x = rand(3)
    torch.testing.assert_close(jacrev(mixed, chunk_size=chunk)(x), jacrev(mixed)(x))


def test_hessian_equals_jacobian_of_gradient():
    def f(x):
        return (mixed(x) ** 2).sum()

    x = rand(3)
    want = numeric_jacobian(grad(f), x)
    torch.testing.assert_close(hessian(f)(x), want, atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(jacrev(jacrev(f))(x), hessian(f)(x))
    torch.testing.assert_close(jacrev(jacfwd(f))(x), hessian(f)(x))
    torch.testing.assert_close(jacfwd(jacfwd(f))(x), hessian(f)(x))


# ---- nesting -------------------------------------------------------------------------------


def test_derivatives_to_third_order():
    x = torch.tensor(0.7, dtype=D)
    torch.testing.assert_close(grad(grad(grad(torch.sin)))(x), -x.cos())
    torch.testing.assert_close(grad(lambda t: jvp(torch.sin, (t,), (t * 0 + 1,))[1])(x), -x.sin())
    torch.testing.assert_close(jvp(grad(torch.sin), (x,), (torch.ones((), dtype=D),))[1], -x.sin())
    nested = jvp(
        lambda t: jvp(torch.sin, (t,), (torch.ones_like(t),))[1], (x,), (torch.ones_like(x),)
    )
    torch.testing.assert_close(nested[1], -x.sin())


def test_perturbations_are_not_confused():
    x = torch.tensor(2.0, dtype=D)
    got = grad(lambda a: a * grad(lambda c: a * c)(torch.tensor(1.0, dtype=D)))(x)
    torch.testing.assert_close(got, 2 * x)


def test_vmap_and_grad_in_both_orders():
    x = rand(5, 3)

    def f(t):
        return (mixed(t) ** 2).sum()

    each = torch.stack([grad(f)(t) for t in x])
    torch.testing.assert_close(vmap(grad(f))(x), each)
    torch.testing.assert_close(grad(lambda t: vmap(f)(t).sum())(x), each)
    torch.testing.assert_close(
        vmap(hessian(f))(x), torch.stack([hessian(f)(t) for t in x]), atol=1e-8, rtol=1e-6
    )
    torch.testing.assert_close(vmap(jacfwd(mixed))(x), torch.stack([jacfwd(mixed)(t) for t in x]))


def test_transform_inside_autograd():
    x = rand(3).requires_grad_()
    y = grad(lambda t: (t**3).sum())(x).sum()
    y.backward()
    torch.testing.assert_close(x.grad, 6 * x.detach())
    w = rand(3, seed=1).requires_grad_()
    vmap(lambda t: (t * w).sum())(rand(4, 3)).sum().backward()
    torch.testing.assert_close(w.grad, rand(4, 3).sum(0))


def test_no_grad_inside_and_outside():
    x = rand(3)
    with torch.no_grad():
        torch.testing.assert_close(grad(lambda t: (t**2).sum())(x), 2 * x)

    def f(t):
        with torch.no_grad():
            c = t.sum()
        return (t * c).sum()

    torch.testing.assert_close(grad(f)(x), torch.full((3,), float(x.sum()), dtype=D))
    y = rand(3).requires_grad_()
    with torch.no_grad():
        assert not grad(lambda t: (t**2).sum())(y).requires_grad


def test_detach_inside():
    x = rand(3)
    torch.testing.assert_close(grad(lambda t: (t * t.detach()).sum())(x), x)


# ---- in-place writes -----------------------------------------------------------------------


def _writes(x):
    y = x.clone()
    y[0] = y[1] * 2
    y[1:].mul_(x[:-1])
    y += x
    return (y**2).sum()


def test_inplace_in_grad_and_vmap():
    x = rand(4)
    want = numeric_jacobian(_writes, x)
    torch.testing.assert_close(grad(_writes)(x), want, atol=1e-6, rtol=1e-5)
    xs = rand(3, 4, seed=2)
    each = torch.stack([grad(_writes)(t) for t in xs])
    torch.testing.assert_close(vmap(grad(_writes))(xs), each)
    torch.testing.assert_close(grad(lambda t: vmap(_writes)(t).sum())(xs), each)


def test_inplace_in_jvp():
    x, t = rand(4), rand(4, seed=1)
    want = numeric_jacobian(_writes, x) @ t
    torch.testing.assert_close(jvp(_writes, (x,), (t,))[1], want, atol=1e-6, rtol=1e-5)
    torch.testing.assert_close(t, rand(4, seed=1))


def test_captured_tensor_must_not_be_written():
    y = torch.zeros(2)
    with pytest.raises(RuntimeError, match="mutate a captured Tensor"):
        grad(lambda x: y.add_(x).sum())(torch.ones(2))
    with pytest.raises(RuntimeError, match="mutate a captured Tensor"):
        jvp(lambda x: y.add_(x), (torch.ones(2),), (torch.ones(2),))


def test_escaped_gradient_tensor_is_its_value():
    kept = []
    grad(lambda x: kept.append(x) or x.sum())(torch.arange(3.0))
    assert (kept[0] + 1).tolist() == [1, 2, 3]
    assert "lvl=-2" in repr(kept[0])


def test_levels_end_with_an_error():
    with pytest.raises(ZeroDivisionError):
        vmap(grad(lambda x: 1 / 0))(torch.ones(2))
    assert not torch._C._are_functorch_transforms_active()
    assert torch.rand(2).shape == (2,)


def test_debug_unwrap():
    def f(x):
        assert type(debug_unwrap(x)) is torch.Tensor
        assert torch.equal(debug_unwrap(x), torch.arange(2.0))
        return x.sum()

    vmap(grad(f))(torch.arange(2.0))


# ---- modules -------------------------------------------------------------------------------


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(1, 3, 3)
        self.norm = nn.GroupNorm(3, 3)
        self.out = nn.Linear(12, 4)

    def forward(self, x):
        h = F.max_pool2d(F.relu(self.norm(self.conv(x))), 2)
        return self.out(h.flatten(1))


def test_per_sample_gradients():
    torch.manual_seed(0)
    net = Net().double()
    params = {k: v.detach() for k, v in net.named_parameters()}
    x, y = rand(5, 1, 6, 6), torch.tensor([0, 1, 2, 3, 1])

    def loss(p, sample, target):
        out = functional_call(net, p, (sample.unsqueeze(0),))
        return F.cross_entropy(out, target.unsqueeze(0))

    together = vmap(grad(loss), in_dims=(None, 0, 0))(params, x, y)
    for k in range(5):
        net.zero_grad()
        F.cross_entropy(net(x[k : k + 1]), y[k : k + 1]).backward()
        for name, p in net.named_parameters():
            torch.testing.assert_close(together[name][k], p.grad)


def test_ensemble():
    torch.manual_seed(0)
    nets = [Net().double() for _ in range(3)]
    params, buffers = stack_module_state(nets)
    base = Net().double().to("meta")
    x = rand(2, 1, 6, 6)

    def call(p, b, inputs):
        return functional_call(base, (p, b), (inputs,))

    out = vmap(call, in_dims=(0, 0, None))(params, buffers, x)
    torch.testing.assert_close(out, torch.stack([n(x) for n in nets]))
    out.sum().backward()
    want = grad(lambda p: functional_call(nets[0], p, (x,)).sum())(dict(nets[0].named_parameters()))
    torch.testing.assert_close(params["out.weight"].grad[0], want["out.weight"])


def test_per_sample_gradients_of_attention_and_embedding():
    torch.manual_seed(0)
    emb, layer = (
        nn.Embedding(7, 8).double(),
        nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True).double(),
    )
    tokens = torch.randint(7, (3, 5))
    params = {k: v.detach() for k, v in layer.named_parameters()}
    table = emb.weight.detach()

    def loss(p, w, t):
        return functional_call(layer, p, (F.embedding(t, w).unsqueeze(0),)).pow(2).sum()

    got = vmap(grad(loss, argnums=(0, 1)), in_dims=(None, None, 0))(params, table, tokens)
    for k in range(3):
        want = grad(loss, argnums=(0, 1))(params, table, tokens[k])
        torch.testing.assert_close(got[1][k], want[1])
        for name in params:
            torch.testing.assert_close(got[0][name][k], want[0][name])


def test_functional_call_errors():
    with pytest.raises(ValueError, match="multiple dictionaries"):
        functional_call(nn.Linear(2, 2), ({"weight": rand(2, 2)}, {"weight": rand(2, 2)}), rand(2))
    with pytest.raises(RuntimeError, match="at least one model"):
        stack_module_state([])


def test_replace_batch_norm():
    net = nn.Sequential(nn.Linear(3, 3), nn.BatchNorm1d(3))
    with pytest.raises(RuntimeError, match="Batch norm got a batched tensor"):
        vmap(net)(torch.randn(2, 4, 3))
    replace_all_batch_norm_modules_(net)
    assert net[1].running_mean is None
    assert vmap(net)(torch.randn(2, 4, 3)).shape == (2, 4, 3)


# ---- autograd by vmap ----------------------------------------------------------------------


def test_batched_gradients_of_autograd():
    x = rand(3).requires_grad_()
    y = mixed(x)
    basis = torch.eye(6, dtype=D)
    (rows,) = torch.autograd.grad(y, x, basis, is_grads_batched=True)
    torch.testing.assert_close(rows, jacrev(mixed)(x.detach()))


def test_vectorized_jacobian_and_hessian():
    x, z = rand(3), rand(3, seed=9)
    from torch.autograd.functional import hessian as old_hessian
    from torch.autograd.functional import jacobian

    def f(a, c):
        return a * c.sum(), (a**2).sum()

    slow = jacobian(f, (x, z))
    for strategy in ("reverse-mode", "forward-mode"):
        fast = jacobian(f, (x, z), vectorize=True, strategy=strategy)
        torch.testing.assert_close(fast, slow)

    def g(a):
        return (mixed(a) ** 2).sum()

    slow = old_hessian(g, x)
    torch.testing.assert_close(old_hessian(g, x, vectorize=True), slow)
    torch.testing.assert_close(
        old_hessian(g, x, vectorize=True, outer_jacobian_strategy="forward-mode"), slow
    )


def test_gradcheck_batched():
    x = rand(2, 3).requires_grad_()
    w = rand(3, 3, seed=1).requires_grad_()
    assert torch.autograd.gradcheck(
        lambda a, c: (a @ c).softmax(-1).cumsum(0),
        (x, w),
        check_batched_grad=True,
        check_forward_ad=True,
        check_batched_forward_grad=True,
    )


# ---- the older package ---------------------------------------------------------------------


def test_functorch_package():
    import functorch

    net = nn.Linear(3, 2).double()
    function, params = functorch.make_functional(net)
    x = rand(3)
    torch.testing.assert_close(function(params, x), net(x))
    torch.testing.assert_close(functorch.vmap(torch.sin)(x), x.sin())
    nets = [nn.BatchNorm1d(3).double().eval() for _ in range(2)]
    function, params, buffers = functorch.combine_state_for_ensemble(nets)
    out = functorch.vmap(function, in_dims=(0, 0, None))(params, buffers, rand(4, 3))
    torch.testing.assert_close(out[0], nets[0](rand(4, 3)))


# ---- rules of inference tensors and versions ----------------------------------------------


def test_inference_tensor_must_not_be_written_outside():
    with torch.inference_mode():
        x = torch.ones(2)
        x.add_(1)
    for write in (
        lambda: x.add_(1),
        lambda: x.zero_(),
        lambda: torch.add(x, 1, out=x),
        lambda: x.view(2).mul_(2),
    ):
        with pytest.raises(RuntimeError, match="Inplace update to inference tensor outside"):
            write()
    with torch.no_grad(), pytest.raises(RuntimeError, match="Inplace update"):
        x.fill_(3)
    y = x + 1
    y.add_(1)
    assert x.tolist() == [2, 2] and y.tolist() == [4, 4]
    z = torch.zeros(2)
    z.add_(x)
    assert z.tolist() == [2, 2]


def test_copy_to_itself_counts_as_a_write():
    x = torch.ones(2)
    x.copy_(x)
    assert x._version == 1


@pytest.mark.parametrize(
    "change",
    [
        lambda t: t.squeeze_(0),
        lambda t: t.squeeze_(),
        lambda t: t.squeeze_((0, 2)),
        lambda t: t.unsqueeze_(1),
        lambda t: t.transpose_(1, 3),
    ],
)
def test_jvp_of_an_in_place_change_of_geometry_changes_the_tangent_alike(change):
    x, direction = torch.rand(1, 2, 1, 3), torch.rand(1, 2, 1, 3)
    out, tangent = torch.func.jvp(lambda t: change(t * 2), (x,), (direction,))
    assert torch.equal(tangent, change(direction * 2))
    assert tangent.shape == out.shape
    _, tangent = torch.func.jvp(lambda t: change(t.clone()), (x,), (direction,))
    assert direction.shape == x.shape


def test_auxiliary_results_must_be_tensors():
    x = torch.ones(2)
    for transform in (
        lambda f: torch.func.grad(f, has_aux=True)(x),
        lambda f: torch.func.vjp(f, x, has_aux=True),
        lambda f: torch.func.jvp(f, (x,), (x,), has_aux=True),
    ):
        with pytest.raises(RuntimeError, match="Expected tensors, got unsupported type"):
            transform(lambda x: (x.sum(), [x, 1]))


def _fills(x):
    out = torch.zeros(4, dtype=x.dtype)
    row = out[1:3]
    for i in range(2):
        out[i + 1] = x[i].sin() * (i + 2)
    copy = torch.tensor([1.0, 2.0], dtype=x.dtype)
    copy.mul_(x)
    return (out**2).sum() + (row * copy).sum()


def test_tensors_made_inside_of_a_transform_may_be_written():
    x = rand(2)
    want = numeric_jacobian(_fills, x)
    torch.testing.assert_close(grad(_fills)(x), want, atol=1e-6, rtol=1e-5)
    t = rand(2, seed=3)
    torch.testing.assert_close(jvp(_fills, (x,), (t,))[1], want @ t, atol=1e-6, rtol=1e-5)
    torch.testing.assert_close(jacfwd(_fills)(x), want, atol=1e-6, rtol=1e-5)
    twice = grad(lambda x: (grad(_fills)(x) ** 2).sum())(x)
    torch.testing.assert_close(
        twice, numeric_jacobian(lambda x: (grad(_fills)(x) ** 2).sum(), x), atol=1e-5, rtol=1e-4
    )


def test_captured_tensors_may_not_be_written_inside_of_a_transform():
    captured = torch.zeros(2, dtype=torch.float64)

    def writes(x):
        captured.copy_(x)
        return captured.sum()

    for transform in (grad(writes), lambda x: jvp(writes, (x,), (x,))):
        with pytest.raises(RuntimeError, match="mutate a captured Tensor"):
            transform(rand(2))
    assert captured.tolist() == [0.0, 0.0]
