"""The backend "inductor": captured graphs go through passes and AOTAutograd, and each part becomes
a compiled function. A graph that the compiler does not take is run as it is.

The stages a user can change: pre-grad passes see the captured graph, joint passes the traced one
with its derivative, the partitioner divides it, post-grad passes see what is lowered."""

from __future__ import annotations

import contextlib
import functools
import importlib
import logging
from collections.abc import Callable, Iterator, Sequence

import torch
from torch import fx
from torch._dynamo.utils import counters, dynamo_timed
from torch._functorch._aot_autograd.runtime import CompiledBackward, assembled
from torch._functorch._aot_autograd.schemas import AOTConfig
from torch._guards import detect_fake_mode
from torch._inductor import config, graph_cache, metrics
from torch._inductor.function_cache import AOTAutogradCache, Entry, Keeper, open_function
from torch._inductor.graph import (
    FirstCall,
    NotLowered,
    as_it_is,
    compiled_graph,
    is_symbolic,
)
from torch._inductor.virtualized import V
from torch.utils import _pytree as pytree

__all__ = [
    "compile_fx",
    "compile_fx_inner",
    "shape_env_from_inputs",
]

Inner = Callable[..., Callable]
Patches = dict[str, object]
# Stages that a graph from the store does not go through: a warm start does not import them.
_LATE = {
    "aot_module_simplified": "torch._functorch.aot_autograd",
    "joint_graph_passes": "torch._inductor.fx_passes.joint_graph",
    "min_cut_rematerialization_partition": "torch._functorch.partitioners",
    "post_grad_passes": "torch._inductor.fx_passes.post_grad",
    "pre_grad_passes": "torch._inductor.fx_passes.pre_grad",
    "select_decomp_table": "torch._inductor.decomposition",
}


def __getattr__(name: str) -> Callable:
    if name not in _LATE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(_LATE[name]), name)


def _late(name: str) -> Callable:
    """A stage by its name; what was put in its place in this module counts."""
    return globals().get(name) or __getattr__(name)


def shape_env_from_inputs(inputs: Sequence[object]) -> object:
    """The environment of the symbols among the inputs, or None."""
    mode = detect_fake_mode(inputs)
    if mode is not None:
        return mode.shape_env
    for value in inputs:
        if isinstance(value, torch.SymInt):
            return value.node.shape_env
    return None


# ---- one graph ------------------------------------------------------------------------------


def compile_fx_inner(
    gm: fx.GraphModule,
    example_inputs: Sequence[object],
    *,
    is_inference: bool = False,
    is_backward: bool = False,
    graph_id: int | None = None,
    **unused: object,
) -> Callable[[list[object]], Sequence[object]]:
    """A function of a list of arguments that computes what a graph of operators computes. It may
    empty the list."""
    compile_it = _compile_inner
    if torch._dynamo.config.repro_after == "aot":
        from torch._dynamo.repro.after_aot import wrap_compiler_debug

        compile_it = wrap_compiler_debug(_compile_inner, compiler_name="inductor")
    return compile_it(
        gm, example_inputs, is_inference=is_inference, is_backward=is_backward, graph_id=graph_id
    )


def _compile_inner(
    gm: fx.GraphModule,
    example_inputs: Sequence[object],
    *,
    is_inference: bool = False,
    is_backward: bool = False,
    graph_id: int | None = None,
) -> Callable[[list[object]], Sequence[object]]:
    from torch._inductor import debug, faults
    from torch._inductor.lowering import expand_lowerings

    mode = _mode_of_inputs(example_inputs) or _mode_of_graph(gm)
    with (
        dynamo_timed("compile_fx_inner", phase_name="inductor_compile"),
        V.set_fake_mode(mode),
        debug.debug_context(gm, example_inputs) as artifacts,
    ):
        artifacts.fx_graph(gm, example_inputs)
        place, found = graph_cache.open_graph(gm, example_inputs, is_inference, is_backward)
        if found is None:
            _late("post_grad_passes")(gm, is_inference)
            _log_graph("post_grad_graphs", "AFTER POST GRAD", gm)
            expand_lowerings(gm)
            if place is not None:
                place.save(gm)
        else:
            gm = found
        artifacts.fx_graph_transformed(gm, example_inputs)
        faults.inject(gm)
        compiled = _lowered(gm, example_inputs, artifacts)
    counters["inductor"]["compiled_graphs"] += 1
    compiled = debug.with_syncs(compiled, gm)
    return debug.with_nan_asserts(compiled, gm) if config.nan_asserts else compiled


def _log_graph(artifact: str, title: str, gm: fx.GraphModule) -> None:
    """Writes a graph to the log, where somebody reads it (TORCH_LOGS=post_grad_graphs)."""
    from torch._logging import getArtifactLogger, trace_structured_artifact

    logger = getArtifactLogger("torch._inductor.compile_fx", artifact)
    if logger.isEnabledFor(logging.DEBUG):
        text = gm.print_readable(print_output=False, include_stride=True, include_device=True)
        logger.debug("TRACED GRAPH\n ===== %s =====\n %s", title, text)
    trace_structured_artifact(
        f"inductor_{artifact.removesuffix('s')}", "string", lambda: gm.print_readable(False)
    )


def _mode_of_inputs(values: Sequence[object]) -> object:
    """The mode of the first fake tensor. A backward graph may have inputs of two: what was saved
    and the tangents need not have been traced together."""
    for value in values:
        mode = getattr(value, "fake_mode", None)
        if mode is not None:
            return mode
    return None


def _mode_of_graph(gm: fx.GraphModule) -> object:
    return _mode_of_inputs([n.meta.get("val") for n in gm.graph.nodes if n.op == "placeholder"])


def _lowered(
    gm: fx.GraphModule,
    example_inputs: Sequence[object] | None,
    artifacts: object,
    dynamic: bool = False,
) -> Callable[[list[object]], Sequence[object]]:
    """The compiled graph. Without inputs its first plan is made when it is called; `dynamic` says
    that sizes differ from those of the inputs."""
    from torch._inductor import pieces

    apart = pieces.first_apart(gm)
    if apart is not None:
        reason = f"{apart.op} {apart.target} is no step of a plan"
        metrics.not_lowered.append(reason)
        artifacts.not_lowered(gm, reason)
        return pieces.divided(gm)
    try:
        compiled, made = compiled_graph(gm, example_inputs)
    except NotLowered as reason:
        metrics.not_lowered.append(str(reason))
        artifacts.not_lowered(gm, str(reason))
        return as_it_is(gm)
    metrics.ir_nodes_pre_fusion += len(gm.graph.nodes)
    if made is not None:
        text, kernels, calls, nbytes = made
        metrics.note_plan(kernels, calls, nbytes)
        if config.debug:
            print(text)
    artifacts.plan(gm, example_inputs or (), None if made is None else compiled)
    dynamic = dynamic or example_inputs is None or is_symbolic(example_inputs)
    return FirstCall(compiled, gm) if dynamic else compiled


# ---- a model --------------------------------------------------------------------------------


def _partition(joint: fx.GraphModule, inputs: Sequence[object], **kwargs: object) -> tuple:
    if config.use_joint_graph_passes:
        _late("joint_graph_passes")(joint)
    chosen = config.custom_partitioner_fn
    if chosen is not None:
        return chosen(joint, inputs, **kwargs)
    divide = _late("min_cut_rematerialization_partition")
    return divide(joint, inputs, compiler="inductor", **kwargs)


class _Flat(torch.nn.Module):
    """A model whose inputs and outputs are containers, as one of flat lists."""

    def __init__(self, model: torch.nn.Module, spec: pytree.TreeSpec) -> None:
        super().__init__()
        self.model = model
        self.spec = spec
        self.out_spec: pytree.TreeSpec | None = None

    def forward(self, *flat: object) -> tuple[object, ...]:
        found = self.model(*pytree.tree_unflatten(list(flat), self.spec))
        leaves, self.out_spec = pytree.tree_flatten(found)
        return tuple(leaves)


def _is_flat(model: torch.nn.Module, inputs: Sequence[object]) -> bool:
    if any(isinstance(value, (list, tuple, dict)) for value in inputs):
        return False
    if not isinstance(model, fx.GraphModule):
        return False
    if type(model.graph._codegen) is not fx.graph.CodeGen:
        return False
    returned = model.graph.output_node().args[0]
    return isinstance(returned, (list, tuple)) and not any(
        isinstance(value, (list, tuple, dict)) for value in returned
    )


def _compile_structured(
    model: torch.nn.Module, inputs: Sequence[object], compile_flat: Callable
) -> Callable:
    flat_inputs, spec = pytree.tree_flatten(list(inputs))
    flat = _Flat(model, spec)
    compiled = compile_flat(flat, flat_inputs)

    def run(*args: object) -> object:
        found = compiled(*pytree.tree_leaves(list(args)))
        return pytree.tree_unflatten(list(found), flat.out_spec)

    return run


@contextlib.contextmanager
def _patched(patches: Patches | None) -> Iterator[None]:
    with config.patch(patches) if patches else contextlib.nullcontext():
        yield


def compile_fx(
    model_: torch.nn.Module,
    example_inputs_: Sequence[object],
    inner_compile: Inner = compile_fx_inner,
    config_patches: Patches | None = None,
    decompositions: dict | None = None,
    ignore_shape_env: bool = False,
) -> Callable:
    """A compiled form of a module, as torch.compile's backends are called. With gradients its
    backward is compiled when it is first needed, under the settings of this call."""
    with _patched(config_patches):
        if config._raise_error_for_testing:
            raise RuntimeError("compile_fx was asked to fail (config._raise_error_for_testing)")
        compile_flat = functools.partial(
            _compile_flat,
            inner_compile=inner_compile,
            patches=config_patches,
            decompositions=decompositions,
        )
        if not _is_flat(model_, example_inputs_):
            return _compile_structured(model_, example_inputs_, compile_flat)
        return compile_flat(model_, example_inputs_)


def _traced_whole(trace: Callable, *args: object, **kwargs: object) -> Callable:
    """trace(...) with operators that are one kernel here left whole: they run as in eager code."""
    before = torch._C._aot.record_whole_operators(True)
    try:
        return trace(*args, **kwargs)
    finally:
        torch._C._aot.record_whole_operators(before)


def _compile_flat(
    model: torch.nn.Module,
    inputs: Sequence[object],
    *,
    inner_compile: Inner,
    patches: Patches | None,
    decompositions: dict | None,
) -> Callable:
    from torch._inductor import freezing

    keeper: Keeper | None = None
    if inner_compile is compile_fx_inner and decompositions is None:
        keeper, kept = open_function(model, inputs, AOTConfig(None, None, None, {}))
        found = None if kept is None else _taken(kept, inputs, patches)
        if found is not None:
            return found
    if isinstance(model, fx.GraphModule) and config.use_pre_grad_passes:
        _log_graph("pre_grad_graphs", "BEFORE PRE GRAD", model)
        _late("pre_grad_passes")(model, inputs)

    def compiler(gm: fx.GraphModule, args: Sequence[object], **which: bool) -> Callable:
        with _patched(patches):
            if which.get("is_inference") and config.use_joint_graph_passes:
                _late("joint_graph_passes")(gm)
            compiled = inner_compile(gm, args, **which)
            if keeper is not None:
                backward = which.get("is_backward")
                kind = "inference" if which.get("is_inference") else "forward"
                keeper.note("backward" if backward else kind)
            return compiled

    forward = functools.partial(compiler, is_inference=False)
    backward = functools.partial(compiler, is_backward=True)
    inference = functools.partial(compiler, is_inference=True)
    if config.freezing and not torch.is_grad_enabled():
        inference = freezing.freezing_compiler(model, inputs, inference)
    return _traced_whole(
        _late("aot_module_simplified"),
        model,
        inputs,
        fw_compiler=forward,
        bw_compiler=backward,
        inference_compiler=inference,
        partition_fn=_partition,
        decompositions=_late("select_decomp_table")() if decompositions is None else decompositions,
        keep_inference_input_mutations=True,
        cache_info=keeper,
    )


# ---- what was compiled before ---------------------------------------------------------------


def _stored_graph(gm: fx.GraphModule, examples: Sequence[object] | None, dynamic: bool) -> Callable:
    """A graph from the store, lowered."""
    from torch._inductor import debug, faults

    faults.inject(gm)
    with (
        dynamo_timed("compile_fx_inner", phase_name="inductor_compile"),
        debug.debug_context(gm, examples or ()) as artifacts,
    ):
        compiled = _lowered(gm, examples, artifacts, dynamic)
    counters["inductor"]["compiled_graphs"] += 1
    return compiled


def _like(data: object) -> object:
    """An input without data, by what describe_input said of it."""
    if not isinstance(data, list):
        return data["value"]
    dtype, size, stride = data[:3]
    dtype = getattr(torch, str(dtype).removeprefix("torch."))
    return torch.empty_strided(size, stride, dtype=dtype, device="meta")


def take_function(key: str, inputs: Sequence[object], patches: Patches | None) -> Callable | None:
    """A function that is kept under a key, for inputs that fit it; None where it is not there."""
    kept = AOTAutogradCache.load(key, early=True)
    return None if kept is None else _taken(kept, inputs, patches)


def _taken(kept: Entry, inputs: Sequence[object], patches: Patches | None) -> Callable | None:
    """A function of the inputs from what is kept of it; None where a part has gone meanwhile."""
    forward = graph_cache.FxGraphCache.load(kept.forward)
    backward = None if kept.backward is None else graph_cache.FxGraphCache.load(kept.backward)
    if forward is None or (kept.meta.is_train and backward is None):
        return None
    with torch.utils._python_dispatch._disable_current_modes():
        run_forward = _stored_graph(forward, inputs, kept.dynamic)

    def compile_backward() -> Callable:
        with _patched(patches):
            given = None if kept.dynamic else [_like(v) for v in kept.backward_inputs]
            return _stored_graph(backward, given, kept.dynamic)

    later = CompiledBackward(compile_backward) if kept.meta.is_train else None
    return torch._C._aot.FlatFunction(assembled(kept.meta, run_forward, later), [])
