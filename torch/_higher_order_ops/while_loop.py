"""A loop as an operator, computed eagerly."""

__all__ = ["while_loop"]


def while_loop(cond_fn, body_fn, carried_inputs):
    """Repeats carried = body_fn(*carried) while cond_fn(*carried) holds."""
    carried = tuple(carried_inputs)
    while cond_fn(*carried):
        result = body_fn(*carried)
        carried = tuple(result) if isinstance(result, (tuple, list)) else (result,)
        if len(carried) != len(carried_inputs):
            raise RuntimeError(
                f"body_fn should return {len(carried_inputs)} values, but got {len(carried)}"
            )
    return carried
