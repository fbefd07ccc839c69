"""Tensors without data that know their device: the names. Making one raises NotImplementedError."""

from torch import _later

__all__ = ["CrossRefFakeMode", "FakeTensor", "FakeTensorMode", "UnsupportedFakeTensorException"]
_NAMES = (
    "CrossRefFakeMode DynamicOutputShapeException FakeTensor FakeTensorMode "
    "UnsupportedFakeTensorException"
)
globals().update(_later.names(__name__, _NAMES))
_SUBMODULES = _later.install(
    __name__,
    f"""
    fake_tensor: {_NAMES} maybe_get_fake_mode unset_fake_temporarily
    functional_tensor: FunctionalTensor FunctionalTensorMode
    """,
)
__getattr__ = _later.submodules(__name__, _SUBMODULES)
