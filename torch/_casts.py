"""torch._cast_Byte and its kin: conversions that old programs and scripted modules call by name."""

from collections.abc import Callable

import torch


def _cast(name: str, dtype: torch.dtype) -> Callable[..., torch.Tensor]:
    def cast(self: torch.Tensor, non_blocking: bool = False) -> torch.Tensor:
        return self.to(dtype, non_blocking=non_blocking)

    cast.__name__ = cast.__qualname__ = name
    cast.__doc__ = f"The tensor in {dtype}, itself where it has that dtype."
    return cast


_cast_Byte = _cast("_cast_Byte", torch.uint8)
_cast_Char = _cast("_cast_Char", torch.int8)
_cast_Double = _cast("_cast_Double", torch.float64)
_cast_Float = _cast("_cast_Float", torch.float32)
_cast_Half = _cast("_cast_Half", torch.float16)
_cast_Int = _cast("_cast_Int", torch.int32)
_cast_Long = _cast("_cast_Long", torch.int64)
_cast_Short = _cast("_cast_Short", torch.int16)
