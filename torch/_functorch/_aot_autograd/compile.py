"""From a traced graph to a function: dividing the joint graph, compiling its parts, and putting the
runtime around them."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable

import torch
from torch import fx
from torch._functorch._aot_autograd.graph_names import graph_being_compiled
from torch._functorch._aot_autograd.random import moves_generator
from torch._functorch._aot_autograd.runtime import (
    CompiledBackward,
    assembled,
    boxed,
)
from torch._functorch._aot_autograd.schemas import (
    AOTConfig,
    OutputType,
    ViewAndMutationMeta,
)
from torch._functorch._aot_autograd.trace import Traced, write_node
from torch._guards import CompileContext, compile_context

__all__ = ["compile_traced"]


def compile_traced(traced: Traced, config: AOTConfig) -> Callable[[list[object]], list[object]]:
    """A boxed function of the flat arguments."""
    if not traced.meta.is_train:
        _log_graph("aot_graphs", "aot_inference_graph", traced.module)
        compiler = config.inference_compiler or config.fw_compiler
        with graph_being_compiled(config, "inference"):
            compiled = boxed(compiler(traced.module, traced.example_inputs))
        if traced.meta.moves_generator:
            compiled = moves_generator(compiled, _dense_returns(traced.meta))
        if config.cache_info is not None:
            config.cache_info.save(traced.meta)
        return assembled(traced.meta, compiled)
    return assembled(traced.meta, *_trained(traced, config))


def _dense_returns(meta: ViewAndMutationMeta) -> int:
    """How many values a graph returns for its function."""
    return sum(1 if w is None else w.count() for w in meta.return_layout.wrappers)


def _trained(traced: Traced, config: AOTConfig) -> tuple[Callable, CompiledBackward]:
    """The compiled forward graph, and the backward graph to be compiled when it is needed."""
    meta = traced.meta
    inside = meta.written_in_graph
    returns = _dense_returns(meta)
    offsets = 1 if meta.moves_generator else 0
    _log_graph("aot_joint_graph", "aot_joint_graph", traced.module)
    forward, backward = config.partition_fn(
        traced.module,
        traced.example_inputs,
        num_fwd_outputs=len(inside) + returns + offsets,
    )
    _move_writes(forward, traced)
    _log_graph("aot_graphs", "aot_forward_graph", forward)
    _log_graph("aot_graphs", "aot_backward_graph", backward)
    meta.num_symints_saved_for_bw = _count_saved_syms(forward, returns)
    count = len(traced.example_inputs) - len(meta.traced_tangents) - 2 * offsets
    with graph_being_compiled(config, "forward"):
        compiled_forward = boxed(config.fw_compiler(forward, traced.example_inputs[:count]))
    if offsets:
        compiled_forward = moves_generator(compiled_forward, returns)
    inputs = [n.meta.get("val") for n in backward.graph.find_nodes(op="placeholder")]
    if config.cache_info is not None:
        config.cache_info.save_early(meta, backward, inputs)

    owner = CompileContext.try_get()

    def compile_backward() -> Callable:
        # Records and logs name the compilation that the graph belongs to.
        named = contextlib.nullcontext() if owner is None else compile_context(owner)
        with named, graph_being_compiled(config, "backward"):
            compiled = config.bw_compiler(backward, inputs)
        if config.cache_info is not None:
            config.cache_info.save(meta, inputs)
        return moves_generator(boxed(compiled), -1) if offsets else compiled

    return compiled_forward, CompiledBackward(compile_backward)


def _log_graph(artifact: str, record: str, gm: fx.GraphModule) -> None:
    """A graph for TORCH_LOGS and TORCH_TRACE, where somebody reads it."""
    from torch._logging import getArtifactLogger, trace_structured

    def text() -> str:
        return gm.print_readable(print_output=False, include_stride=True, include_device=True)

    logger = getArtifactLogger("torch._functorch._aot_autograd", artifact)
    if logger.isEnabledFor(logging.DEBUG):
        title = record.removeprefix("aot_").replace("_", " ")
        logger.debug("TRACED GRAPH\n ===== %s =====\n %s", title.capitalize(), text())
    trace_structured(record, payload_fn=text)


def _count_saved_syms(forward: fx.GraphModule, returns: int) -> int:
    saved = forward.graph.output_node().args[0][returns:]
    kinds = (torch.SymInt, torch.SymFloat, torch.SymBool)
    return sum(isinstance(n, fx.Node) and isinstance(n.meta.get("val"), kinds) for n in saved)


def _move_writes(forward: fx.GraphModule, traced: Traced) -> None:
    """The first outputs of a joint graph are values of inputs that the graph writes itself: they
    become writes at its end. A saved input that is written is saved as a copy."""
    meta, graph = traced.meta, forward.graph
    inside = meta.written_in_graph
    if not inside:
        return
    output = graph.output_node()
    values = list(output.args[0])
    new_values, kept = values[: len(inside)], values[len(inside) :]
    placeholders = graph.find_nodes(op="placeholder")
    for index in inside:
        node = placeholders[index]
        saved = [i for i, v in enumerate(kept) if v is node and i >= meta.num_forward_returns]
        if saved:
            with graph.inserting_after(placeholders[-1]):
                copy = graph.call_function(torch.ops.aten.clone.default, (node,))
            copy.meta["val"] = node.meta.get("val")
            for i in saved:
                kept[i] = copy
    with graph.inserting_before(output):
        for index, value in zip(inside, new_values, strict=True):
            written = write_node(graph, placeholders[index], value, meta, index)
            for i, info in enumerate(meta.output_info, len(meta.written)):
                if info.output_type is OutputType.is_input and info.base_idx == index:
                    kept[i] = written
    output.args = (tuple(kept),)
    forward.recompile()
