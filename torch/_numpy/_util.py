"""What the functions of `torch._numpy` share: errors, axes, conversion of arguments and results.

A function is written on tensors. `on_tensors` makes an array function of it: arguments that name
arrays become tensors, tensors of the result become arrays, `out` is written, and parameters that
NumPy has but this module does not support are refused when they are used.
"""

from __future__ import annotations

import functools
import inspect
import operator
from collections.abc import Callable, Iterable, Sequence

import torch
from torch._numpy import _dtypes


class AxisError(ValueError, IndexError):
    """An axis that the array does not have."""


class UFuncTypeError(TypeError, RuntimeError):
    """The result cannot be cast to the dtype of `out` by the rule that was asked for."""


# ---- axes ----------------------------------------------------------------------------------------
def normalize_axis_index(axis: int, ndim: int, argname: str | None = None) -> int:
    """`axis` counted from the front."""
    axis = operator.index(axis)
    if not -ndim <= axis < ndim:
        text = f"axis {axis} is out of bounds for array of dimension {ndim}"
        raise AxisError(f"{argname}: {text}" if argname else text)
    return axis % ndim


def normalize_axis_tuple(
    axis: int | Iterable[int], ndim: int, argname: str | None = None, allow_duplicate: bool = False
) -> tuple[int, ...]:
    """One axis or several, as a tuple counted from the front."""
    if isinstance(axis, (tuple, list)):
        axes: Iterable[int] = axis
    else:
        axes = (operator.index(axis),)  # type: ignore[arg-type]
    found = tuple(normalize_axis_index(a, ndim, argname) for a in axes)
    if not allow_duplicate and len(set(found)) != len(found):
        raise ValueError(f"repeated axis in `{argname}` argument" if argname else "repeated axis")
    return found


def is_sequence(value: object) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str)


# ---- dtypes of tensors ---------------------------------------------------------------------------
def cast(tensor: torch.Tensor, dtype: torch.dtype | None) -> torch.Tensor:
    """`tensor` in `dtype`; itself where it has that dtype or none is asked for."""
    if dtype is None or tensor.dtype == dtype:
        return tensor
    if tensor.is_complex() and not dtype.is_complex and dtype != torch.bool:
        tensor = tensor.real
    return tensor.to(dtype)


def cast_int_to_float(tensor: torch.Tensor) -> torch.Tensor:
    if _dtypes.category(tensor.dtype) < 2:
        return tensor.to(_dtypes.defaults.float)
    return tensor


def typecast(tensor: torch.Tensor, dtype: torch.dtype, casting: str) -> torch.Tensor:
    """`tensor` in `dtype` if the rule named `casting` allows that."""
    if not _dtypes.may_cast(tensor.dtype, dtype, casting):
        raise TypeError(
            f"Cannot cast array data from {tensor.dtype} to {dtype} according to the rule "
            f"'{casting}'"
        )
    return cast(tensor, dtype)


def promoted(tensors: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    """The tensors in the dtype that holds them all."""
    dtype = _dtypes.common([t.dtype for t in tensors])
    return [cast(t, dtype) for t in tensors]


# ---- arrays and tensors --------------------------------------------------------------------------
def _holds_arrays(value: object) -> bool:
    from torch._numpy._ndarray import ndarray

    if isinstance(value, (list, tuple)):
        return any(map(_holds_arrays, value))
    return isinstance(value, (ndarray, torch.Tensor))


def _from_numbers(value: object) -> torch.Tensor:
    """A tensor of plain numbers, or of what `torch.as_tensor` knows, in NumPy's dtypes."""
    found = torch.as_tensor(value)
    if not isinstance(value, (list, tuple, bool, int, float, complex)):
        return found
    if found.numel() == 0:
        return found.to(_dtypes.defaults.float)
    wanted = {2: _dtypes.defaults.float, 3: _dtypes.defaults.complex}.get(
        _dtypes.category(found.dtype)
    )
    if wanted is None and found.dtype != torch.bool:
        wanted = _dtypes.defaults.int
    # Once more from the numbers: the first reading may have rounded them.
    return found if wanted in (None, found.dtype) else torch.tensor(value, dtype=wanted)


def to_tensor(value: object, dtype: torch.dtype | None = None) -> torch.Tensor:
    """The tensor of an array, a tensor, a number or nested sequences of them."""
    from torch._numpy._ndarray import ndarray

    if isinstance(value, ndarray):
        tensor = value.tensor
    elif isinstance(value, torch.Tensor):
        tensor = value
    elif isinstance(value, (list, tuple)) and _holds_arrays(value):
        parts = promoted([to_tensor(v) for v in value])
        if any(p.shape != parts[0].shape for p in parts):
            raise ValueError("the elements of a nested sequence have different shapes")
        tensor = torch.stack(parts)
    else:
        try:
            tensor = _from_numbers(value)
        except OverflowError:
            raise
        except Exception as error:
            raise NotImplementedError(
                f"failed to convert {value} to ndarray. \nInternal error is: {error}."
            ) from error
    return cast(tensor, dtype)


def to_array(value: object) -> object:
    """Arrays in place of the tensors of a result."""
    from torch._numpy._ndarray import ndarray

    if isinstance(value, torch.Tensor):
        return ndarray(value)
    if isinstance(value, (tuple, list)):
        parts = [to_array(v) for v in value]
        return type(value)(*parts) if hasattr(value, "_fields") else type(value)(parts)
    return value


def ndarrays_to_tensors(*inputs: object) -> object:
    """Tensors in place of arrays, in nested tuples too; one argument gives one value."""
    from torch._numpy._ndarray import ndarray

    if len(inputs) != 1:
        return ndarrays_to_tensors(inputs)
    (value,) = inputs
    if isinstance(value, ndarray):
        return value.tensor
    if isinstance(value, tuple):
        return tuple(ndarrays_to_tensors(v) for v in value)
    return value


# ---- functions -----------------------------------------------------------------------------------
# Parameters of NumPy without a counterpart here, and the values that ask for nothing.
REFUSED: dict[str, tuple[object, ...]] = {
    "like": (None,),
    "where": (None,),
    "subok": (False, True),
    "order": ("K", "C", "A", None),
    "initial": (None,),
    "sorter": (None,),
}


def stored(out: object, result: object, broadcast: bool = False) -> object:
    """The result of a function in the arrays that the caller gave."""
    from torch._numpy._ndarray import ndarray

    if isinstance(result, tuple):
        if not isinstance(out, tuple) or len(out) != len(result):
            raise TypeError(f"out must be a tuple of {len(result)} arrays")
        return tuple(stored(o, r, broadcast) for o, r in zip(out, result, strict=True))
    if isinstance(out, tuple) and len(out) == 1:
        (out,) = out
    if not isinstance(out, ndarray):
        raise TypeError("return arrays must be of ArrayType")
    assert isinstance(result, torch.Tensor)
    if result.shape != out.tensor.shape:
        if not broadcast:
            raise ValueError(
                f"Bad size of the out array: out has shape {tuple(out.tensor.shape)} while result "
                f"has shape {tuple(result.shape)}."
            )
        result = result.broadcast_to(out.tensor.shape)
    out.tensor.copy_(cast(result, out.tensor.dtype))
    return out


def on_tensors(*names: str, many: tuple[str, ...] = ()) -> Callable[[Callable], Callable]:
    """Makes an array function of one on tensors. `names`: the parameters that are arrays (None
    stays None), `many`: those that are sequences of arrays, or `*` parameters of arrays."""

    def decorate(function: Callable) -> Callable:
        signature = inspect.signature(function)
        order = list(signature.parameters)
        starred = next(
            (p.name for p in signature.parameters.values() if p.kind == p.VAR_POSITIONAL), ""
        )
        checked = [n for n in order if REFUSED.get(n)]

        def convert(name: str, value: object) -> object:
            if name in names:
                return None if value is None else to_tensor(value)
            if name in many:
                from torch._numpy._ndarray import ndarray

                if isinstance(value, (ndarray, torch.Tensor)):
                    return list(to_tensor(value))
                return [to_tensor(v) for v in value]  # type: ignore[attr-defined]
            if name == "dtype" and value is not None:
                return _dtypes.dtype(value).torch_dtype
            return value

        @functools.wraps(function)
        def wrapper(*args: object, **kwargs: object) -> object:
            lead = order.index(starred) if starred else len(order)
            if len(args) > lead and not starred:
                signature.bind(*args, **kwargs)  # raises the TypeError
            given = dict(zip(order, args[:lead], strict=False))
            rest = tuple(to_tensor(a) for a in args[lead:]) if starred in many else args[lead:]
            for name, value in kwargs.items():
                if name in given:
                    raise TypeError(
                        f"{function.__name__}() got multiple values for argument {name!r}"
                    )
                given[name] = value
            for name in checked:
                if name in given and not _asks_nothing(given[name], REFUSED[name]):
                    raise NotImplementedError(f"'{name}' parameter is not supported.")
            out = given.get("out")
            if out is not None:
                given["out"] = None
            values = {name: convert(name, value) for name, value in given.items()}
            if rest:
                front = [values.pop(name) for name in order[:lead]]
                result = function(*front, *rest, **values)
            else:
                result = function(**values)
            return to_array(result) if out is None else stored(out, result)

        return wrapper

    return decorate


def _asks_nothing(value: object, harmless: tuple[object, ...]) -> bool:
    return any(value is h or (isinstance(h, str) and value == h) for h in harmless)
