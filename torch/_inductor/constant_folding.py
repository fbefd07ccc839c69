"""What depends on constants alone is computed when a graph is compiled."""

from torch._inductor.freezing import constant_fold

__all__ = ["constant_fold"]
