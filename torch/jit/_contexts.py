"""with statements of scripted code: gradient modes of torch, and classes with __enter__ and
__exit__."""

from __future__ import annotations

import ast
import typing
from collections.abc import Callable

import torch
from torch.jit import _types as T
from torch.jit._sugar import PythonObject


class Context(typing.NamedTuple):
    """What runs before and after the block."""

    enter: Callable[[], None]
    leave: Callable[[], None]


_QUIET = {"record_function", "profile", "strict_fusion"}  # change no value
_GRAD = {torch.no_grad: False, torch.enable_grad: True, torch.inference_mode: False}


def enter(c, item: ast.withitem) -> Context:
    """The context of one item of a with statement."""
    call = item.context_expr
    function = call.func if isinstance(call, ast.Call) else None
    if isinstance(function, ast.Name | ast.Attribute):
        found = c.expression(function)
        if isinstance(found, PythonObject):
            return _python_context(c, found.python, call)
    return _class_context(c, item)


def _python_context(c, python: object, call: ast.Call) -> Context:
    if python in _GRAD:
        return _grad_mode(c, lambda: c.const(_GRAD[python]))
    if python is torch.set_grad_enabled:
        return _grad_mode(c, lambda: c.rvalue(call.args[0]))
    name = getattr(python, "__name__", type(python).__name__)
    if name in _QUIET:
        return Context(lambda: None, lambda: None)
    hint = ": enter it around the call of the scripted function" if name == "autocast" else ""
    c.fail(f"with statements over '{name}' aren't supported in scripted code{hint}", call)


def _grad_mode(c, wanted) -> Context:
    kept = []

    def begin() -> None:
        kept.append(c.op("aten::is_grad_enabled", []))
        c.op("aten::set_grad_enabled", [wanted()])

    return Context(begin, lambda: c.op("aten::set_grad_enabled", [kept[0]]))


def _check_context(c, kind: T.Type, where: ast.expr) -> None:
    if not isinstance(kind, T.ClassType):
        c.fail(f"With item expression must return an object, not {kind.annotation_str}", where)
    if not {"__enter__", "__exit__"} <= set(kind.methods):
        c.fail(f"{kind} does not define __enter__ and __exit__ methods", where)
    enter_method, exit_method = kind.methods["__enter__"], kind.methods["__exit__"]
    enter_method.declare()
    exit_method.declare()
    if len(enter_method.arguments) != 1:
        c.fail("__enter__ must have only one argument and one return value", where)
    if len(exit_method.arguments) != 4:
        c.fail("__exit__ must have four arguments", where)
    for i, argument in enumerate(exit_method.arguments[1:], 1):
        if argument.type is not T.Any:
            c.fail(f"argument {i} of __exit__ must have Any type", where)


def _class_context(c, item: ast.withitem) -> Context:
    kept = []

    def begin() -> None:
        value = c.rvalue(item.context_expr)
        kind = value.type()
        _check_context(c, kind, item.context_expr)
        kept.append(value)
        entered = c.call_method(value, "__enter__", [], {})
        if item.optional_vars is not None:
            c.store(item.optional_vars, entered, item.context_expr)

    def end() -> None:
        nothing = [c.none() for _ in range(3)]
        c.call_method(kept[0], "__exit__", nothing, {})

    return Context(begin, end)
