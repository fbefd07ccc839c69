"""Passes over graphs as they are lowered: forward, backward or inference. Users' passes come first
and last; between them patterns, and writes that functionalisation had turned into copies."""

from __future__ import annotations

import torch
from torch import fx
from torch._inductor import config
from torch._inductor._passes import run_custom_pass, run_pass
from torch._inductor.custom_graph_pass import CustomInferenceAwareGraphPass
from torch._inductor.fx_passes.foreach import decompose_foreach
from torch._inductor.fx_passes.pre_grad import PRE_GRAD_PATTERNS
from torch._inductor.fx_passes.reinplace import (
    decompose_auto_functionalized,
    reinplace_inplaceable_ops,
)
from torch._inductor.pattern_matcher import PatternMatcherPass, stable_topological_sort

__all__ = [
    "decompose_auto_functionalized",
    "pass_patterns",
    "post_grad_passes",
    "reinplace_inplaceable_ops",
    "remove_noop_ops",
    "view_to_reshape",
]

aten = torch.ops.aten
pass_patterns = [
    PatternMatcherPass(pass_name="pass_pattern_0"),
    PatternMatcherPass(pass_name="pass_pattern_1"),
    PatternMatcherPass(pass_name="pass_pattern_2"),
]
_SAME = (aten.alias.default, aten.detach.default, aten.lift_fresh.default)


def remove_noop_ops(graph: fx.Graph) -> None:
    """Leaves out operators that return their argument as it is."""
    output = next(n for n in reversed(graph.nodes) if n.op == "output")
    returned = set(output.all_input_nodes)
    for node in list(graph.nodes):
        if node.target not in _SAME or not isinstance(node.args[0], fx.Node):
            continue
        source = node.args[0]
        # An input that is returned must stay another tensor.
        if node in returned and (source.op == "placeholder" or source in returned):
            continue
        node.replace_all_uses_with(source)
        graph.erase_node(node)


def view_to_reshape(gm: fx.GraphModule) -> None:
    """aten.view becomes aten.reshape, which takes any strides."""
    for node in gm.graph.nodes:
        if node.target is aten.view.default:
            node.target = aten.reshape.default


def post_grad_passes(gm: fx.GraphModule, is_inference: bool) -> None:
    """Changes the graph of a module in place."""
    changed = _custom(gm, "post_grad_custom_pre_pass", is_inference)
    if config.use_post_grad_passes:
        run_pass(gm, "remove_noop_ops", remove_noop_ops, subsystem="post_grad_passes")
        run_pass(gm, "decompose_foreach", decompose_foreach, subsystem="post_grad_passes")
        if config.pattern_matcher:
            changed |= _patterns(gm)
    changed |= _custom(gm, "post_grad_custom_post_pass", is_inference)
    if changed:
        stable_topological_sort(gm.graph)
    found = run_pass(
        gm, "reinplace_inplaceable_ops", reinplace_inplaceable_ops, subsystem="post_grad_passes"
    )
    changed |= bool(found) | decompose_auto_functionalized(gm.graph) | _of_devices(gm)
    if changed:  # checks and texts of a large graph take longer than all passes
        gm.graph.eliminate_dead_code()
        gm.graph.lint()
        gm.recompile()


def _patterns(gm: fx.GraphModule) -> bool:
    asked = [n for n in config.post_grad_fusion_options if n in PRE_GRAD_PATTERNS]
    chosen = [*pass_patterns, *(PRE_GRAD_PATTERNS[name] for name in asked)]
    counts = [
        run_pass(gm, str(one.pass_name), one.apply, subsystem="post_grad_passes") for one in chosen
    ]
    return any(counts)


def _of_devices(gm: fx.GraphModule) -> bool:
    """Passes that backends of other devices registered, for graphs with such tensors."""
    from torch._inductor.codegen.common import device_codegens

    if not any(found.custom_pass is not None for found in device_codegens.values()):
        return False
    values = [node.meta.get("val") for node in gm.graph.nodes]
    kinds = dict.fromkeys(v.device.type for v in values if isinstance(v, torch.Tensor))
    for kind in kinds:
        found = device_codegens.get(kind)
        if found is not None and found.custom_pass is not None:
            run = found.custom_pass
            run_custom_pass(gm, f"custom pass of {kind}", lambda _, run=run: run(gm))
    return True


def _custom(gm: fx.GraphModule, setting: str, is_inference: bool) -> bool:
    function = getattr(config, setting)
    aware = isinstance(function, CustomInferenceAwareGraphPass)
    run_custom_pass(gm, setting, function, *([is_inference] if aware else []))
    return function is not None
