"""The first vmap, kept for programs that import it: torch.func.vmap with stricter arguments.

Results are a tensor or a tuple of tensors, `out_dims` an int or a tuple of ints, and there are no
keyword arguments. Random operators are refused."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Sequence

import torch
from torch._C import _functorch as _F
from torch._functorch.vmap import (
    _create_batched_inputs,
    _get_name,
    _process_batched_inputs,
    vmap_increment_nesting,
)

__all__ = ["vmap"]

Outputs = torch.Tensor | tuple[torch.Tensor, ...]


def _checked_outputs(outputs: object, name: str) -> list[torch.Tensor]:
    if isinstance(outputs, torch.Tensor):
        return [outputs]
    prefix = f"vmap({name}, ...): `{name}` must only return Tensors, got type {type(outputs)}"
    if not isinstance(outputs, tuple):
        raise ValueError(f"{prefix} as the return.")
    for k, output in enumerate(outputs):
        if not isinstance(output, torch.Tensor):
            raise ValueError(
                f"vmap({name}, ...): `{name}` must only return Tensors, got type {type(output)} "
                f"for return {k}."
            )
    return list(outputs)


def _checked_out_dims(out_dims: object, name: str, count: int) -> Sequence[int]:
    call = f"vmap({name}, ..., out_dims={out_dims})"
    if isinstance(out_dims, int):
        return [out_dims] * count
    if not isinstance(out_dims, tuple) or not all(isinstance(d, int) for d in out_dims):
        raise ValueError(
            f"{call}: `out_dims` must be an int or a tuple of int representing where in the "
            "outputs the vmapped dimension should appear."
        )
    if len(out_dims) != count:
        raise ValueError(
            f"{call}: `out_dims` must have one dim per output (got {count} outputs) of {name}."
        )
    return out_dims


def _check_not_negative(in_dims: object, args: tuple) -> None:
    """Dimensions count from the first one only."""
    if isinstance(in_dims, (tuple, list)) and len(in_dims) == len(args):
        for dim, arg in zip(in_dims, args, strict=True):
            _check_not_negative(dim, arg if isinstance(arg, (tuple, list)) else (arg,))
    elif isinstance(in_dims, int) and in_dims < 0:
        for arg in args:
            if isinstance(arg, torch.Tensor):
                raise ValueError(
                    f"vmap: Got in_dim={in_dims} for some input, but that input is a Tensor of "
                    f"dimensionality {arg.dim()} so expected in_dim to satisfy 0 <= in_dim < "
                    f"{arg.dim()}."
                )


def _refusing_random(func: Callable[..., Outputs], args: tuple) -> Outputs:
    try:
        return func(*args)
    except RuntimeError as error:
        if "called random operation" not in str(error):
            raise
        raise RuntimeError(
            "vmap: We do not yet support calling random operations inside of vmap. Please perform "
            "random operations outside of vmap as a workaround"
        ) from error


def _vmap(
    func: Callable[..., Outputs],
    in_dims: int | tuple = 0,
    out_dims: int | tuple[int, ...] = 0,
    allow_none_pass_through: bool = False,
) -> Callable[..., Outputs]:
    """A function that maps `func` over a dimension of its inputs. With `allow_none_pass_through`
    a result may be None."""

    @functools.wraps(func)
    def wrapped(*args):
        name = _get_name(func)
        _check_not_negative(in_dims, args)
        size, dims, flat, spec = _process_batched_inputs(in_dims, args, func)
        with vmap_increment_nesting(size, "error") as level:
            outputs = _refusing_random(func, _create_batched_inputs(dims, flat, level, spec))
            several = isinstance(outputs, tuple)
            given = list(outputs) if several else [outputs]
            passed = [o is None and allow_none_pass_through for o in given]
            kept = tuple(o for o, skip in zip(given, passed, strict=True) if not skip)
            tensors = _checked_outputs(kept if several or not kept else kept[0], name)
            where = iter(_checked_out_dims(out_dims, name, len(given)))
            source = iter(tensors)
            results = []
            for skip, dim in zip(passed, where, strict=True):
                results.append(
                    None if skip else _F._remove_batch_dim(next(source), level, size, dim)
                )
        return tuple(results) if several else results[0]

    return wrapped


def vmap(
    func: Callable[..., Outputs],
    in_dims: int | tuple = 0,
    out_dims: int | tuple[int, ...] = 0,
) -> Callable[..., Outputs]:
    """The same; torch.vmap is the present one."""
    warnings.warn(
        "Please use torch.vmap instead of torch._vmap_internals.vmap.",
        FutureWarning,
        stacklevel=2,
    )
    return _vmap(func, in_dims, out_dims)
