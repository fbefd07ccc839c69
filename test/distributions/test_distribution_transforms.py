"""Transforms of torch.distributions: inverses, log |det| of their Jacobians against autograd,
shapes, caching and composition; constraints and the registries that turn them into transforms.
"""

import pickle

import pytest

import torch
import torch.distributions as D
from torch.distributions import biject_to, constraints, transform_to, transforms

pytestmark = pytest.mark.usefixtures("float64_default")


def points(*shape):
    """Distinct numbers in (-1, 1), no two rows alike."""
    n = max(1, torch.Size(shape).numel())
    return (torch.arange(1.0, n + 1) * 0.7548776662466927 % 1.0 * 2 - 1).reshape(shape)


SCALAR = {
    "exp": lambda: transforms.ExpTransform(),
    "power": lambda: transforms.PowerTransform(2.5),
    "power_negative": lambda: transforms.PowerTransform(torch.tensor(-1.0)),
    "sigmoid": lambda: transforms.SigmoidTransform(),
    "softplus": lambda: transforms.SoftplusTransform(),
    "tanh": lambda: transforms.TanhTransform(),
    "affine": lambda: transforms.AffineTransform(0.3, -2.0),
    "affine_tensor": lambda: transforms.AffineTransform(points(3), points(3) + 2),
    "cdf": lambda: transforms.CumulativeDistributionTransform(D.Normal(0.2, 1.5)),
    "compose": lambda: transforms.ComposeTransform(
        [transforms.TanhTransform(), transforms.AffineTransform(0.0, -0.5)]
    ),
    "identity": lambda: transforms.identity_transform,
    "exp_inverse": lambda: transforms.ExpTransform().inv,
}


@pytest.mark.parametrize("name", SCALAR)
def test_elementwise_transform_inverts_and_has_the_derivative_of_autograd(name):
    f = SCALAR[name]()
    x = points(2, 3)
    if name in ("power", "power_negative", "exp_inverse"):
        x = x + 1.5
    x = x.requires_grad_()
    y = f(x)
    torch.testing.assert_close(f.inv(y), x)
    assert f.domain.check(x).all() and f.codomain.check(y).all()
    slope = torch.autograd.grad(y.sum(), x)[0] if y is not x else torch.ones_like(x)
    torch.testing.assert_close(f.log_abs_det_jacobian(x, y), slope.abs().log())
    torch.testing.assert_close(f.inv.log_abs_det_jacobian(y, x), -slope.abs().log())
    sign = f.sign if isinstance(f.sign, torch.Tensor) else torch.tensor(float(f.sign))
    assert (slope.sign() == sign).all()
    assert f.event_dim == 0 and f.bijective
    assert f.forward_shape((2, 3)) == (2, 3) and f.inv.inv is f


def square_jacobian(f, x, flatten_x, flatten_y):
    jacobian = torch.autograd.functional.jacobian(lambda v: flatten_y(f(flatten_x(v))), x)
    return torch.linalg.slogdet(jacobian).logabsdet


def test_stick_breaking_volume_is_the_determinant():
    f = transforms.StickBreakingTransform()
    x = points(4)
    y = f(x)
    expected = square_jacobian(f, x, lambda v: v, lambda v: v[:-1])
    torch.testing.assert_close(f.log_abs_det_jacobian(x, y), expected)
    torch.testing.assert_close(f.inv(y), x)
    torch.testing.assert_close(f(torch.zeros(3)), torch.full((4,), 0.25))
    assert f.forward_shape((7, 4)) == (7, 5) and f.inverse_shape((7, 5)) == (7, 4)
    with pytest.raises(ValueError, match="Too few dimensions on input"):
        f.forward_shape(())


def test_correlation_cholesky_volume_is_the_determinant():
    f = transforms.CorrCholeskyTransform()
    for n in (2, 3, 4):
        x = points(n * (n - 1) // 2)
        y = f(x)
        rows, columns = torch.tril_indices(n, n, -1)
        expected = square_jacobian(f, x, lambda v: v, lambda v: v[rows, columns])  # noqa: B023
        torch.testing.assert_close(f.log_abs_det_jacobian(x, y), expected)
        torch.testing.assert_close(f.inv(y), x)
        assert constraints.corr_cholesky.check(y)
        assert f.forward_shape(x.shape) == (n, n) and f.inverse_shape((n, n)) == x.shape
    with pytest.raises(ValueError, match="not a flattened lower-diagonal number"):
        f.forward_shape((4,))
    with pytest.raises(ValueError, match="Input is not square"):
        f.inverse_shape((4, 3))


def test_matrix_and_simplex_maps_reach_their_sets():
    x = points(5, 3, 3)
    for f in (transforms.LowerCholeskyTransform(), transforms.PositiveDefiniteTransform()):
        y = f(x)
        assert f.codomain.check(y).all()
        torch.testing.assert_close(f(f.inv(y)), y)
        with pytest.raises(NotImplementedError):
            f.log_abs_det_jacobian(x, y)
    softmax = transforms.SoftmaxTransform()
    y = softmax(points(5, 3))
    torch.testing.assert_close(y, torch.softmax(points(5, 3), -1))
    torch.testing.assert_close(softmax(softmax.inv(y)), y)
    assert transforms.AbsTransform()(torch.tensor(-2.0)).item() == 2.0


def test_composition_sums_volumes_over_event_dimensions():
    f = transforms.ComposeTransform(
        [transforms.TanhTransform(), transforms.StickBreakingTransform(), transforms.ExpTransform()]
    )
    x = points(2, 3)
    y = f(x)
    parts = f.parts
    a = parts[0](x)
    b = parts[1](a)
    expected = (
        parts[0].log_abs_det_jacobian(x, a).sum(-1)
        + parts[1].log_abs_det_jacobian(a, b)
        + parts[2].log_abs_det_jacobian(b, y).sum(-1)
    )
    torch.testing.assert_close(f.log_abs_det_jacobian(x, y), expected)
    assert f.domain.event_dim == 1 and f.codomain.event_dim == 1 and f.event_dim == 1
    torch.testing.assert_close(f.inv(y), x)
    assert f.forward_shape((2, 3)) == (2, 4)
    assert transforms.identity_transform.log_abs_det_jacobian(x, x).equal(torch.zeros(2, 3))


def test_independent_and_reshape():
    f = transforms.IndependentTransform(transforms.ExpTransform(), 2)
    x = points(4, 2, 3)
    torch.testing.assert_close(f.log_abs_det_jacobian(x, f(x)), x.sum((-2, -1)))
    with pytest.raises(ValueError, match="Too few dimensions on input"):
        f(points(3))
    r = transforms.ReshapeTransform((2, 3), (6,))
    assert r(x).shape == (4, 6) and r.inv(r(x)).equal(x)
    assert r.log_abs_det_jacobian(x, r(x)).equal(torch.zeros(4))
    assert r.forward_shape((5, 2, 3)) == (5, 6)
    with pytest.raises(ValueError, match="Shape mismatch"):
        r.forward_shape((5, 3, 2))
    with pytest.raises(ValueError, match="different numbers of elements"):
        transforms.ReshapeTransform((2, 3), (5,))


def test_cat_and_stack_apply_each_transform_to_its_part():
    x = points(2, 3)
    exp, affine = transforms.ExpTransform(), transforms.AffineTransform(0.0, 2.0)
    cat = transforms.CatTransform([exp, affine], dim=1, lengths=[1, 2])
    y = cat(x)
    torch.testing.assert_close(y, torch.cat([x[:, :1].exp(), 2 * x[:, 1:]], 1))
    torch.testing.assert_close(cat.inv(y), x)
    logs = torch.cat([x[:, :1], torch.full((2, 2), 2.0).log()], 1)
    torch.testing.assert_close(cat.log_abs_det_jacobian(x, y), logs)
    assert cat.length == 3 and cat.codomain.check(y).all() and cat.bijective
    stack = transforms.StackTransform([exp, affine], dim=0)
    y = stack(x)
    torch.testing.assert_close(y, torch.stack([x[0].exp(), 2 * x[1]]))
    torch.testing.assert_close(stack.inv(y), x)
    with pytest.raises(AssertionError, match="must equal length 3"):
        cat(points(2, 4))
    with pytest.raises(AssertionError, match=r"must equal len\(transforms\) 2"):
        stack(points(3, 3))
    with pytest.raises(AssertionError, match="All elements of tseq"):
        transforms.CatTransform([3])


def test_cache_keeps_the_last_pair():
    f = transforms.SigmoidTransform(cache_size=1)
    x = torch.tensor([60.0])  # saturates, so that the inverse would lose it
    assert f.inv(f(x)) is x
    assert transforms.SigmoidTransform().inv(f(x)).item() != 60.0
    assert f.with_cache(1) is f and f.with_cache(0)._cache_size == 0
    composed = transforms.ComposeTransform([f, transforms.AffineTransform(0.0, 2.0)], cache_size=1)
    assert all(p._cache_size == 1 for p in composed.parts)
    with pytest.raises(ValueError, match="cache_size must be 0 or 1"):
        transforms.ExpTransform(cache_size=2)


def test_equality_repr_and_pickle():
    affine = transforms.AffineTransform
    assert affine(1.0, 2.0) == affine(1.0, 2.0) and affine(1.0, 2.0) != affine(1.0, 3.0)
    assert transforms.PowerTransform(2.0) == transforms.PowerTransform(torch.tensor([2.0]))
    assert transforms.ExpTransform().inv == transforms.ExpTransform().inv
    assert transforms.ExpTransform() != transforms.TanhTransform()
    f = transforms.ComposeTransform([transforms.ExpTransform(), affine(0.0, 1.0)])
    assert repr(f) == "ComposeTransform(\n    ExpTransform(),\n    AffineTransform()\n)"
    assert repr(f.parts[0].inv) == "_InverseTransform(ExpTransform())"
    f.inv(torch.tensor(2.0))
    copy = pickle.loads(pickle.dumps(f))
    assert copy == f and copy(torch.tensor(0.0)).item() == 1.0


CONSTRAINTS = {
    "real": constraints.real,
    "positive": constraints.positive,
    "nonnegative": constraints.nonnegative,
    "greater_than": constraints.greater_than(2.0),
    "less_than": constraints.less_than(-1.0),
    "unit_interval": constraints.unit_interval,
    "interval": constraints.interval(-2.0, 3.0),
    "half_open_interval": constraints.half_open_interval(-2.0, 3.0),
    "real_vector": constraints.real_vector,
    "simplex": constraints.simplex,
    "corr_cholesky": constraints.corr_cholesky,
    "lower_cholesky": constraints.lower_cholesky,
    "positive_definite": constraints.positive_definite,
    "positive_semidefinite": constraints.positive_semidefinite,
    "independent": constraints.independent(constraints.positive, 1),
    "cat": constraints.cat([constraints.positive, constraints.real], -1, [1, 2]),
    "stack": constraints.stack([constraints.positive] * 4, 0),
}


@pytest.mark.parametrize("name", CONSTRAINTS)
def test_registries_answer_a_map_into_the_set(name):
    constraint = CONSTRAINTS[name]
    x = points(4, 3, 3) if "definite" in name or name == "lower_cholesky" else points(4, 3)
    f = transform_to(constraint)
    y = f(x)
    assert constraint.check(y).all()
    torch.testing.assert_close(f(f.inv(y)), y)
    if name in ("lower_cholesky", "positive_definite", "positive_semidefinite"):
        with pytest.raises(NotImplementedError, match="Cannot transform"):
            biject_to(constraint)
        return
    g = biject_to(constraint)
    y = g(x)
    assert constraint.check(y).all() and g.bijective
    torch.testing.assert_close(g.inv(y), x)
    shape = g.log_abs_det_jacobian(x, y).shape
    assert shape == (4, 3)[: 2 - g.domain.event_dim]


def test_registry_takes_new_constraints_and_rejects_other_things():
    class Even(constraints.Constraint):
        pass

    @biject_to.register(Even)
    def build(constraint):
        return transforms.ExpTransform()

    try:
        assert isinstance(biject_to(Even()), transforms.ExpTransform)
    finally:
        del biject_to._registry[Even]
    with pytest.raises(TypeError, match="Expected constraint to be either a Constraint subclass"):
        biject_to.register(int, build)
    with pytest.raises(NotImplementedError, match="Cannot transform _Boolean constraints"):
        transform_to(constraints.boolean)


def test_constraints_tell_members_from_others():
    t = torch.tensor
    c = constraints
    cases = [
        (c.boolean, t([0.0, 1.0, 0.5]), [True, True, False]),
        (c.nonnegative_integer, t([0.0, 1.5, -1.0]), [True, False, False]),
        (c.positive_integer, t([0, 1, 2]), [False, True, True]),
        (c.integer_interval(0, 3), t([3.0, 4.0, 1.5]), [True, False, False]),
        (c.interval(0.0, 1.0), t([0.0, 1.0, 1.1]), [True, True, False]),
        (c.half_open_interval(0.0, 1.0), t([0.0, 1.0]), [True, False]),
        (c.real, t([float("inf"), float("nan")]), [True, False]),
        (c.simplex, t([[0.5, 0.5], [0.5, 0.6], [1.5, -0.5]]), [True, False, False]),
        (c.one_hot, t([[1.0, 0.0], [1.0, 1.0], [0.0, 0.0]]), [True, False, False]),
        (c.multinomial(3), t([[1.0, 2.0], [2.0, 2.0]]), [True, False]),
        (c.square, torch.zeros(2, 2, 3), [False, False]),
        (c.symmetric, t([[[1.0, 2.0], [2.0, 1.0]], [[1.0, 2.0], [3.0, 1.0]]]), [True, False]),
        (
            c.lower_triangular,
            t([[[1.0, 0.0], [2.0, 1.0]], [[1.0, 2.0], [3.0, 1.0]]]),
            [True, False],
        ),
        (c.positive_definite, torch.stack([torch.eye(2), torch.ones(2, 2)]), [True, False]),
        (c.positive_semidefinite, torch.stack([torch.eye(2), -torch.eye(2)]), [True, False]),
        (c.independent(c.positive, 1), t([[1.0, 2.0], [1.0, -2.0]]), [True, False]),
        (c.stack([c.real, c.positive], 0), t([-1.0, -2.0]), [True, False]),
        (c.cat([c.real, c.positive], 0, [1, 2]), t([-1.0, 2.0, -1.0]), [True, True, False]),
    ]
    for constraint, value, expected in cases:
        assert constraint.check(value).tolist() == expected, constraint
    assert c.simplex.event_dim == 1 and c.one_hot.is_discrete
    with pytest.raises(NotImplementedError, match="cannot be determined statically"):
        _ = c.dependent.event_dim
    with pytest.raises(ValueError, match="Cannot determine validity"):
        c.dependent.check(t(1.0))
    assert repr(c.greater_than(2.0)) == "GreaterThan(lower_bound=2.0)"
    assert repr(c.independent(c.real, 1)) == "IndependentConstraint(Real(), 1)"


def test_inverses_depend_on_the_free_entries_only():
    y = torch.tensor([0.2, 0.3, 0.5]).requires_grad_()
    (grad,) = torch.autograd.grad(transforms.StickBreakingTransform().inv(y).sum(), y)
    # log(y0 / (1 - y0)) + log(y1 / (1 - y0 - y1)): the last piece is what the others leave.
    torch.testing.assert_close(grad, torch.tensor([1 / 0.2 + 1 / 0.8 + 1 / 0.5, 1 / 0.3 + 2, 0.0]))
    f = transforms.CorrCholeskyTransform()
    x = points(6)
    strict = f(x).tril(-1)
    torch.testing.assert_close(f.inv(strict), x)
    rows, columns = torch.tril_indices(4, 4, -1)
    jacobian = torch.autograd.functional.jacobian(
        lambda v: f.inv(torch.zeros(4, 4).index_put((rows, columns), v)), strict[rows, columns]
    )
    volume = f.log_abs_det_jacobian(x, f(x))
    torch.testing.assert_close(torch.linalg.slogdet(jacobian).logabsdet, -volume)
