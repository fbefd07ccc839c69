"""Records of the matmul family: matrix products in all their forms."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

import torch

from .core import Maker, OpInfo, call, error

TOL = {torch.float16: (2e-2, 2e-2), torch.bfloat16: (1e-1, 1e-1), torch.float32: (1e-4, 1e-5)}


def _op(name, samples, ref, codes="fic", **options) -> OpInfo:
    options.setdefault("out_dtype", "same")
    options.setdefault("tolerances", TOL)
    return OpInfo(name, samples, ref, codes, **options)


def _fused(product) -> Callable[..., object]:
    """beta * input + alpha * product of the rest."""
    return lambda c, a, b, beta=1, alpha=1: beta * c + alpha * product(a, b)


def _bilinear(a, b, w, bias=None) -> np.ndarray:
    out = np.einsum("...i,kij,...j->...k", a, w, b)
    return out if bias is None else out + bias


def _linear(x, w, bias=None) -> np.ndarray:
    return x @ w.T if bias is None else x @ w.T + bias


def _tensordot(a, b, dims=2) -> np.ndarray:
    return np.tensordot(a, b, dims)


def _mismatch(*shapes) -> Callable[..., object]:
    pattern = (
        "cannot be multiplied|mismatch|same size|inconsistent|[Ee]xpected|must match|must have"
    )
    return lambda t: [error(RuntimeError, pattern, *[t(*s) for s in shapes])]


def _and_dtype(*shapes) -> Callable[..., object]:
    bad = _mismatch(*shapes)

    def errors(t):
        first = bad(t)[0]
        good = first.sample_input
        mixed = [good.input, *good.args]
        mixed[-1] = mixed[-1].double()
        return [first, error(RuntimeError, "", *mixed)]

    return errors


_EINSUM = [
    ("ij,jk->ik", (2, 3), (3, 4)),
    ("bij,bjk->bik", (2, 3, 2), (2, 2, 3)),
    ("ii->i", (3, 3)),
    ("ij->ji", (2, 3)),
    ("i,j->ij", (2,), (3,)),
    ("...i,i->...", (2, 3), (3,)),
    ("ij,jk,kl->il", (2, 3), (3, 2), (2, 4)),
    ("ij->", (2, 3)),
]

RECORDS = [
    _op(
        "mm",
        lambda t: [
            call(t(2, 3), t(3, 4)),
            call(t(0, 3), t(3, 2)),
            call(t(2, 0), t(0, 3)),
            call(t(7, 5), t(5, 9)),
        ],
        np.matmul,
        supports_out=True,
        errors=_and_dtype((2, 3), (2, 3)),
    ),
    _op(
        "bmm",
        lambda t: [
            call(t(2, 2, 3), t(2, 3, 4)),
            call(t(0, 2, 3), t(0, 3, 2)),
            call(t(3, 5, 7), t(3, 7, 4)),
        ],
        np.matmul,
        supports_out=True,
        errors=_and_dtype((2, 2, 3), (2, 2, 3)),
    ),
    _op(
        "matmul",
        lambda t: [
            call(t(2, 3), t(3, 4)),
            call(t(3), t(3)),
            call(t(2, 3), t(3)),
            call(t(3), t(3, 2)),
            call(t(2, 1, 2, 3), t(3, 3, 2)),
            call(t(2, 2, 3), t(3)),
            call(t(0, 3), t(3, 2)),
        ],
        np.matmul,
        big=lambda t: call(t(6, 100, 150), t(150, 120)),
        supports_out=True,
        aliases=("linalg.matmul",),
        covers=("linalg_matmul",),
        errors=lambda t: [
            *_and_dtype((2, 3), (2, 3))(t),
            error(RuntimeError, "0D|at least 1D", t(), t(2)),
        ],
    ),
    OpInfo(
        "__rmatmul__",
        lambda t: [call(t(3, 4), t(2, 3)), call(t(3), t(3))],
        lambda a, b: b @ a,
        "fc",
        op=torch.Tensor.__rmatmul__,
        aten_name="matmul",
        tolerances=TOL,
        inplace=None,
        generic_errors=False,
    ),
    _op(
        "addmm",
        lambda t: [call(t(2, 4), t(2, 3), t(3, 4)), call(t(4), t(2, 3), t(3, 4), beta=2, alpha=3)],
        _fused(np.matmul),
        supports_out=True,
        errors=_and_dtype((2, 4), (2, 3), (2, 4)),
    ),
    _op(
        "addmv",
        lambda t: [call(t(2), t(2, 3), t(3)), call(t(1), t(2, 3), t(3), beta=2, alpha=3)],
        _fused(np.matmul),
        supports_out=True,
        errors=_and_dtype((2,), (2, 3), (2,)),
    ),
    _op(
        "addr",
        lambda t: [call(t(2, 3), t(2), t(3)), call(t(3), t(2), t(3), beta=2, alpha=3)],
        _fused(np.outer),
        "fic",
        supports_out=True,
        errors=_mismatch((2, 3), (2,), (2,)),
    ),
    _op(
        "addbmm",
        lambda t: [
            call(t(2, 4), t(3, 2, 3), t(3, 3, 4)),
            call(t(4), t(3, 2, 3), t(3, 3, 4), beta=2, alpha=3),
        ],
        _fused(lambda a, b: (a @ b).sum(0)),
        errors=_mismatch((2, 4), (3, 2, 3), (2, 3, 4)),
    ),
    _op(
        "baddbmm",
        lambda t: [
            call(t(3, 2, 4), t(3, 2, 3), t(3, 3, 4)),
            call(t(2, 4), t(3, 2, 3), t(3, 3, 4), beta=2, alpha=3),
        ],
        _fused(np.matmul),
        supports_out=True,
        errors=_mismatch((3, 2, 4), (3, 2, 3), (2, 3, 4)),
    ),
    _op(
        "dot",
        lambda t: [call(t(3), t(3)), call(t(0), t(0)), call(t(67), t(67))],
        np.dot,
        supports_out=True,
        errors=lambda t: [
            error(RuntimeError, "inconsistent|same", t(2), t(3)),
            error(RuntimeError, "1D tensors", t(2, 2), t(2)),
            error(RuntimeError, "same dtype|dtype", t(2), t(2).double()),
        ],
    ),
    _op(
        "vdot",
        lambda t: [call(t(3), t(3)), call(t(67), t(67))],
        np.vdot,
        supports_out=True,
        errors=lambda t: [
            error(RuntimeError, "inconsistent|same", t(2), t(3)),
            error(RuntimeError, "1D tensors", t(2, 2), t(2)),
        ],
    ),
    _op(
        "mv",
        lambda t: [call(t(2, 3), t(3)), call(t(0, 3), t(3)), call(t(2, 0), t(0))],
        np.matmul,
        supports_out=True,
        errors=_and_dtype((2, 3), (2,)),
    ),
    _op(
        "outer",
        lambda t: [call(t(2), t(3)), call(t(0), t(3))],
        np.outer,
        "fibc",
        supports_out=True,
        aliases=("ger",),
        big=lambda t: call(_plain(t)(500), t(600)),
        errors=lambda t: [error(RuntimeError, "1-D|1D", t(2, 2), t(2))],
    ),
    _op(
        "inner",
        lambda t: [call(t(2, 3), t(4, 3)), call(t(3), t(3)), call(t(), t(2))],
        np.inner,
        supports_out=True,
        errors=lambda t: [error(RuntimeError, "last dimension", t(2, 3), t(2, 2))],
    ),
    _op(
        "kron",
        lambda t: [call(t(2, 3), t(2, 2)), call(t(2), t(2, 2)), call(t(), t(2))],
        np.kron,
        "fibc",
        supports_out=True,
        big=lambda t: call(_plain(t)(20, 30), t(20, 30)),
    ),
    _op(
        "tensordot",
        lambda t: [
            call(t(2, 3, 4), t(3, 4, 2)),
            call(t(2, 3), t(2, 4), ([0], [0])),
            call(t(2), t(3), 0),
        ],
        lambda a, b, dims=2: _tensordot(a, b, dims),
        "fc",
        op=lambda a, b, dims=2: torch.tensordot(a, b, dims=dims),
        big=lambda t: call(_plain(t)(60, 20, 30), t(20, 30, 50)),
        errors=lambda t: [error(RuntimeError, "", t(2, 3), t(2, 4), ([1], [0]))],
    ),
    _op(
        "chain_matmul",
        lambda t: [call(t(2, 3), t(3, 4), t(4, 2))],
        lambda *m: np.linalg.multi_dot(m),
        "fc",
        errors=lambda t: [error(RuntimeError, "", t(2, 3), t(2, 4))],
    ),
    _op(
        "linalg.vecdot",
        lambda t: [call(t(2, 3), t(2, 3)), call(t(2, 3), t(3)), call(t(2, 3), t(2, 3), dim=0)],
        lambda a, b, dim=-1: (a.conj() * b).sum(axis=dim),
        "fc",
        supports_out=True,
        errors=lambda t: [error(RuntimeError, "must match|inconsistent", t(2), t(3))],
    ),
    *[
        _op(
            "einsum",
            lambda t, e=equation, s=shapes: [call(e, *[t(*shape) for shape in s])],
            lambda e, *ts: np.einsum(e, *ts),
            "fc",
            variant_test_name=equation,
            generic_errors=False,
            big=(lambda t, e=equation: call(e, _plain(t)(500), t(600)))
            if equation == "i,j->ij"
            else None,
            errors=lambda t: [
                error(RuntimeError, "", "ij,jk", t(2, 3), t(4, 2)),
                error(RuntimeError, "", "i", t(2, 3)),
                error(RuntimeError, "", "ij->ik", t(2, 3)),
            ],
        )
        for equation, *shapes in _EINSUM
    ],
    _op(
        "nn.functional.linear",
        lambda t: [
            call(t(2, 3), t(4, 3)),
            call(t(2, 5, 3), t(4, 3), t(4)),
            call(t(3), t(4, 3), t(4)),
        ],
        _linear,
        "fic",
        aten_name="linear",
        errors=_and_dtype((2, 3), (4, 2)),
    ),
    _op(
        "nn.functional.bilinear",
        lambda t: [call(t(2, 3), t(2, 4), t(2, 3, 4)), call(t(2, 3), t(2, 4), t(2, 3, 4), t(2))],
        _bilinear,
        "fc",
        aten_name="bilinear",
        big=lambda t: call(_plain(t)(200, 40), t(200, 50), t(30, 40, 50)),
        errors=lambda t: [error(RuntimeError, "", t(2, 3), t(2, 4), t(2, 3, 3))],
    ),
]


def _plain(t) -> Maker:
    t.scale = 1
    return t
