"""torch._cast_Byte and its kin: conversions that old programs and scripted modules call by name."""

from collections.abc import Callable

import torch
from torch import _legacy_types as _types


def _cast(kind: _types.tensortype) -> Callable[..., torch.Tensor]:
    dtype = kind.dtype

    def cast(self: torch.Tensor, non_blocking: bool = False) -> torch.Tensor:
        return self.to(dtype, non_blocking=non_blocking)

    cast.__name__ = cast.__qualname__ = "_cast_" + kind.__name__.removesuffix("Tensor")
    cast.__doc__ = f"The tensor in {dtype}, itself where it has that dtype."
    return cast


_cast_Byte = _cast(_types.ByteTensor)
_cast_Char = _cast(_types.CharTensor)
_cast_Double = _cast(_types.DoubleTensor)
_cast_Float = _cast(_types.FloatTensor)
_cast_Half = _cast(_types.HalfTensor)
_cast_Int = _cast(_types.IntTensor)
_cast_Long = _cast(_types.LongTensor)
_cast_Short = _cast(_types.ShortTensor)
