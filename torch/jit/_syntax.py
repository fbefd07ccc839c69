"""Questions about syntax trees that need no types: what a block assigns, how it can be left."""

from __future__ import annotations

import ast
from collections.abc import Sequence

_LEAVE = {"return": ast.Return, "break": ast.Break, "continue": ast.Continue}


def may_leave(body: Sequence[object], how: tuple[str, ...]) -> bool:
    """Whether a statement of these kinds can be reached; break belongs to the loop around it."""
    wanted = tuple(_LEAVE[name] for name in how)
    return any(_may_leave(s, wanted) for s in body if isinstance(s, ast.AST))


def _may_leave(node: ast.AST, wanted: tuple[type[ast.AST], ...]) -> bool:
    if isinstance(node, wanted):
        return True
    if isinstance(node, ast.FunctionDef | ast.Lambda | ast.ClassDef):
        return False
    if isinstance(node, ast.For | ast.While):
        wanted = tuple(w for w in wanted if w is ast.Return)
        if not wanted:
            return False
    return any(_may_leave(child, wanted) for child in ast.iter_child_nodes(node))


def leaves_always(body: Sequence[object]) -> bool:
    """Whether control never comes to the end of these statements."""
    for step in body:
        if isinstance(step, ast.Return | ast.Break | ast.Continue | ast.Raise):
            return True
        if isinstance(step, ast.If) and step.orelse:
            if leaves_always(step.body) and leaves_always(step.orelse):
                return True
        if isinstance(step, ast.With) and leaves_always(step.body):
            return True
    return False


def assigned_names(body: Sequence[ast.stmt], loop: ast.stmt) -> list[str]:
    """Names that the statements of a loop may assign, in order."""
    out: dict[str, None] = {}
    if isinstance(loop, ast.For):
        _targets(loop.target, out)
    for step in body:
        if not isinstance(step, ast.AST):
            continue
        for node in ast.walk(step):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                out[node.id] = None
            elif isinstance(node, ast.AugAssign):
                _targets(node.target, out)
    return list(out)


def _targets(node: ast.AST, out: dict[str, None]) -> None:
    for child in ast.walk(node):
        if isinstance(child, ast.Name) and isinstance(child.ctx, ast.Store):
            out[child.id] = None


def free_names(node: ast.AST) -> list[str]:
    """Names that a nested function reads."""
    out: dict[str, None] = {}
    for child in ast.walk(node):
        if isinstance(child, ast.Name) and isinstance(child.ctx, ast.Load):
            out[child.id] = None
    return list(out)
