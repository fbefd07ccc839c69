"""Names under which functorch offered tracing."""

import contextlib
from collections.abc import Callable, Iterator, Mapping

from torch._ops import OpOverload
from torch.fx.experimental.proxy_tensor import decompose, dispatch_trace, make_fx

__all__ = ["dispatch_trace", "make_fx", "pythonkey_decompose"]


@contextlib.contextmanager
def pythonkey_decompose(
    decomposition_table: Mapping[OpOverload, Callable],
) -> Iterator[Mapping[OpOverload, Callable]]:
    """Operators of the table are traced as what their functions do."""
    with decompose(decomposition_table) as table:
        yield table
