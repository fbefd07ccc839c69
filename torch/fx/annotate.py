"""annotate: a type written on a value inside a traced function."""

from typing import Any

from torch.fx._compatibility import compatibility
from torch.fx.proxy import Proxy


@compatibility(is_backward_compatible=False)
def annotate(val: Any, type: Any) -> Any:
    """Notes the type of a proxy's value on its node; any other value is returned as it is."""
    if not isinstance(val, Proxy):
        return val
    if val.node.type:
        raise RuntimeError(
            f"Tried to annotate a value that already had a type on it! Existing type is "
            f"{val.node.type} and new type is {type}. This could happen if you tried to annotate a "
            "function parameter value (in which case you should use the type slot on the function "
            "signature) or you called annotate on the same value twice"
        )
    val.node.type = type
    return val
