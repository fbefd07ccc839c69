"""Optimizers."""

from torch.optim import adam, optimizer, sgd
from torch.optim.adam import Adam, AdamW
from torch.optim.optimizer import Optimizer
from torch.optim.sgd import SGD

__all__ = ["Adam", "AdamW", "Optimizer", "SGD", "adam", "optimizer", "sgd"]
