"""torch.jit.freeze: a module whose graph has the values of its attributes as constants."""

from __future__ import annotations

import torch
from torch.jit import _types as T
from torch.jit._classes import unique_name
from torch.jit._function import ScriptFunction
from torch.jit._ir import Graph, Value
from torch.jit._modules import RecursiveScriptModule
from torch.jit._rewrites import eliminate_common_expressions, eliminate_dead_code
from torch.jit._trace import TraceSource


def freeze(module, preserved=None, check: bool = True) -> RecursiveScriptModule:
    """A frozen copy; attributes and methods of `preserved` stay."""
    if not isinstance(module, RecursiveScriptModule):
        raise RuntimeError(
            "Freezing expects a ScriptModule as input. Please use torch.jit.script or "
            "torch.jit.trace "
            "to script your 'nn.Module'."
        )
    if check and module.training:
        raise RuntimeError(
            "Freezing is currently only implemented for modules in eval mode. Please call .eval() "
            "on "
            "your module before freezing."
        )
    keep = set(preserved or ())
    old = module._script_type
    for name in keep:
        if name not in old.attributes and name not in old.methods:
            raise RuntimeError(f"Unknown name: {name}")
    kind = T.ClassType(unique_name(old.qualified_name), True)
    kind.container = ""
    kind.python = old.python
    written = _written(module)
    for name, attribute in old.attributes.items():
        if name in keep or name in written:
            kind.add_attribute(name, attribute, old.roles.get(name, ""))
    for name in ("forward", *keep):
        function = old.methods.get(name)
        if isinstance(function, ScriptFunction):
            made = _frozen(module, function, kind, keep | written)
            kind.add_method(name, made)
            made.ensure_compiled()
    return _instance(module, kind)


def _instance(module: RecursiveScriptModule, kind: T.ClassType) -> RecursiveScriptModule:
    handle = torch._C._script_object(kind.info)
    subs = {}
    for name, slot in kind.slots.items():
        value = getattr(module, name)
        if isinstance(value, RecursiveScriptModule):
            subs[name] = value
        handle.set(slot, value, kind.attributes[name].handle())
    made = RecursiveScriptModule.__new__(RecursiveScriptModule)
    RecursiveScriptModule.__init__(made, handle, kind, subs)
    object.__setattr__(made, "_frozen", True)
    object.__setattr__(made, "training", False)
    return made


def _written(module: RecursiveScriptModule) -> set[str]:
    """Attributes that the module's own code sets."""
    out: set[str] = set()
    for function in module._script_type.methods.values():
        if isinstance(function, ScriptFunction):
            for node in function.inlined_graph.all_nodes():
                if node.kind_name == "prim::SetAttr":
                    out.add(node.attrs["name"])
    return out & set(module._script_type.attributes)


def _frozen(module, function: ScriptFunction, kind: T.ClassType, keep: set[str]) -> ScriptFunction:
    graph = function.inlined_graph
    receiver = graph.block.params[0].setType(kind)
    known: dict[Value, object] = {receiver: module}
    for node in list(graph.all_nodes()):
        if node.kind_name != "prim::GetAttr" or node.input() not in known:
            continue
        owner, name = known[node.input()], node.attrs["name"]
        if owner is module and name in keep:
            continue
        value = getattr(owner, name)
        if isinstance(value, RecursiveScriptModule):
            known[node.output()] = value
        else:
            node.kind_name, node.inputs_list = "prim::Constant", []
            value = value.detach() if isinstance(value, torch.Tensor) else value
            node.attrs = {"value": value}
    _check_gone(graph, known, receiver)
    eliminate_dead_code(graph)
    eliminate_common_expressions(graph)
    parameters = [p._replace(type=kind) if i == 0 else p for i, p in enumerate(function.arguments)]
    return ScriptFunction(function.name, f"{kind.qualified_name}.{function.name}",
                          TraceSource(graph, parameters))  # fmt: skip


def _check_gone(graph: Graph, known: dict[Value, object], receiver: Value) -> None:
    for node in graph.all_nodes(returns=True):
        if node.kind_name == "prim::GetAttr":
            continue
        for value in node.inputs_list:
            if value in known and value is not receiver:
                raise RuntimeError(f"a submodule is used by {node.kind_name}, it cannot be frozen")
