"""Quantization, and the names of pruning. What is not there yet raises NotImplementedError."""

from torch import _later

_SUBMODULES = _later.install(
    __name__,
    """
    nn.intrinsic.qat: ConvBn2d ConvBnReLU2d freeze_bn_stats update_bn_stats
    pruning: BaseSparsifier WeightNormSparsifier
    """,
)
__getattr__ = _later.submodules(__name__, {*_SUBMODULES, "nn", "quantization"})
