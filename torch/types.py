"""Names for the kinds of values that functions of torch take, for annotations in this package and
in programs."""

# ruff: noqa: F401
import os
from builtins import (
    bool as _bool,
)
from builtins import (
    bytes as _bytes,
)
from builtins import (
    complex as _complex,
)
from builtins import (
    float as _float,
)
from builtins import (
    int as _int,
)
from builtins import (
    str as _str,
)
from collections.abc import Sequence
from typing import IO, Any, TypeAlias, Union

import torch
from torch import Size, SymBool, SymFloat, SymInt, Tensor, memory_format
from torch import device as _device
from torch import dtype as _dtype
from torch import layout as _layout
from torch._C import Generator

__all__ = ["Number", "Device", "FileLike", "Storage"]

_TensorOrTensors: TypeAlias = Tensor | Sequence[Tensor]
_TensorOrTensorsOrGradEdge: TypeAlias = Tensor | Sequence[Tensor] | Any
_size: TypeAlias = Union[Size, "list[int]", "tuple[int, ...]"]
_symsize: TypeAlias = Size | Sequence[_int | SymInt]
_dispatchkey: TypeAlias = _str | Any

IntLikeType: TypeAlias = _int | SymInt
FloatLikeType: TypeAlias = _float | SymFloat
BoolLikeType: TypeAlias = _bool | SymBool

py_sym_types = (SymInt, SymFloat, SymBool)
PySymType: TypeAlias = SymInt | SymFloat | SymBool

Number: TypeAlias = _int | _float | _bool
_Number = (_int, _float, _bool)
FileLike: TypeAlias = Union[_str, "os.PathLike[str]", IO[_bytes]]
Device: TypeAlias = _device | _str | _int | None
Storage: TypeAlias = "torch.storage.TypedStorage | torch.UntypedStorage"
