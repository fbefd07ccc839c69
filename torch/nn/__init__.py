"""Building blocks of neural networks: modules, parameters, initial values and functional forms."""

from torch.nn import functional, init, modules
from torch.nn.modules import *  # noqa: F403
from torch.nn.parameter import Buffer, Parameter, UninitializedBuffer, UninitializedParameter

__all__ = [
    "Buffer",
    "Parameter",
    "UninitializedBuffer",
    "UninitializedParameter",
    "functional",
    "init",
    "modules",
    *modules.__all__,
]
