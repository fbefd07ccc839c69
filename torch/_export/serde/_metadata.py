"""What programs note on their nodes, as text and back: lines of the program, the modules that were
running, the functions that were called. Reading looks names up in modules that are loaded already
and takes nothing but classes of modules, functions and operators of torch; it calls nothing."""

from __future__ import annotations

import json
import operator
import sys
import types

import torch
from torch import fx
from torch._export.serde.schema import SchemaError
from torch._ops import HigherOrderOperator, OpOverload

__all__ = ["metadata_of", "metadata_text", "read_json"]

_NAMESPACES = ("_operator", "math", "operator", "torch")


def metadata_text(node: fx.Node) -> dict[str, str]:
    """The notes of a node."""
    found = {}
    if node.meta.get("stack_trace"):
        found["stack_trace"] = node.meta["stack_trace"]
    stack = node.meta.get("nn_module_stack")
    if stack:
        rows = [f"{key},{path},{_text(kind)}" for key, (path, kind) in stack.items()]
        found["nn_module_stack"] = ";".join(rows)
    called = node.meta.get("source_fn_stack")
    if called:
        found["source_fn_stack"] = ";".join(f"{name},{_text(fn)}" for name, fn in called)
    if node.meta.get("torch_fn"):
        found["torch_fn"] = ";".join(map(str, node.meta["torch_fn"]))
    if node.meta.get("custom"):
        found["custom"] = json.dumps(node.meta["custom"])
    return found


def _text(value: object) -> str:
    """The full name of a class, a function or an operator."""
    if isinstance(value, str):
        return value
    if isinstance(value, OpOverload):
        return f"torch.ops.{value}"
    if isinstance(value, HigherOrderOperator):
        return f"torch.ops.higher_order.{value.__name__}"
    name = getattr(value, "__name__", None) or type(value).__name__
    if vars(torch).get(name) is value:
        return f"torch.{name}"
    if vars(operator).get(name) is value:
        return f"_operator.{name}"
    qualified = getattr(value, "__qualname__", name)
    return f"{getattr(value, '__module__', None) or type(value).__module__}.{qualified}"


def metadata_of(held: dict[str, str]) -> dict[str, object]:
    """Notes for a node."""
    found: dict[str, object] = {}
    if "stack_trace" in held:
        found["stack_trace"] = held["stack_trace"]
    if held.get("nn_module_stack"):
        rows = [_split(row) for row in held["nn_module_stack"].split(";")]
        found["nn_module_stack"] = {r[0]: (r[1], r[2]) for r in rows if len(r) == 3}
    if held.get("source_fn_stack"):
        rows = [_split(row) for row in held["source_fn_stack"].split(";")]
        found["source_fn_stack"] = [(r[0], _named(r[1])) for r in rows if len(r) == 2]
    if "torch_fn" in held:
        found["torch_fn"] = tuple(held["torch_fn"].split(";"))
    if "custom" in held:
        found["custom"] = read_json(held["custom"])
    return found


def _named(text: str) -> object:
    """What a name stands for; the name where it stands for nothing of the known kinds."""
    parts = text.split(".")
    if len(parts) == 1:
        return text
    if parts[:2] == ["torch", "ops"]:
        return _operator_named(parts[2:], text)
    for end in range(len(parts) - 1, 0, -1):
        module = sys.modules.get(".".join(parts[:end]))
        if not isinstance(module, types.ModuleType):
            continue
        found: object = module
        for name in parts[end:]:
            found = vars(found).get(name) if isinstance(found, (types.ModuleType, type)) else None
        function = callable(found) and parts[0] in _NAMESPACES
        layer = isinstance(found, type) and issubclass(found, torch.nn.Module)
        return found if function or layer else text
    return text


def _operator_named(parts: list[str], text: str) -> object:
    found: object = torch.ops
    for name in parts:
        found = None if name.startswith("__") else getattr(found, name, None)
    return found if isinstance(found, (OpOverload, HigherOrderOperator)) else text


def _split(text: str) -> list[str]:
    """Parts between commas that are in no brackets."""
    parts, depth = [""], 0
    for char in text:
        depth += (char in "([") - (char in ")]")
        if char == "," and depth <= 0:
            parts.append("")
        else:
            parts[-1] += char
    return parts


def read_json(text: str) -> object:
    """The value that JSON stands for."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise SchemaError(f"not JSON: {text!r:.80}") from error
