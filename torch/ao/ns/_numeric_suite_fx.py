"""Comparison of two forms of a traced model, operator by operator: their weights, what flows
through them (`add_loggers`), what one computes from the other's inputs (`add_shadow_loggers`), and
many quantized forms of each operator beside the float one (`prepare_n_shadows_model`).

    mp = prepare_fx(model, mapping, example_inputs)
    mq = convert_fx(copy.deepcopy(mp))
    results = extract_weights("fp32", mp, "int8", mq)
    extend_logger_results_with_comparison(results, "fp32", "int8", compute_sqnr, "sqnr")

Results are records by layer, kind of value and model."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import nn
from torch.ao.ns.fx import graph_passes, n_shadows
from torch.ao.ns.fx.graph_matcher import get_matching_subgraph_pairs
from torch.ao.ns.fx.loggers import OutputComparisonLogger, OutputLogger, is_logger, record_of
from torch.ao.ns.fx.mappings import Families, get_node_type_to_io_type_map
from torch.ao.ns.fx.n_shadows import (
    _n_shadows_compare_weights,
    _prepare_n_shadows_add_loggers_model,
    convert_n_shadows_model,
    extract_results_n_shadows_model,
    loggers_set_enabled,
    loggers_set_save_activations,
    prepare_n_shadows_model,
    print_comparisons_n_shadows_model,
)
from torch.ao.ns.fx.ns_types import NSNodeTargetType, NSResultsType, NSSingleResultValuesType
from torch.ao.ns.fx.weight_utils import Extractors, extract_weight_from_node
from torch.ao.quantization.fx.tracer import QuantizationTracer
from torch.ao.quantization.observer import _is_activation_post_process
from torch.fx import GraphModule

__all__ = [
    "NSTracer",
    "OutputComparisonLogger",
    "OutputLogger",
    "_n_shadows_compare_weights",
    "_prepare_n_shadows_add_loggers_model",
    "add_loggers",
    "add_shadow_loggers",
    "convert_n_shadows_model",
    "extend_logger_results_with_comparison",
    "extract_logger_info",
    "extract_results_n_shadows_model",
    "extract_shadow_logger_info",
    "extract_weights",
    "loggers_set_enabled",
    "loggers_set_save_activations",
    "prepare_n_shadows_model",
    "print_comparisons_n_shadows_model",
]

Unmatchable = dict[str, set[NSNodeTargetType]]
RNNReturnType = tuple[torch.Tensor, tuple[torch.Tensor, torch.Tensor]]
SHADOW_WRAPPER_NODE_NAME_PREFIX = n_shadows.WRAPPER


class NSTracer(QuantizationTracer):
    """Records observers as single calls too."""

    def is_leaf_module(self, m: nn.Module, module_qualified_name: str) -> bool:
        return _is_activation_post_process(m) or super().is_leaf_module(m, module_qualified_name)


def _traced(model: nn.Module) -> GraphModule:
    tracer = NSTracer([], [])
    made = GraphModule(model, tracer.trace(model))
    made._node_name_to_scope = {
        node.name: (str(node.target),) for node in made.graph.nodes if node.op == "call_module"
    } | tracer.node_name_to_scope
    return made


# ---- weights -------------------------------------------------------------------------------------
def _extract_weights_impl(
    model_name_a: str,
    gm_a: GraphModule,
    model_name_b: str,
    gm_b: GraphModule,
    base_name_to_sets_of_related_ops: Families | None = None,
    unmatchable_types_map: Unmatchable | None = None,
    op_to_type_to_weight_extraction_fn: Extractors | None = None,
) -> NSResultsType:
    pairs = get_matching_subgraph_pairs(
        gm_a, gm_b, base_name_to_sets_of_related_ops, unmatchable_types_map
    )
    results: NSResultsType = {}
    for part_a, part_b in pairs.values():
        records = [
            extract_weight_from_node(part.base_op_node, gm, op_to_type_to_weight_extraction_fn)
            for part, gm in ((part_a, gm_a), (part_b, gm_b))
        ]
        if None in records:
            continue
        fqn = next((r["fqn"] for r in records if r["fqn"] is not None), None)
        for record in records:
            record["fqn"] = fqn if record["fqn"] is None else record["fqn"]
        found = dict(zip((model_name_a, model_name_b), ([r] for r in records), strict=True))
        results[part_b.base_op_node.name] = {NSSingleResultValuesType.WEIGHT.value: found}
    return results


def extract_weights(
    model_name_a: str,
    model_a: nn.Module,
    model_name_b: str,
    model_b: nn.Module,
    base_name_to_sets_of_related_ops: Families | None = None,
    unmatchable_types_map: Unmatchable | None = None,
    op_to_type_to_weight_extraction_fn: Extractors | None = None,
) -> NSResultsType:
    """The weights of matching layers of two models."""
    return _extract_weights_impl(
        model_name_a,
        _traced(model_a),
        model_name_b,
        _traced(model_b),
        base_name_to_sets_of_related_ops,
        unmatchable_types_map,
        op_to_type_to_weight_extraction_fn,
    )


# ---- values --------------------------------------------------------------------------------------
def _add_loggers_impl(
    name_a: str,
    gm_a: GraphModule,
    name_b: str,
    gm_b: GraphModule,
    logger_cls: Callable,
    should_log_inputs: bool,
    base_name_to_sets_of_related_ops: Families | None = None,
    unmatchable_types_map: Unmatchable | None = None,
) -> tuple[nn.Module, nn.Module]:
    pairs = get_matching_subgraph_pairs(
        gm_a, gm_b, base_name_to_sets_of_related_ops, unmatchable_types_map
    )
    made = [
        graph_passes.with_loggers(
            name, gm, {n: pair[i] for n, pair in pairs.items()}, logger_cls, should_log_inputs
        )
        for i, (name, gm) in enumerate(((name_a, gm_a), (name_b, gm_b)))
    ]
    return made[0], made[1]


def add_loggers(
    name_a: str,
    model_a: nn.Module,
    name_b: str,
    model_b: nn.Module,
    logger_cls: Callable,
    should_log_inputs: bool = False,
    base_name_to_sets_of_related_ops: Families | None = None,
    unmatchable_types_map: Unmatchable | None = None,
) -> tuple[nn.Module, nn.Module]:
    """Both models with loggers behind, and before, their matching operators."""
    return _add_loggers_impl(
        name_a,
        _traced(model_a),
        name_b,
        _traced(model_b),
        logger_cls,
        should_log_inputs,
        base_name_to_sets_of_related_ops,
        unmatchable_types_map,
    )


def _add_shadow_loggers_impl(
    name_a: str,
    gm_a: GraphModule,
    name_b: str,
    gm_b: GraphModule,
    logger_cls: Callable,
    should_log_inputs: bool,
    base_name_to_sets_of_related_ops: Families | None = None,
    node_type_to_io_type_map: dict[str, set[NSNodeTargetType]] | None = None,
    unmatchable_types_map: Unmatchable | None = None,
) -> nn.Module:
    pairs = get_matching_subgraph_pairs(
        gm_a, gm_b, base_name_to_sets_of_related_ops, unmatchable_types_map
    )
    table = node_type_to_io_type_map or get_node_type_to_io_type_map()
    return graph_passes.create_a_shadows_b(
        (name_a, name_b), gm_a, gm_b, pairs, logger_cls, should_log_inputs, table
    )


def add_shadow_loggers(
    name_a: str,
    model_a: nn.Module,
    name_b: str,
    model_b: nn.Module,
    logger_cls: Callable,
    should_log_inputs: bool = False,
    base_name_to_sets_of_related_ops: Families | None = None,
    node_type_to_io_type_map: dict[str, set[NSNodeTargetType]] | None = None,
    unmatchable_types_map: Unmatchable | None = None,
) -> nn.Module:
    """Model b, where each operator of model a also runs, on the inputs of b's."""
    return _add_shadow_loggers_impl(
        name_a,
        _traced(model_a),
        name_b,
        _traced(model_b),
        logger_cls,
        should_log_inputs,
        base_name_to_sets_of_related_ops,
        node_type_to_io_type_map,
        unmatchable_types_map,
    )


# ---- results -------------------------------------------------------------------------------------
def _collected(model: nn.Module, logger_cls: Callable, results: NSResultsType) -> None:
    for module in model.modules():
        if is_logger(module, logger_cls):
            kinds = results.setdefault(module.ref_name, {})
            models = kinds.setdefault(module.results_type, {})
            models.setdefault(module.model_name, []).append(record_of(module))


def _by_layer(results: NSResultsType, model_name: str) -> NSResultsType:
    """The same by the names of one model's nodes, and with the names of modules where only one of
    the two records has it."""
    named: NSResultsType = {}
    for kinds in results.values():
        layer = None
        for models in reversed(kinds.values()):
            for records in models.values():
                records.sort(key=lambda r: (r["index_of_arg"], r["index_within_arg"]))
            layer = layer or models[model_name][0]["ref_node_name"]
            found = [r for records in models.values() for r in records]
            fqn = next((r["fqn"] for r in found if r["fqn"] is not None), None)
            for record in found:
                record["fqn"] = fqn if record["fqn"] is None else record["fqn"]
        named[layer] = kinds
    return named


def extract_logger_info(
    model_a: nn.Module,
    model_b: nn.Module,
    logger_cls: Callable,
    model_name_to_use_for_layer_names: str,
) -> NSResultsType:
    """What the loggers of two models have kept."""
    results: NSResultsType = {}
    for model in (model_a, model_b):
        _collected(model, logger_cls, results)
    return _by_layer(results, model_name_to_use_for_layer_names)


def extract_shadow_logger_info(
    model_a_shadows_b: nn.Module, logger_cls: Callable, model_name_to_use_for_layer_names: str
) -> NSResultsType:
    """What the loggers of a model and of its shadows have kept."""
    results: NSResultsType = {}
    _collected(model_a_shadows_b, logger_cls, results)
    return _by_layer(results, model_name_to_use_for_layer_names)


def extend_logger_results_with_comparison(
    results: NSResultsType,
    model_name_1: str,
    model_name_2: str,
    comparison_fn: Callable[[torch.Tensor, torch.Tensor], torch.Tensor],
    comparison_name: str,
) -> None:
    """Adds to each record of the second model its distance from the first one's."""
    for kinds in results.values():
        for models in kinds.values():
            first = {(r["index_of_arg"], r["index_within_arg"]): r for r in models[model_name_1]}
            for record in models[model_name_2]:
                other = first.get((record["index_of_arg"], record["index_within_arg"]))
                if other is None:
                    continue
                pairs = zip(other["values"], record["values"], strict=False)
                record[comparison_name] = [comparison_fn(a, b) for a, b in pairs]
