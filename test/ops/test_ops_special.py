"""Special functions: orthogonal polynomials, polygamma and what stands around them, against SciPy
in double precision."""

import numpy as np
import pytest
from scipy import special as sp

import torch

POLYNOMIALS = {
    "chebyshev_polynomial_t": sp.eval_chebyt,
    "chebyshev_polynomial_u": sp.eval_chebyu,
    "shifted_chebyshev_polynomial_t": sp.eval_sh_chebyt,
    "shifted_chebyshev_polynomial_u": sp.eval_sh_chebyu,
    "hermite_polynomial_h": sp.eval_hermite,
    "hermite_polynomial_he": sp.eval_hermitenorm,
    "laguerre_polynomial_l": sp.eval_laguerre,
    "legendre_polynomial_p": sp.eval_legendre,
}


@pytest.mark.parametrize("name", POLYNOMIALS)
def test_polynomials_equal_scipy(name):
    x = torch.linspace(-1.5, 1.5, 41, dtype=torch.float64)
    call = getattr(torch.special, name)
    for n in (0, 1, 2, 3, 5, 8, 12):
        want = POLYNOMIALS[name](n, x.numpy())
        np.testing.assert_allclose(call(x, n).numpy(), want, rtol=1e-9, atol=1e-9)
    n = torch.arange(6)
    got = call(x[:, None], n)
    np.testing.assert_allclose(got.numpy(), POLYNOMIALS[name](n.numpy(), x[:, None].numpy()),
                               rtol=1e-9, atol=1e-9)  # fmt: skip
    np.testing.assert_allclose(call(0.3, n.double()).numpy(), POLYNOMIALS[name](n.numpy(), 0.3))
    assert torch.equal(call(x, -1), torch.zeros_like(x))


@pytest.mark.parametrize(
    "name",
    [
        "chebyshev_polynomial_v",
        "chebyshev_polynomial_w",
        "shifted_chebyshev_polynomial_v",
        "shifted_chebyshev_polynomial_w",
    ],
)
def test_third_and_fourth_kind_equal_their_definition(name):
    t = np.linspace(0.1, 3.0, 30)
    x = np.cos(t)
    call = getattr(torch.special, name)
    argument = (x + 1) / 2 if name.startswith("shifted") else x
    for n in (0, 1, 4, 20):
        if "_v" in name:
            want = np.cos((n + 0.5) * t) / np.cos(t / 2)
        else:
            want = np.sin((n + 0.5) * t) / np.sin(t / 2)
        np.testing.assert_allclose(
            call(torch.from_numpy(argument), n).numpy(), want, rtol=1e-8, atol=1e-8
        )


@pytest.mark.parametrize("name", ["chebyshev_polynomial_t", "shifted_chebyshev_polynomial_t",
                                  "hermite_polynomial_h", "hermite_polynomial_he"])  # fmt: skip
def test_polynomials_with_a_derivative_have_it_in_both_modes(name):
    x = torch.rand(5, dtype=torch.float64, requires_grad=True)
    call = getattr(torch.special, name)
    torch.autograd.gradcheck(lambda t: call(t, 3), (x,), check_forward_ad=True)
    torch.autograd.gradcheck(lambda t: call(t, torch.arange(5)), (x,))


@pytest.mark.parametrize("n", [0, 1, 2, 5])
def test_polygamma_equals_scipy(n):
    x = torch.rand(30, dtype=torch.float64) * 8 + 0.05
    want = sp.polygamma(n, x.numpy())
    np.testing.assert_allclose(torch.polygamma(n, x).numpy(), want, rtol=1e-10)
    np.testing.assert_allclose(x.polygamma(n).numpy(), want, rtol=1e-10)
    np.testing.assert_allclose(x.clone().polygamma_(n).numpy(), want, rtol=1e-10)
    np.testing.assert_allclose(
        torch.special.polygamma(n, x, out=torch.empty_like(x)), want, rtol=1e-10
    )
    assert torch.polygamma(n, torch.tensor([2])).dtype == torch.float32
    y = x.clone().requires_grad_()
    torch.autograd.gradcheck(lambda t: torch.polygamma(n, t), (y,), check_forward_ad=True)


@pytest.mark.parametrize("p", [1, 2, 5])
def test_multivariate_gamma_equals_scipy(p):
    x = torch.rand(10, dtype=torch.float64) * 4 + p / 2
    want = sp.multigammaln(x.numpy()[0], p), [sp.multigammaln(v, p) for v in x.numpy()]
    np.testing.assert_allclose(torch.mvlgamma(x, p).numpy(), want[1], rtol=1e-12)
    np.testing.assert_allclose(torch.special.multigammaln(x[0], p).item(), want[0], rtol=1e-12)
    np.testing.assert_allclose(x.clone().mvlgamma_(p).numpy(), want[1], rtol=1e-12)
    torch.autograd.gradcheck(lambda t: torch.mvlgamma(t, p), (x.clone().requires_grad_(),))


def test_normal_distribution_and_aliases():
    x = torch.linspace(-6, 6, 25, dtype=torch.float64)
    np.testing.assert_allclose(torch.special.ndtr(x).numpy(), sp.ndtr(x.numpy()), rtol=1e-13)
    torch.autograd.gradcheck(
        torch.special.ndtr, (x.clone().requires_grad_(),), check_forward_ad=True
    )
    p = torch.tensor([0.1, 0.5, 0.99], dtype=torch.float64)
    np.testing.assert_allclose(torch.special.logit(p).numpy(), sp.logit(p.numpy()))
    assert torch.equal(torch.special.round(torch.tensor([1.256, -2.5]), decimals=1),
                       torch.tensor([1.3, -2.5]))  # fmt: skip
    assert torch.equal(torch.special.round(torch.tensor([1.5, 2.5])), torch.tensor([2.0, 2.0]))


def test_wrong_arguments_raise():
    x = torch.ones(2)
    with pytest.raises(RuntimeError, match="does not support negative n"):
        torch.polygamma(-1, x)
    with pytest.raises(RuntimeError, match="p has to be greater than or equal to 1"):
        torch.mvlgamma(x, 0)
    with pytest.raises(NotImplementedError, match="ComplexFloat"):
        torch.special.ndtr(x + 0j)
    with pytest.raises(TypeError):
        torch.special.chebyshev_polynomial_t(1.0, 2)


def test_meta_equals_real():
    x = torch.rand(3, 1)
    n = torch.arange(4)
    for call in (
        lambda t: torch.special.legendre_polynomial_p(t, n.to(t.device)),
        lambda t: torch.polygamma(1, t),
        lambda t: torch.mvlgamma(t + 2, 2),
        torch.special.ndtr,
    ):
        real, meta = call(x), call(x.to("meta"))
        assert (real.shape, real.dtype, real.stride()) == (meta.shape, meta.dtype, meta.stride())


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_polynomials_of_a_register_equal_those_of_its_lanes(dtype):
    x = torch.linspace(-1.2, 1.2, 41, dtype=dtype)
    names = ("chebyshev_polynomial_t", "shifted_chebyshev_polynomial_w", "hermite_polynomial_h")
    for name in (*names, "legendre_polynomial_p", "laguerre_polynomial_l"):
        function = getattr(torch.special, name)
        for degree in (0, 1, 2, 5, 8, 9, 30):
            mixed = torch.full((41,), float(degree), dtype=dtype)
            mixed[::2] = degree + 1  # neighbours differ: each lane by itself
            got, lanes = function(x, degree)[1::2], function(x, mixed)[1::2]
            assert torch.equal(got, lanes), (name, degree)


def test_hermite_polynomial_that_overflows_stays_infinite():
    x = torch.tensor([1e200] * 20 + [0.5], dtype=torch.float64)
    got = torch.special.hermite_polynomial_h(x, 5)
    assert got[:20].tolist() == [float("inf")] * 20 and got[20] == 41
