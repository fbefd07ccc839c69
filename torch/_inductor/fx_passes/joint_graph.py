"""Passes over the traced graph, with its derivative where there is one: what changes nothing is
left out, since the partitioner would otherwise save it."""

from __future__ import annotations

import functools

import torch
from torch import fx
from torch._inductor import config
from torch._inductor._passes import run_custom_pass, run_pass
from torch._inductor.pattern_matcher import (
    CallFunction,
    KeywordArg,
    Match,
    PatternMatcherPass,
    register_graph_pattern,
    stable_topological_sort,
)

__all__ = ["joint_graph_passes", "lazy_init", "pass_patterns", "patterns"]

aten = torch.ops.aten
patterns = PatternMatcherPass(pass_name="joint_graph_patterns", subsystem="joint_graph_passes")
pass_patterns = [patterns]


@functools.cache
def lazy_init() -> None:
    """Registers patterns of operators that few graphs hold."""
    convert = torch.ops.prims.convert_element_type.default
    inner = CallFunction(convert, KeywordArg("arg"), KeywordArg("dtype1"))
    pattern = CallFunction(convert, inner, KeywordArg("dtype2"))
    register_graph_pattern(pattern, pass_dict=patterns)(pointless_convert)


def _has_prims(graph: fx.Graph) -> bool:
    return any(getattr(node.target, "namespace", None) == "prims" for node in graph.nodes)


def joint_graph_passes(graph: fx.GraphModule) -> fx.GraphModule:
    """Changes a traced graph in place."""
    if _has_prims(graph.graph):
        lazy_init()
    run_custom_pass(graph, "joint_custom_pre_pass", config.joint_custom_pre_pass)
    from torch._inductor.fx_passes.post_grad import remove_noop_ops

    run_pass(graph, "remove_noop_ops", remove_noop_ops, subsystem="joint_graph_passes")
    count = 0
    if config.pattern_matcher:
        count += _read_half_scores(graph)
        for one in pass_patterns:
            count += (
                run_pass(graph, "joint_graph_patterns", one.apply, subsystem="joint_graph_passes")
                or 0
            )
    run_custom_pass(graph, "joint_custom_post_pass", config.joint_custom_post_pass)
    if count:
        stable_topological_sort(graph.graph)
        graph.graph.lint()
        graph.recompile()
    return graph


def _read_half_scores(graph: fx.GraphModule) -> int:
    if not any(n.target is aten._cross_entropy_rows.default for n in graph.graph.nodes):
        return 0
    from torch._inductor.fx_passes.half_scores import read_half_scores

    return run_pass(graph, "half_scores", read_half_scores, subsystem="joint_graph_passes") or 0


def _same_view(match: Match, arg: fx.Node) -> None:
    match.output_node().replace_all_uses_with(arg)
    match.erase_nodes()


@register_graph_pattern(
    CallFunction(
        aten.view.default, CallFunction(aten.view.default, KeywordArg("arg"), KeywordArg("one")),
        KeywordArg("two"),
    ),
    pass_dict=patterns,
)  # fmt: skip
def pointless_view_pair(match: Match, arg: fx.Node, one: object, two: list) -> None:
    """Two views of which the second undoes the first."""
    value = arg.meta.get("val")
    if isinstance(value, torch.Tensor) and list(value.shape) == list(two):
        _same_view(match, arg)


@register_graph_pattern(
    CallFunction(
        aten.permute.default,
        CallFunction(aten.permute.default, KeywordArg("arg"), KeywordArg("perm1")),
        KeywordArg("perm2"),
    ),
    pass_dict=patterns,
)
def pointless_permute_pair(match: Match, arg: fx.Node, perm1: list, perm2: list) -> None:
    """Two permutations of which the second undoes the first."""
    if [perm1[i] for i in perm2] == list(range(len(perm1))):
        _same_view(match, arg)


def _widens(narrow: torch.dtype, wide: torch.dtype) -> bool:
    return (
        narrow.is_floating_point
        and wide.is_floating_point
        and torch.finfo(narrow).bits <= torch.finfo(wide).bits
        and torch.finfo(narrow).eps >= torch.finfo(wide).eps
        and torch.finfo(narrow).max <= torch.finfo(wide).max
    )


def pointless_convert(match: Match, arg: fx.Node, dtype1: torch.dtype, dtype2: torch.dtype) -> None:
    """A conversion to a wider floating dtype and on from there loses nothing by leaving the first
    out."""
    value = arg.meta.get("val")
    source = value.dtype if isinstance(value, torch.Tensor) else None
    if source is not None and _widens(source, dtype1):
        node = match.output_node()
        made = match.graph.call_function(node.target, (arg, dtype2))
        made.meta.update(node.meta)
        node.replace_all_uses_with(made)
        match.erase_nodes()
