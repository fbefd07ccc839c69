"""Distances, covariances and cross products against NumPy and SciPy in float64, their gradients by
gradcheck, and what bad arguments raise."""

import math
import warnings

import numpy as np
import pytest
from scipy.spatial import distance as scipy_distance

import torch
import torch.nn.functional as F
from torch.autograd import gradcheck, gradgradcheck

NORMS = [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, math.inf]
TOLERANCE = {torch.float64: 1e-10, torch.float32: 2e-5, torch.float16: 2e-2, torch.bfloat16: 1e-1}


def random(*shape, dtype=torch.float64, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=generator, dtype=torch.float64).to(dtype)


def reference(a, b, p):
    """All distances between the rows of a and b, by definition."""
    d = np.abs(np.asarray(a.double())[..., :, None, :] - np.asarray(b.double())[..., None, :, :])
    if p == 0:
        return (d != 0).sum(-1).astype(float)
    if math.isinf(p):
        return d.max(-1) if d.shape[-1] else d.sum(-1)
    return (d**p).sum(-1) ** (1 / p)


@pytest.mark.parametrize("p", NORMS)
@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("columns", [1, 3, 16, 67])
def test_cdist_matches_definition(p, dtype, columns):
    a, b = random(5, columns, dtype=dtype), random(7, columns, dtype=dtype, seed=1)
    got = torch.cdist(a, b, p=p)
    assert got.dtype == dtype and got.shape == (5, 7)
    expected = reference(a, b, p)
    np.testing.assert_allclose(got.double(), expected, rtol=TOLERANCE[dtype], atol=1e-6)


@pytest.mark.parametrize("mode", ["use_mm_for_euclid_dist", "donot_use_mm_for_euclid_dist"])
def test_cdist_modes_agree(mode):
    a, b = random(40, 6), random(30, 6, seed=1)
    np.testing.assert_allclose(torch.cdist(a, b, compute_mode=mode), reference(a, b, 2), rtol=1e-7)


def test_cdist_batches_broadcast_and_views():
    a, b = random(2, 1, 4, 3), random(5, 6, 3, seed=1)
    got = torch.cdist(a, b, p=1)
    assert got.shape == (2, 5, 4, 6)
    np.testing.assert_allclose(
        got, reference(a.expand(2, 5, 4, 3), b.expand(2, 5, 6, 3), 1), rtol=1e-12
    )
    turned = random(3, 8).t()
    np.testing.assert_allclose(
        torch.cdist(turned, turned[::2], p=3), reference(turned, turned[::2], 3), rtol=1e-12
    )


def test_cdist_empty():
    assert torch.cdist(random(0, 3), random(4, 3)).shape == (0, 4)
    assert torch.cdist(random(2, 0), random(4, 0)).equal(torch.zeros(2, 4, dtype=torch.float64))
    assert torch.cdist(random(2, 3).to("meta"), random(4, 3).to("meta")).shape == (2, 4)


def test_cdist_nan_is_passed_on():
    a = torch.tensor([[float("nan"), 1.0]])
    for p in (0.0, 1.0, 2.0, 3.0):
        assert torch.cdist(a, torch.zeros(1, 2), p=p).isnan().all()


@pytest.mark.parametrize("p", [1.0, 1.5, 2.0, 3.0, math.inf])
def test_cdist_gradients(p):
    a = random(3, 4).requires_grad_()
    b = random(2, 4, seed=1).requires_grad_()
    call = lambda x, y: torch.cdist(x, y, p=p)
    assert gradcheck(call, (a, b), check_forward_ad=True)
    if p not in (1.0, math.inf):
        assert gradgradcheck(call, (a, b))


def test_cdist_gradient_of_equal_rows_is_zero():
    x = torch.zeros(2, 3, requires_grad=True)
    for p in NORMS:
        (grad,) = torch.autograd.grad(torch.cdist(x, torch.zeros(2, 3), p=p).sum(), x)
        assert grad.equal(torch.zeros(2, 3)), p


@pytest.mark.parametrize(
    ("call", "kind", "text"),
    [
        (lambda: torch.cdist(random(2, 3), random(2, 4)), RuntimeError, "same number of columns"),
        (lambda: torch.cdist(random(3), random(2, 3)), RuntimeError, "at least 2D"),
        (lambda: torch.cdist(random(2, 3), random(2, 3), p=-1), RuntimeError, "non-negative p"),
        (lambda: torch.cdist(random(2, 3).long(), random(2, 3).long()), RuntimeError, "floating"),
        (lambda: torch.cdist(random(2, 3), random(2, 3).float()), RuntimeError, "scalar type"),
        (lambda: torch.cdist(random(2, 3), random(2, 3), compute_mode="x"), ValueError, "x is not"),
        (lambda: torch.pdist(random(3)), RuntimeError, "only supports 2D"),
        (lambda: torch.pdist(random(3, 2), p=-2), RuntimeError, "non-negative p"),
        (lambda: torch.linalg.cross(random(2, 4), random(2, 4)), RuntimeError, "length 3"),
        (lambda: torch.linalg.cross(random(2, 3), random(3)), RuntimeError, "same number of dim"),
        (lambda: torch.cross(random(4, 4), random(4, 4)), RuntimeError, "no dimension of size 3"),
        (lambda: torch.cov(random(1, 2, 3)), RuntimeError, "two or fewer"),
        (lambda: torch.cov(torch.tensor([True])), RuntimeError, "bool dtype"),
        (lambda: torch.cov(random(2, 3), fweights=random(3)), RuntimeError, "integral dtype"),
        (
            lambda: torch.cov(random(2, 3), fweights=torch.tensor([1, -1, 2])),
            RuntimeError,
            "cannot be negative",
        ),
        (
            lambda: F.cosine_similarity(torch.ones(2, 2).long(), torch.ones(2, 2).long()),
            RuntimeError,
            "floating point",
        ),
        (lambda: F.cosine_similarity(random(2, 3), random(2, 4)), RuntimeError, "must match"),
    ],
)
@pytest.mark.filterwarnings("ignore")
def test_errors(call, kind, text):
    with pytest.raises(kind, match=text):
        call()


@pytest.mark.parametrize("p", NORMS[1:])
@pytest.mark.parametrize("rows", [2, 5, 40])
def test_pdist_matches_scipy(p, rows):
    x = random(rows, 6)
    expected = scipy_distance.pdist(x.numpy(), "chebyshev" if math.isinf(p) else "minkowski",
                                    **({} if math.isinf(p) else {"p": p}))  # fmt: skip
    np.testing.assert_allclose(torch.pdist(x, p), expected, rtol=1e-10)
    assert F.pdist(x[:1], p).shape == (0,)


@pytest.mark.parametrize("p", [1.0, 2.0, 3.0])
def test_pdist_gradients(p):
    x = random(4, 3).requires_grad_()
    assert gradcheck(lambda t: torch.pdist(t, p), (x,), check_forward_ad=True)
    if p != 1.0:
        assert gradgradcheck(lambda t: torch.pdist(t, p), (x,))


def test_cosine_similarity_and_pairwise_distance():
    a, b = random(4, 5), random(4, 5, seed=1)
    x, y = a.numpy(), b.numpy()
    expected = (x * y).sum(1) / np.linalg.norm(x, axis=1) / np.linalg.norm(y, axis=1)
    np.testing.assert_allclose(F.cosine_similarity(a, b), expected, rtol=1e-12)
    assert F.cosine_similarity(torch.zeros(3), torch.ones(3), dim=0).item() == 0
    np.testing.assert_allclose(
        F.pairwise_distance(a, b, p=3.0), (np.abs(x - y + 1e-6) ** 3).sum(1) ** (1 / 3), rtol=1e-12
    )
    assert F.pairwise_distance(a, b, keepdim=True).shape == (4, 1)
    assert torch.cosine_similarity is not None and torch.pairwise_distance is not None
    args = (a.requires_grad_(), b.requires_grad_())
    assert gradcheck(F.cosine_similarity, args) and gradgradcheck(F.pairwise_distance, args)


@pytest.mark.filterwarnings("ignore")
def test_cov_matches_numpy():
    x = random(3, 8)
    fw = torch.tensor([1, 2, 0, 3, 1, 1, 2, 4])
    aw = random(8, seed=3).abs()
    for correction in (0, 1, 2):
        for f in (None, fw):
            for a in (None, aw):
                expected = np.cov(
                    x.numpy(),
                    ddof=correction,
                    fweights=None if f is None else f.numpy(),
                    aweights=None if a is None else a.numpy(),
                )
                got = torch.cov(x, correction=correction, fweights=f, aweights=a)
                np.testing.assert_allclose(got, expected, rtol=1e-10)
    np.testing.assert_allclose(torch.corrcoef(x), np.corrcoef(x.numpy()), rtol=1e-10)
    z = torch.complex(random(2, 5), random(2, 5, seed=4))
    np.testing.assert_allclose(torch.cov(z), np.cov(z.numpy()), rtol=1e-10)
    assert torch.cov(x[0]).shape == () and torch.corrcoef(x[0]).item() == 1
    assert gradcheck(torch.cov, (x.requires_grad_(),)) and gradcheck(torch.corrcoef, (x,))


def test_cov_without_freedom_warns():
    with pytest.warns(UserWarning, match="degrees of freedom"):
        assert torch.cov(torch.ones(2, 1)).isnan().all()


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.int64, torch.complex128])
def test_cross_matches_numpy(dtype):
    a, b = (random(3, 4, 3, seed=s) * 9 for s in (0, 1))
    if dtype == torch.complex128:
        a = torch.complex(a, b)
    a, b = a.to(dtype), b.to(dtype)
    expected = np.cross(a.numpy(), b.numpy())
    np.testing.assert_allclose(torch.linalg.cross(a, b), expected, rtol=1e-5, atol=1e-4)
    np.testing.assert_allclose(
        torch.cross(a, b, dim=0), np.cross(a.numpy(), b.numpy(), axis=0), rtol=1e-5, atol=1e-4
    )
    out = torch.empty(0, dtype=dtype)
    assert torch.linalg.cross(a, b[:1], out=out) is out and out.shape == a.shape


def test_cross_gradients_and_default_dimension():
    a, b = (random(3, 2, seed=s).requires_grad_() for s in (0, 1))
    call = lambda x, y: torch.cross(x, y, dim=0)
    assert gradcheck(call, (a, b), check_forward_ad=True) and gradgradcheck(call, (a, b))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert torch.cross(a, b).equal(call(a, b))
