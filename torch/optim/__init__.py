"""Optimizers and learning rate schedules."""

from __future__ import annotations

from typing import Any as _Any

from torch.optim import adam, lr_scheduler, optimizer, sgd, swa_utils
from torch.optim._adafactor import Adafactor
from torch.optim._muon import Muon
from torch.optim.adadelta import Adadelta
from torch.optim.adagrad import Adagrad
from torch.optim.adam import Adam, AdamW
from torch.optim.adamax import Adamax
from torch.optim.asgd import ASGD
from torch.optim.lbfgs import LBFGS
from torch.optim.nadam import NAdam
from torch.optim.optimizer import Optimizer
from torch.optim.radam import RAdam
from torch.optim.rmsprop import RMSprop
from torch.optim.rprop import Rprop
from torch.optim.sgd import SGD
from torch.optim.sparse_adam import SparseAdam

__all__ = [
    "ASGD",
    "Adadelta",
    "Adafactor",
    "Adagrad",
    "Adam",
    "AdamW",
    "Adamax",
    "LBFGS",
    "Muon",
    "NAdam",
    "Optimizer",
    "RAdam",
    "RMSprop",
    "Rprop",
    "SGD",
    "SparseAdam",
    "adam",
    "lr_scheduler",
    "optimizer",
    "sgd",
    "swa_utils",
]


def __getattr__(name) -> _Any:
    # Ours alone: programs that list the optimizers of this module find PyTorch's.
    if name in ("LAMB", "LARS"):
        from torch.optim import _layerwise

        return getattr(_layerwise, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
