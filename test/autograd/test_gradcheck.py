"""gradcheck finds wrong gradients and accepts right ones; torch.autograd.functional against closed
forms; checkpointing against plain runs."""

import gc
import weakref

import pytest

import torch
from torch.autograd import Function, functional, gradcheck, gradgradcheck
from torch.autograd.gradcheck import GradcheckError
from torch.utils import checkpoint as ckpt


def leaf(*shape, dtype=torch.float64):
    return torch.randn(*shape, dtype=dtype, requires_grad=True)


class WrongCube(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x**3

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return 2.9 * g * x**2


# ---- gradcheck --------------------------------------------------------------------------

MODES = pytest.mark.parametrize("fast_mode", [False, True])


@MODES
@pytest.mark.parametrize("dtype", [torch.float64, torch.complex128])
@pytest.mark.parametrize(
    "function",
    [
        lambda x: x * x,
        lambda x: x.exp() / (1 + x * x),
        lambda x: x @ x.mT,
        lambda x: (x.sum(0), x.mean()),
        lambda x: x.abs(),
    ],
)
def test_right_gradients_pass(function, dtype, fast_mode):
    a = leaf(3, 2, dtype=dtype)
    assert gradcheck(function, (a,), fast_mode=fast_mode)
    assert gradgradcheck(function, (a,), fast_mode=fast_mode)


@MODES
def test_real_function_of_complex_input_and_complex_of_real(fast_mode):
    c = leaf(3, dtype=torch.complex128)
    assert gradcheck(lambda z: torch.view_as_real(z).sum(0), (c,), fast_mode=fast_mode)
    assert gradcheck(lambda x: x * (1 + 2j), (leaf(3),), fast_mode=fast_mode)


@MODES
def test_wrong_gradient_raises(fast_mode):
    with pytest.raises(
        GradcheckError, match="Jacobian mismatch for output 0 with respect to input 0"
    ):
        gradcheck(WrongCube.apply, (leaf(3),), fast_mode=fast_mode)
    assert not gradcheck(WrongCube.apply, (leaf(3),), fast_mode=fast_mode, raise_exception=False)


def test_wrong_second_gradient_raises():
    class WrongTwice(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x**3

        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            return g * (3 * x.detach() * x)

    assert gradcheck(WrongTwice.apply, (leaf(3),))
    with pytest.raises(GradcheckError):
        gradgradcheck(WrongTwice.apply, (leaf(3),))


def test_gradient_not_multiplied_by_grad_output_raises():
    class Constant(Function):
        @staticmethod
        def forward(ctx, x):
            return x.sum()

        @staticmethod
        def backward(ctx, g):
            return g.new_ones(3) + 0 * g

    with pytest.raises(GradcheckError):
        gradcheck(Constant.apply, (leaf(3),))


def test_nondeterministic_backward_raises():
    class Noisy(Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return g * 2 * (1 + 1e-8 * torch.rand((), dtype=torch.float64))

    with pytest.raises(GradcheckError, match="Backward is not reentrant"):
        gradcheck(Noisy.apply, (leaf(3),))
    assert gradcheck(Noisy.apply, (leaf(3),), nondet_tol=1e-6)


def test_inputs_without_gradient_raise():
    with pytest.raises(ValueError, match="at least one input tensor to require gradient"):
        gradcheck(lambda x: x, (torch.ones(3),))


def test_single_precision_warns():
    with pytest.warns(UserWarning, match="not a double precision"):
        gradcheck(lambda x: x * 2, (leaf(2, dtype=torch.float32),), atol=1e-2, eps=1e-2)


def test_overlapping_input_raises():
    a = torch.randn(1, dtype=torch.float64).expand(3).requires_grad_()
    with pytest.raises(RuntimeError, match="stride 0"):
        gradcheck(lambda x: x * 2, (a,))


def test_non_contiguous_and_several_inputs():
    a = torch.randn(3, 4, dtype=torch.float64).t().requires_grad_()
    assert gradcheck(lambda x, n, y: (x * y, x.sum() * n), (a, 3, leaf(4, 3)))


# ---- functional -------------------------------------------------------------------------


def test_jacobian_of_product():
    a, b = torch.randn(3), torch.randn(3)
    da, db = functional.jacobian(lambda x, y: x * y, (a, b))
    assert torch.allclose(da, torch.diag(b)) and torch.allclose(db, torch.diag(a))


def test_jacobian_of_several_outputs():
    a = torch.randn(2, 3)
    square, total = functional.jacobian(lambda x: (x * x, x.sum()), a)
    assert square.shape == (2, 3, 2, 3) and torch.equal(total, torch.ones(2, 3))
    assert torch.allclose(square.reshape(6, 6), torch.diag(2 * a.reshape(-1)))


def test_jacobian_of_independent_output():
    a = torch.randn(3)
    assert torch.equal(functional.jacobian(lambda x: torch.ones(2), a), torch.zeros(2, 3))
    with pytest.raises(RuntimeError, match="does not require gradients"):
        functional.jacobian(lambda x: torch.ones(2), a, strict=True)


def test_jacobian_can_be_differentiated():
    a = torch.randn(3, requires_grad=True)
    functional.jacobian(lambda x: x**3, a, create_graph=True).sum().backward()
    assert torch.allclose(a.grad, 6 * a.detach())


def test_hessian_of_cubic():
    a = torch.randn(3)
    assert torch.allclose(functional.hessian(lambda x: (x**3).sum(), a), torch.diag(6 * a))


def test_hessian_of_two_inputs():
    a, b = torch.randn(2), torch.randn(2)
    ((aa, ab), (ba, bb)) = functional.hessian(lambda x, y: (x * x * y).sum(), (a, b))
    assert torch.allclose(aa, torch.diag(2 * b)) and torch.allclose(ab, torch.diag(2 * a))
    assert torch.allclose(ba, ab.t()) and torch.equal(bb, torch.zeros(2, 2))


def test_products_agree_with_matrices():
    matrix = torch.randn(4, 3)
    a, u, v = torch.randn(3), torch.randn(4), torch.randn(3)
    out, left = functional.vjp(lambda x: matrix @ x, a, u)
    assert torch.allclose(out, matrix @ a) and torch.allclose(left, u @ matrix, atol=1e-6)
    out, right = functional.jvp(lambda x: matrix @ x, a, v)
    assert torch.allclose(out, matrix @ a) and torch.allclose(right, matrix @ v, atol=1e-6)

    def scalar(x):
        return ((matrix @ x) ** 3).sum()

    hessian = functional.hessian(scalar, a)
    assert torch.allclose(functional.hvp(scalar, a, v)[1], hessian @ v, atol=1e-4)
    assert torch.allclose(functional.vhp(scalar, a, v)[1], v @ hessian, atol=1e-4)


def test_product_with_vector_of_wrong_size_raises():
    with pytest.raises(RuntimeError, match="v has invalid size"):
        functional.vjp(lambda x: x * 2, torch.randn(3), torch.randn(2))
    with pytest.raises(TypeError, match="must be either a Tensor or a tuple of Tensors"):
        functional.vjp(lambda x: x * 2, 3)


# ---- checkpoint -------------------------------------------------------------------------

KINDS = pytest.mark.parametrize("use_reentrant", [False, True])


def network(weights, calls=None):
    def run(x):
        if calls is not None:
            calls.append(1)
        for w in weights:
            x = torch.tanh(x @ w)
        return x

    return run


@KINDS
def test_checkpoint_gives_the_same_gradients(use_reentrant):
    weights = [leaf(4, 4) for _ in range(3)]
    x = leaf(2, 4)
    network(weights)(x).sum().backward()
    expected = [w.grad for w in weights] + [x.grad]
    for t in (*weights, x):
        t.grad = None
    calls = []
    ckpt.checkpoint(network(weights, calls), x, use_reentrant=use_reentrant).sum().backward()
    assert len(calls) == 2
    assert all(torch.equal(a, b.grad) for a, b in zip(expected, (*weights, x), strict=False))


@KINDS
def test_checkpoint_replays_random_numbers(use_reentrant):
    drawn = []

    def run(x):
        noise = torch.rand(3, dtype=torch.float64)
        drawn.append(noise)
        return x * noise

    x = leaf(3)
    y = ckpt.checkpoint(run, x, use_reentrant=use_reentrant)
    after = torch.rand(1)
    y.sum().backward()
    if len(drawn) == 2:
        assert torch.equal(drawn[0], drawn[1])
    assert torch.equal(x.grad, drawn[0]) and after is not None


def test_checkpoint_saves_nothing_inside():
    saved = []
    w = leaf(4, 4)
    x = leaf(2, 4)
    with torch.autograd.graph.saved_tensors_hooks(lambda t: saved.append(t) or t, lambda t: t):
        ckpt.checkpoint(network([w] * 10), x, use_reentrant=False)
    assert len(saved) <= 2


def test_nested_checkpoints_give_the_same_gradients():
    w = leaf(4, 4)
    x = leaf(2, 4)
    (expected,) = torch.autograd.grad(network([w] * 4)(x).sum(), w)

    def outer(t):
        t = ckpt.checkpoint(network([w] * 2), t, use_reentrant=False)
        return ckpt.checkpoint(network([w] * 2), t, use_reentrant=False)

    (got,) = torch.autograd.grad(ckpt.checkpoint(outer, x, use_reentrant=False).sum(), w)
    assert torch.equal(expected, got)


def test_checkpoint_allows_second_derivatives_and_retained_graphs():
    a = leaf(3)
    y = ckpt.checkpoint(lambda x: x**3, a, use_reentrant=False).sum()
    (g,) = torch.autograd.grad(y, a, create_graph=True)
    (gg,) = torch.autograd.grad(g.sum(), a)
    assert torch.allclose(gg, 6 * a.detach())
    y.backward()
    assert torch.allclose(a.grad, 3 * a.detach() ** 2)


def test_checkpoint_of_changing_function_raises():
    sizes = iter([3, 4])

    def run(x):
        n = next(sizes)
        return (x.sum() * torch.ones(n, dtype=torch.float64)).exp().sum()

    y = ckpt.checkpoint(run, leaf(2), use_reentrant=False)
    with pytest.raises(ckpt.CheckpointError, match="different metadata"):
        y.backward()


def test_checkpoint_with_fewer_tensors_raises():
    depth = iter([3, 1])

    def run(x):
        for _ in range(next(depth)):
            x = x.exp()
        return x.sum()

    y = ckpt.checkpoint(run, leaf(2), use_reentrant=False)
    with pytest.raises(ckpt.CheckpointError, match="A different number of tensors was saved"):
        y.backward()


def test_checkpoint_without_choice_warns():
    with pytest.warns(UserWarning, match="use_reentrant parameter should be passed explicitly"):
        ckpt.checkpoint(lambda x: x * 2, leaf(2))


@KINDS
def test_checkpoint_sequential_gives_the_same_gradients(use_reentrant):
    w = leaf(4, 4)
    x = leaf(2, 4)
    layers = [lambda t: torch.tanh(t @ w)] * 5
    (expected,) = torch.autograd.grad(network([w] * 5)(x).sum(), w)
    ckpt.checkpoint_sequential(layers, 2, x, use_reentrant=use_reentrant).sum().backward()
    assert torch.allclose(w.grad, expected)


def test_checkpoint_keyword_arguments():
    a, b = leaf(3), leaf(3)
    ckpt.checkpoint(lambda x, *, y: x * y, a, y=b, use_reentrant=False).sum().backward()
    assert torch.equal(a.grad, b.detach()) and torch.equal(b.grad, a.detach())


def test_selective_checkpoint_keeps_products():
    products = []
    w = leaf(4, 4)
    x = leaf(2, 4)
    (expected,) = torch.autograd.grad(network([w] * 3)(x).sum(), w)

    def policy(context, op, *args, **kwargs):
        if op is torch.ops.aten.mm.default:
            products.append(context.is_recompute)
            return ckpt.CheckpointPolicy.MUST_SAVE
        return ckpt.CheckpointPolicy.PREFER_RECOMPUTE

    y = ckpt.checkpoint(
        network([w] * 3),
        x,
        use_reentrant=False,
        context_fn=lambda: ckpt.create_selective_checkpoint_contexts(policy),
    )
    (got,) = torch.autograd.grad(y.sum(), w)
    assert torch.allclose(expected, got) and True in products and False in products


SPARSE = [torch.sparse_coo, torch.sparse_csr, torch.sparse_csc, torch.sparse_bsr, torch.sparse_bsc]


def sparse_matrix(layout: torch.layout) -> torch.Tensor:
    dense = torch.tensor([[1.0, 0, 2, 0], [0, 3, 0, 0]], dtype=torch.float64)
    blocks = (1, 2) if layout in (torch.sparse_bsr, torch.sparse_bsc) else None
    return dense.to_sparse(layout=layout, blocksize=blocks).requires_grad_()


@pytest.mark.parametrize("layout", SPARSE)
@pytest.mark.parametrize("masked", [True, False])
def test_gradcheck_of_a_sparse_input_looks_at_its_elements(layout, masked):
    given = sparse_matrix(layout)
    assert gradcheck(lambda s: s.to_dense(masked_grad=masked), (given,), masked=masked)
    weights = torch.ones(4, 2, dtype=torch.float64)
    assert gradcheck(lambda s: torch.mm(s, weights), (given,), masked=True)


def test_gradcheck_of_a_sparse_input_notices_a_wrong_gradient():
    class Wrong(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.to_dense()

        @staticmethod
        def backward(ctx, grad):
            return (2 * grad).to_sparse()

    with pytest.raises(GradcheckError):
        gradcheck(Wrong.apply, (sparse_matrix(torch.sparse_coo),), masked=True)


@pytest.mark.parametrize("fast_mode", [True, False])
def test_outputs_that_change_when_inputs_move_are_refused(fast_mode):
    a = torch.ones(1, dtype=torch.float64, requires_grad=True)
    for func, what in (
        (lambda x: torch.cat([x, x]) if bool((x >= 1).all()) else x, "shape"),
        (lambda x: x.float() if bool((x >= 1).all()) else x, "dtype"),
    ):
        with pytest.raises(AssertionError, match=f"same {what} when inputs are perturbed"):
            gradcheck(func, (a,), fast_mode=fast_mode)


def test_a_wrong_gradient_of_a_complex_output_names_the_part():
    def func(x):
        y = x.clone()
        y.register_hook(lambda g: g + 1e-2)
        return y

    x = torch.ones(2, dtype=torch.complex128, requires_grad=True)
    with pytest.raises(RuntimeError, match="imaginary part of complex outputs only"):
        gradcheck(func, (x,))


def test_a_backward_that_fails_on_undefined_gradients_is_reported():
    def hook(grad):
        if grad is None:
            raise RuntimeError("undefined")

    def func(x):
        y = x.clone()
        y.register_hook(hook)
        return y

    x = torch.ones(1, dtype=torch.float64, requires_grad=True)
    with (
        pytest.warns(UserWarning, match="New undefined gradient support checking"),
        pytest.raises(RuntimeError, match="to handle undefined output grads"),
    ):
        gradcheck(func, (x,))


def test_forward_mode_runs_on_inputs_without_requires_grad():
    from torch.autograd import forward_ad

    def func(x, y):
        if forward_ad._current_level >= 0:
            assert not x.requires_grad
            assert forward_ad.unpack_dual(y).tangent is not None
        return x * y

    x = torch.rand(2, dtype=torch.float64, requires_grad=True)
    y = torch.rand(2, dtype=torch.float64, requires_grad=True)
    assert gradcheck(func, (x, y), check_forward_ad=True, check_undefined_grad=False)


def test_old_jacobian_functions_warn_and_take_a_tuple():
    from torch.autograd.gradcheck import get_analytical_jacobian, get_numerical_jacobian

    a = torch.rand(2, dtype=torch.float64, requires_grad=True)
    with pytest.warns(FutureWarning, match="private API"):
        (found,) = get_numerical_jacobian(lambda inputs: inputs[0] * 2, (a,), eps=1e-6)
    assert torch.allclose(found, 2 * torch.eye(2, dtype=torch.float64))
    with pytest.warns(FutureWarning, match="private API"):
        (found,), *_ = get_analytical_jacobian((a,), a * 2)
    assert torch.allclose(found, 2 * torch.eye(2, dtype=torch.float64))


def test_a_checkpointed_graph_is_freed_without_the_garbage_collector():
    def alive_after(call):
        x = torch.ones((), requires_grad=True)
        out = call(x)
        mark = torch.nn.Module()
        out.grad_fn.metadata["mark"] = mark
        out.grad_fn.next_functions[0][0].metadata["mark"] = mark
        return weakref.ref(mark), weakref.ref(x)

    gc.disable()
    try:
        refs = alive_after(lambda x: ckpt.checkpoint(torch.sin, x, use_reentrant=False))
        assert [ref() for ref in refs] == [None, None]
    finally:
        gc.enable()


def test_a_pass_inside_of_a_checkpoint_needs_only_what_was_saved_so_far():
    def slope(x):
        with torch.enable_grad():
            return torch.autograd.grad(x.sin().exp(), x, create_graph=True)[0]

    x = torch.tensor(0.3, requires_grad=True)
    for early in (True, False):
        with ckpt.set_checkpoint_early_stop(early):
            got = ckpt.checkpoint(slope, x, use_reentrant=False)
        assert torch.allclose(got, slope(x))


def test_a_checkpoint_gives_the_saved_tensor_itself_where_it_requires_no_grad():
    seen = []

    class Keep(Function):
        @staticmethod
        def forward(ctx, x, y):
            ctx.save_for_backward(y)
            return x.clone()

        @staticmethod
        def backward(ctx, grad):
            seen.extend(ctx.saved_tensors)
            return grad, None

    y = torch.tensor(1.0)
    x = torch.tensor(1.0, requires_grad=True)
    ckpt.checkpoint(Keep.apply, x, y, use_reentrant=False).backward()
    assert seen[0] is y


def test_results_that_a_selective_checkpoint_keeps_are_freed_with_the_graph():
    modes = []

    def contexts():
        save = ckpt.CheckpointPolicy.MUST_SAVE
        pair = ckpt.create_selective_checkpoint_contexts(lambda ctx, op, *a, **k: save)
        modes.append(pair[0])
        return pair

    x = torch.rand(3, requires_grad=True)
    out = ckpt.checkpoint(
        lambda t: t.cos().exp().sin(), x, use_reentrant=False, context_fn=contexts
    )
    kept = modes[0].storage[torch.ops.aten.exp.default][0].val
    assert not kept.requires_grad
    assert torch.allclose(kept, x.detach().cos().exp())
    del kept
    out.sum().backward()
    slope = torch.cos(x.detach().cos().exp()) * x.detach().cos().exp() * -x.detach().sin()
    assert torch.allclose(x.grad, slope)


@pytest.mark.parametrize("fast_mode", [True, False])
def test_a_sparse_gradient_with_another_number_of_sparse_dimensions_is_reported(fast_mode):
    def func(x):
        y = x.clone()
        y.register_hook(lambda g: g.to_dense().to_sparse(1))
        return y.to_dense()

    x = torch.ones(2, 2, dtype=torch.float64).to_sparse().requires_grad_()
    with pytest.raises(GradcheckError, match="incorrect sparse_dim"):
        gradcheck(func, (x,), masked=True, fast_mode=fast_mode)


@pytest.mark.parametrize("fast_mode", [True, False])
def test_forward_mode_runs_once_for_each_input(fast_mode):
    calls = []

    class Pair(Function):
        @staticmethod
        def forward(ctx, x, y):
            return x.clone(), y.clone()

        @staticmethod
        def jvp(ctx, a, b):
            calls.append(1)
            return a, b

    x = torch.rand(1, dtype=torch.float64, requires_grad=True)
    y = torch.rand(1, dtype=torch.float64, requires_grad=True)
    options = {"check_backward_ad": False, "check_forward_ad": True, "fast_mode": fast_mode}
    gradcheck(Pair.apply, (x, y), check_undefined_grad=False, **options)
    assert len(calls) == 2
    gradcheck(Pair.apply, (x, y), **options)
    assert len(calls) == 8  # and once with zeros and once without a tangent, for each input


def test_outputs_outside_of_the_graph_are_not_checked():
    def func(x):
        return x * 2, (x * 3).detach()

    x = torch.rand(2, dtype=torch.float64, requires_grad=True)
    assert gradcheck(func, (x,), check_forward_ad=True)


@pytest.mark.parametrize("fast_mode", [True, False])
@pytest.mark.parametrize("name", ["solve", "inv", "qr", "exp", "function"])
def test_forward_over_reverse_differentiates_saved_outputs(name, fast_mode):
    class Exp(Function):
        @staticmethod
        def forward(x):
            return x.exp()

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.save_for_backward(output)
            ctx.save_for_forward(output)

        @staticmethod
        def backward(ctx, grad):
            return grad * ctx.saved_tensors[0]

        @staticmethod
        def jvp(ctx, tangent):
            return tangent * ctx.saved_tensors[0]

    torch.manual_seed(0)
    a = torch.randn(3, 3, dtype=torch.float64) + 3 * torch.eye(3, dtype=torch.float64)
    b = torch.randn(3, 2, dtype=torch.float64)
    cases = {
        "solve": (torch.linalg.solve, (a, b)),
        "inv": (torch.linalg.inv, (a,)),
        "qr": (lambda x: tuple(torch.linalg.qr(x)), (a,)),
        "exp": (torch.exp, (b,)),
        "function": (Exp.apply, (b,)),
    }
    func, inputs = cases[name]
    inputs = [t.clone().requires_grad_() for t in inputs]
    options = {"check_fwd_over_rev": True, "check_rev_over_rev": False, "fast_mode": fast_mode}
    assert gradgradcheck(func, inputs, **options)


class Jittering(Function):
    @staticmethod
    def forward(ctx, x):
        return x.clone()

    @staticmethod
    def backward(ctx, g):
        return g * (1 + 1e-7 * torch.rand_like(g))


@pytest.mark.parametrize("fast_mode", [True, False])
def test_gradcheck_finds_a_gradient_that_differs_from_run_to_run(fast_mode):
    x = leaf(3, 3)
    with pytest.raises(GradcheckError, match="Backward is not reentrant"):
        gradcheck(Jittering.apply, (x,), fast_mode=fast_mode)
    assert gradcheck(Jittering.apply, (x,), fast_mode=fast_mode, nondet_tol=1e-5)
