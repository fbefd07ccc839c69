"""Which modules were running when a node was made, as programs say it: by their paths in the module
that was exported. The bytecode tracer knows them by the expressions that reach them."""

from __future__ import annotations

import re

from torch import fx, nn

__all__ = ["name_modules"]

_ROOT = re.compile(r"L\['\w+'\]")
_STEP = re.compile(r"\._modules\['([^']+)'\]|\.(\w+)|\['?(\w+)'?\]")


def _path(expression: str) -> str | None:
    """l.0 of L['self']._modules['l']._modules['0']; None where it is no path."""
    root = _ROOT.match(expression)
    if root is None:
        return None
    names, end = [], root.end()
    while end < len(expression):
        step = _STEP.match(expression, end)
        if step is None:
            return None
        names.append(next(filter(None, step.groups())))
        end = step.end()
    return ".".join(names)


def name_modules(gm: fx.GraphModule, mod: nn.Module) -> None:
    """Names the modules in the notes of a graph's nodes, and of the graphs that it holds."""
    known = {path for path, _ in mod.named_modules(remove_duplicate=False)}
    done: dict[int, dict] = {}
    for module in gm.modules():
        if not isinstance(module, fx.GraphModule):
            continue
        for node in module.graph.nodes:
            stack = node.meta.get("nn_module_stack")
            if stack is None:
                continue
            if node.op in ("placeholder", "output"):
                del node.meta["nn_module_stack"]
                continue
            if id(stack) not in done:
                done[id(stack)] = _named(stack, mod, known)
            node.meta["nn_module_stack"] = done[id(stack)]


def _named(stack: dict, mod: nn.Module, known: set[str]) -> dict[str, tuple[str, str]]:
    found = {"": ("", _class_name(type(mod)))}
    for key, (expression, kind) in stack.items():
        path = _path(expression)
        if path in known:
            _, at, number = key.rpartition("@")
            found[f"{path}@{number}" if at else path] = (path, _class_name(kind))
    return found


def _class_name(kind: type | str) -> str:
    return kind if isinstance(kind, str) else f"{kind.__module__}.{kind.__qualname__}"
