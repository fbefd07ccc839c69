"""Tensors without data that know their device: the names. Making one raises NotImplementedError."""

from torch import _later

__all__ = ["CrossRefFakeMode", "FakeTensor", "FakeTensorMode", "UnsupportedFakeTensorException"]
_NAMES = (
    "CrossRefFakeMode DynamicOutputShapeException FakeTensor FakeTensorMode "
    "UnsupportedFakeTensorException"
)
globals().update(_later.names(__name__, _NAMES))
__getattr__ = _later.submodules(__name__, {"fake_tensor", "functional_tensor", "meta_utils"})
