"""Whether an operator of a graph does to memory what its schema says: it is run with the values
that reach it, what it may not write is compared with copies, and results that share memory with an
argument must be annotated."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.jit._ir import Graph
from torch.utils import _pytree as pytree


def check_annotation(graph: Graph, args: tuple[object, ...], name: str) -> None:
    """Checks the first call of `name`, or of aten::`name`, in a graph called with `args`."""
    kind = name if "::" in name else f"aten::{name}"
    place = next((i for i, n in enumerate(graph.nodes()) if n.kind() == kind), None)
    if place is None:
        return
    schema = list(graph.nodes())[place].schema_of
    if schema is None:
        raise RuntimeError(f"{kind} has no schema that could be checked")
    if schema.builtin is not None:
        return  # numbers, strings and lists of the interpreter; tensors come in as they are
    namespace, short = schema.name.split("::")
    packet = getattr(getattr(torch.ops, namespace), short)
    op = getattr(packet, schema.overload_name or "default")
    _check_call(op, _values_before(graph, place, args))


def _values_before(graph: Graph, place: int, args: tuple[object, ...]) -> list[object]:
    """What the inputs of node `place` are when it is reached."""
    from torch.jit._native_names import _create_function_from_graph

    graph = graph.copy()
    nodes = list(graph.nodes())
    inputs: list = list(nodes[place].inputs())
    for node in reversed(nodes[place:]):
        node.destroy()
    graph.block.results[:] = inputs
    graph.makeMultiOutputIntoTuple()
    found = _create_function_from_graph("inputs", graph)(*args)
    return list(found) if len(inputs) > 1 else [found]


def _check_call(op: torch._ops.OpOverload, values: list[object]) -> None:
    arguments = op._schema.arguments
    positional = sum(not a.kwarg_only for a in arguments)
    names = [a.name for a in arguments[positional:]]
    copies = [pytree.tree_map_only(Tensor, _copy, value) for value in values]
    result = op(*values[:positional], **dict(zip(names, values[positional:], strict=False)))
    for argument, value, copy in zip(arguments, values, copies, strict=False):
        written = argument.alias_info is not None and argument.alias_info.is_write
        if not written and not _equal(value, copy):
            raise RuntimeError(
                f"{op} wrote to its argument {argument.name!r}, which is not annotated as written: "
                f"{op._schema}"
            )
    results = result if isinstance(result, tuple) else (result,)
    for place, (returned, value) in enumerate(zip(op._schema.returns, results, strict=False)):
        for argument, given in zip(arguments, values, strict=False):
            if _shares(value, given) and not _may_share(returned.alias_info, argument.alias_info):
                raise RuntimeError(
                    f"result {place} of {op} shares memory with its argument {argument.name!r}, "
                    f"which is not annotated: {op._schema}"
                )


def _copy(value: Tensor) -> Tensor:
    return value.detach().clone()


def _tensors(value: object) -> list[Tensor]:
    return [v for v in pytree.tree_leaves(value) if isinstance(v, Tensor)]


def _equal(value: object, copy: object) -> bool:
    pairs = zip(_tensors(value), _tensors(copy), strict=True)
    return all(
        a.shape == b.shape and torch.allclose(a.detach(), b, rtol=0, atol=0, equal_nan=True)
        for a, b in pairs
    )


def _memory(value: object) -> set[int]:
    found = [v for v in _tensors(value) if v.layout is torch.strided]
    return {v.untyped_storage().data_ptr() for v in found} - {0}


def _shares(first: object, second: object) -> bool:
    return bool(_memory(first) & _memory(second))


def _may_share(result: object, argument: object) -> bool:
    if result is None or argument is None:
        return False
    sets = [set(info.before_set) | set(info.after_set) for info in (result, argument)]
    return "*" in sets[0] | sets[1] or bool(sets[0] & sets[1])
