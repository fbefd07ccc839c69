"""AOTAutograd: a function traced together with its derivative, divided into forward and backward
graphs, compiled, and put behind one autograd node. See `_aot_autograd` for the stages."""

from __future__ import annotations

import contextlib
import functools
import itertools
from collections.abc import Callable, Iterable, Sequence

import torch
import torch.utils._pytree as pytree
from torch import Tensor, nn
from torch._functorch import config
from torch._functorch._aot_autograd.compile import compile_traced
from torch._functorch._aot_autograd.graph_names import (
    get_aot_compilation_context,
    get_aot_graph_name,
    get_graph_being_compiled,
    set_model_name,
)
from torch._functorch._aot_autograd.inputs import plan_merges
from torch._functorch._aot_autograd.runtime import boxed, make_boxed_func
from torch._functorch._aot_autograd.schemas import (
    AOTConfig,
    BackwardSignature,
    GraphSignature,
    InputAliasInfo,
    MutationType,
    OutputAliasInfo,
    OutputType,
    ViewAndMutationMeta,
)
from torch._functorch._aot_autograd.trace import Traced, trace
from torch._functorch.partitioners import default_partition
from torch._guards import TracingContext, detect_fake_mode, tracing
from torch.func import functional_call

__all__ = [
    "AOTConfig",
    "BackwardSignature",
    "GraphSignature",
    "InputAliasInfo",
    "MutationType",
    "OutputAliasInfo",
    "OutputType",
    "SerializableAOTDispatchCompiler",
    "ViewAndMutationMeta",
    "aot_function",
    "aot_module",
    "aot_module_simplified",
    "compiled_function",
    "compiled_module",
    "config",
    "create_aot_dispatcher_function",
    "get_aot_compilation_context",
    "get_aot_graph_name",
    "get_graph_being_compiled",
    "make_boxed_compiler",
    "make_boxed_func",
    "set_model_name",
]

AOT_COUNTER = itertools.count()


class SerializableAOTDispatchCompiler:
    """A compiler whose results can be stored: a function, and the class of what it returns."""

    def __init__(self, output_code_ty: type, compiler_fn: Callable) -> None:
        self.output_code_ty = output_code_ty
        self.compiler_fn = compiler_fn

    def __call__(self, gm: torch.fx.GraphModule, example_inputs: Sequence[object]) -> object:
        return self.compiler_fn(gm, example_inputs)


def make_boxed_compiler(compiler: Callable) -> Callable:
    """A compiler whose results take one list of arguments."""

    @functools.wraps(compiler)
    def f(fx_g: torch.fx.GraphModule, inps: Sequence[object]) -> Callable[[list[object]], object]:
        return boxed(compiler(fx_g, inps))

    return f


# ---- tracing --------------------------------------------------------------------------------


def _fake_mode(args: Sequence[object], dynamic: bool) -> object:
    from torch._subclasses.fake_tensor import FakeTensorMode

    found = detect_fake_mode(args)
    if found is not None:
        return found
    shape_env = None
    if dynamic:
        from torch.fx.experimental.symbolic_shapes import ShapeEnv

        shape_env = ShapeEnv()
    return FakeTensorMode(shape_env=shape_env, allow_non_fake_inputs=False)


def _fake(args: Sequence[object], mode: object, settings: AOTConfig) -> list[object]:
    """The arguments without data. Parameters keep their sizes where sizes are symbols."""
    found: list[object] = []
    for i, value in enumerate(args):
        if not isinstance(value, Tensor):
            found.append(value)
            continue
        if mode.shape_env is None:
            found.append(_fake_like(value, mode))
            continue
        static = i < settings.num_params_buffers and config.static_weight_shapes
        if static:
            found.append(mode.from_tensor(value, static_shapes=True))
        else:
            from torch._dynamo.source import ConstantSource

            found.append(mode.from_tensor(value, source=ConstantSource(f"__aot_input_{i}")))
    return found


def _fake_like(value: Tensor, mode: object) -> Tensor:
    """The argument without data. The mode may know it from a trace before this one, which has
    changed its shape: then it is made anew."""
    fake = mode.from_tensor(value)
    plain = type(value) in (Tensor, nn.Parameter) and value.layout is torch.strided
    if plain and (fake.shape != value.shape or fake.stride() != value.stride()):
        return mode.from_tensor(value.detach())
    return fake


@contextlib.contextmanager
def _prepared(mode: object):
    """The surroundings of a trace: the generators are where they were when it ends."""
    cpu = torch.get_rng_state()
    context = TracingContext.try_get() or TracingContext(mode)
    try:
        with tracing(context):
            yield context
    finally:
        torch.set_rng_state(cpu)


def _traced(
    fn: Callable, args: Sequence[object], mode: object, settings: AOTConfig, *, joint: bool = True
) -> Traced:
    tensors = [a for a in args if isinstance(a, Tensor)]
    needs_autograd = joint and any(t.requires_grad for t in tensors)
    histories = [
        (a.is_leaf, a.requires_grad) if isinstance(a, Tensor) else (True, False) for a in args
    ]
    return trace(
        fn, _fake(args, mode, settings), histories, mode, settings, needs_autograd=needs_autograd
    )


def create_aot_dispatcher_function(
    flat_fn: Callable[..., Sequence[object]],
    flat_args: Sequence[object],
    aot_config: AOTConfig,
) -> tuple[Callable[[list[object]], list[object]], ViewAndMutationMeta]:
    """The compiled form of a function of flat arguments, and what is known of it."""
    mode = _fake_mode(flat_args, aot_config.dynamic_shapes)
    with _prepared(mode) as context:
        traced = _traced(flat_fn, flat_args, mode, aot_config)
        plan = plan_merges(flat_args, traced.meta)
        if plan is not None:
            if aot_config.cache_info is not None:
                aot_config.cache_info.refuse("inputs that share memory are written")
            plan.graph_id = aot_config.aot_id
            merged = plan.merge(flat_args)
            traced = _traced(plan.wrap(flat_fn), merged, mode, aot_config)
        context.fw_metadata = traced.meta
        compiled = compile_traced(traced, aot_config)
    return (compiled if plan is None else plan.runtime(compiled)), traced.meta


# ---- functions and modules ------------------------------------------------------------------


class _Flattened:
    """A function of flat arguments; the structure of what it returns is known after a call."""

    def __init__(self, fn: Callable, spec: pytree.TreeSpec) -> None:
        self.fn, self.spec = fn, spec
        self.out_spec: pytree.TreeSpec | None = None

    def __call__(self, *flat: object) -> list[object]:
        args, kwargs = pytree.tree_unflatten(list(flat), self.spec)
        leaves, self.out_spec = pytree.tree_flatten(self.fn(*args, **kwargs))
        known = (Tensor, torch.SymInt, torch.SymFloat, torch.SymBool, int, float, bool, str)
        for leaf in leaves:
            if leaf is not None and not isinstance(leaf, (*known, torch.Generator)):
                raise RuntimeError(
                    f"Found {type(leaf)} in output, which is not a known type. If this type holds "
                    "tensors, you need to register a pytree for it. Please see https://github.com/"
                    "pytorch/functorch/issues/475 for a brief explanation why. If you don't need "
                    "to register a pytree, please leave a comment explaining your use case."
                )
        return leaves


def aot_function(
    fn: Callable,
    fw_compiler: Callable,
    bw_compiler: Callable | None = None,
    partition_fn: Callable = default_partition,
    decompositions: dict | None = None,
    num_params_buffers: int = 0,
    keep_inference_input_mutations: bool = False,
    inference_compiler: Callable | None = None,
    *,
    dynamic: bool = False,
    enable_log: bool = True,
    disable_functionalization: bool = False,
) -> Callable:
    """The function, traced with its derivative and compiled at the first call. Later calls must
    pass arguments of the same shapes and dtypes: nothing is checked."""
    settings = AOTConfig(
        fw_compiler=fw_compiler,
        bw_compiler=bw_compiler or fw_compiler,
        inference_compiler=inference_compiler or fw_compiler,
        partition_fn=partition_fn,
        decompositions=decompositions or {},
        num_params_buffers=num_params_buffers,
        aot_id=next(AOT_COUNTER),
        keep_inference_input_mutations=keep_inference_input_mutations,
        dynamic_shapes=dynamic,
        enable_log=enable_log,
    )
    compiled: Callable[[list[object]], list[object]] | None = None
    out_spec: pytree.TreeSpec | None = None

    @functools.wraps(fn)
    def returned_function(*args: object, **kwargs: object) -> object:
        nonlocal compiled, out_spec
        flat, spec = pytree.tree_flatten((args, kwargs))
        if compiled is None:
            flattened = _Flattened(fn, spec)
            compiled, _ = create_aot_dispatcher_function(flattened, flat, settings)
            out_spec = flattened.out_spec
        return pytree.tree_unflatten(compiled(flat), out_spec)

    return returned_function


def aot_module(mod: nn.Module, *args, **kwargs) -> nn.Module:
    """A module whose forward is the compiled forward of another. Parameters and buffers are inputs
    of the graph."""

    def functional(params_and_buffers: dict[str, Tensor], *inner, **named) -> object:
        return functional_call(mod, params_and_buffers, inner, named)

    state = {**dict(mod.named_parameters()), **dict(mod.named_buffers())}
    kwargs.setdefault("num_params_buffers", len(state))
    compiled = aot_function(functional, *args, **kwargs)

    class AOTModule(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.orig_module = mod

        def forward(self, *inner, **named) -> object:
            current = {**dict(mod.named_parameters()), **dict(mod.named_buffers())}
            return compiled(current, *inner, **named)

    return AOTModule()


def aot_module_simplified(
    mod: nn.Module,
    args: Sequence[object],
    fw_compiler: Callable,
    bw_compiler: Callable | None = None,
    partition_fn: Callable = default_partition,
    decompositions: dict | None = None,
    keep_inference_input_mutations: bool = False,
    inference_compiler: Callable | None = None,
    cudagraphs: object = None,
    cache_info: object = None,
    **unused: object,
) -> Callable:
    """The compiled forward of a module of flat inputs and outputs, as torch.compile's backends call
    it. The function takes the module's inputs; parameters are taken from the module. `cache_info`
    is told what was compiled (torch._inductor.function_cache.Keeper)."""
    names = [n for n, _ in (*mod.named_parameters(), *mod.named_buffers())]
    state = [*mod.parameters(), *mod.buffers()]

    def functional(*flat: object) -> list[object]:
        held = dict(zip(names, flat[: len(names)], strict=True))
        with _running_graph(mod):
            out = functional_call(mod, held, tuple(flat[len(names) :]))
        if not isinstance(out, (tuple, list)):
            raise RuntimeError(
                "Graph output must be a (). This is so that we can avoid pytree processing of the "
                "outputs. Please change the module to have tuple outputs or use aot_module instead."
            )
        return list(out)

    settings = AOTConfig(
        fw_compiler=fw_compiler,
        bw_compiler=bw_compiler or fw_compiler,
        inference_compiler=inference_compiler or fw_compiler,
        partition_fn=partition_fn,
        decompositions=decompositions or {},
        num_params_buffers=len(state),
        aot_id=next(AOT_COUNTER),
        keep_inference_input_mutations=keep_inference_input_mutations,
        dynamic_shapes=_has_symbols(args),
        cache_info=cache_info,
    )
    given = _with_symbols(mod, args)
    compiled, _ = create_aot_dispatcher_function(functional, [*state, *given], settings)

    forward = torch._C._aot.FlatFunction(compiled, state)
    forward.zero_grad = mod.zero_grad
    forward.named_parameters = mod.named_parameters
    forward.named_buffers = mod.named_buffers
    return forward


def _with_symbols(mod: nn.Module, args: Sequence[object]) -> list[object]:
    """The inputs, with symbols in place of numbers that are symbols of the graph: those numbers are
    examples."""
    if not isinstance(mod, torch.fx.GraphModule):
        return list(args)
    known = [n.meta.get("example_value") for n in mod.graph.find_nodes(op="placeholder")]
    if len(known) != len(args):
        return list(args)
    symbols = (torch.SymInt, torch.SymFloat, torch.SymBool)
    return [
        symbol if isinstance(symbol, symbols) and not isinstance(arg, Tensor) else arg
        for arg, symbol in zip(args, known, strict=True)
    ]


def _has_symbols(args: Iterable[object]) -> bool:
    mode = detect_fake_mode(list(args))
    return mode is not None and mode.shape_env is not None


@contextlib.contextmanager
def _running_graph(mod: nn.Module):
    """Nodes that are recorded take over notes of the nodes of the graph that runs."""
    from torch.fx import traceback

    preserve = getattr(traceback, "preserve_node_meta", None)
    if preserve is None or not isinstance(mod, torch.fx.GraphModule):
        yield
        return
    with preserve():
        yield


def compiled_function(
    fn: Callable,
    fw_compiler: Callable,
    bw_compiler: Callable | None = None,
    partition_fn: Callable = default_partition,
    decompositions: dict | None = None,
) -> Callable:
    """aot_function under its former name."""
    return aot_function(fn, fw_compiler, bw_compiler, partition_fn, decompositions)


compiled_module = aot_module


def __getattr__(name: str) -> object:
    if name in ("aot_export_module", "aot_export_joint_simple"):
        from torch._functorch._aot_autograd import export

        return getattr(export, name)
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
