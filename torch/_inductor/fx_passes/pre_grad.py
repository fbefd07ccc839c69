"""Passes over the graph that Dynamo captured, before it is traced for its derivative. Patterns are
applied by name when config.pre_grad_fusion_options asks for them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from torch import fx
from torch._inductor import config
from torch._inductor._passes import run_custom_pass, run_pass
from torch._inductor.fx_passes.conv_layout import channels_last_convolutions
from torch._inductor.fx_passes.fuse_attention import fuse_attention
from torch._inductor.fx_passes.matmul_passes import (
    linear_permute_fusion,
    linear_transpose,
    permute_linear_fusion,
    permute_matmul_fusion,
    sink_cat_after_pointwise,
    transpose_linear,
    transpose_matmul,
)
from torch._inductor.pattern_matcher import PatternMatcherPass, stable_topological_sort

__all__ = [
    "PRE_GRAD_FUSIONS",
    "PRE_GRAD_PATTERNS",
    "linear_permute_fusion",
    "linear_transpose",
    "permute_linear_fusion",
    "permute_matmul_fusion",
    "pre_grad_passes",
    "sink_cat_after_pointwise",
    "transpose_linear",
    "transpose_matmul",
]

PRE_GRAD_PATTERNS: dict[str, PatternMatcherPass] = {}
PRE_GRAD_FUSIONS: dict[str, Callable[[fx.GraphModule], object]] = {}


def pre_grad_passes(
    gm: fx.GraphModule,
    example_inputs: Sequence[object] = (),
    add_passes: str | None = None,
    remove_passes: str | None = None,
) -> fx.GraphModule:
    """Changes the captured graph: what users registered by name, then their own pass."""
    run_pass(
        gm,
        "channels_last_convolutions",
        lambda _: channels_last_convolutions(gm),
        subsystem="pre_grad_passes",
    )
    if config.pattern_matcher:
        run_pass(gm, "fuse_attention", lambda _: fuse_attention(gm), subsystem="pre_grad_passes")
        for name in config.pre_grad_fusion_options:
            if name in PRE_GRAD_PATTERNS:
                run_pass(gm, name, PRE_GRAD_PATTERNS[name].apply, subsystem="pre_grad_passes")
            elif name in PRE_GRAD_FUSIONS:
                fusion = PRE_GRAD_FUSIONS[name]
                run_pass(gm, name, lambda _, run=fusion: run(gm), subsystem="pre_grad_passes")
    if config.permute_fusion:
        for fusion in (permute_linear_fusion, linear_permute_fusion, permute_matmul_fusion):
            name = fusion.__name__
            run_pass(gm, name, lambda _, run=fusion: run(gm), subsystem="pre_grad_passes")
    run_custom_pass(gm, "pre_grad_custom_pass", config.pre_grad_custom_pass)
    asked = (config.pre_grad_fusion_options, config.permute_fusion, config.pre_grad_custom_pass)
    if any(asked):
        stable_topological_sort(gm.graph)
        gm.graph.lint()
        gm.recompile()
    return gm
