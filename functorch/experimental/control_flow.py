"""Control flow as operators, under the name functorch had for it."""

from torch import cond
from torch._higher_order_ops.map import _stack_pytree, _unstack_pytree, map  # noqa: F401
from torch._higher_order_ops.map import map as map_impl
from torch._higher_order_ops.utils import UnsupportedAliasMutationException

__all__ = ["UnsupportedAliasMutationException", "cond", "map", "map_impl"]
