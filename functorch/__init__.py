"""The transforms under their older name; torch.func is the present one, and calls here say so."""

import torch
from torch._functorch import deprecated as _deprecated
from torch._functorch.deprecated import *  # noqa: F403
from torch._functorch.make_functional import FunctionalModule, FunctionalModuleWithBuffers

__all__ = ["FunctionalModule", "FunctionalModuleWithBuffers"]
__all__ += _deprecated.__all__

__version__ = torch.__version__
