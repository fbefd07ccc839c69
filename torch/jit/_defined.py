"""Methods of a ScriptModule given as text (ScriptModule.define)."""

from __future__ import annotations

import ast
import sys

import torch
from torch.jit._annotations import PythonTypes
from torch.jit._function import ScriptFunction, compile_body, read_signature
from torch.jit._ir import Graph, Source


class TextSource:
    """A function definition in a text; its names are those of `scope`."""

    def __init__(self, node: ast.FunctionDef, source: Source, scope, receiver=None) -> None:
        self.node, self.source, self.scope, self.receiver = node, source, scope, receiver

    def signature(self, function: ScriptFunction):
        names = [a.arg for a in self.node.args.args]
        values = self.node.args.defaults
        defaults = {
            n: ast.literal_eval(v)
            for n, v in zip(names[len(names) - len(values) :], values, strict=True)
        }
        return read_signature(self.node, PythonTypes(self.scope), defaults, self.receiver, function)

    def compile(self, function: ScriptFunction) -> Graph:
        def resolve(name: str, c):
            from torch.jit._resolve import sugar

            return sugar(self.scope[name], c) if name in self.scope else None

        return compile_body(function, self.node.body, self.source, resolve, PythonTypes(self.scope))


def _dedented(text: str) -> str:
    """Without the indent of the first line that counts; lines of comments and inside of brackets
    may stand further left."""
    lines = text.expandtabs().split("\n")
    first = next((n for n in lines if n.strip() and not n.lstrip().startswith("#")), "")
    indent = len(first) - len(first.lstrip())
    return "\n".join(n[indent:] if not n[:indent].strip() else n.lstrip() for n in lines)


def functions_in(
    text: str, scope: dict[str, object], prefix: str, receiver=None
) -> list[ScriptFunction]:
    """The functions that a text defines, not yet compiled."""
    text = _dedented(text)
    source = Source(text, "<string>")
    out = []
    try:
        tree = ast.parse(text, type_comments=True)
    except SyntaxError as e:
        shown = (e.text or "").rstrip()
        raise RuntimeError(f"expected a valid token, line {e.lineno}:\n{shown}: {e.msg}") from None
    for node in tree.body:
        if isinstance(node, ast.FunctionDef):
            origin = TextSource(node, source, scope, receiver)
            out.append(ScriptFunction(node.name, f"{prefix}{node.name}", origin))
    return out


def define_methods(kind, text: str, scope: dict[str, object]) -> None:
    """Compiles the functions of a text as methods of a module's type."""
    import builtins
    import math

    scope = {**vars(builtins), "torch": torch, "math": math, **scope}
    made = functions_in(text, scope, f"{kind.qualified_name}.", kind)
    for function in made:
        kind.add_method(function.name, function)
    for function in made:
        function.ensure_compiled()


def add_defined(kind, module: torch.nn.Module) -> None:
    """Compiles what the module was given by define()."""
    own = vars(sys.modules.get(type(module).__module__, torch))
    for text, local in module.__dict__.get("_defined_sources", ()):
        define_methods(kind, text, {**own, **local})
