"""Operators as compositions of others, for a compiler: a registry that is empty yet."""

__all__ = [
    "core_aten_decompositions",
    "decomposition_table",
    "get_decompositions",
    "register_decomposition",
]

decomposition_table = {}


def register_decomposition(aten_op, registry=None, *, type="post_autograd", unsafe=False):
    """A decorator that notes a function as the composition of an operator, or of several."""
    table = decomposition_table if registry is None else registry

    def note(fn):
        for op in aten_op if isinstance(aten_op, (list, tuple)) else [aten_op]:
            table[op] = fn
        return fn

    return note


def get_decompositions(aten_ops, type="post_autograd"):
    """Those that are known of the operators asked for."""
    return {op: decomposition_table[op] for op in aten_ops if op in decomposition_table}


def core_aten_decompositions():
    """All that are known."""
    return dict(decomposition_table)
