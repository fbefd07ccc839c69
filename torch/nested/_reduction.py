"""Reductions and other calls along a dimension of jagged nested tensors.

A dimension that is not ragged is one of the values, with another number. Along the ragged
dimension sums are gathered by component number; extrema and the like work on the padded form with a
neutral element; everything else runs component by component. Reducing the batch without the ragged
dimension has no meaning, as the components do not line up."""

from __future__ import annotations

import torch
from torch.nested._jagged import NestedTensor
from torch.nested._registry import implements, name_of, not_implemented, wrap_dim


def _lowest(dtype):
    if dtype == torch.bool:
        return False
    return float("-inf") if dtype.is_floating_point else torch.iinfo(dtype).min


def _highest(dtype):
    if dtype == torch.bool:
        return True
    return float("inf") if dtype.is_floating_point else torch.iinfo(dtype).max


# What padding does not change the result of a reduction along the ragged dimension.
_NEUTRAL = {
    "prod": lambda dtype: 1,
    "amax": _lowest,
    "max": _lowest,
    "argmax": _lowest,
    "amin": _highest,
    "min": _highest,
    "argmin": _highest,
    "any": lambda dtype: 0,
    "all": lambda dtype: 1,
    "logsumexp": lambda dtype: float("-inf"),
    "nansum": lambda dtype: 0,
    "count_nonzero": lambda dtype: 0,
}


def _dims(dim, ndim) -> list[int] | None:
    """The reduced dimensions as ascending numbers; none stands for all."""
    if dim is None or (isinstance(dim, (tuple, list)) and len(dim) == 0):
        return None
    found = [wrap_dim(d, ndim) for d in (dim if isinstance(dim, (tuple, list)) else (dim,))]
    if len(set(found)) != len(found):
        raise RuntimeError(f"dim appears multiple times in the list of dims: {tuple(dim)}")
    return sorted(found)


def reduce(func, input, dim, keepdim, one, **options):
    """A reduction over `dim`; `one`: the function takes a single dimension, not a list."""
    name, ragged_idx = name_of(func), input._ragged_idx
    dims = _dims(dim, input.ndim)
    if dims is None:
        return _apply(func, input._packed(), None, keepdim, one, options)
    if 0 in dims and ragged_idx not in dims:
        raise RuntimeError(
            f"{name}(): reducing along the batch dimension but not the ragged dimension is not "
            "supported for nested tensors"
        )
    inner = [d - 1 for d in dims if d > 0]
    if 0 in dims:
        found = _apply(func, input._packed(), inner, keepdim, one and len(inner) == 1, options)
        return found.unsqueeze(0) if keepdim else found
    if ragged_idx in dims:
        return _over_ragged(func, input, dims, keepdim, one, options)
    found = _apply(func, input._values, inner, keepdim, one, options)
    left = ragged_idx if keepdim else ragged_idx - sum(d < ragged_idx for d in dims)
    return _nest(input, found, left)


def _nest(input, found, ragged_idx):
    if isinstance(found, torch.Tensor):
        return input.like(found, ragged_idx)
    return type(found)([input.like(f, ragged_idx) for f in found])


def _apply(func, values, dims, keepdim, one, options):
    if dims is None:
        return func(values, **options)
    return func(values, dims[0] if one else dims, keepdim=keepdim, **options)


def _over_ragged(func, input, dims, keepdim, one, options):
    name = name_of(func)
    if name in ("sum", "mean") and dims == [input._ragged_idx]:
        return _segment_sum(input, name == "mean", keepdim, **options)
    if name in _NEUTRAL and not input.is_complex() and input._structure.longest > 0:
        padded = input._padded(_NEUTRAL[name](input.dtype))
        return _apply(func, padded, dims, keepdim, one, options)
    inner = [d - 1 for d in dims]
    parts = [_apply(func, c, inner, keepdim, one, options) for c in input.unbind()]
    if not parts:
        raise not_implemented(f"torch.{name} of a nested tensor without components", input)
    if isinstance(parts[0], torch.Tensor):
        return torch.stack(parts)
    return type(parts[0])([torch.stack(p) for p in zip(*parts, strict=True)])


def _segment_sum(input, mean, keepdim, dtype=None) -> torch.Tensor:
    structure, dim = input._structure, input._ragged_dim
    values = input._packed() if dtype is None else input._packed().to(dtype)
    if mean and not (values.is_floating_point() or values.is_complex()):
        raise RuntimeError(
            "mean(): could not infer output dtype. Input dtype must be either a floating point or "
            f"complex dtype. Got: {values.dtype}"
        )
    if dtype is None and not (values.is_floating_point() or values.is_complex()):
        values = values.to(torch.int64)
    rows = values.movedim(dim, 0)
    room = rows.new_zeros((structure.batch, *rows.shape[1:]))
    found = room.index_add(0, structure.owners(), rows)
    if mean:
        sizes = structure.sizes_tensor().to(found.dtype)
        found = found / sizes.reshape(-1, *[1] * (found.dim() - 1))
    return found.unsqueeze(input._ragged_idx) if keepdim else found


@implements("sum", "mean", "nansum", "nanmean", "amax", "amin")
def reduce_many(func, input, dim=None, keepdim=False, **options) -> torch.Tensor | NestedTensor:
    """Reductions that take a list of dimensions."""
    options = {k: v for k, v in options.items() if v is not None}
    return reduce(func, input, dim, keepdim, False, **options)


@implements("logsumexp")
def logsumexp(func, input, dim, keepdim=False) -> torch.Tensor | NestedTensor:
    """The logarithm of the sum of exponentials."""
    return reduce(func, input, dim, keepdim, False)


@implements("var", "std", "var_mean", "std_mean")
def moments(
    func, input, dim=None, unbiased=None, correction=None, keepdim=False
) -> torch.Tensor | NestedTensor:
    """Variances and what goes with them; the second argument may be `unbiased`."""
    if isinstance(dim, bool):
        dim, unbiased = None, dim
    if correction is None:
        correction = 1 if unbiased is None else int(unbiased)
    return reduce(func, input, dim, keepdim, False, correction=correction)


@implements("norm", "vector_norm", "linalg_vector_norm")
def norm(
    func, input, p=2, dim=None, keepdim=False, dtype=None, ord=None
) -> torch.Tensor | NestedTensor:
    """Vector norms."""
    p = 2 if p == "fro" else p if ord is None else ord
    if dtype is not None:
        input = input.to(dtype)

    def call(values, *dims, keepdim=False) -> torch.Tensor:
        return torch.linalg.vector_norm(values, p, *dims, keepdim=keepdim)

    call.__name__ = "norm"
    return reduce(call, input, dim, keepdim, False)


@implements("any", "all", "argmax", "argmin", "prod", "median", "nanmedian", "mode", "kthvalue")
def reduce_one(func, input, *args, **options):
    """Reductions that take one dimension."""
    keepdim = options.pop("keepdim", False)
    dim = options.pop("dim", None)
    args = list(args)
    if name_of(func) == "kthvalue":
        raise not_implemented("torch.kthvalue", input)
    if dim is None and args:
        dim = args.pop(0)
    if args:
        keepdim = args.pop(0)
    if dim is None and name_of(func) == "mode":
        dim = -1
    many = isinstance(dim, (tuple, list))
    options = {k: v for k, v in options.items() if v is not None}
    return reduce(func, input, dim, keepdim, not many, **options)


@implements("max", "min")
def extremum(func, input, dim=None, keepdim=False, *, other=None):
    """The extremum of all, with its place along a dimension, or of two tensors."""
    other = dim if isinstance(dim, torch.Tensor) else other
    if other is not None:
        pairwise = torch.maximum if name_of(func) == "max" else torch.minimum
        return pairwise(input, other)
    return reduce(func, input, dim, keepdim, True)


@implements("count_nonzero")
def count_nonzero(func, input, dim=None):
    """How many elements are not zero."""
    return reduce(torch.sum, input != 0, dim, False, False)


# ---- calls that keep the size of the dimension --------------------------------------------------

_KEEPS_SIZE = (
    "softmax _softmax log_softmax _log_softmax softmin gumbel_softmax cumsum cumprod logcumsumexp "
    "cummax cummin sort argsort flip normalize roll renorm"
).split()
# Where the dimension stands among the arguments after the tensor, and its default.
_DIM_AT = {"roll": (1, None), "normalize": (1, 1), "sort": (0, -1), "argsort": (0, -1)}


@implements(*_KEEPS_SIZE)
def along(func, input, *args, **kwargs):
    """Calls along a dimension whose results have the size of the input."""
    name = name_of(func)
    place, default = _DIM_AT.get(name, (0, None))
    keyword = "dims" if name in ("flip", "roll") else "dim"
    if name == "flip" and args:
        args = (list(args[0]) if isinstance(args[0], (tuple, list)) else list(args),)
    if keyword not in kwargs and len(args) <= place:
        if default is None:
            raise not_implemented(f"torch.{name} without a dimension", input)
        kwargs[keyword] = default
    if keyword in kwargs:
        dim = kwargs.pop(keyword)

        def call(values, inner):
            return func(values, *args, **{keyword: inner}, **kwargs)

    else:
        dim = args[place]

        def call(values, inner):
            return func(values, *args[:place], inner, *args[place + 1 :], **kwargs)

    return _along(call, name, input, dim)


def _along(call, name, input, dim):
    several = isinstance(dim, (tuple, list))
    dims = [wrap_dim(d, input.ndim) for d in (dim if several else (dim,))]
    if 0 in dims:
        raise RuntimeError(
            f"{name.strip('_')}(): not supported when reducing across the batch dimension for "
            "NestedTensor"
        )
    inner = [d - 1 for d in dims]
    inner = inner if several else inner[0]
    if input._ragged_idx not in dims:
        return _nest(input, call(input._values, inner), input._ragged_idx)
    compact = input._compact()
    if name in ("softmax", "log_softmax") and not several:
        padded = call(compact._padded(float("-inf")), dims[0])
        return compact._from_padded(padded)
    parts = [call(c, inner) for c in compact.unbind()]
    where = compact._ragged_dim
    if isinstance(parts[0], torch.Tensor):
        return compact.like(torch.cat(parts, where))
    return type(parts[0])([compact.like(torch.cat(p, where)) for p in zip(*parts, strict=True)])


@implements("topk", "glu", "diff", "unfold_", "quantile", "nanquantile")
def resizing(func, input, *args, **kwargs):
    """Calls that change the size of a dimension, which must not be the ragged one."""
    name = name_of(func)
    place, default = {"topk": (1, -1), "glu": (0, -1), "diff": (1, -1)}.get(name, (1, None))
    args = list(args)
    given = kwargs.pop("dim", None)
    if given is None:
        given = args.pop(place) if len(args) > place else default
    if given is None:
        raise not_implemented(f"torch.{name} without a dimension", input)
    dim = wrap_dim(given, input.ndim)
    if dim in (0, input._ragged_idx):
        where = "dim=0" if dim == 0 else "ragged dim"
        raise RuntimeError(f"{name}(): not supported for NestedTensor on {where}")
    rest = args[place:]
    found = func(input._values, *args[:place], dim - 1, *rest, **kwargs)
    lost = name in ("quantile", "nanquantile") and dim < input._ragged_idx
    if name in ("quantile", "nanquantile") and not kwargs.get("keepdim"):
        return _nest(input, found, input._ragged_idx - lost)
    return _nest(input, found, input._ragged_idx)


def full_reduction_of(nested) -> torch.Tensor:
    """The values that a loss over all elements sees."""
    return nested._packed() if isinstance(nested, NestedTensor) else nested
