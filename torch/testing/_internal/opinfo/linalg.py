"""Records of the linalg family. Where mathematics leaves the result open (signs and order of
vectors, pivots) the record checks what defines it instead of single values: the factors multiply to
the matrix, the columns are orthonormal."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

import torch

from . import factor_refs
from .core import OpInfo, SampleInput, call, error

TOL = {torch.float32: (2e-3, 2e-3), torch.complex64: (2e-3, 2e-3)}
DTYPES = "dc"
_TWO = "at least 2 dim|2 or more dim"
_SQUARE = "must be batches of square matrices|square"


def general(t, *shape, grad=True) -> torch.Tensor:
    """Matrices far from singular: random ones with a heavy diagonal."""
    x = t(*shape, grad=False)
    x = x + 3 * torch.eye(*x.shape[-2:], dtype=t.dtype)
    return x.requires_grad_(t.requires_grad and grad)


def _unscaled(t, *shape) -> torch.Tensor:
    t.scale = 1
    return general(t, *shape)


def hermitian(t, *shape) -> torch.Tensor:
    """Positive definite Hermitian matrices with distinct eigenvalues."""
    x = t(*shape, grad=False)
    n = x.shape[-1]
    steps = torch.arange(1, n + 1, dtype=t.real())
    x = x @ x.mH / n + torch.diag_embed(steps).to(t.dtype)
    return x.requires_grad_(t.requires_grad)


def triangular(t, *shape) -> torch.Tensor:
    x = general(t, *shape, grad=False).tril()
    return x.detach().requires_grad_(t.requires_grad)


def _factor(t, *shape) -> torch.Tensor:
    """A Cholesky factor: its diagonal is real."""
    x = torch.linalg.cholesky(hermitian(t, *shape).detach())
    return x.requires_grad_(t.requires_grad)


def _square(t) -> list[SampleInput]:
    return [call(general(t, 3, 3)), call(general(t, 2, 2, 2)), call(general(t, 1, 1))]


def _positive(t) -> list[SampleInput]:
    return [call(hermitian(t, 3, 3)), call(hermitian(t, 2, 2, 2))]


def _rectangles(t) -> list[SampleInput]:
    return [call(t(4, 3)), call(t(3, 4)), call(t(2, 3, 3))]


def _op(name, samples, ref, **options) -> OpInfo:
    options.setdefault("tolerances", TOL)
    options.setdefault("inplace", None)
    options.setdefault("large_elements", 20_000)  # the work is the cube of a side
    return OpInfo(name, samples, ref, options.pop("codes", DTYPES), **options)


def _close(a, b) -> None:
    torch.testing.assert_close(a, b, rtol=2e-3, atol=2e-3)


def _eye_like(x):
    return torch.eye(x.shape[-1], dtype=x.dtype).expand(x.shape)


def _check_qr(sample, result) -> None:
    q, r = result
    _close(q @ r, sample.input)
    _close(q.mH @ q, _eye_like(q.mH @ q))
    _close(r.triu(), r)


def _check_svd(sample, result) -> None:
    u, s, vh = result
    k = s.shape[-1]
    _close(u[..., :k] * s.unsqueeze(-2).to(u.dtype) @ vh[..., :k, :], sample.input)
    _close(s.sort(-1, descending=True).values, s)


def _check_old_svd(sample, result) -> None:
    u, s, v = result
    _check_svd(sample, (u, s, v.mH))


def _check_eig(sample, result) -> None:
    values, vectors = result
    _close(sample.input.to(vectors.dtype) @ vectors, vectors * values.unsqueeze(-2))


def _check_eigh(sample, result) -> None:
    values, vectors = result
    _close(sample.input @ vectors, vectors * values.unsqueeze(-2).to(vectors.dtype))
    _close(values.sort(-1).values, values)


def _same_set(reference) -> Callable[..., object]:
    """Eigenvalues in any order: compare sums of powers."""

    def check(sample, result) -> None:
        expected = torch.from_numpy(np.asarray(reference(sample.numpy().input))).to(result.dtype)
        for power in (1, 2, 3):
            _close((result**power).sum(-1), (expected**power).sum(-1))

    return check


def _check_ldl(sample, result) -> None:
    b = torch.ones(*sample.input.shape[:-1], 1, dtype=sample.input.dtype)
    x = torch.linalg.ldl_solve(result[0], result[1], b)
    full = sample.input.tril() + sample.input.tril(-1).mT
    _close(full @ x, b)


def _solve(a, b, left=True) -> np.ndarray:
    vector = b.ndim == 1 or (b.ndim == a.ndim - 1 and b.shape == a.shape[:-1])
    if vector:
        return np.linalg.solve(a, b[..., None])[..., 0]
    return np.linalg.solve(a, b)


def _triangular(a, b, *, upper, left=True, unitriangular=False) -> np.ndarray:
    if unitriangular:
        a = a - np.eye(a.shape[-1]) * a + np.eye(a.shape[-1])
    a = np.triu(a) if upper else np.tril(a)
    if left:
        return np.linalg.solve(a, b)
    return np.swapaxes(np.linalg.solve(np.swapaxes(a, -1, -2), np.swapaxes(b, -1, -2)), -1, -2)


def _matrix_norm(x, ord="fro", dim=(-2, -1), keepdim=False) -> np.generic:
    return np.linalg.norm(x, ord, dim, keepdim)


def _norm(x, ord=None, dim=None, keepdim=False) -> np.ndarray | np.generic:
    return np.linalg.norm(x, ord, dim, keepdim) if x.ndim < 3 or dim is not None else _flat(x, ord)


def _flat(x, ord):
    return np.linalg.norm(x.ravel(), ord)


def _exp(x) -> np.ndarray:
    import scipy.linalg

    return scipy.linalg.expm(x)


def _check_geqrf(sample, result) -> None:
    q = torch.linalg.householder_product(*result)
    k = min(sample.input.shape[-2:])
    _close(q[..., :k] @ result[0].triu()[..., :k, :], sample.input)


def _householder(t) -> list[SampleInput]:
    a, tau = torch.geqrf(t(4, 3, grad=False))
    return [call(a.requires_grad_(t.requires_grad), tau.requires_grad_(t.requires_grad))]


def _lu_pairs(t) -> tuple[torch.Tensor, torch.Tensor]:
    lu, pivots = torch.linalg.lu_factor(general(t, 3, 3, grad=False))
    return lu, pivots


def _lu_solve_samples(t) -> list[SampleInput]:
    lu, pivots = _lu_pairs(t)
    return [call(lu.requires_grad_(t.requires_grad), pivots, t(3, 2))]


def _old_lu_solve_samples(t) -> list[SampleInput]:
    lu, pivots = _lu_pairs(t)
    return [call(t(3, 2), lu.requires_grad_(t.requires_grad), pivots)]


def _unpack_samples(t) -> list[SampleInput]:
    lu, pivots = _lu_pairs(t)
    return [call(lu.requires_grad_(t.requires_grad), pivots)]


def _ormqr_samples(t) -> list[SampleInput]:
    a, tau = torch.geqrf(t(4, 3, grad=False))
    return [call(a, tau, t(4, 2), transpose=True)]


def _check_lstsq(sample, result) -> None:
    """The residual is orthogonal to the columns."""
    a, b = sample.input, sample.args[0]
    residual = a @ result[0] - b
    _close(a.mH @ residual, torch.zeros_like(a.mH @ residual))


def _slogdet(x) -> tuple[np.ndarray | np.generic, np.ndarray | np.generic]:
    return tuple(np.linalg.slogdet(x))


_BAD = lambda t: [
    error(RuntimeError, _SQUARE, t(2, 3)),
    error(RuntimeError, _TWO, t(2)),
]
_BAD_DIM = lambda t: [error(RuntimeError, _TWO, t(2))]
_SINGULAR = lambda t: [
    *_BAD(t),
    error(torch.linalg.LinAlgError, "singular", torch.zeros(2, 2, dtype=t.dtype)),
]
_NOT_POSITIVE = lambda t: [
    *_BAD(t),
    error(torch.linalg.LinAlgError, "positive-definite", -torch.eye(2, dtype=t.dtype)),
]
_SINGULAR_MOVED = {"expanded": "an expanded matrix is singular"}
_GAUGE = "the phases of the vectors are free: their gradient exists for invariant functions only"


def _eigh_values_and_projector(x):
    """Functions of the decomposition that do not depend on the phases of the vectors."""
    values, vectors = torch.linalg.eigh((x + x.mH) / 2)
    return values, vectors @ torch.diag_embed(values.to(x.dtype).square()) @ vectors.mH


def _svd_invariant(x, *args, **kwargs):
    u, s, vh = torch.linalg.svd(x, full_matrices=False)
    return s, u @ torch.diag_embed(s.to(x.dtype).square()) @ vh


def _old_svd_invariant(x, *args, **kwargs):
    u, s, v = torch.svd(x)
    return s, u @ torch.diag_embed(s.to(x.dtype).square()) @ v.mH


def _eig_invariant(x):
    values, vectors = torch.linalg.eig(x)
    return vectors @ torch.diag_embed(values.square()) @ torch.linalg.inv(vectors)


def _symmetric(function) -> Callable[..., object]:
    """The function of the Hermitian part, on which it is defined."""
    return lambda x, *a, **k: function((x + x.mH) / 2, *a, **k)


def _lower(function) -> Callable[..., object]:
    return lambda x, *a, **k: function(x.tril(), *a, **k)


RECORDS = [
    *[
        _op(
            name,
            _positive,
            lambda x: np.linalg.cholesky(x),
            errors=_NOT_POSITIVE,
            grad_op=_symmetric(torch.linalg.cholesky),
            skips=_SINGULAR_MOVED,
        )
        for name in ("linalg.cholesky", "cholesky")
    ],
    _op(
        "linalg.cholesky_ex",
        _positive,
        lambda x: (np.linalg.cholesky(x), np.zeros(x.shape[:-2])),
        errors=_BAD,
        grad_op=_symmetric(torch.linalg.cholesky_ex),
        grad_outputs=1,
    ),
    _op(
        "cholesky_inverse",
        lambda t: [call(_factor(t, 3, 3)), call(_factor(t, 2, 2, 2))],
        lambda l: np.linalg.inv(l @ np.swapaxes(l.conj(), -1, -2)),
        errors=_BAD,
        grad_op=_lower(torch.cholesky_inverse),
        grad_codes="d",
        skips=_SINGULAR_MOVED,
    ),
    _op(
        "cholesky_solve",
        lambda t: [call(t(3, 2), _factor(t, 3, 3))],
        lambda b, l: np.linalg.solve(l @ np.swapaxes(l.conj(), -1, -2), b),
        grad_op=lambda b, l: torch.cholesky_solve(b, l.tril()),
        errors=lambda t: [error(RuntimeError, "", t(3, 2), t(2, 3))],
    ),
    _op(
        "linalg.cond",
        lambda t: [
            call(general(t, 3, 3)),
            call(general(t, 3, 3), 1),
            call(general(t, 3, 3), "fro"),
        ],
        lambda x, p=None: np.linalg.cond(x, p),
        errors=lambda t: [error(RuntimeError, _TWO, t(2))],
        skips=_SINGULAR_MOVED,
    ),
    *[
        _op(name, _square, np.linalg.det, errors=_BAD, supports_out=False)
        for name in ("linalg.det", "det")
    ],
    *[
        _op(name, _square, _slogdet, errors=_BAD, skips=_SINGULAR_MOVED)
        for name in ("linalg.slogdet", "slogdet")
    ],
    _op(
        "logdet",
        lambda t: [call(hermitian(t, 3, 3))],
        lambda x: np.linalg.slogdet(x)[1] + 0j if np.iscomplexobj(x) else np.linalg.slogdet(x)[1],
        codes="d",
        errors=_BAD,
    ),
    _op(
        "linalg.eig",
        _square,
        None,
        check=_check_eig,
        errors=_BAD,
        grad_op=_eig_invariant,
        skips={"layouts": _GAUGE},
    ),
    _op(
        "linalg.eigvals",
        _square,
        None,
        check=_same_set(np.linalg.eigvals),
        errors=_BAD,
        covers=("_linalg_eigvals",),
        skips={"layouts": "the order of the values is free"},
        grad_op=lambda x: torch.linalg.eigvals(x).square().sum(-1),
    ),
    _op(
        "linalg.eigh",
        _positive,
        None,
        check=_check_eigh,
        errors=_BAD,
        grad_op=_eigh_values_and_projector,
        skips={"layouts": _GAUGE},
    ),
    _op(
        "linalg.eigvalsh",
        _positive,
        np.linalg.eigvalsh,
        errors=_BAD,
        out_dtype="real",
        grad_op=_symmetric(torch.linalg.eigvalsh),
    ),
    _op(
        "linalg.householder_product",
        _householder,
        factor_refs.householder_product,
        aliases=("orgqr",),
        covers=("orgqr",),
        grad_codes="d",
        errors=lambda t: [error(RuntimeError, "", t(2, 3), t(2))],
        skips={"expanded": "expanded reflectors are not orthogonal"},
    ),
    _op(
        "geqrf",
        lambda t: [call(t(4, 3)), call(t(2, 3, 3))],
        None,
        check=_check_geqrf,
        errors=_BAD_DIM,
        grad_codes="",
        skips={"layouts": _GAUGE},
    ),
    _op(
        "ormqr",
        _ormqr_samples,
        factor_refs.ormqr,
        grad_codes="",
        codes="d",
        skips={"expanded": "expanded reflectors are not orthogonal"},
        errors=lambda t: [error(RuntimeError, "", t(2, 3), t(2), t(3, 1))],
    ),
    *[
        _op(name, _square, np.linalg.inv, errors=_SINGULAR, skips=_SINGULAR_MOVED)
        for name in ("linalg.inv", "inverse")
    ],
    _op(
        "linalg.inv_ex",
        _square,
        lambda x: (np.linalg.inv(x), np.zeros(x.shape[:-2])),
        errors=_BAD,
        grad_outputs=1,
        skips=_SINGULAR_MOVED,
    ),
    _op(
        "linalg.ldl_factor",
        _positive,
        None,
        check=_check_ldl,
        codes="d",
        grad_codes="",
        covers=("linalg_ldl_factor_ex", "linalg_ldl_solve"),
        errors=_BAD,
        skips={"expanded": "an expanded matrix is not symmetric"},
    ),
    _op(
        "linalg.lstsq",
        lambda t: [call(t(4, 3), t(4, 2))],
        None,
        check=_check_lstsq,
        grad_outputs=1,
        errors=lambda t: [error(RuntimeError, _TWO, t(2), t(2))],
        skips={"expanded": "an expanded matrix has no full rank"},
    ),
    _op(
        "linalg.lu",
        lambda t: [call(general(t, 3, 3)), call(t(4, 3))],
        factor_refs.lu,
        errors=_BAD_DIM,
    ),
    *[
        _op(
            name,
            lambda t: [call(general(t, 3, 3)), call(general(t, 2, 2, 2))],
            factor_refs.batched(*reference),
            errors=_BAD_DIM,
            skips=_SINGULAR_MOVED,
            grad_outputs=1,
            covers=("_lu_with_info",),
            op=op,
            aten_name=aten,
        )
        for name, op, aten, reference in [
            ("linalg.lu_factor", None, "", (factor_refs.lu_factor, 2)),
            ("linalg.lu_factor_ex", None, "", (factor_refs.lu_factor_with_info, 3)),
            ("lu", torch.lu, "_lu_with_info", (factor_refs.lu_factor, 2)),
        ]
    ],
    _op(
        "linalg.lu_solve",
        _lu_solve_samples,
        factor_refs.lu_solve,
        skips={"expanded": "expanded pivots are out of range"},
        errors=lambda t: [error((RuntimeError, TypeError), "", t(3, 3), t(3), t(3, 1))],
    ),
    _op(
        "lu_solve",
        _old_lu_solve_samples,
        lambda b, packed, pivots: factor_refs.lu_solve(packed, pivots, b),
        skips={"expanded": "expanded pivots are out of range"},
    ),
    _op(
        "lu_unpack",
        _unpack_samples,
        factor_refs.lu_unpack,
        skips={"expanded": "expanded pivots are out of range"},
        grad_outputs=3,
    ),
    *[
        _op(
            name,
            lambda t: [call(t(3, 3)), call(t(2, 2, 2))],
            _exp,
            errors=_BAD,
            covers=("linalg_matrix_exp",),
        )
        for name in ("matrix_exp", "linalg.matrix_exp")
    ],
    _op(
        "linalg.matrix_norm",
        lambda t: (
            [call(t(3, 4), o) for o in ("fro", "nuc", 1, -1, 2, -2, float("inf"))]
            + [call(t(2, 3, 4), "fro", (0, 2), True)]
        ),
        _matrix_norm,
        out_dtype="real",
        covers=("nuclear_norm",),
        errors=lambda t: [
            error(RuntimeError, "at least 2 dim|matrix", t(2)),
            error(RuntimeError, "not supported|order", t(2, 2), 3),
        ],
    ),
    _op(
        "linalg.norm",
        lambda t: [
            call(t(4)),
            call(t(3, 4)),
            call(t(4), 3),
            call(t(3, 4), "fro"),
            call(t(3, 4), 1),
            call(t(2, 3, 4), 2, 1),
        ],
        _norm,
        out_dtype="real",
        errors=lambda t: [error(RuntimeError, "", t(2, 2), 3)],
    ),
    *[
        _op(
            name,
            lambda t: [call(general(t, 2, 2), n) for n in (0, 1, 2, 3, -1)],
            lambda x, n: np.linalg.matrix_power(x, n),
            skips=_SINGULAR_MOVED,
            errors=lambda t: [error(RuntimeError, _SQUARE, t(2, 3), 2)],
        )
        for name in ("linalg.matrix_power", "matrix_power")
    ],
    _op(
        "linalg.matrix_rank",
        _rectangles,
        lambda x: np.linalg.matrix_rank(x),
        out_dtype="int64",
        grad_codes="",
        errors=_BAD_DIM,
    ),
    _op(
        "linalg.multi_dot",
        lambda t: [call([t(2, 3), t(3, 4), t(4, 2)]), call([t(3), t(3, 2)])],
        lambda ms: np.linalg.multi_dot(ms),
        errors=lambda t: [
            error(RuntimeError, "at least 2", [t(2, 2)]),
            error(RuntimeError, "", [t(2, 3), t(2, 3)]),
        ],
    ),
    *[
        _op(
            name,
            _rectangles,
            lambda x: np.linalg.pinv(x),
            errors=_BAD_DIM,
            skips={"expanded": "the rank of an expanded matrix is decided by rounding"},
        )
        for name in ("linalg.pinv", "pinverse")
    ],
    *[
        _op(
            name,
            lambda t: [call(t(4, 3)), call(t(2, 3, 3))],
            None,
            check=_check_qr,
            errors=_BAD_DIM,
        )
        for name in ("linalg.qr", "qr")
    ],
    _op(
        "linalg.solve",
        lambda t: [
            call(general(t, 3, 3), t(3)),
            call(general(t, 3, 3), t(3, 2)),
            call(general(t, 2, 2, 2), t(2, 2, 3)),
        ],
        _solve,
        skips=_SINGULAR_MOVED,
        errors=lambda t: [
            error(RuntimeError, _SQUARE, t(2, 3), t(2)),
            error(RuntimeError, "", t(2, 2), t(3, 1)),
            error(torch.linalg.LinAlgError, "singular", torch.zeros(2, 2, dtype=t.dtype), t(2)),
        ],
    ),
    _op(
        "linalg.solve_ex",
        lambda t: [call(general(t, 3, 3), t(3, 2))],
        lambda a, b: (_solve(a, b), np.zeros(a.shape[:-2])),
        grad_outputs=1,
        skips=_SINGULAR_MOVED,
    ),
    _op(
        "linalg.solve_triangular",
        lambda t: [
            call(triangular(t, 3, 3), t(3, 2), upper=False),
            call(general(t, 3, 3), t(3, 2), upper=True),
            call(triangular(t, 3, 3), t(2, 3), upper=False, left=False),
        ],
        _triangular,
        skips=_SINGULAR_MOVED,
        errors=lambda t: [error(RuntimeError, "", t(2, 3), t(2, 1), upper=True)],
    ),
    _op(
        "triangular_solve",
        lambda t: [call(t(3, 2), general(t, 3, 3))],
        lambda b, a: (_triangular(a, b, upper=True), a),
        grad_outputs=1,
        skips=_SINGULAR_MOVED,
    ),
    _op(
        "linalg.svd",
        lambda t: [call(t(4, 3)), call(t(2, 3, 3)), call(t(3, 4), full_matrices=False)],
        None,
        check=_check_svd,
        errors=_BAD_DIM,
        grad_op=_svd_invariant,
        skips={"layouts": _GAUGE},
        covers=("_linalg_svd",),
    ),
    _op(
        "svd",
        lambda t: [call(t(4, 3)), call(t(2, 3, 3))],
        None,
        check=_check_old_svd,
        errors=_BAD_DIM,
        grad_op=_old_svd_invariant,
        skips={"layouts": _GAUGE},
    ),
    _op(
        "linalg.svdvals",
        _rectangles,
        lambda x: np.linalg.svd(x, compute_uv=False),
        out_dtype="real",
        errors=_BAD_DIM,
    ),
    _op(
        "linalg.tensorinv",
        lambda t: [call(general(t, 6, 6).reshape(2, 3, 6), 2)],
        lambda x, ind: np.linalg.tensorinv(x, ind),
        skips=_SINGULAR_MOVED,
        big=lambda t: call(_unscaled(t, 120, 120).reshape(10, 12, 120), 2),
        errors=lambda t: [error(RuntimeError, "", t(2, 3), 1)],
        grad_samples=lambda t: [
            call(general(t, 4, 4).detach().reshape(2, 2, 4).requires_grad_(), 2)
        ],
    ),
    _op(
        "linalg.tensorsolve",
        lambda t: [
            call(
                general(t, 6, 6).detach().reshape(2, 3, 6).requires_grad_(t.requires_grad), t(2, 3)
            )
        ],
        lambda a, b: np.linalg.tensorsolve(a, b),
        skips=_SINGULAR_MOVED,
        big=lambda t: call(_unscaled(t, 120, 120).reshape(10, 12, 120), t(10, 12)),
    ),
    _op(
        "linalg.vander",
        lambda t: [call(t(4)), call(t(2, 3), N=5)],
        lambda x, N=None: x[..., None] ** np.arange(N or x.shape[-1]),
        codes="dic",
        large_elements=600,
        errors=lambda t: [error(RuntimeError, "at least one|N must be|dimension", t(2), N=1)],
    ),
    _op(
        "vander",
        lambda t: [call(t(4)), call(t(4), 3, True)],
        lambda x, N=None, increasing=False: np.vander(x, N, increasing),
        codes="dic",
        large_elements=600,
    ),
    _op(
        "linalg.diagonal",
        lambda t: [call(t(3, 4)), call(t(2, 3, 4), offset=1)],
        lambda x, offset=0: np.diagonal(x, offset, -2, -1),
        codes="fibc",
        out_dtype="same",
        errors=lambda t: [error(IndexError, "Dimension out of range", t(2))],
    ),
]
