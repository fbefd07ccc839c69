"""Tensors whose in-place operators are rewritten: the names. No tensor is one; making one raises
NotImplementedError."""

from torch import _later

globals().update(
    _later.names(__name__, "FunctionalTensor FunctionalTensorMode disable_functional_mode")
)


def mb_unwrap_functional_tensor(tensor):
    """What a functional tensor wraps; every other tensor is itself."""
    return tensor
