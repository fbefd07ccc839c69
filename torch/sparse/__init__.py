"""Functions on sparse tensors that differ from those of the same name in torch, mostly in that
gradients keep the pattern of their input."""

from __future__ import annotations

import functools

import torch
from torch import _C
from torch.sparse._legacy_types import (
    BFloat16Tensor,
    ByteTensor,
    CharTensor,
    DoubleTensor,
    FloatTensor,
    HalfTensor,
    IntTensor,
    LongTensor,
    ShortTensor,
)

__all__ = [
    "BFloat16Tensor",
    "ByteTensor",
    "CharTensor",
    "DoubleTensor",
    "FloatTensor",
    "HalfTensor",
    "IntTensor",
    "LongTensor",
    "ShortTensor",
    "addmm",
    "as_sparse_gradcheck",
    "check_sparse_tensor_invariants",
    "log_softmax",
    "mm",
    "sampled_addmm",
    "softmax",
    "spdiags",
    "sum",
]


def _op(name):
    return getattr(_C._sparse, name)


def addmm(input, mat1, mat2, *, beta=1, alpha=1) -> torch.Tensor:
    """beta * input + alpha * (mat1 @ mat2) with a sparse mat1; its gradient is sparse too."""
    return _op("_sparse_addmm")(input, mat1, mat2, beta=beta, alpha=alpha)


def mm(sparse, dense, reduce=None):
    """The product of two matrices, the first sparse; its gradient is sparse too."""
    if reduce is None:
        return _op("_sparse_mm")(sparse, dense)
    return _op("_sparse_mm")(sparse, dense, reduce)


def sampled_addmm(input, mat1, mat2, *, beta=1.0, alpha=1.0, out=None) -> torch.Tensor:
    """alpha * (mat1 @ mat2) where input (CSR) has elements, plus beta * input."""
    result = _op("sparse_sampled_addmm")(input, mat1, mat2, beta=beta, alpha=alpha)
    return result if out is None else out.copy_(result)


def softmax(input, dim, dtype=None) -> torch.Tensor:
    """Softmax along dim over the elements that are stored; the others count as -inf."""
    return _op("_sparse_softmax")(input, dim, dtype=dtype)


def log_softmax(input, dim, dtype=None) -> torch.Tensor:
    """The logarithm of softmax."""
    return _op("_sparse_log_softmax")(input, dim, dtype=dtype)


def spdiags(diagonals, offsets, shape, layout=None) -> torch.Tensor:
    """A sparse matrix with the rows of diagonals along the diagonals that offsets name."""
    return _op("_spdiags")(diagonals, offsets, shape, layout)


def sum(input, dim=None, dtype=None):
    """The sum over all or the given dimensions; over all sparse ones it is a strided tensor."""
    if dim is None:
        if dtype is None:
            return torch._sparse_sum(input)
        return torch._sparse_sum(input, dtype=dtype)
    dim = [dim] if isinstance(dim, int) else list(dim)
    if dtype is None:
        return torch._sparse_sum(input, dim)
    return torch._sparse_sum(input, dim, dtype=dtype)


class check_sparse_tensor_invariants:
    """Whether constructors that do not check look at every index after all. As a context manager
    or decorator it says so for a block or a function."""

    _enabled = False

    def __init__(self, enable=True) -> None:
        self.state = enable
        self.saved_state = None

    @staticmethod
    def is_enabled() -> bool:
        """Whether the checks are on."""
        return check_sparse_tensor_invariants._enabled

    @staticmethod
    def enable() -> None:
        """Turns the checks on."""
        check_sparse_tensor_invariants._enabled = True

    @staticmethod
    def disable() -> None:
        """Turns the checks off."""
        check_sparse_tensor_invariants._enabled = False

    def __enter__(self) -> None:
        if self.saved_state is not None:
            raise RuntimeError(
                "This context manager instance is already activated. Use a different context "
                "manager instance for context nesting."
            )
        self.saved_state = self.is_enabled()
        check_sparse_tensor_invariants._enabled = self.state

    def __exit__(self, type, value, traceback) -> None:
        check_sparse_tensor_invariants._enabled = self.saved_state
        self.saved_state = None

    def __call__(self, function):
        @functools.wraps(function)
        def checked(*args, **kwargs):
            with type(self)(self.state):
                return function(*args, **kwargs)

        return checked


def as_sparse_gradcheck(gradcheck):
    """A gradcheck that takes functions of sparse tensors: they are given the same tensors made from
    their values, and their results are made dense."""

    @functools.wraps(gradcheck)
    def checked(func, inputs, **kwargs):
        masked = kwargs.pop("masked", False)
        inputs = inputs if isinstance(inputs, (list, tuple)) else (inputs,)
        values, makers = [], []
        for given in inputs:
            if not isinstance(given, torch.Tensor) or given.layout is torch.strided:
                values.append(given)
                makers.append(lambda same: same)
                continue
            plain = given.detach()
            plain = plain.coalesce() if plain.layout is torch.sparse_coo else plain
            values.append(plain.values().clone().requires_grad_(given.requires_grad))
            makers.append(functools.partial(_with_values, plain))

        def dense(*flat):
            outputs = func(*(make(v) for make, v in zip(makers, flat, strict=True)))
            several = isinstance(outputs, (list, tuple))
            outputs = [
                o.to_dense(masked_grad=masked)
                if isinstance(o, torch.Tensor) and o.layout is not torch.strided
                else o
                for o in (outputs if several else [outputs])
            ]
            return tuple(outputs) if several else outputs[0]

        return gradcheck(dense, tuple(values), **kwargs)

    return checked


def _with_values(pattern, values):
    if pattern.layout is torch.sparse_coo:
        return torch.sparse_coo_tensor(pattern.indices(), values, pattern.shape, is_coalesced=True)
    names = torch._tensor_str._COMPRESSED_NAMES[str(pattern.layout).replace("torch.", "")]
    indices = (getattr(pattern, name)() for name in names)
    return torch.sparse_compressed_tensor(*indices, values, pattern.shape, layout=pattern.layout)


_MISSING = ("spsolve",)
# Tensors that few programs use come with their module.
_SEMI_STRUCTURED = (
    "SparseSemiStructuredTensor",
    "SparseSemiStructuredTensorCUSPARSELT",
    "SparseSemiStructuredTensorCUTLASS",
    "to_sparse_semi_structured",
)


class _NotInThisBuild(NotImplementedError, AttributeError):
    """A public name that is not implemented; hasattr() says that it is not there."""


def __getattr__(name):
    if name == "semi_structured" or name in _SEMI_STRUCTURED:
        import importlib

        module = importlib.import_module("torch.sparse.semi_structured")
        return module if name == "semi_structured" else getattr(module, name)
    if name in _MISSING:
        raise _NotInThisBuild(f"torch.sparse.{name} is not implemented")
    raise AttributeError(f"module 'torch.sparse' has no attribute '{name}'")
