"""Control flow as operators, under the name functorch had for it."""

from torch._higher_order_ops.cond import cond
from torch._higher_order_ops.map import map
from torch._higher_order_ops.map import map as map_impl

__all__ = ["cond", "map", "map_impl"]
