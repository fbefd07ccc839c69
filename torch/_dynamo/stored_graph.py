"""Graphs as JSON. A stored graph names its functions, and a name means something only if it is that
of a function that graphs may hold: an operator, a function of tensors that torch.overrides lists,
an operator of Python, or a switch that traces write. So reading one imports nothing and can call
nothing else."""

from __future__ import annotations

import functools
import keyword
import math
import operator
import types
from collections.abc import Callable

import torch
from torch import fx
from torch.fx.node import _get_qualified_name, map_aggregate

JSON = None | bool | int | float | str | list["JSON"] | dict[str, "JSON"]

# Functions besides those of tensors: what traces write around calls.
_SWITCHES = (
    torch._C._set_grad_enabled,
    torch.amp.autocast_mode._enter_autocast,
    torch.amp.autocast_mode._exit_autocast,
    *(torch.sym_int, torch.sym_float, torch.sym_max, torch.sym_min, torch.sym_not, torch.sym_ite),
)
_PLAIN = (bool, int, float, str, type(None))


@functools.cache
def _functions() -> dict[str, Callable]:
    """The functions a graph may call, by name."""
    found = [fn for fns in torch.overrides.get_overridable_functions().values() for fn in fns]
    found += [f for f in vars(operator).values() if isinstance(f, types.BuiltinFunctionType)]
    found += [f for f in vars(math).values() if isinstance(f, types.BuiltinFunctionType)]
    named = {}
    for fn in (*_SWITCHES, *found):
        try:
            named[_get_qualified_name(fn)] = fn
        except (AttributeError, RuntimeError):
            continue  # properties have no name that code could call
    return named


def _written_target(node: fx.Node) -> JSON:
    target = node.target
    if isinstance(target, str):
        return target
    if isinstance(target, torch._ops.OpOverload):
        name = target._schema.name.split("::")[1]
        return {"operator": [target.namespace, name, target._overloadname]}
    if isinstance(target, torch._ops.HigherOrderOperator):
        return {"higher_order": target.name()}
    name = _get_qualified_name(target)
    if _functions().get(name) is not target:
        raise NotImplementedError(f"a stored graph cannot call {name}")
    return {"function": name}


def _read_target(written: JSON) -> Callable | str:
    if isinstance(written, str):
        return written
    (kind, name), *_ = written.items()
    if kind == "operator":
        namespace, op, overload = name
        return getattr(getattr(getattr(torch.ops, namespace), op), overload)
    if kind == "higher_order":
        found = getattr(torch.ops.higher_order, name, None)
    else:
        found = _functions().get(name)
    if found is None:
        raise ValueError(f"a stored graph calls {name}, which is no function of graphs")
    return found


# ---- arguments


def write_value(value: object) -> JSON:
    """A value of a graph, or an argument that a graph was made for."""
    if type(value) in _PLAIN:
        return value
    if isinstance(value, fx.Node):
        return {"node": value.name}
    if isinstance(value, torch.Size):
        return {"size": [write_value(item) for item in value]}
    if isinstance(value, list):
        return [write_value(item) for item in value]
    if type(value) is tuple:
        return {"tuple": [write_value(item) for item in value]}
    if isinstance(value, dict):
        return {"dict": [[write_value(k), write_value(v)] for k, v in value.items()]}
    if isinstance(value, slice):
        return {"slice": [write_value(part) for part in (value.start, value.stop, value.step)]}
    if isinstance(value, complex):
        return {"complex": [value.real, value.imag]}
    if value is Ellipsis:
        return {"ellipsis": True}
    if isinstance(value, torch.device):
        return {"device": str(value)}
    if isinstance(value, torch.dtype | torch.layout | torch.memory_format):
        return {type(value).__name__: str(value).removeprefix("torch.")}
    raise NotImplementedError(f"a stored graph cannot hold a value of type {type(value)}")


def _named(kind: type) -> Callable[[str], object]:
    def find(name: str) -> object:
        found = getattr(torch, name, None)
        if not isinstance(found, kind):
            raise ValueError(f"torch.{name} is no {kind.__name__}")
        return found

    return find


_READERS: dict[str, Callable] = {
    "size": lambda items: torch.Size(items),
    "tuple": tuple,
    "dict": dict,
    "slice": lambda parts: slice(*parts),
    "complex": lambda parts: complex(*parts),
    "ellipsis": lambda _: Ellipsis,
    "device": torch.device,
    "dtype": _named(torch.dtype),
    "layout": _named(torch.layout),
    "memory_format": _named(torch.memory_format),
}


def read_value(written: JSON, nodes: dict[str, fx.Node]) -> object:
    """What write_value() was given."""
    if isinstance(written, list):
        return [read_value(item, nodes) for item in written]
    if not isinstance(written, dict):
        return written
    (kind, content), *_ = written.items()
    if kind == "node":
        return nodes[content]
    if kind not in _READERS:
        raise ValueError(f"a stored graph holds a value of unknown kind {kind!r}")
    return _READERS[kind](read_value(content, nodes))


# ---- graphs


def write_graph(gm: fx.GraphModule) -> JSON:
    """The graph of a module without tensors of its own, with the graphs that it calls."""
    steps = []
    graphs = {}
    for node in gm.graph.nodes:
        if node.op == "get_attr":
            inner = functools.reduce(getattr, node.target.split("."), gm)
            if not isinstance(inner, fx.GraphModule):
                raise NotImplementedError(f"a stored graph cannot hold {node.target}")
            graphs[node.target] = write_graph(inner)
        args, kwargs = map_aggregate((node.args, node.kwargs), lambda leaf: leaf)
        steps.append(
            {
                "op": node.op,
                "name": node.name,
                "target": _written_target(node),
                "args": [write_value(arg) for arg in args],
                "kwargs": {key: write_value(value) for key, value in kwargs.items()},
            }
        )
    return {"steps": steps, "graphs": graphs}


def _check_names(op: str, name: str, target: Callable | str, graphs: dict[str, JSON]) -> None:
    """Names become text of the module's code: nothing else may stand there."""
    if op == "call_method":
        known = callable(getattr(torch.Tensor, target, None))
    elif op == "get_attr":
        known = target in graphs
    else:
        known = op in ("placeholder", "output") or callable(target)
    texts = [name, *([target] if isinstance(target, str) else [])]
    if not known or not all(t.isidentifier() and not keyword.iskeyword(t) for t in texts):
        raise ValueError(f"a stored graph has a step {op} {target!r} called {name!r}")


def read_graph(written: JSON) -> fx.GraphModule:
    """The module that write_graph() was given."""
    graph = fx.Graph()
    nodes: dict[str, fx.Node] = {}
    for step in written["steps"]:
        args = tuple(read_value(arg, nodes) for arg in step["args"])
        kwargs = {key: read_value(value, nodes) for key, value in step["kwargs"].items()}
        target = _read_target(step["target"])
        _check_names(step["op"], step["name"], target, written["graphs"])
        if step["op"] == "output":
            graph.output(*args)
        else:
            name = step["name"]
            nodes[name] = graph.create_node(step["op"], target, args, kwargs, name)
    root = torch.nn.Module()
    for name, inner in written["graphs"].items():
        root.add_module(name, read_graph(inner))
    return fx.GraphModule(root, graph)
