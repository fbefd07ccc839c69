"""Tracing of `assert`: the source of a function is rewritten so that an assertion is a call of
torch._assert, which a trace can record."""

import ast
import copy
import functools
import inspect
import textwrap
from collections.abc import Callable
from types import FunctionType
from typing import Any

import torch
from torch.fx._symbolic_trace import Tracer
from torch.fx.graph import Graph

__all__ = ["AST_Rewriter", "RewritingTracer"]


class AST_Rewriter(ast.NodeTransformer):
    """Rewrites functions."""

    def rewrite(self, fn: FunctionType) -> FunctionType:
        """The function, compiled anew from its rewritten source with its own globals, defaults and
        closure."""
        tree = self.visit(ast.parse(textwrap.dedent(inspect.getsource(fn))))
        definition = tree.body[0]
        definition.decorator_list = []
        # A function inside a function that gives it its free variables.
        free = fn.__code__.co_freevars
        if free:
            tree.body = [_closure_maker(definition, free)]
        ast.fix_missing_locations(tree)
        space = dict(fn.__globals__)
        exec(compile(tree, inspect.getsourcefile(fn) or "<rewritten>", "exec"), space)
        made = space["_make"](*[None] * len(free)) if free else space[definition.name]
        rewritten = FunctionType(
            made.__code__, fn.__globals__, fn.__name__, fn.__defaults__, fn.__closure__
        )
        functools.update_wrapper(rewritten, fn, updated=())
        del rewritten.__wrapped__
        rewritten.__kwdefaults__ = fn.__kwdefaults__
        return rewritten

    def visit_Assert(self, node: ast.Assert) -> ast.AST:
        """`assert test, message` as `torch._assert(test, message)`."""
        message = node.msg if node.msg is not None else ast.Constant("")
        called = ast.parse("__import__('torch')._assert", mode="eval").body
        call = ast.Expr(ast.Call(func=called, args=[self.visit(node.test), message], keywords=[]))
        return ast.copy_location(call, node)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        """`x: T = value` as `x = annotate(value, T)`, so that the type reaches the graph."""
        if node.value is None:
            return node
        called = ast.parse("__import__('torch.fx.annotate').fx.annotate.annotate", mode="eval").body
        value = ast.Call(func=called, args=[self.visit(node.value), node.annotation], keywords=[])
        return ast.copy_location(ast.Assign(targets=[node.target], value=value), node)


def _closure_maker(definition: ast.FunctionDef, free: tuple[str, ...]) -> ast.FunctionDef:
    maker = ast.parse(f"def _make({', '.join(free)}):\n    return None").body[0]
    maker.body = [definition, ast.Return(ast.Name(definition.name, ast.Load()))]
    return maker


class RewritingTracer(Tracer):
    """A tracer that records assertions."""

    def trace(
        self,
        root: torch.nn.Module | Callable,
        concrete_args: dict[str, Any] | None = None,
    ) -> Graph:
        """Rewrites the root and everything inside it, then traces it."""
        return super().trace(_rewrite(root), concrete_args)


def _rewrite(fn: torch.nn.Module | Callable) -> torch.nn.Module | Callable:
    if not isinstance(fn, torch.nn.Module):
        return AST_Rewriter().rewrite(fn)
    children = {name: child and _rewrite(child) for name, child in fn._modules.items()}
    own = not type(fn).__module__.startswith("torch.") and not _is_generated(type(fn).forward)
    if not own and all(children[name] is child for name, child in fn._modules.items()):
        return fn  # layers of torch.nn stay what they are, and so does what holds nothing else
    made = copy.copy(fn)
    made.__dict__ = {**fn.__dict__, "_modules": children}
    if own:
        rewritten = AST_Rewriter().rewrite(type(fn).forward)
        body = {"forward": rewritten, "__module__": type(fn).__module__}
        made.__class__ = type(type(fn).__name__, (type(fn),), body)
    return made


def _is_generated(fn: Callable) -> bool:
    """Whether a function has no source to rewrite."""
    try:
        inspect.getsource(fn)
    except (OSError, TypeError):
        return True
    return "<eval_with_key>" in fn.__code__.co_filename
