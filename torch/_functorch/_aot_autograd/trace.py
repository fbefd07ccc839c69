"""One recorded run of a function and of its derivative.

The function runs on functional tensors over fake ones; what reaches the values is recorded. What
the function did to its inputs, and what its outputs share memory with, is read off the functional
tensors afterwards: there is no run before this one. When an output needs a gradient, tangents are
made for the outputs, the engine runs, and the recorder sees its operators too."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable, Sequence

import torch
from torch import Tensor, fx
from torch._functorch import config as settings
from torch._functorch._aot_autograd import functional
from torch._functorch._aot_autograd.alias import classify_outputs, view_chain
from torch._functorch._aot_autograd.random import Philox
from torch._functorch._aot_autograd.schemas import (
    AOTConfig,
    InputAliasInfo,
    OutputType,
    ViewAndMutationMeta,
    tangent_form,
)
from torch._functorch._aot_autograd.subclasses import Layout, parts_of, wrapper_of
from torch.fx._lazy_graph_module import _LazyGraphModule
from torch.fx.experimental.proxy_tensor import (
    ProxyTorchDispatchMode,
    PythonKeyTracer,
    decompose,
    disable_autocast_cache,
    disable_proxy_modes_tracing,
    flat_outputs,
    subgraphs_traced,
    track_tensor_tree,
)

__all__ = ["Traced", "trace"]

_OWN_GRADIENT = (
    OutputType.non_alias,
    OutputType.unsafe_view_alias,
    OutputType.custom_function_view,
)


@dataclasses.dataclass
class Traced:
    """A graph with what is known of it. The joint graph of a training run returns the forward
    values and then one gradient, or None, for each input."""

    module: fx.GraphModule
    meta: ViewAndMutationMeta
    example_inputs: list[object]
    outputs: list[object]  # what the function returned, fake


class _Recording:
    """A graph while it is being recorded."""

    def __init__(self) -> None:
        self.tracer = PythonKeyTracer()
        self.tracer.root = torch.nn.Module()
        self.tracer.graph = fx.Graph(tracer_cls=PythonKeyTracer)
        self.tracer.tensor_attrs = {}
        self.tracer.module_stack = {}
        self.graph = self.tracer.graph

    def placeholder(self, name: str, value: object) -> fx.Node:
        """An input of the graph that stands for a value."""
        with disable_proxy_modes_tracing():
            proxy = self.tracer.create_proxy("placeholder", name, (), {})
            track_tensor_tree(value, proxy, constant=None, tracer=self.tracer)
        return proxy.node

    def node(self, value: object) -> object:
        """The node of a value; a constant as it is."""
        found = flat_outputs(self.tracer, value)
        if isinstance(found, fx.Proxy):
            return found.node
        return self.tracer.create_arg(found) if isinstance(found, Tensor) else found

    def finish(self, values: Sequence[object], *, joint: bool) -> fx.GraphModule:
        """The module of the graph. Few callers run a joint graph: its code is generated when one
        does."""
        self.graph.output(tuple(values))
        self.graph.eliminate_dead_code()
        if joint:
            return _LazyGraphModule(self.tracer.root, self.graph, "joint_helper")
        return fx.GraphModule(self.tracer.root, self.graph, "<lambda>")


class _Run:
    """One trace."""

    def __init__(
        self, fn: Callable, args: Sequence[object], histories: Sequence[tuple[bool, bool]]
    ) -> None:
        self.fn = fn
        self.args = list(args)
        self.given = list(histories)
        self.recording = _Recording()
        self.info: list[InputAliasInfo] = []
        self.primals: list[object] = []  # functional, those that gradients are taken for
        self.seen: list[object] = []  # what the function gets
        self.histories: list[object] = []  # and their nodes in the autograd graph
        self.outputs: list[object] = []
        self.input_nodes: list[fx.Node] = []  # of inputs that are no wrappers, by input
        self.all_inputs: list[fx.Node] = []
        self.random = Philox() if settings.functionalize_rng_ops else None
        self.states: list[Tensor] = []  # of the generator, where random operators read them
        self.backward_states: list[Tensor] = []

    def enter_inputs(self) -> None:
        for value, (is_leaf, requires_grad) in zip(self.args, self.given, strict=True):
            if not isinstance(value, Tensor):
                self.input_nodes.append(self._placeholder(value))
                self.info.append(InputAliasInfo(is_leaf, False))
                self.primals.append(value)
                self.seen.append(value)
                continue
            with disable_proxy_modes_tracing(), torch.no_grad():
                plain = value.detach()
            nodes = [self._placeholder(part) for part in parts_of(plain)]
            self.input_nodes.append(nodes[0])
            primal = functional.wrap(plain)
            if requires_grad:
                primal.requires_grad_(True)
            self.info.append(InputAliasInfo(is_leaf, requires_grad))
            self.primals.append(primal)
            self.seen.append(primal if is_leaf or not requires_grad else functional.fresh(primal))
        if self.random is not None:
            self.states = self.random.begin(self._state_input, "fwd")

    def _state_input(self, name: str, value: Tensor) -> None:
        self.all_inputs.append(self.recording.placeholder(name, value))

    def _placeholder(self, value: object) -> fx.Node:
        name = f"primals_{len(self.all_inputs) + 1}"
        self.all_inputs.append(self.recording.placeholder(name, value))
        return self.all_inputs[-1]

    def read_inputs(self, keep_mutations: bool) -> None:
        """What happened to the inputs. A write that is differentiated gives a tensor another place
        in the autograd graph; one to a detached tensor, or without gradients, does not."""
        for seen, info, history in zip(self.seen, self.info, self.histories, strict=True):
            if isinstance(seen, Tensor):
                functional.note_writes(seen, info)
                # A write may make an input differentiable that was not.
                info.requires_grad = info.requires_grad or seen.requires_grad
                info.mutations_hidden_from_autograd = seen.grad_fn is history
                info.keep_input_mutations = keep_mutations and parts_of(seen)[0] is seen

    def updated(self, index: int) -> object:
        """The value of an input at the end."""
        return functional.unwrap(self.seen[index])


@contextlib.contextmanager
def _recorded(run: _Run, fake_mode: object, config: AOTConfig):
    mode = ProxyTorchDispatchMode(
        run.recording.tracer, "fake", pre_dispatch=False, _error_on_data_dependent_ops=True
    )
    with contextlib.ExitStack() as stack:
        table = dict(config.decompositions)
        if run.random is not None:
            table.update(run.random.table())
            stack.enter_context(run.random.watched())
        stack.enter_context(decompose(table))
        stack.enter_context(disable_autocast_cache())
        stack.enter_context(subgraphs_traced(config.decompositions))
        if fake_mode is not None:
            stack.enter_context(fake_mode)
        stack.enter_context(mode)
        stack.enter_context(functional.enabled())
        yield


def trace(
    fn: Callable[..., Sequence[object]],
    args: Sequence[object],
    histories: Sequence[tuple[bool, bool]],
    fake_mode: object,
    config: AOTConfig,
    *,
    needs_autograd: bool,
) -> Traced:
    """Records fn, a function of flat arguments that returns a flat sequence, on fake arguments.
    `histories` says of each whether the real argument is a leaf, and whether it requires grad."""
    run = _Run(fn, args, histories)
    # Without inputs to differentiate the mode stays the program's: transforms inside may look.
    records = not needs_autograd and any(requires_grad for _, requires_grad in histories)
    gradients_as_before = torch.no_grad() if records else contextlib.nullcontext()
    with gradients_as_before, _recorded(run, fake_mode, config):
        run.enter_inputs()
        run.histories = [s.grad_fn if isinstance(s, Tensor) else None for s in run.seen]
        before = torch.is_grad_enabled()
        run.outputs = list(fn(*run.seen))
        # A program may leave another gradient mode behind; the trace goes on in its own.
        left = torch.is_grad_enabled()
        torch._C._set_grad_enabled(before)
        run.read_inputs(config.keep_inference_input_mutations)
        info, bases = classify_outputs(run)
        meta = ViewAndMutationMeta(run.info, info, len(bases), is_train=False)
        meta.grad_enabled_mutation = None if left == before else left
        meta.is_train = needs_autograd and _wants_gradient(meta)
        if not meta.is_train:
            bases = _without_bases(meta)
        returned = [run.seen[i] for i in meta.written]
        returned += run.outputs + bases
        meta.input_layout, meta.return_layout = Layout(run.seen), Layout(returned)
        forward = [run.recording.node(v) for v in _dense(returned)]
        inside = {i: run.recording.node(run.updated(i)) for i in meta.written_in_graph}
        meta.moves_generator = run.random is not None
        if run.random is not None:
            forward.append(run.recording.node(functional.unwrap(run.random.end())))
        gradients: list[object] = []
        tangents: list[object] = []
        if meta.is_train:
            gradients, tangents = _differentiate(run, meta, returned, config)
    meta.num_outputs = len(run.outputs)
    places = meta.return_layout.first_parts()[len(meta.written) :]
    for place, described in zip(places, info, strict=False):
        described.views = view_chain(run, described, forward[place], meta)
    return _finish(run, meta, forward, gradients, tangents, inside)


def _dense(values: Sequence[object]) -> list[object]:
    """The values without functional tensors and without wrappers."""
    return [part for value in values for part in parts_of(functional.unwrap(value))]


def _wants_gradient(meta: ViewAndMutationMeta) -> bool:
    """Whether anything that the graph returns has a derivative of its own."""
    inputs = (OutputType.alias_of_input, OutputType.is_input)
    outputs = any(o.requires_grad and o.output_type not in inputs for o in meta.output_info)
    return outputs or any(i.seen_by_autograd for i in meta.input_info)


def _without_bases(meta: ViewAndMutationMeta) -> list[object]:
    """Without derivatives, outputs may share memory as the graph returns them."""
    for info in meta.output_info:
        if info.output_type not in (OutputType.alias_of_input, OutputType.is_input):
            info.output_type, info.base_idx = OutputType.non_alias, None
    meta.num_intermediate_bases = 0
    return []


def _differentiable(run: _Run, meta: ViewAndMutationMeta, returned: Sequence[object]) -> list[int]:
    """Which of the returned values get a tangent."""
    found = []
    first_output = len(meta.written)
    first_base = first_output + len(meta.output_info)
    for place, value in enumerate(returned):
        if not isinstance(value, Tensor) or not value.requires_grad:
            continue
        if not (value.is_floating_point() or value.is_complex()):
            continue
        if place < first_output:
            wanted = meta.input_info[meta.written[place]].seen_by_autograd
        elif place < first_base:
            wanted = meta.output_info[place - first_output].output_type in _OWN_GRADIENT
        else:
            wanted = True
        if wanted:
            found.append(place)
    return found


def _differentiate(
    run: _Run, meta: ViewAndMutationMeta, returned: Sequence[object], config: AOTConfig
) -> tuple[list[object], list[object]]:
    """Runs the engine from tangents of the outputs; returns the nodes of the gradients of all
    inputs, and the tangents."""
    if config.no_tangents:
        meta.differentiable = [len(meta.written) + config.loss_index]
    else:
        meta.differentiable = _differentiable(run, meta, returned)
    outputs = [returned[place] for place in meta.differentiable]
    tangents: list[object] = []
    if config.no_tangents:
        return _gradients(run, meta, outputs, [torch.ones_like(outputs[0])]), tangents
    wrapped: list[Tensor] = []
    for out in outputs:
        with disable_proxy_modes_tracing(), torch.no_grad():
            parts = []
            for like in _dense([out]):
                # Dense, as gradients are: an output that shows an element twice has a tangent
                # with two.
                parts.append(functional.unwrap(torch.empty_like(like)))
        for part in parts:
            run.recording.placeholder(f"tangents_{len(tangents) + 1}", part)
            tangents.append(part)
        given = [torch._to_functional_tensor(part) for part in parts]
        outer = wrapper_of(out)
        wrapped.append(given[0] if outer is None else outer.build(iter(given)))
    meta.traced_tangents = tangents
    meta.tangent_forms = [tangent_form(t) for t in tangents]
    meta.tangent_layout = Layout(wrapped)
    if run.random is not None:
        run.backward_states = run.random.begin(run.recording.placeholder, "bwd")
    return _gradients(run, meta, outputs, wrapped), tangents


def _gradients(
    run: _Run,
    meta: ViewAndMutationMeta,
    outputs: Sequence[Tensor],
    tangents: Sequence[Tensor],
) -> list[object]:
    """The nodes of the gradients of all inputs. What is recorded on the way is marked."""
    before = set(run.recording.graph.nodes)
    asked = zip(run.primals, run.given, strict=True)
    wanted = [p for p, (_, requires_grad) in asked if requires_grad]
    # This pass is no pass of the program: compiled autograd has to leave it to the engine.
    runner = torch._C._set_backward_runner(None)
    try:
        # A trace has no values in which anomaly mode could look for NaN.
        with torch.autograd.set_detect_anomaly(torch.is_anomaly_enabled(), check_nan=False):
            found = torch.autograd.grad(outputs, wanted, tangents, allow_unused=True)
    finally:
        torch._C._set_backward_runner(runner)
    by_primal = dict(zip(map(id, wanted), found, strict=True))
    gradients = [by_primal.get(id(primal)) for primal in run.primals]
    meta.gradient_layout = Layout(gradients)
    nodes = [None if part is None else run.recording.node(part) for part in _dense(gradients)]
    if run.random is not None:
        nodes.append(run.recording.node(functional.unwrap(run.random.end())))
    for node in run.recording.graph.nodes:
        if node not in before and node.op != "placeholder":
            node.meta["partitioner_tag"] = "is_backward"
    return nodes


def _finish(
    run: _Run,
    meta: ViewAndMutationMeta,
    forward: list[object],
    gradients: list[object],
    tangents: list[object],
    inside: dict[int, object],
) -> Traced:
    graph = run.recording.graph
    last = run.all_inputs[-1] if run.all_inputs else None
    for node in [n for n in graph.nodes if n.op == "placeholder"][len(run.all_inputs) :]:
        if last is not None:
            last.append(node)
        last = node
    if meta.is_train:
        _copy_written_inputs(run, meta, forward, gradients)
        values = [*inside.values(), *forward, *gradients]
    else:
        for i, node in enumerate(run.all_inputs):
            rename(node, f"arg{i}_1")
        _write_in_graph(run, meta, forward, inside)
        values = forward
    module = run.recording.finish(values, joint=meta.is_train)
    given = [part for a in run.args for part in parts_of(a)]
    examples = [*given, *run.states, *tangents, *run.backward_states]
    outputs = [functional.unwrap(o) for o in run.outputs]
    return Traced(module, meta, examples, outputs)


def rename(node: fx.Node, name: str) -> None:
    """Gives an input of a graph another name."""
    node.target = name
    node._rename(name)


def _write_in_graph(
    run: _Run, meta: ViewAndMutationMeta, forward: list[object], inside: dict[int, object]
) -> None:
    """Appends the writes that the graph does itself. An output that is such an input is returned as
    what the write returns."""
    for index, value in inside.items():
        written = write_node(run.recording.graph, run.input_nodes[index], value, meta, index)
        for place, info in enumerate(meta.output_info, len(meta.written)):
            if info.output_type is OutputType.is_input and info.base_idx == index:
                forward[place] = written


def write_node(
    graph: fx.Graph, target: fx.Node, value: object, meta: ViewAndMutationMeta, index: int
) -> fx.Node:
    """A node at the end of a graph that gives an input its new value."""
    op = torch.ops.aten.copy_.default
    if meta.input_info[index].mutates_storage_metadata:
        op = torch.ops.aten.set_.source_Tensor
    name = op.overloadpacket.__name__
    node = graph.create_node("call_function", op, (target, value), {}, name)
    node.meta["val"] = target.meta.get("val")
    return node


def _copy_written_inputs(
    run: _Run, meta: ViewAndMutationMeta, forward: list[object], gradients: list[object]
) -> None:
    """The runtime writes new values into inputs after the graph has run; what is saved of such an
    input for the backward pass must be a copy. Inputs of which only the shape changes are taken
    through a view."""
    graph = run.recording.graph
    for index in meta.written:
        info, node = meta.input_info[index], run.input_nodes[index]
        if not info.requires_grad or not node.users:
            continue
        value = node.meta["val"]
        with graph.inserting_before(_first_call(graph)):
            if info.mutates_data:
                target, args, name = torch.ops.aten.clone.default, (node,), "clone"
            else:
                sizes = [run.recording.node(n) for n in value.shape]
                target, args, name = torch.ops.aten.view.default, (node, sizes), "view"
            made = graph.create_node("call_function", target, args, {}, name)
        made.meta["val"] = value
        made.meta["tensor_meta"] = node.meta.get("tensor_meta")
        node.replace_all_uses_with(made, delete_user_cb=lambda user, own=made: user is not own)
        for values in (forward, gradients):
            values[:] = [made if v is node else v for v in values]


def _first_call(graph: fx.Graph) -> fx.Node:
    """The first node that is no input, and no copy of one."""
    copies = (torch.ops.aten.clone.default, torch.ops.aten.view.default)
    for node in graph.nodes:
        if node.op == "placeholder":
            continue
        fresh = node.target in copies and "tensor_meta" in node.meta and not node.users
        if not fresh:
            return node
    raise AssertionError("a graph without an end")
