"""Measures of the distance between two results."""

from torch.ao.ns.fx import utils

__all__ = ["utils"]
