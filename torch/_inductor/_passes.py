"""How a pass is run: its time is noted, the bisector may leave it out, the graph is checked after
it, and an error says which pass it was."""

from __future__ import annotations

from collections.abc import Callable

from torch import fx
from torch._dynamo.utils import dynamo_timed
from torch._inductor.exc import InductorError

__all__ = ["run_custom_pass", "run_pass"]


def run_pass(
    gm: fx.GraphModule, name: str, function: Callable[[fx.Graph], object], *, subsystem: str
) -> object:
    """Runs one of our passes on the graph of a module."""
    from torch._inductor.compiler_bisector import CompilerBisector

    if CompilerBisector.disable_subsystem("inductor", subsystem, lambda: name):
        return None
    with dynamo_timed(name):
        return function(gm.graph)


def run_custom_pass(
    gm: fx.GraphModule, setting: str, function: Callable | None, *args: object
) -> None:
    """Runs the pass that a setting names, if it does."""
    if function is None:
        return
    label = f"{setting} ({getattr(function, '__name__', type(function).__name__)})"
    try:
        with dynamo_timed(setting):
            returned = function(gm.graph, *args)
        if isinstance(returned, fx.Graph) and returned is not gm.graph:
            gm.graph = returned
    except Exception as error:
        raise InductorError(f"{label} raised {type(error).__name__}: {error}") from error
    try:
        gm.graph.lint()
    except Exception as error:
        raise InductorError(f"{label} left a graph that is not valid: {error}") from error
    gm.recompile()
