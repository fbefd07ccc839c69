"""torch.jit.freeze: a module whose graph has the values of its attributes as constants."""

from __future__ import annotations

import torch
from torch.jit import _types as T
from torch.jit._alias import Aliases
from torch.jit._classes import unique_name
from torch.jit._constants import is_constant, propagate
from torch.jit._function import ScriptFunction
from torch.jit._ir import Graph, Value
from torch.jit._modules import RecursiveScriptModule
from torch.jit._rewrites import eliminate_common_expressions, eliminate_dead_code, inline
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
        _check_known(module, name)
    kind = T.ClassType(unique_name(old.qualified_name), True)
    kind.container = ""
    kind.python = old.python
    paths = _kept_paths(module, keep) | {tuple(name.split(".")) for name in keep}
    for name, attribute in old.attributes.items():
        if any(path[0] == name for path in paths):
            kind.add_attribute(name, attribute, old.roles.get(name, ""))
    for name in ("forward", *keep):
        function = old.methods.get(name)
        if isinstance(function, ScriptFunction):
            made = _frozen(module, function, kind, paths)
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


Path = tuple[str, ...]


def _paths(graph: Graph) -> dict[Value, Path]:
    """Where values of the graph lie in the module: attributes of attributes of self."""
    out: dict[Value, Path] = {graph.block.params[0]: ()} if graph.block.params else {}
    for node in graph.all_nodes():
        if node.kind_name == "prim::GetAttr" and node.input() in out:
            out[node.output()] = (*out[node.input()], node.attrs["name"])
    return out


def _check_known(module: RecursiveScriptModule, name: str) -> None:
    """RuntimeError unless a dotted name leads to an attribute or method."""
    *path, last = name.split(".")
    for part in path:
        module = getattr(module, part, None)
    kind = getattr(module, "_script_type", None)
    if kind is None or (last not in kind.attributes and last not in kind.methods):
        raise RuntimeError(f"Unknown name: {name}")


def _kept_paths(module: RecursiveScriptModule, keep: set[str]) -> set[Path]:
    """Attributes that the code that stays sets, or writes to in place."""
    out: set[Path] = set()
    for name in ("forward", *sorted(keep)):
        function = module._script_type.methods.get(name)
        if not isinstance(function, ScriptFunction):
            continue
        graph = _inlined(module, function)
        paths, aliases = _paths(graph), Aliases(graph, attributes_apart=True)
        for node in graph.all_nodes():
            if node.kind_name == "prim::SetAttr" and node.inputs_list[0] in paths:
                owner = _at(module, paths[node.inputs_list[0]])._script_type
                if isinstance(owner.attributes.get(node.attrs["name"]), T.InterfaceType):
                    raise RuntimeError("Freezing does not support SetAttr on an interface type.")
                out.add((*paths[node.inputs_list[0]], node.attrs["name"]))
            elif node.kind_name == "prim::GetAttr" and node.output() in paths:
                is_module = getattr(node.output().type(), "is_module", False)
                if not is_module and aliases.is_written(node.output()):
                    out.add(paths[node.output()])
    return out


def _inlined(module: RecursiveScriptModule, function: ScriptFunction) -> Graph:
    """The graph with every call inlined: which module an interface stands for is known here."""
    graph = function.inlined_graph
    while True:
        paths, found = _paths(graph), False
        for node in graph.all_nodes():
            path = paths.get(node.inputs_list[0]) if node.inputs_list else None
            if node.kind_name != "prim::CallMethod" or path is None:
                continue
            callee = _at(module, path)._script_type.methods.get(node.attrs["name"])
            if "function" not in node.attrs and isinstance(callee, ScriptFunction):
                node.attrs["function"] = callee
                found = True
        if not found:
            return graph
        inline(graph)


def _at(module: RecursiveScriptModule, path: Path) -> object:
    for name in path:
        module = getattr(module, name)
    return module


def _frozen(module, function: ScriptFunction, kind: T.ClassType, kept: set[Path]) -> ScriptFunction:
    graph = _inlined(module, function)
    receiver = graph.block.params[0].setType(kind)
    paths = _paths(graph)
    known: dict[Value, object] = {receiver: module}
    for node in list(graph.all_nodes()):
        if node.kind_name != "prim::GetAttr" or node.output() not in paths:
            continue
        path = paths[node.output()]
        value = _at(module, path)
        if any(path[: len(k)] == k or k[: len(path)] == path for k in kept):
            if isinstance(value, RecursiveScriptModule):
                node.output().setType(value._script_type)
            continue
        if isinstance(value, RecursiveScriptModule):
            known[node.output()] = value
        else:
            node.kind_name, node.inputs_list = "prim::Constant", []
            value = value.detach() if isinstance(value, torch.Tensor) else value
            node.attrs = {"value": value}
    _check_gone(graph, known, receiver)
    eliminate_dead_code(graph)
    propagate(graph)
    _remove_dropout(graph)
    eliminate_common_expressions(graph)
    parameters = [p._replace(type=kind) if i == 0 else p for i, p in enumerate(function.arguments)]
    return ScriptFunction(function.name, f"{kind.qualified_name}.{function.name}",
                          TraceSource(graph, parameters))  # fmt: skip


def _remove_dropout(graph: Graph) -> None:
    """Dropout of a module that is evaluated does nothing."""
    for node in list(graph.all_nodes()):
        if node.kind_name in ("aten::dropout", "aten::feature_dropout", "aten::alpha_dropout"):
            if is_constant(node.inputs_list[2]) and node.inputs_list[2].toIValue() is False:
                node.output().replaceAllUsesWith(node.inputs_list[0])
                node.destroy()


def _check_gone(graph: Graph, known: dict[Value, object], receiver: Value) -> None:
    for node in graph.all_nodes(returns=True):
        if node.kind_name == "prim::GetAttr":
            continue
        for value in node.inputs_list:
            if value in known and value is not receiver:
                raise RuntimeError(f"a submodule is used by {node.kind_name}, it cannot be frozen")
