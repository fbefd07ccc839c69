"""Operators that take functions: control flow and the tools of tracing. Each has a module of its
own name, as programs import them from there; the package shows the functions."""

from torch._higher_order_ops.associative_scan import associative_scan
from torch._higher_order_ops.auto_functionalize import auto_functionalized, auto_functionalized_v2
from torch._higher_order_ops.cond import cond
from torch._higher_order_ops.effects import with_effects
from torch._higher_order_ops.flex_attention import flex_attention, flex_attention_backward
from torch._higher_order_ops.hints_wrap import hints_wrapper
from torch._higher_order_ops.invoke_subgraph import invoke_subgraph
from torch._higher_order_ops.map import map
from torch._higher_order_ops.out_dtype import out_dtype
from torch._higher_order_ops.rng import (
    graphsafe_run_with_rng_state,
    run_and_save_rng_state,
    run_with_rng_state,
)
from torch._higher_order_ops.scan import scan
from torch._higher_order_ops.strict_mode import strict_mode
from torch._higher_order_ops.while_loop import while_loop
from torch._higher_order_ops.wrap import tag_activation_checkpoint, wrap

__all__ = [
    "associative_scan",
    "auto_functionalized",
    "auto_functionalized_v2",
    "cond",
    "flex_attention",
    "flex_attention_backward",
    "graphsafe_run_with_rng_state",
    "hints_wrapper",
    "invoke_subgraph",
    "map",
    "out_dtype",
    "run_and_save_rng_state",
    "run_with_rng_state",
    "scan",
    "strict_mode",
    "tag_activation_checkpoint",
    "while_loop",
    "with_effects",
    "wrap",
]
