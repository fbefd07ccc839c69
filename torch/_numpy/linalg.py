"""numpy.linalg on torch tensors."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable

import torch
from torch._numpy import _dtypes
from torch._numpy._util import cast, normalize_axis_tuple, on_tensors


class LinAlgError(Exception):
    """A matrix that the function is not defined for."""


def _floats(*tensors: torch.Tensor) -> list[torch.Tensor]:
    """Tensors in one floating dtype that the solvers know."""
    kind = _dtypes.common([t.dtype for t in tensors])
    if _dtypes.category(kind) < 2:
        kind = _dtypes.defaults.float
    if kind == torch.float16:
        kind = torch.float32
    return [cast(t, kind) for t in tensors]


def _raising(function: Callable) -> Callable:
    """Errors of the solvers as LinAlgError."""

    @functools.wraps(function)
    def wrapper(*args: object, **kwargs: object) -> object:
        try:
            return function(*args, **kwargs)
        except torch._C._LinAlgError as error:
            raise LinAlgError(*error.args) from error

    return wrapper


def _square(a: torch.Tensor) -> torch.Tensor:
    if a.dim() < 2:
        raise LinAlgError(
            f"{a.dim()}-dimensional array given. Array must be at least two-dimensional"
        )
    if a.shape[-1] != a.shape[-2]:
        raise LinAlgError("Last 2 dimensions of the array must be square")
    return _floats(a)[0]


@_raising
@on_tensors("a")
def matrix_power(a, n) -> torch.Tensor:
    return torch.linalg.matrix_power(_square(a), n)


@_raising
def multi_dot(inputs: object, *, out: object = None) -> object:
    return _multi_dot(list(inputs), out=out)  # type: ignore[call-overload]


@on_tensors(many=("inputs",))
def _multi_dot(inputs, out=None) -> torch.Tensor:
    if len(inputs) < 2:
        raise ValueError("Expecting at least two arrays.")
    return torch.linalg.multi_dot(_floats(*inputs))


@_raising
@on_tensors("a", "b")
def solve(a, b) -> torch.Tensor:
    _square(a)
    return torch.linalg.solve(*_floats(a, b))


@_raising
@on_tensors("a", "b")
def lstsq(a, b, rcond=None) -> tuple:
    a, b = _floats(a, b)
    # Singular values give rank and residuals also where the matrix lacks rank.
    driver = "gelss"
    if a.device.type == "cuda":
        driver = "gels"
    line = b.dim() == 1
    found = torch.linalg.lstsq(a, b.unsqueeze(-1) if line else b, rcond=rcond, driver=driver)
    solution, residuals, rank, values = found
    return solution.squeeze(-1) if line else solution, residuals, rank, values


@_raising
@on_tensors("a")
def inv(a) -> torch.Tensor:
    return torch.linalg.inv(_square(a))


@_raising
@on_tensors("a", "rcond")
def pinv(a, rcond=1e-15, hermitian=False) -> torch.Tensor:
    return torch.linalg.pinv(_floats(a)[0], rtol=rcond, hermitian=hermitian)


@_raising
@on_tensors("a")
def tensorinv(a, ind=2) -> torch.Tensor:
    return torch.linalg.tensorinv(_floats(a)[0], ind)


@_raising
@on_tensors("a", "b")
def tensorsolve(a, b, axes=None) -> torch.Tensor:
    a, b = _floats(a, b)
    return torch.linalg.tensorsolve(a, b, axes)


@_raising
@on_tensors("a")
def det(a) -> torch.Tensor:
    return torch.linalg.det(_square(a))


@_raising
@on_tensors("a")
def slogdet(a) -> tuple:
    return tuple(torch.linalg.slogdet(_square(a)))


@_raising
@on_tensors("x")
def cond(x, p=None) -> torch.Tensor:
    (x,) = _floats(x)
    if x.numel() == 0:
        raise LinAlgError("cond is not defined on empty arrays")
    found = torch.linalg.cond(x, p)
    return torch.where(torch.isnan(found) & ~torch.isnan(x).any(-1).any(-1), math.inf, found)


@_raising
@on_tensors("a", "tol")
def matrix_rank(a, tol=None, hermitian=False) -> torch.Tensor:
    (a,) = _floats(a)
    if a.dim() < 2:
        return (a != 0).any().to(torch.int64)
    if tol is None:
        return torch.linalg.matrix_rank(a, hermitian=hermitian)
    return torch.linalg.matrix_rank(a, atol=tol, rtol=0, hermitian=hermitian)


@_raising
@on_tensors("x")
def norm(x, ord=None, axis=None, keepdims=False) -> torch.Tensor:
    (x,) = _floats(x)
    if axis is not None:
        axis = normalize_axis_tuple(axis, x.dim())
        if len(axis) > 2:
            raise ValueError("Improper number of dimensions to norm.")
    known = (None, "fro", "nuc", math.inf, -math.inf, 1, -1, 2, -2)
    dims = x.dim() if axis is None else len(axis)
    if (dims == 1 and isinstance(ord, str)) or (dims == 2 and ord is not None and ord not in known):
        raise ValueError(f"Invalid norm order {ord!r}.")
    return torch.linalg.norm(x, ord=ord, dim=axis, keepdim=keepdims)


@_raising
@on_tensors("a")
def cholesky(a) -> torch.Tensor:
    return torch.linalg.cholesky(_square(a))


@_raising
@on_tensors("a")
def qr(a, mode="reduced") -> object:
    if mode not in ("reduced", "complete", "r"):
        raise ValueError(f"Unrecognized mode '{mode}'")
    found = torch.linalg.qr(_floats(a)[0], mode)
    return found.R if mode == "r" else tuple(found)


@_raising
@on_tensors("a")
def svd(a, full_matrices=True, compute_uv=True, hermitian=False) -> object:
    (a,) = _floats(a)
    if not compute_uv:
        return torch.linalg.svdvals(a)
    return tuple(torch.linalg.svd(a, full_matrices=full_matrices))


def _real_if_possible(values: torch.Tensor, *others: torch.Tensor) -> tuple:
    """Results for a matrix of real numbers are real where all their imaginary parts are zero."""
    if values.is_complex() and bool((values.imag == 0).all()):
        return (values.real, *(o.real for o in others))
    return (values, *others)


@_raising
@on_tensors("a")
def eig(a) -> tuple:
    a = _square(a)
    values, vectors = torch.linalg.eig(a)
    return (values, vectors) if a.is_complex() else _real_if_possible(values, vectors)


@_raising
@on_tensors("a")
def eigh(a, UPLO="L") -> tuple:
    return tuple(torch.linalg.eigh(_square(a), UPLO=UPLO))


@_raising
@on_tensors("a")
def eigvals(a) -> torch.Tensor:
    a = _square(a)
    values = torch.linalg.eigvals(a)
    return values if a.is_complex() else _real_if_possible(values)[0]


@_raising
@on_tensors("a")
def eigvalsh(a, UPLO="L") -> torch.Tensor:
    return torch.linalg.eigvalsh(_square(a), UPLO=UPLO)
