"""Removal of whole rows of weights, which makes layers smaller."""

from torch.ao.pruning._experimental.pruner.base_structured_sparsifier import (
    BaseStructuredSparsifier,
)
from torch.ao.pruning._experimental.pruner.FPGM_pruner import FPGMPruner
from torch.ao.pruning._experimental.pruner.lstm_saliency_pruner import LSTMSaliencyPruner
from torch.ao.pruning._experimental.pruner.parametrization import BiasMask, FakeStructuredSparsity
from torch.ao.pruning._experimental.pruner.saliency_pruner import SaliencyPruner

__all__ = [
    "BaseStructuredSparsifier",
    "BiasMask",
    "FPGMPruner",
    "FakeStructuredSparsity",
    "LSTMSaliencyPruner",
    "SaliencyPruner",
]
