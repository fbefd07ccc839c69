"""Parameters whose gradients are wanted for each sample of a batch by itself."""

from torch.nn.utils._expanded_weights.expanded_weights_impl import ExpandedWeight

__all__ = ["ExpandedWeight"]
