"""The modules of torch.nn."""

from torch.nn.modules import activation, container, dropout, linear, normalization, sparse
from torch.nn.modules.activation import *  # noqa: F403
from torch.nn.modules.container import *  # noqa: F403
from torch.nn.modules.dropout import *  # noqa: F403
from torch.nn.modules.linear import *  # noqa: F403
from torch.nn.modules.module import Module
from torch.nn.modules.normalization import *  # noqa: F403
from torch.nn.modules.sparse import *  # noqa: F403

__all__ = ["Module"]
for _module in (activation, container, dropout, linear, normalization, sparse):
    __all__ += _module.__all__
