"""Names for the kinds of values that functions of torch take, for annotations in this package and in programs."""

import os
from builtins import (
    bool as _bool,
    bytes as _bytes,
    complex as _complex,
    float as _float,
    int as _int,
    str as _str,
)
from collections.abc import Sequence
from typing import Any, IO, TypeAlias, Union

import torch
from torch import SymBool, SymFloat, SymInt, Tensor
from torch import device as _device, dtype as _dtype, layout as _layout, memory_format, Size
from torch._C import Generator

__all__ = ["Number", "Device", "FileLike", "Storage"]

_TensorOrTensors: TypeAlias = Union[Tensor, Sequence[Tensor]]
_TensorOrTensorsOrGradEdge: TypeAlias = Union[Tensor, Sequence[Tensor], Any]
_size: TypeAlias = Union[Size, "list[int]", "tuple[int, ...]"]
_symsize: TypeAlias = Union[Size, Sequence[Union[_int, SymInt]]]
_dispatchkey: TypeAlias = Union[_str, Any]

IntLikeType: TypeAlias = Union[_int, SymInt]
FloatLikeType: TypeAlias = Union[_float, SymFloat]
BoolLikeType: TypeAlias = Union[_bool, SymBool]

py_sym_types = (SymInt, SymFloat, SymBool)
PySymType: TypeAlias = Union[SymInt, SymFloat, SymBool]

Number: TypeAlias = Union[_int, _float, _bool]
_Number = (_int, _float, _bool)
FileLike: TypeAlias = Union[_str, "os.PathLike[str]", IO[_bytes]]
Device: TypeAlias = Union[_device, _str, _int, None]
Storage: TypeAlias = "torch.storage.TypedStorage | torch.UntypedStorage"

