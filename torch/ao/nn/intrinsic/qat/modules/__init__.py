"""Fused layers that train with weights rounded to levels."""

from torch.ao.nn.intrinsic.qat.modules.conv_fused import *  # noqa: F403
from torch.ao.nn.intrinsic.qat.modules.conv_fused import __all__ as _CONV
from torch.ao.nn.intrinsic.qat.modules.linear_fused import LinearBn1d
from torch.ao.nn.intrinsic.qat.modules.linear_relu import LinearReLU

__all__ = [*_CONV, "LinearBn1d", "LinearReLU"]
