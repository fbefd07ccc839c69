"""What the masked functions share: masks, neutral values, dimensions and layouts.

A sparse input or mask is computed with as the strided tensor it stands for, and the result gets the
input's layout with the elements that the mask left. What an element that is not stored means
differs from one reduction to the next: a sparse input of all but sums needs an explicit mask."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TypeVar

import torch

_Result = TypeVar("_Result", bound=Callable[..., torch.Tensor])


def strided(t: torch.Tensor) -> torch.Tensor:
    """The tensor with all its elements."""
    return t if t.layout is torch.strided else t.to_dense()


def pattern(t: torch.Tensor) -> torch.Tensor:
    """True where a sparse tensor has an element, as a strided tensor."""
    if t.layout is torch.sparse_coo:
        t = t.coalesce()
        ones = torch.ones_like(t.values(), dtype=torch.bool)
        return torch.sparse_coo_tensor(t.indices(), ones, t.shape).to_dense()
    return torch.ones_like(t, dtype=torch.bool).to_dense()


def in_layout(t: torch.Tensor, mask: torch.Tensor, layout: torch.layout) -> torch.Tensor:
    """A strided tensor in another layout, with the elements that the mask selects."""
    if layout is torch.strided:
        return t
    kept = mask.expand(t.shape).to_sparse(layout=layout)
    return t.sparse_mask(kept)


def layouts(fn: _Result) -> _Result:
    """Gives a function of strided tensors its form for sparse inputs and masks."""

    @functools.wraps(fn)
    def run(
        input: torch.Tensor, *args: object, mask: torch.Tensor | None = None, **kwargs: object
    ) -> torch.Tensor:
        sparse_mask = mask is not None and mask.layout is not torch.strided
        if input.layout is torch.strided:
            return fn(input, *args, mask=mask.to_dense() if sparse_mask else mask, **kwargs)
        name, layout = fn.__name__, input.layout
        if mask is None and name != "sum":
            kind = str(layout).removeprefix("torch.")
            raise ValueError(f"masked {name} expects explicit mask for {kind} tensor input")
        used = pattern(input) if mask is None else mask
        dense = input.to_dense()
        result = fn(dense, *args, mask=strided(used), **kwargs)
        if layout is not torch.sparse_coo and result.ndim != input.ndim:
            raise RuntimeError(
                "reduction operations on CSR tensors with keepdim=False is unsupported"
            )
        left = _output_mask(fn, dense, *args, mask=strided(used), **kwargs)
        return in_layout(result, left, layout)

    return run  # type: ignore[return-value]


def checked_mask(input, mask) -> torch.Tensor | None:
    """The mask as booleans of the input's shape, or None when everything is selected."""
    if mask is None:
        return None
    if mask.ndim > input.ndim:
        raise IndexError(
            "_input_mask expected broadcastable mask (got mask dimensionality higher than of the "
            "input)"
        )
    return torch.broadcast_to(mask, input.shape).to(torch.bool)


def combined_mask(input, mask) -> tuple[torch.Tensor, torch.Tensor | None]:
    """A plain input beside its mask. A masked tensor brings one of its own."""
    from torch.masked.maskedtensor import is_masked_tensor

    if is_masked_tensor(input):
        own, input = input.get_mask(), input.get_data()
        mask = own if mask is None else own & checked_mask(input, mask)
    return input, checked_mask(input, mask)


def filled(input, mask, value) -> torch.Tensor:
    """The input with `value` where the mask does not select."""
    if mask is None:
        return input
    return torch.where(mask, input, torch.tensor(value, dtype=input.dtype, device=input.device))


def as_dtype(input, dtype) -> torch.Tensor:
    """The input in that dtype."""
    return input if input.dtype == dtype else input.to(dtype)


def lowest(dtype):
    """A value that no maximum chooses over another."""
    if dtype.is_floating_point or dtype.is_complex:
        return float("-inf")
    return 0 if dtype is torch.bool else torch.iinfo(dtype).min


def highest(dtype):
    """A value that no minimum chooses over another."""
    if dtype.is_floating_point or dtype.is_complex:
        return float("inf")
    return 1 if dtype is torch.bool else torch.iinfo(dtype).max


def dims_of(dim, ndim):
    """The dimensions to reduce, as sorted non-negative numbers; all of them for None and ()."""
    if dim is None or dim == ():
        return tuple(range(ndim))
    rank = max(ndim, 1)
    found = []
    for d in (dim,) if isinstance(dim, int) else dim:
        if d < -rank or d >= rank:
            raise IndexError(
                f"Dimension out of range (expected to be in range of [{-rank}, {rank - 1}], but "
                f"got {d})"
            )
        if d % rank in found:
            raise RuntimeError(f"dim={d % rank} appears multiple times in the list of dims")
        found.append(d % rank)
    return tuple(sorted(found)) if ndim else ()


# ---- the same by name, for programs that compute with masks themselves

_NORMALIZATIONS = frozenset(["softmax", "log_softmax", "softmin", "normalize"])
_SCANS = frozenset(["cumsum", "cumprod"])
_REDUCTIONS = frozenset(
    "sum prod amax amin argmax argmin mean median logsumexp norm var std".split()
)
_canonical_dim = dims_of


def _input_mask(
    input: torch.Tensor, *args: object, mask: torch.Tensor | None = None, **kwargs: object
) -> torch.Tensor:
    """The mask as booleans in the shape and layout of the input."""
    if mask is None:
        raise ValueError("_input_mask requires explicit mask")
    if mask.shape == input.shape and mask.layout == input.layout:
        return mask.to(torch.bool)
    wide = checked_mask(input, strided(mask))
    return wide if input.layout is torch.strided else wide.to_sparse(layout=input.layout)


def _output_mask(
    op: Callable[..., torch.Tensor], input: torch.Tensor, *args: object, **kwargs: object
) -> torch.Tensor:
    """Which elements of op's result come from elements that the mask selects."""
    name = op.__name__
    selected = _input_mask(input, mask=kwargs.get("mask"))
    if name in _NORMALIZATIONS or name in _SCANS:
        return selected
    if name not in _REDUCTIONS:
        raise ValueError(f"_output_mask expected masked operation (got callable {name})")
    place = 1 if name == "norm" else 0
    dim = args[place] if len(args) > place else kwargs.get("dim", -1 if name == "median" else None)
    out = strided(selected)
    for d in reversed(dims_of(dim, input.ndim)):
        out = out.any(d, keepdim=bool(kwargs.get("keepdim", False)))
    return out


def _reduction_identity(op_name: str, input: torch.Tensor, *args: object) -> torch.Tensor | None:
    """The value that takes no part in a reduction; None where there is none."""
    dtype, op_name = input.dtype, op_name.rpartition(".")[2]
    if op_name in ("sum", "cumsum", "nansum"):
        value: float = 0
    elif op_name in ("prod", "cumprod"):
        value = 1
    elif op_name in ("amax", "argmax", "logaddexp", "logsumexp"):
        value = lowest(dtype)
    elif op_name in ("amin", "argmin"):
        value = highest(dtype)
    elif op_name == "norm":
        least = bool(args) and args[0] is not None and float(args[0]) == float("-inf")
        value = highest(dtype) if least else 0
    elif op_name == "median":
        value = float("nan")
    elif op_name in ("mean", "var", "std"):
        return None
    else:
        raise NotImplementedError(f"identity of {op_name} on {dtype} input")
    return torch.tensor(value, dtype=dtype, device=input.device)


def _combine_input_and_mask(
    op: Callable[..., torch.Tensor],
    input: torch.Tensor,
    mask: torch.Tensor | None,
    *args: object,
) -> torch.Tensor:
    """The input with op's neutral value where the mask does not select."""
    if mask is None:
        return input
    neutral = _reduction_identity(op.__name__, input, *args)
    selected = _input_mask(input, mask=mask)
    if neutral is None:
        raise ValueError(f"{op.__name__} has no value that takes no part in it")
    return _where(selected, input, neutral)


def _where(mask: torch.Tensor, input: torch.Tensor, fill_value: torch.Tensor) -> torch.Tensor:
    """The input where the mask is true, fill_value where it is not. With a sparse mask, of the
    elements that are true in it, or part of a dense slice of which one is."""
    if mask.layout is torch.strided:
        return torch.where(mask, input, fill_value)
    if mask.layout is torch.sparse_coo:
        if input.layout is not torch.sparse_coo:
            raise AssertionError(f"input.layout must be sparse_coo, got {input.layout}")
        mask = mask.coalesce()
        used = mask.values().flatten(1).any(1) if mask.dense_dim() else mask.values()
        mask = torch.sparse_coo_tensor(
            mask.indices()[:, used], mask.values()[used], mask.shape, is_coalesced=True
        )
        found = input.coalesce().sparse_mask(mask)
        values = torch.where(mask.values(), found.values(), fill_value)
        return torch.sparse_coo_tensor(mask.indices(), values, mask.shape, is_coalesced=True)
    mask = mask.to_sparse_coo()
    mask = torch.sparse_coo_tensor(
        mask.indices()[:, mask.values()], mask.values()[mask.values()], mask.shape,
        is_coalesced=True,
    ).to_sparse_csr()  # fmt: skip
    return strided(input).sparse_mask(mask)
