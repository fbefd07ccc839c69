"""The masks of rows, as parametrizations of weights and biases."""

from __future__ import annotations

from torch import Tensor, nn
from torch.ao.pruning.sparsifier.utils import FakeStructuredSparsity, module_contains_param

__all__ = ["BiasMask", "FakeStructuredSparsity", "module_contains_param"]


class BiasMask(nn.Module):
    """Sets those elements of a bias to zero whose rows the weight's mask sets to zero. It asks the
    weight's parametrization each time, because masks are replaced as well as written to."""

    def __init__(self, weight_mask: FakeStructuredSparsity) -> None:
        super().__init__()
        self._of = [weight_mask]  # not a part of this module: it belongs to the weight

    def forward(self, x: Tensor) -> Tensor:
        return x * self._of[0].mask
