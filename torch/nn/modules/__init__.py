"""The modules of torch.nn."""

from torch.nn.modules import activation, basic, container, linear
from torch.nn.modules.activation import *  # noqa: F403
from torch.nn.modules.basic import *  # noqa: F403
from torch.nn.modules.container import *  # noqa: F403
from torch.nn.modules.linear import *  # noqa: F403
from torch.nn.modules.module import Module

__all__ = ["Module", *activation.__all__, *basic.__all__, *container.__all__, *linear.__all__]
