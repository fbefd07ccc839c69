"""torch.FloatTensor and its like: old names that construct a tensor of one dtype and test for it.

They are classes only in appearance: nothing is ever an instance of one by inheritance. Calling
makes a torch.Tensor and isinstance() asks for the dtype and the device."""

from __future__ import annotations

import torch
from torch import _C


class tensortype(type):
    """The class of torch.FloatTensor, torch.LongTensor, ..."""

    instances: set[tensortype] = set()
    dtype: torch.dtype

    def __new__(mcs, name: str, dtype: torch.dtype, device: str = "cpu") -> tensortype:
        members = {
            "__module__": "torch",
            "dtype": dtype,
            "layout": torch.strided,
            "is_cuda": device == "cuda",
            "is_sparse": False,
            "_device": device,
        }
        cls = super().__new__(mcs, name, (), members)
        mcs.instances.add(cls)
        return cls

    def __init__(cls, name, dtype, device="cpu") -> None:
        super().__init__(name, (), {})

    def __call__(cls, *args, **kwargs) -> torch.Tensor:
        return _C._legacy_tensor_new(cls.dtype, cls._device, *args, **kwargs)

    def __instancecheck__(cls, instance) -> bool:
        return (
            isinstance(instance, torch.Tensor)
            and instance.dtype is cls.dtype
            and instance.layout is torch.strided
            and instance.device.type == cls._device
        )


FloatTensor = tensortype("FloatTensor", torch.float32)
DoubleTensor = tensortype("DoubleTensor", torch.float64)
HalfTensor = tensortype("HalfTensor", torch.float16)
BFloat16Tensor = tensortype("BFloat16Tensor", torch.bfloat16)
ByteTensor = tensortype("ByteTensor", torch.uint8)
CharTensor = tensortype("CharTensor", torch.int8)
ShortTensor = tensortype("ShortTensor", torch.int16)
IntTensor = tensortype("IntTensor", torch.int32)
LongTensor = tensortype("LongTensor", torch.int64)
BoolTensor = tensortype("BoolTensor", torch.bool)
