"""Running combinations over slices, computed in order."""

from torch._higher_order_ops.scan import scan
from torch.utils import _pytree as pytree

__all__ = ["associative_scan"]


def associative_scan(combine_fn, xs, dim, reverse=False, combine_mode="pointwise"):
    """Running combinations of xs along dim."""

    def step(carry, x):
        carry = x if carry is None else combine_fn(carry, x)
        return carry, carry

    _, stacked = scan(step, None, xs, dim=dim, reverse=reverse)
    return pytree.tree_map(lambda t: t.movedim(0, dim), stacked)
