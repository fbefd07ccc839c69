"""Tensors without data that know their device, and tools on top of them."""

from torch import _later

__all__ = ["CrossRefFakeMode", "FakeTensor", "FakeTensorMode", "UnsupportedFakeTensorException"]
_FAKE_TENSOR = (
    "DynamicOutputShapeException",
    "FakeTensor",
    "FakeTensorMode",
    "UnsupportedFakeTensorException",
)
_submodule = _later.submodules(
    __name__, {"fake_tensor", "fake_utils", "functional_tensor", "meta_utils"}
)


def __getattr__(name: str) -> object:
    # On demand: nothing of this is loaded by `import torch`.
    if name in _FAKE_TENSOR:
        from torch._subclasses import fake_tensor

        return getattr(fake_tensor, name)
    if name == "CrossRefFakeMode":
        from torch._subclasses.fake_utils import CrossRefFakeMode

        return CrossRefFakeMode
    return _submodule(name)
