"""Collation: from a list of samples to a batch. default_collate stacks tensors and numbers and goes
into dicts, tuples and lists; default_convert only turns arrays into tensors."""

from __future__ import annotations

import collections
import copy
import re

import torch

np_str_obj_array_pattern = re.compile(r"[SaUO]")

default_collate_err_msg_format = (
    "default_collate: batch must contain tensors, numpy arrays, numbers, dicts or lists; found {}"
)


def _is_array(value) -> bool:
    return type(value).__module__ == "numpy" and type(value).__name__ in ("ndarray", "memmap")


def _is_numpy(value) -> bool:
    kind = type(value)
    return kind.__module__ == "numpy" and kind.__name__ not in ("str_", "string_", "bytes_")


def _holds_text(dtype) -> bool:
    """Whether an array of this NumPy dtype holds texts or objects, which no tensor can."""
    return np_str_obj_array_pattern.search(dtype.str) is not None


def _like(container, plain, places):
    """A container of the same class with the values of a plain dict or list, which is taken as it
    is where the class cannot hold them. `places` are the values with their keys."""
    changeable = (collections.abc.MutableMapping, collections.abc.MutableSequence)
    try:
        if not isinstance(container, changeable):
            return type(container)(plain)
        clone = copy.copy(container)
        for place, value in places:
            clone[place] = value
        return clone
    except TypeError:
        return plain


def _with_values(mapping, values):
    return _like(mapping, values, values.items())


def _with_items(sequence, items):
    return _like(sequence, items, enumerate(items))


def default_convert(data):
    """Arrays as tensors, in any nesting of mappings and sequences; the rest as it is."""
    if isinstance(data, torch.Tensor):
        return data
    if _is_numpy(data):
        if _is_array(data) and _holds_text(data.dtype):
            return data
        return torch.as_tensor(data)
    if isinstance(data, collections.abc.Mapping):
        return _with_values(data, {key: default_convert(data[key]) for key in data})
    if isinstance(data, tuple) and hasattr(data, "_fields"):
        return type(data)(*(default_convert(item) for item in data))
    if isinstance(data, tuple):
        return [default_convert(item) for item in data]
    if isinstance(data, collections.abc.Sequence) and not isinstance(data, str | bytes):
        return _with_items(data, [default_convert(item) for item in data])
    return data


def collate_tensor_fn(batch, *, collate_fn_map=None) -> torch.Tensor:
    """Stacks tensors."""
    return torch.stack(batch, 0)


def collate_numpy_array_fn(batch, *, collate_fn_map=None) -> torch.Tensor:
    """Stacks arrays of numbers."""
    kind = batch[0].dtype
    if _holds_text(kind):
        raise TypeError(default_collate_err_msg_format.format(kind))
    return collate(list(map(torch.as_tensor, batch)), collate_fn_map=collate_fn_map)


def collate_numpy_scalar_fn(batch, *, collate_fn_map=None) -> torch.Tensor:
    """A tensor of NumPy scalars, with their dtype."""
    return torch.as_tensor(batch)


def collate_float_fn(batch, *, collate_fn_map=None) -> torch.Tensor:
    """A float64 tensor of Python floats."""
    return torch.tensor(batch, dtype=torch.float64)


def collate_int_fn(batch, *, collate_fn_map=None) -> torch.Tensor:
    """A tensor of ints or bools."""
    return torch.tensor(batch)


def collate_str_fn(batch, *, collate_fn_map=None) -> list[str]:
    """Texts stay a list."""
    return batch


default_collate_fn_map = {
    torch.Tensor: collate_tensor_fn,
    float: collate_float_fn,
    int: collate_int_fn,
    str: collate_str_fn,
    bytes: collate_str_fn,
}


def _numpy_function(element):
    """The function of an array or NumPy scalar, found without importing NumPy."""
    if _is_array(element):
        return collate_numpy_array_fn
    if _is_numpy(element) and getattr(element, "shape", None) == ():
        return collate_numpy_scalar_fn
    return None


def collate(batch, *, collate_fn_map=None):
    """A batch by the functions that collate_fn_map gives for classes; containers are entered."""
    element = batch[0]
    kind = type(element)
    if collate_fn_map is not None:
        if kind in collate_fn_map:
            return collate_fn_map[kind](batch, collate_fn_map=collate_fn_map)
        # NumPy before the bases: numpy.float64 is also a Python float.
        function = _numpy_function(element) if collate_fn_map is default_collate_fn_map else None
        if function is not None:
            return function(batch, collate_fn_map=collate_fn_map)
        for known, function in collate_fn_map.items():
            if isinstance(element, known):
                return function(batch, collate_fn_map=collate_fn_map)
    if isinstance(element, collections.abc.Mapping):
        values = {
            key: collate([d[key] for d in batch], collate_fn_map=collate_fn_map) for key in element
        }
        return _with_values(element, values)
    if isinstance(element, tuple) and hasattr(element, "_fields"):
        columns = zip(*batch, strict=False)
        return kind(*(collate(samples, collate_fn_map=collate_fn_map) for samples in columns))
    if isinstance(element, collections.abc.Sequence) and not isinstance(element, str | bytes):
        if any(len(item) != len(element) for item in batch):
            raise RuntimeError("each element in list of batch should be of equal size")
        columns = [
            collate(samples, collate_fn_map=collate_fn_map) for samples in zip(*batch, strict=True)
        ]
        return columns if isinstance(element, tuple) else _with_items(element, columns)
    raise TypeError(default_collate_err_msg_format.format(kind))


def default_collate(batch):
    """Tensors stacked, numbers as tensors, texts as lists; containers keep their form."""
    return collate(batch, collate_fn_map=default_collate_fn_map)
