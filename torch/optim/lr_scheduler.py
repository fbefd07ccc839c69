"""Learning rate schedules, all under the one name that users import them from."""

from torch.optim._lr.base import (
    EPOCH_DEPRECATION_WARNING,
    LRScheduler,
    _enable_get_lr_call,  # noqa: F401
)
from torch.optim._lr.combined import ChainedScheduler, SequentialLR
from torch.optim._lr.cycles import CosineAnnealingWarmRestarts, CyclicLR, OneCycleLR
from torch.optim._lr.plateau import ReduceLROnPlateau
from torch.optim._lr.simple import (
    ConstantLR,
    CosineAnnealingLR,
    ExponentialLR,
    LambdaLR,
    LinearLR,
    MultiplicativeLR,
    MultiStepLR,
    PolynomialLR,
    StepLR,
)

__all__ = [
    "EPOCH_DEPRECATION_WARNING",
    "ChainedScheduler",
    "ConstantLR",
    "CosineAnnealingLR",
    "CosineAnnealingWarmRestarts",
    "CyclicLR",
    "ExponentialLR",
    "LRScheduler",
    "LambdaLR",
    "LinearLR",
    "MultiStepLR",
    "MultiplicativeLR",
    "OneCycleLR",
    "PolynomialLR",
    "ReduceLROnPlateau",
    "SequentialLR",
    "StepLR",
]


class _LRScheduler(LRScheduler):
    """The base under the name that older programs subclass."""


# A pickled schedule names its class: by the public module, so that it loads in either framework.
for _name in __all__:
    if _name != "EPOCH_DEPRECATION_WARNING":
        globals()[_name].__module__ = __name__
del _name
