"""Graphs for those who compile or store them by themselves: no runtime is put around an exported
graph, so that what would need one is refused."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import torch
import torch.utils._pytree as pytree
from torch import Tensor, fx, nn
from torch._functorch import config
from torch._functorch._aot_autograd.inputs import plan_merges
from torch._functorch._aot_autograd.pre_dispatch import trace_above_autograd
from torch._functorch._aot_autograd.schemas import (
    AOTConfig,
    BackwardSignature,
    GraphSignature,
    ViewAndMutationMeta,
)
from torch._functorch._aot_autograd.trace import Traced
from torch._functorch.compile_utils import get_outputs, get_placeholders
from torch.func import functional_call

__all__ = ["aot_export_joint_simple", "aot_export_module"]


def _settings(decompositions: dict | None, params: int, **more: object) -> AOTConfig:
    from torch._functorch.aot_autograd import AOT_COUNTER

    return AOTConfig(
        fw_compiler=None,
        bw_compiler=None,
        inference_compiler=None,
        partition_fn=None,
        decompositions=decompositions or {},
        num_params_buffers=params,
        aot_id=next(AOT_COUNTER),
        is_export=True,
        **more,
    )


def _exported(
    fn: Callable, args: Sequence[object], settings: AOTConfig, trace_joint: bool
) -> Traced:
    from torch._functorch.aot_autograd import _fake_mode, _prepared, _traced

    if config.functionalize_rng_ops:
        raise RuntimeError(
            "Functionalized RNG is not currently supported in the aot_export workflow. Please file "
            "a github issue, or otherwise set torch._functorch.config.functionalize_rng_ops = "
            "False."
        )
    mode = _fake_mode(args, settings.dynamic_shapes)
    with _prepared(mode), torch.set_grad_enabled(trace_joint or torch.is_grad_enabled()):
        traced = _traced(fn, args, mode, settings, joint=trace_joint)
    _refuse(args, traced.meta)
    return traced


def _refuse(args: Sequence[object], meta: ViewAndMutationMeta) -> None:
    for i, info in enumerate(meta.input_info):
        if info.mutates_metadata:
            raise RuntimeError(
                "Found an input that received a metadata mutation, through e.g. a call to "
                f"`.resize_()` or `.transpose_()`. This is currently banned in the aot_export "
                f"workflow. If you need this functionality, please file a github issue. Input {i}: "
                f"{info}"
            )
        if info.mutates_data and info.requires_grad:
            raise RuntimeError(
                "Found a graph input that requires gradients, and received a mutation. This is "
                "currently banned in the aot_export workflow. If you need this functionality, "
                f"please file a github issue. Input {i}: {info}"
            )
    plan = plan_merges(args, meta)
    if plan is None:
        return
    if plan.groups:
        raise RuntimeError(
            "Encountered aliased inputs that are mutated in the graph, but this is not supported "
            "in the aot_export workflow. Please file a github issue if you need it."
        )
    raise RuntimeError(
        "Encountered duplicated inputs that are mutated in the graph, but this is not supported in "
        "the aot_export workflow. Please file a github issue if you need it."
    )


def aot_export_joint_simple(
    func: Callable,
    args: Sequence[object],
    *,
    trace_joint: bool,
    num_params_buffers: int = 0,
    decompositions: dict | None = None,
) -> fx.GraphModule:
    """The graph of a function of tensors that returns a flat tuple, alone or with its derivative:
    (inputs, tangents) -> (outputs, gradients). The function must not write to its inputs."""
    if any(pytree.tree_structure(a) != pytree.LeafSpec() for a in args):
        raise RuntimeError(
            "aot_export_joint_simple requires individual inputs not to be pytrees. in_spec="
            f"{pytree.tree_structure(list(args))}"
        )

    def flat(*values: object) -> list[object]:
        found = func(*values)
        if not isinstance(found, (tuple, list)) or any(
            pytree.tree_structure(o) != pytree.LeafSpec() for o in found
        ):
            raise RuntimeError(
                "aot_export_joint_simple requires individual outputs not to be pytrees. out_spec="
                f"{pytree.tree_structure(found)}"
            )
        return list(found)

    settings = _settings(decompositions, num_params_buffers)
    with torch.set_grad_enabled(trace_joint):
        traced = _exported(flat, args, settings, trace_joint)
    for i, info in enumerate(traced.meta.input_info):
        if info.is_mutated:
            raise RuntimeError(
                f"aot_export_joint_simple does not support input mutations. Input {i}: {info}"
            )
    return traced.module


def aot_export_module(
    mod: nn.Module,
    args: Iterable[object],
    *,
    decompositions: dict | None = None,
    trace_joint: bool,
    output_loss_index: int | None = None,
    pre_dispatch: bool = False,
    dynamic_shapes: bool | None = None,
    kwargs: dict[str, object] | None = None,
) -> tuple[fx.GraphModule, GraphSignature]:
    """The graph of a module's forward, in which parameters and buffers are inputs and what is
    written is returned; with trace_joint also the gradients of the loss by the parameters."""
    if pre_dispatch and trace_joint:
        raise RuntimeError("pre_dispatch is not supported when trace_joint is True.")
    if trace_joint and output_loss_index is None:
        raise RuntimeError(
            "If trace_joint=Trueit is required that one of your forward outputs must be a scalar "
            "loss. You must specify the which (index) output is the loss with output_loss_index."
        )
    params, buffers = dict(mod.named_parameters()), dict(mod.named_buffers())
    names = [*params, *buffers]
    values = [*params.values(), *buffers.values()]
    flat_args, in_spec = pytree.tree_flatten((tuple(args), kwargs or {}))
    shown: list[pytree.TreeSpec] = []

    def flat(*given: object) -> list[object]:
        state = dict(zip(names, given[: len(names)], strict=True))
        inner, named = pytree.tree_unflatten(list(given[len(names) :]), in_spec)
        found = functional_call(mod, state, inner, named)
        leaves, spec = pytree.tree_flatten(found)
        shown[:] = [spec]
        if trace_joint:
            _check_loss(leaves, output_loss_index)
        return leaves

    settings = _settings(
        decompositions,
        len(names),
        no_tangents=trace_joint,
        dynamic_shapes=bool(dynamic_shapes),
        loss_index=output_loss_index,
        pre_dispatch=pre_dispatch,
    )
    if pre_dispatch:
        traced = trace_above_autograd(flat, [*values, *flat_args], settings)
        _refuse([*values, *flat_args], traced.meta)
    else:
        with torch.set_grad_enabled(trace_joint):
            traced = _exported(flat, [*values, *flat_args], settings, trace_joint)
    module = traced.module
    for i, node in enumerate(get_placeholders(module.graph)):
        _rename_input(node, f"arg{i}_1")
    if trace_joint:
        _drop_missing_gradients(traced)
    module.recompile()
    signature = _signature(
        traced, list(params), list(buffers), in_spec, shown[0], trace_joint, output_loss_index
    )
    return module, signature


def _rename_input(node: fx.Node, name: str) -> None:
    from torch._functorch._aot_autograd.trace import rename

    rename(node, name)


def _check_loss(leaves: Sequence[object], index: int | None) -> None:
    loss = leaves[index]
    if not isinstance(loss, Tensor) or not loss.requires_grad:
        raise RuntimeError(
            f"The output at index {index} was marked as the loss, but it does not require grad."
        )
    if loss.numel() != 1:
        raise RuntimeError(
            "We require the output marked as the loss (at index "
            f"{index}) to be a scalar, but it has shape {loss.shape}"
        )
    for i, out in enumerate(leaves):
        if i != index and isinstance(out, Tensor) and out.requires_grad:
            raise RuntimeError(
                "Found an output of the forward that requires gradients, that was not the scalar "
                f"loss. We require all outputs to the forward that are not the scalar loss to not "
                f"require gradient, because we will only compute a backward graph against the "
                f"scalar loss. You can fix this by calling .detach() on each of your forward "
                f"outputs that is not the loss. You specified that output index {index} is the "
                f"loss, but we found that the output at index {i} requires gradients."
            )


def _drop_missing_gradients(traced: Traced) -> None:
    """Only inputs that require a gradient have one among the outputs."""
    output = traced.module.graph.output_node()
    values = list(output.args[0])
    first = traced.meta.num_forward_returns
    kept = [
        grad
        for grad, info in zip(values[first:], traced.meta.input_info, strict=True)
        if info.requires_grad
    ]
    output.args = ((*values[:first], *kept),)


def _name(value: object) -> str:
    return value.name if isinstance(value, fx.Node) else str(value)


def _signature(
    traced: Traced,
    params: list[str],
    buffers: list[str],
    in_spec: object,
    out_spec: object,
    joint: bool,
    loss_index: int | None,
) -> GraphSignature:
    meta = traced.meta
    inputs = [n.name for n in get_placeholders(traced.module.graph)]
    outputs = [_name(v) for v in get_outputs(traced.module.graph)]
    state = len(params) + len(buffers)
    written = dict(zip(outputs, meta.written, strict=False))
    first = len(meta.written)
    count = len(meta.output_info)
    backward = None
    if joint:
        grads = outputs[first + count :]
        wanted = [i for i, info in enumerate(meta.input_info) if info.requires_grad]
        by_input = dict(zip(grads, wanted, strict=True))
        backward = BackwardSignature(
            {g: params[i] for g, i in by_input.items() if i < len(params)},
            {g: inputs[i] for g, i in by_input.items() if i >= state},
            outputs[loss_index],
        )
    return GraphSignature(
        parameters=params,
        buffers=buffers,
        user_inputs=inputs[state:],
        user_outputs=outputs[first : first + count],
        inputs_to_parameters=dict(zip(inputs, params, strict=False)),
        inputs_to_buffers=dict(zip(inputs[len(params) :], buffers, strict=False)),
        buffers_to_mutate={
            name: buffers[i - len(params)]
            for name, i in written.items()
            if len(params) <= i < state
        },
        parameters_to_mutate={name: params[i] for name, i in written.items() if i < len(params)},
        user_inputs_to_mutate={name: inputs[i] for name, i in written.items() if i >= state},
        in_spec=in_spec,
        out_spec=out_spec,
        backward_signature=backward,
    )
