"""Optimizers."""

from torch.optim import adam, lr_scheduler, optimizer, sgd
from torch.optim.adam import Adam, AdamW
from torch.optim.optimizer import Optimizer
from torch.optim.sgd import SGD

__all__ = ["Adam", "AdamW", "Optimizer", "SGD", "adam", "lr_scheduler", "optimizer", "sgd"]
