"""Patterns in graphs, for users who change what the compiler makes of a model:

    passes = PatternMatcherPass()
    register_replacement(search, replacement, example_inputs, fwd_only, passes)
    torch._inductor.config.post_grad_custom_post_pass = passes.apply

The parts stand in torch/_inductor/_matching; this module gathers their names."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import torch
from torch import fx
from torch._inductor._matching.expressions import (
    MULTIPLE,
    Arg,
    CallFunction,
    CallFunctionVarArgs,
    CallMethod,
    CallMethodVarArgs,
    CallModule,
    CallModuleVarArgs,
    ExclusiveKeywordArg,
    FailedMatch,
    Ignored,
    KeywordArg,
    ListOf,
    MultiOutputPattern,
    Multiple,
    PatternExpr,
    RepeatedExpr,
)
from torch._inductor._matching.match import (
    GraphPatternEntry,
    LoweringPatternEntry,
    Match,
    MatchContext,
    PatternEntry,
    PatternMatcherPass,
    ReplacementPatternEntry,
    is_match,
    stable_topological_sort,
)
from torch._inductor._matching.printing import PatternPrettyPrinter
from torch._inductor._matching.regions import (
    compute_mutation_region_ids,
    get_mutation_region_id,
    is_mutation_op,
    is_start_of_fx_graph,
    same_mutation_regions,
    should_compute_mutation_region_ids,
)
from torch._inductor._matching.replacement import (
    _known_precompiled_patterns,
    _return_true,
    clone_graph,
    fwd_only,
    fx_to_pattern,
    gen_pattern,
    gen_pattern_and_search_gm,
    gen_register_replacement,
    init_once_fakemode,
    joint_fwd_bwd,
    register_graph_pattern,
    register_lowering_pattern,
    register_replacement,
)

__all__ = [
    "MULTIPLE",
    "Arg",
    "CallFunction",
    "CallFunctionVarArgs",
    "CallMethod",
    "CallMethodVarArgs",
    "CallModule",
    "CallModuleVarArgs",
    "ExclusiveKeywordArg",
    "FailedMatch",
    "GraphPatternEntry",
    "Ignored",
    "KeywordArg",
    "ListOf",
    "LoweringPatternEntry",
    "Match",
    "MatchContext",
    "MultiOutputPattern",
    "Multiple",
    "PatternEntry",
    "PatternExpr",
    "PatternMatcherPass",
    "PatternPrettyPrinter",
    "RepeatedExpr",
    "ReplacementPatternEntry",
    "_known_precompiled_patterns",
    "_return_true",
    "clone_graph",
    "compute_mutation_region_ids",
    "config_flag",
    "extract_target",
    "filter_nodes",
    "fwd_only",
    "fx_to_pattern",
    "gen_pattern",
    "gen_pattern_and_search_gm",
    "gen_register_replacement",
    "get_arg_value",
    "get_mutation_region_id",
    "init_once_fakemode",
    "is_match",
    "is_mutation_op",
    "is_start_of_fx_graph",
    "joint_fwd_bwd",
    "register_graph_pattern",
    "register_lowering_pattern",
    "register_replacement",
    "same_mutation_regions",
    "should_compute_mutation_region_ids",
    "stable_topological_sort",
]


def config_flag(name: str) -> Callable[[Match], bool]:
    """A check that a setting of the compiler is on."""

    def flag_check(match: Match) -> bool:
        from torch._inductor import config

        return bool(getattr(config, name))

    return flag_check


def filter_nodes(nodes: Iterable[fx.Node], fn: object) -> list[fx.Node]:
    """The nodes that call a function or an overload of it."""
    wanted = [fn]
    if isinstance(fn, torch._ops.OpOverloadPacket):
        wanted += [getattr(fn, overload) for overload in fn.overloads()]
    return [node for node in nodes if node.target in wanted]


def get_arg_value(node: fx.Node, arg_number: int, kwarg_name: str | None = None) -> object:
    """An argument of a node, by its place or its name."""
    if len(node.args) > arg_number:
        return node.args[arg_number]
    return node.kwargs.get(kwarg_name)


def extract_target(node: fx.Node) -> object:
    """What a node calls; of a submodule, its class."""
    if node.op == "call_module":
        found: object = node.graph.owning_module
        for part in node.target.split("."):
            found = getattr(found, part)
        return type(found)
    return node.target
