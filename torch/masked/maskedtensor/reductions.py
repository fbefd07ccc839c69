"""The reductions of masked tensors."""

__all__ = ["REDUCE_NAMES"]

REDUCE_NAMES = "sum mean amin amax argmin argmax prod all norm var std".split()
