"""The modules of torch.nn."""

from torch.nn.modules import (
    activation,
    adaptive,
    batchnorm,
    channelshuffle,
    container,
    conv,
    distance,
    dropout,
    flatten,
    fold,
    instancenorm,
    lazyconv,
    linear,
    loss,
    normalization,
    padding,
    pixelshuffle,
    pooling,
    rnn,
    sparse,
    transformer,
    upsampling,
)
from torch.nn.modules.activation import *  # noqa: F403
from torch.nn.modules.adaptive import *  # noqa: F403
from torch.nn.modules.batchnorm import *  # noqa: F403
from torch.nn.modules.channelshuffle import *  # noqa: F403
from torch.nn.modules.container import *  # noqa: F403
from torch.nn.modules.conv import *  # noqa: F403
from torch.nn.modules.distance import *  # noqa: F403
from torch.nn.modules.dropout import *  # noqa: F403
from torch.nn.modules.flatten import *  # noqa: F403
from torch.nn.modules.fold import *  # noqa: F403
from torch.nn.modules.instancenorm import *  # noqa: F403
from torch.nn.modules.lazyconv import *  # noqa: F403
from torch.nn.modules.linear import *  # noqa: F403
from torch.nn.modules.loss import *  # noqa: F403
from torch.nn.modules.module import Module
from torch.nn.modules.normalization import *  # noqa: F403
from torch.nn.modules.padding import *  # noqa: F403
from torch.nn.modules.pixelshuffle import *  # noqa: F403
from torch.nn.modules.pooling import *  # noqa: F403
from torch.nn.modules.rnn import *  # noqa: F403
from torch.nn.modules.sparse import *  # noqa: F403
from torch.nn.modules.transformer import *  # noqa: F403
from torch.nn.modules.upsampling import *  # noqa: F403
from torch.nn.modules.utils import _name_after_class

__all__ = ["Module"]
_name_after_class(batchnorm._BatchNorm)
_name_after_class(instancenorm._InstanceNorm)
for _module in (
    activation,
    adaptive,
    batchnorm,
    channelshuffle,
    container,
    conv,
    distance,
    dropout,
    flatten,
    fold,
    instancenorm,
    lazyconv,
    linear,
    loss,
    normalization,
    padding,
    pixelshuffle,
    pooling,
    rnn,
    sparse,
    transformer,
    upsampling,
):
    __all__ += _module.__all__
    for _name in _module.__all__:
        _member = getattr(_module, _name)
        if isinstance(_member, type) and issubclass(_member, Module):
            _name_after_class(_member)
