"""Data pipes: datasets that are made by joining steps."""

from torch.utils.data.datapipes import iter, map

__all__ = ["iter", "map"]
