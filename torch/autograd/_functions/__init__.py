"""Functions of the first autograd that programs still import."""

from torch.autograd._functions.tensor import Resize

__all__ = ["Resize"]
