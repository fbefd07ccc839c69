"""Patterns that run once parameters are constants: other packages register theirs here."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from torch import fx
from torch._inductor.pattern_matcher import (
    Match,
    PatternMatcherPass,
    register_graph_pattern,
    stable_topological_sort,
)

__all__ = ["freezing_passes", "register_freezing_graph_pattern"]

pass_patterns = [PatternMatcherPass(pass_name=f"freezing_pattern_{i}") for i in range(3)]


def _return_true(match: Match) -> bool:
    return True


def register_freezing_graph_pattern(
    pattern: object, extra_check: Callable[[Match], bool] = _return_true, pass_number: int = 0
) -> Callable:
    """A decorator: the function rewrites what matches, in the pass of that number."""
    return register_graph_pattern(
        pattern, extra_check=extra_check, pass_dict=pass_patterns[pass_number]
    )


def freezing_passes(gm: fx.GraphModule, aot_example_inputs: Sequence[object]) -> None:
    """Runs the registered patterns over a graph whose parameters are constants."""
    changed = sum(patterns.apply(gm.graph) for patterns in pass_patterns)
    if changed:
        stable_topological_sort(gm.graph)
        gm.recompile()
        gm.graph.lint()
