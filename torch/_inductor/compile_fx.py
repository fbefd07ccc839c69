"""The backend "inductor": graphs go through AOTAutograd, and each part becomes a compiled function.
A graph that the compiler does not take is run as it is."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence

from torch import fx
from torch._functorch.aot_autograd import aot_module_simplified
from torch._functorch.partitioners import min_cut_rematerialization_partition
from torch._inductor import config, metrics
from torch._inductor.graph import FirstCall, NotLowered, as_it_is, compiled_graph

__all__ = ["compile_fx", "compile_fx_inner"]

Inner = Callable[[fx.GraphModule, Sequence[object]], Callable]


def compile_fx_inner(
    gm: fx.GraphModule, example_inputs: Sequence[object], **unused: object
) -> Callable[[list[object]], Sequence[object]]:
    """A function of a list of arguments that computes what a graph of operators computes. It may
    empty the list."""
    for custom_pass in (config.post_grad_custom_pre_pass, config.post_grad_custom_post_pass):
        if custom_pass is not None:
            custom_pass(gm.graph)
    try:
        compiled, made = compiled_graph(gm, example_inputs)
    except NotLowered as reason:
        metrics.not_lowered.append(str(reason))
        return as_it_is(gm)
    metrics.ir_nodes_pre_fusion += len(gm.graph.nodes)
    if made is None:
        return FirstCall(compiled, gm)
    text, kernels, calls, nbytes = made
    metrics.generated_kernel_count += kernels
    metrics.generated_cpp_vec_kernel_count += kernels
    metrics.num_calls += calls
    metrics.num_bytes_accessed += nbytes
    if config.debug:
        print(text)
    return compiled


def _partition(joint: fx.GraphModule, inputs: Sequence[object], **kwargs: object) -> tuple:
    for custom_pass in (config.joint_custom_pre_pass, config.joint_custom_post_pass):
        if custom_pass is not None:
            custom_pass(joint.graph)
    chosen = config.custom_partitioner_fn or min_cut_rematerialization_partition
    return chosen(joint, inputs, compiler="inductor", **kwargs)


def compile_fx(
    model_: fx.GraphModule,
    example_inputs_: Sequence[object],
    inner_compile: Inner = compile_fx_inner,
    config_patches: dict[str, object] | None = None,
    decompositions: dict | None = None,
    **unused: object,
) -> Callable:
    """A compiled form of a module of flat inputs and outputs, as torch.compile's backends are
    called. With gradients its backward is compiled when it is first needed."""
    if config_patches:
        with config.patch(config_patches):
            return compile_fx(model_, example_inputs_, inner_compile, None, decompositions)
    if config.pre_grad_custom_pass is not None:
        config.pre_grad_custom_pass(model_.graph)
        model_.recompile()
    forward = functools.partial(inner_compile, is_inference=False)
    backward = functools.partial(inner_compile, is_backward=True)
    inference = functools.partial(inner_compile, is_inference=True)
    return aot_module_simplified(
        model_,
        example_inputs_,
        fw_compiler=forward,
        bw_compiler=backward,
        inference_compiler=inference,
        partition_fn=_partition,
        decompositions=decompositions or {},
        keep_inference_input_mutations=True,
    )
