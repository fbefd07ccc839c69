"""Deferred assertions on symbolic sizes as nodes. A shape environment keeps, per symbol that
only the run knows, the relations it was promised; they are checked in the graph as soon as all
symbols in them have a value."""

import operator
from collections.abc import Iterator
from typing import Any

import torch
from torch.fx._compatibility import compatibility
from torch.fx.graph_module import GraphModule
from torch.fx.node import Node

__all__ = ["insert_deferred_runtime_asserts"]

# Functions of expressions by the name of their class.
_FUNCTIONS = {
    "Equality": operator.eq,
    "Unequality": operator.ne,
    "StrictLessThan": operator.lt,
    "LessThan": operator.le,
    "StrictGreaterThan": operator.gt,
    "GreaterThan": operator.ge,
    "FloorDiv": operator.floordiv,
    "Mod": operator.mod,
    "PythonMod": operator.mod,
    "Pow": operator.pow,
    "Not": torch.sym_not,
}
_FOLDED = {
    "Add": operator.add,
    "Mul": operator.mul,
    "And": operator.and_,
    "Or": operator.or_,
    "Max": torch.sym_max,
    "Min": torch.sym_min,
}


class _Writer:
    """Makes nodes for expressions; equal expressions share them."""

    def __init__(self, graph: torch.fx.Graph, env: Any) -> None:
        self.graph, self.env = graph, env
        self.known: dict[Any, Any] = {}  # expression -> node or number

    def can(self, expr: Any) -> bool:
        return all(symbol in self.known for symbol in expr.free_symbols)

    def value(self, expr: Any) -> Any:
        if expr in self.known:
            return self.known[expr]
        if getattr(expr, "is_Integer", False):
            return int(expr)
        if getattr(expr, "is_Boolean", False) and expr in (True, False):
            return bool(expr)
        if getattr(expr, "is_number", False):
            return float(expr)
        kind = type(expr).__name__
        parts = [self.value(part) for part in expr.args]
        if kind in _FOLDED:
            made = parts[0]
            for count, part in enumerate(parts[1:], 2):
                made = self.call(_FOLDED[kind], (made, part), expr.func(*expr.args[:count]))
        elif kind in _FUNCTIONS:
            made = self.call(_FUNCTIONS[kind], tuple(parts), expr)
        else:
            raise NotImplementedError(
                f"insert_deferred_runtime_asserts: no node for {kind} in {expr}"
            )
        self.known[expr] = made
        return made

    def call(self, function: Any, args: tuple, expr: Any) -> Node:
        """A node with the number that it stands for."""
        from torch.fx.experimental import _sympy_bridge as bridge
        from torch.fx.experimental._shape_env import _number

        made = self.graph.call_function(function, args)
        made.meta["val"] = _number(bridge.node_of_expr(self.env, expr))
        return made


def _symbol_of(value: Any) -> Any:
    """The expression of a symbolic number that is one symbol, else None."""
    expr = getattr(getattr(value, "node", None), "expr", None)
    return expr if expr is not None and getattr(expr, "is_Symbol", False) else None


def _bindings(node: Node) -> Iterator[tuple[Any, Any, tuple]]:
    """(symbol, function, arguments) for each symbol whose value a node gives."""
    value = node.meta.get("val", node.meta.get("example_value"))
    symbol = _symbol_of(value)
    if symbol is not None:
        yield symbol, None, (node,)
    elif isinstance(value, torch.Tensor):
        for function, sizes in (
            (torch.ops.aten.sym_size.int, value.shape),
            (torch.ops.aten.sym_stride.int, value.stride()),
        ):
            for dim, size in enumerate(sizes):
                symbol = _symbol_of(size)
                if symbol is not None:
                    yield symbol, function, (node, dim)


@compatibility(is_backward_compatible=True)
def insert_deferred_runtime_asserts(
    gm: GraphModule, shape_env: Any, name: str, export: bool = False
) -> None:
    """Adds to the graph the assertions that the shape environment deferred. `name` is that of the
    graph in messages."""
    pending = [ra for group in shape_env.deferred_runtime_asserts.values() for ra in group]
    if not pending:
        return
    graph = gm.graph
    writer = _Writer(graph, shape_env)
    nodes = list(graph.nodes)
    # What the inputs give stands behind the last of them, in their order.
    body = next(node for node in nodes if node.op != "placeholder")
    for node in nodes:
        if node.op == "output":
            break
        with graph.inserting_before(body if node.op == "placeholder" else node.next):
            for symbol, function, args in _bindings(node):
                if symbol in writer.known:
                    continue
                made = args[0] if function is None else writer.call(function, args, symbol)
                writer.known[symbol] = made
            pending = [ra for ra in pending if not _assert(graph, writer, ra, name, export)]
    gm.recompile()


def _assert(graph: torch.fx.Graph, writer: _Writer, deferred: Any, name: str, export: bool) -> bool:
    """Adds one assertion if its symbols are known; says whether it did."""
    expr = getattr(deferred, "expr", deferred)
    if not writer.can(expr):
        return False
    condition = writer.value(expr)
    if isinstance(condition, bool):
        if not condition:
            raise AssertionError(f"{name}: {expr} can never hold")
        return True
    promised = "" if export else getattr(deferred, "msg", "")
    where = f" ({promised})" if promised else ""
    check = getattr(torch.ops.aten, "_assert_scalar", None)
    function = torch._assert if check is None else check.default
    text = f"Runtime assertion failed for expression {expr} on node '{condition}'{where}"
    graph.call_function(function, (condition, text))
    return True
