"""Graphs of operators as data: what is needed to build a graph again, as JSON, and the same form
for keys of caches. Only operators of the dispatcher, arithmetic on sizes and plain values can be
read back, each looked up in a table by its name: reading an entry runs nothing that it holds."""

from __future__ import annotations

import base64
import json
import operator
import sys
from collections.abc import Callable, Sequence

import torch
from torch import fx
from torch.fx._lazy_graph_module import _LazyGraphModule

__all__ = [
    "Bypass",
    "Damaged",
    "decode_graph",
    "decode_value",
    "describe_function",
    "describe_graph",
    "describe_input",
    "encode_constant",
    "encode_graph",
    "encode_value",
    "find_operator",
    "packed",
    "unpacked",
]

Json = dict | list | str | int | float | bool | None
# Constants larger than this stay out of the store.
_LARGEST_CONSTANT = 1 << 16
_SYMBOLIC = (torch.SymInt, torch.SymFloat, torch.SymBool)
_PLAIN = (int, float, bool, str, type(None))


class Bypass(Exception):
    """Something cannot be written as data; the text says what."""


class Damaged(Exception):
    """Data that no writer of ours has written."""


def packed(value: Json) -> bytes:
    """JSON as bytes, the same for the same value."""
    return json.dumps(value, separators=(",", ":"), sort_keys=True).encode()


def unpacked(raw: bytes) -> Json:
    """The value of bytes. Raises Damaged."""
    try:
        return json.loads(raw)
    except (ValueError, RecursionError) as error:
        raise Damaged(str(error)) from error


# ---- functions by name ----------------------------------------------------------------------

_ARITHMETIC: dict[str, Callable] = {
    **{f"operator.{name}": getattr(operator, name) for name in """add sub mul floordiv truediv mod
    neg pow eq ne lt le gt ge getitem and_ or_""".split()},
    "torch.sym_max": torch.sym_max,
    "torch.sym_min": torch.sym_min,
    "torch.sym_float": torch.sym_float,
    "torch.sym_int": torch.sym_int,
    "torch.sym_not": torch.sym_not,
    "builtins.max": max,
    "builtins.min": min,
}  # fmt: skip
_ARITHMETIC_NAMES = {function: name for name, function in _ARITHMETIC.items()}


def _target(function: object) -> str:
    """The name of a function that can be found again."""
    if isinstance(function, torch._ops.OpOverload):
        return f"op {function._schema.name} {function._overloadname}"
    try:
        return _ARITHMETIC_NAMES[function]
    except (KeyError, TypeError):
        raise Bypass(f"{function} is no operator") from None


def _found(name: object) -> Callable:
    if not isinstance(name, str):
        raise Damaged("a function without a name")
    known = _ARITHMETIC.get(name)
    if known is not None:
        return known
    kind, _, rest = name.partition(" ")
    full, _, overload = rest.partition(" ")
    if kind != "op":
        raise Damaged(f"no operator {name!r}")
    return find_operator(full, overload)


def find_operator(full: object, overload: object) -> torch._ops.OpOverload:
    """An operator by the name of its schema and overload. Raises Damaged."""
    name = f"{full}.{overload}"
    namespace, _, op = str(full).partition("::")
    if not op.isidentifier() or not str(overload).isidentifier():
        raise Damaged(f"no operator {name!r}")
    found = getattr(getattr(getattr(torch.ops, namespace, None), op, None), overload, None)
    if not isinstance(found, torch._ops.OpOverload):
        raise Damaged(f"no operator {name!r}")
    return found


def describe_function(function: object) -> str:
    """A function of a captured graph by its name, for keys. Only functions of the library and of
    the standard library that are found under their own name: what they do is fixed by the build."""
    if isinstance(function, torch._ops.OpOverload):
        if function.namespace not in _OWN_NAMESPACES:
            raise Bypass(f"{function}: what a custom operator does is not part of a key")
        return f"op {function._schema.name} {function._overloadname}"
    if isinstance(function, torch._ops.OpOverloadPacket):
        if function._qualified_op_name.partition("::")[0] not in _OWN_NAMESPACES:
            raise Bypass(f"{function}: what a custom operator does is not part of a key")
        return f"packet {function._qualified_op_name}"
    if isinstance(function, torch._ops.HigherOrderOperator):
        raise Bypass(f"higher-order operator {function}")
    module = getattr(function, "__module__", None)
    name = getattr(function, "__qualname__", None) or getattr(function, "__name__", None)
    if function in _ARITHMETIC_NAMES:
        return _ARITHMETIC_NAMES[function]
    owner = getattr(function, "__objclass__", None) or getattr(function, "__self__", None)
    if isinstance(owner, type):
        module, name = owner.__module__, f"{owner.__qualname__}.{function.__name__}"
    found = _named(module, name) or _named("torch", name) or _of_library(function, name)
    if found is None or found[1] is not function:
        raise Bypass(f"{function} is not found by its name")
    if found[0].partition(".")[0] not in ("torch", "math", "operator", "_operator", "builtins"):
        raise Bypass(f"{function} does not belong to the library")
    return f"{found[0]}:{name}"


_OWN_NAMESPACES = frozenset({"aten", "prims", "prim", "inductor", "_c10d_functional", "quantized"})


def _named(module: object, name: object) -> tuple[str, object] | None:
    found: object = sys.modules.get(module) if isinstance(module, str) else None
    if found is None or not isinstance(name, str):
        return None
    for part in name.split("."):
        found = getattr(found, part, None)
    return None if found is None else (module, found)


def _of_library(function: object, name: object) -> tuple[str, object] | None:
    """Builtin functions that do not say where they are."""
    for module in ("torch._C._nn", "torch._C._VariableFunctions", "torch._C", "torch.nn.functional",
                   "torch._C._linalg", "torch._C._fft", "torch._C._special"):  # fmt: skip
        found = _named(module, name)
        if found is not None and found[1] is function:
            return found
    return None


# ---- values ---------------------------------------------------------------------------------


def _number(value: object) -> Json:
    """A size, or the text of a symbolic one."""
    return int(value) if type(value) is int else {"y": str(value)}


def encode_value(value: object, numbers: dict[fx.Node, int], *, key: bool = False) -> Json:
    """An argument of a node as data. With `key` also what cannot be read back."""
    kind = type(value)
    if kind in _PLAIN:
        return value
    if isinstance(value, fx.Node):
        return {"n": numbers[value]}
    if kind is tuple:
        return {"t": [encode_value(v, numbers, key=key) for v in value]}
    if isinstance(value, list):
        return [encode_value(v, numbers, key=key) for v in value]
    if isinstance(value, dict):
        rows = [[k, encode_value(v, numbers, key=key)] for k, v in value.items()]
        if not all(type(k) is str for k, _ in rows):
            raise Bypass("a dictionary with keys that are no strings")
        return {"m": rows}
    simple = _SIMPLE.get(kind)
    if simple is not None:
        return {simple: str(value)}
    if kind is torch.Size:
        return {"z": [encode_value(v, numbers, key=key) for v in value]}
    if kind is slice:
        parts = (value.start, value.stop, value.step)
        return {"s": [encode_value(v, numbers, key=key) for v in parts]}
    if kind is complex:
        return {"c": [value.real, value.imag]}
    if value is Ellipsis:
        return {"e": 0}
    if key and isinstance(value, _SYMBOLIC):
        return {"y": str(value)}
    if key and callable(value):
        return {"g": describe_function(value)}
    raise Bypass(f"a value of type {kind.__module__}.{kind.__qualname__} in a graph")


_SIMPLE = {
    torch.dtype: "d",
    torch.device: "v",
    torch.layout: "l",
    torch.memory_format: "f",
}
_SIMPLE_TYPES = {tag: kind for kind, tag in _SIMPLE.items()}


def decode_value(data: Json, nodes: Sequence[fx.Node]) -> object:
    """The value of data. Raises Damaged."""
    if isinstance(data, list):
        return [decode_value(v, nodes) for v in data]
    if not isinstance(data, dict):
        return data
    if len(data) != 1:
        raise Damaged("a value with several kinds")
    ((tag, held),) = data.items()
    if tag == "n":
        if type(held) is not int or not 0 <= held < len(nodes):
            raise Damaged("a node that is not there")
        return nodes[held]
    if tag in _SIMPLE_TYPES:
        return _simple(_SIMPLE_TYPES[tag], held)
    if tag == "e":
        return Ellipsis
    if not isinstance(held, list):
        raise Damaged(f"unknown value {tag!r}")
    if tag == "m":
        return {str(k): decode_value(v, nodes) for k, v in held}
    items = [decode_value(v, nodes) for v in held]
    if tag == "t":
        return tuple(items)
    if tag == "z":
        return torch.Size(items)
    if tag == "s" and len(items) == 3:
        return slice(*items)
    if tag == "c" and len(items) == 2:
        return complex(*items)
    raise Damaged(f"unknown value {tag!r}")


def _simple(kind: type, text: object) -> object:
    if not isinstance(text, str):
        raise Damaged("a name that is no text")
    if kind is torch.device:
        return torch.device(text)
    found = getattr(torch, text.removeprefix("torch."), None)
    if type(found) is not kind:
        raise Damaged(f"{text} is no {kind.__name__}")
    return found


# ---- constants ------------------------------------------------------------------------------


def encode_constant(value: object) -> Json:
    """A small tensor by its contents. Raises Bypass."""
    if type(value) not in (torch.Tensor, torch.nn.Parameter) or torch._C._is_fake(value):
        raise Bypass(f"a constant of type {type(value).__name__}")
    if value.layout is not torch.strided or value.device.type != "cpu" or value.is_quantized:
        raise Bypass(f"a constant on {value.device} with layout {value.layout}")
    plain = value.is_contiguous() and not value.is_conj() and not value.is_neg()
    if not plain or value.numel() * value.element_size() > _LARGEST_CONSTANT:
        raise Bypass("a constant that is large or strided")
    with torch.no_grad():
        flat = value.detach().reshape(-1)
        raw = bytes(flat.view(torch.uint8).tolist()) if flat.numel() else b""
    text = base64.b64encode(raw).decode()
    return {"dtype": str(value.dtype), "shape": list(value.shape), "data": text}


def _constant_of(data: Json) -> torch.Tensor:
    dtype = _simple(torch.dtype, data["dtype"])
    raw = bytearray(base64.b64decode(data["data"], validate=True))
    shape = [int(n) for n in data["shape"]]
    made = torch.frombuffer(raw, dtype=dtype) if raw else torch.empty(0, dtype=dtype)
    return made.clone().reshape(shape)


def _attribute(module: torch.nn.Module, path: str) -> object:
    found: object = module
    for name in path.split("."):
        found = getattr(found, name)
    return found


# ---- graphs ---------------------------------------------------------------------------------


def encode_graph(gm: fx.GraphModule) -> Json:
    """A graph of operators as data that decode_graph reads. Raises Bypass."""
    numbers: dict[fx.Node, int] = {}
    rows: list[Json] = []
    constants: list[Json] = []
    for node in gm.graph.nodes:
        args = encode_value(tuple(node.args), numbers)["t"]
        kwargs = encode_value(dict(node.kwargs), numbers)
        if node.op == "call_function":
            rows.append([node.name, _target(node.target), args, kwargs])
        elif node.op == "get_attr":
            rows.append([node.name, "constant", len(constants), None])
            constants.append(encode_constant(_attribute(gm, node.target)))
        elif node.op == "placeholder":
            rows.append([node.name, "input", None, None])
        elif node.op == "output":
            rows.append([node.name, "output", args, None])
        else:
            raise Bypass(f"{node.op} {node.target}")
        numbers[node] = len(numbers)
    return {"nodes": rows, "constants": constants}


def decode_graph(data: Json) -> fx.GraphModule:
    """The graph of data. Raises Damaged."""
    try:
        return _decoded(data)
    except (
        AssertionError,
        AttributeError,
        IndexError,
        KeyError,
        RuntimeError,
        TypeError,
        ValueError,
    ) as error:
        raise Damaged(f"{type(error).__name__}: {error}") from error


def _decoded(data: Json) -> fx.GraphModule:
    root = torch.nn.Module()
    for i, held in enumerate(data["constants"]):
        setattr(root, f"_constant{i}", _constant_of(held))
    graph = fx.Graph()
    nodes: list[fx.Node] = []
    for name, what, args, kwargs in data["nodes"]:
        if type(name) is not str or not name.isidentifier():
            raise Damaged("a node without a name")
        if what == "input":
            nodes.append(graph.create_node("placeholder", name, (), {}, name))
        elif what == "constant":
            if type(args) is not int or not hasattr(root, f"_constant{args}"):
                raise Damaged("a constant that is not there")
            nodes.append(graph.create_node("get_attr", f"_constant{args}", (), {}, name))
        elif what == "output":
            graph.output(decode_value(args, nodes)[0])
        else:
            given = tuple(decode_value(args, nodes)), decode_value(kwargs, nodes)
            nodes.append(graph.create_node("call_function", _found(what), *given, name))
    if not any(node.op == "output" for node in graph.nodes):
        raise Damaged("a graph without an end")
    return _LazyGraphModule(root, graph, "<stored>")


# ---- keys -----------------------------------------------------------------------------------


def describe_graph(gm: fx.GraphModule) -> Json:
    """Everything of a captured or traced graph that decides what is compiled. Raises Bypass."""
    numbers: dict[fx.Node, int] = {}
    rows: list[Json] = []
    for node in gm.graph.nodes:
        args = encode_value(tuple(node.args), numbers, key=True)
        kwargs = encode_value(dict(node.kwargs), numbers, key=True)
        target: Json = None
        if node.op == "call_function":
            target = describe_function(node.target)
        elif node.op == "get_attr":
            held = _attribute(gm, node.target)
            if not isinstance(held, torch.Tensor):
                raise Bypass(f"attribute {node.target} of type {type(held).__name__}")
            target = encode_constant(held)
        elif node.op == "call_method":
            target = node.target
        elif node.op == "call_module":
            raise Bypass(f"a call of the module {node.target}")
        numbers[node] = len(numbers)
        rows.append([node.op, target, args, kwargs])
    return rows


def describe_input(value: object) -> Json:
    """What of an input decides which code is generated for it. Raises Bypass."""
    if isinstance(value, torch.Tensor):
        if type(value) not in (torch.Tensor, torch.nn.Parameter) and not torch._C._is_fake(value):
            raise Bypass(f"an input of type {type(value).__name__}")
        if value.layout is not torch.strided or value.is_quantized:
            raise Bypass(f"an input with layout {value.layout}")
        return [
            str(value.dtype),
            [_number(n) for n in value.shape],
            [_number(n) for n in value.stride()],
            str(value.device),
            value.requires_grad,
            isinstance(value, torch.nn.Parameter),
            value.is_conj() or value.is_neg() or value.is_inference(),
        ]
    if type(value) in _PLAIN:
        return {"value": value}
    if isinstance(value, _SYMBOLIC):
        return {"y": str(value)}
    raise Bypass(f"an input of type {type(value).__name__}")
