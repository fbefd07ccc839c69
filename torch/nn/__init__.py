"""Building blocks of neural networks: parameters and the functional forms of layers."""

from torch.nn import functional
from torch.nn.parameter import Buffer, Parameter, UninitializedBuffer, UninitializedParameter

__all__ = ["Buffer", "Parameter", "UninitializedBuffer", "UninitializedParameter", "functional"]
