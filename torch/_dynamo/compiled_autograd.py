"""Compiled autograd: a whole backward pass as one graph. While it is enabled, backward() does not
run the engine. The nodes that a pass would run are listed with what they saved
(torch/csrc/python/autograd/compiled_backward.cpp); for a pass of a new form the formulas of
operators run on fake tensors and are recorded. Hooks, functions of users and everything else whose
effects a graph cannot show are recorded as calls, which the graph makes when it runs. Passes of a
known form run the compiled graph on the tensors of the day.

Sizes are numbers: a pass with other sizes is another form."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence

import torch
from torch import _C, Tensor, fx
from torch._dynamo.utils import counters
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.proxy_tensor import (
    ProxyTorchDispatchMode,
    PythonKeyTracer,
    disable_proxy_modes_tracing,
    flat_outputs,
    track_tensor_tree,
)

__all__ = ["AutogradCompilerInstance", "_disable", "_enable", "enabled", "reset"]

Edge = tuple[object, int]  # a node, and which of its inputs
Compiler = Callable[[fx.GraphModule], Callable[..., Sequence[Tensor | None]]]

_INLINED, _LEAF, _CALLED = range(3)
_TENSOR_HOOKS, _PRE_HOOKS, _POST_HOOKS, _AFTER_ACCUMULATION = 1, 2, 4, 8

# Whether a compiled backward pass runs now.
in_compiled_autograd_region = False

_library = torch.library.Library("inductor", "FRAGMENT")
_library.define("accumulate_grad_(Tensor variable, Tensor new_grad) -> ()")


@torch.library.impl(_library, "accumulate_grad_", "CompositeExplicitAutograd")
def _accumulate_grad(variable: Tensor, new_grad: Tensor) -> None:
    """Adds a gradient to what a leaf has, as a backward pass does."""
    torch.autograd.graph.get_gradient_edge(variable).node(new_grad)


@torch.library.register_fake("inductor::accumulate_grad_", lib=_library)
def _accumulate_nothing(variable: Tensor, new_grad: Tensor) -> None:
    """Without data there is nothing to add."""


fx.node._side_effectful_functions.add(torch.ops.inductor.accumulate_grad_.default)


# ---- calls that graphs make ------------------------------------------------------------------
def call_hooks(
    node: object, which: int, grads: Sequence[Tensor | None], outputs: Sequence[Tensor | None]
) -> tuple[Tensor | None, ...]:
    """Runs hooks of a node; returns what they leave of the gradients."""
    return _C._backward_call_hooks(node, which, grads, outputs)


def call_node(
    node: object, grads: Sequence[Tensor | None], like: Sequence[tuple | None]
) -> tuple[Tensor | None, ...]:
    """Runs a node as it is. Where it gives no gradient the graph has zeros."""
    found = _C._backward_apply(node, grads, ())
    made: list[Tensor | None] = []
    for i, wanted in enumerate(like):
        grad = found[i] if i < len(found) else None
        if grad is None and wanted is not None:
            shape, dtype, device = wanted
            grad = torch.zeros(shape, dtype=dtype, device=device)
        made.append(grad)
    return tuple(made)


for _function in (call_hooks, call_node):
    fx.node._side_effectful_functions.add(_function)


# ---- capture ---------------------------------------------------------------------------------
class AutogradCompilerInstance:
    """The capture of one pass."""

    def __init__(self, nodes: Sequence[object], wanted: Sequence[Edge], accumulate: bool) -> None:
        self.nodes = nodes
        self.wanted = wanted
        self.accumulate = accumulate
        self.numbers = {id(node): i for i, node in enumerate(nodes)}
        self.waiting: dict[int, list[Tensor | None]] = {}
        self.captured: list[Tensor | None] = [None] * len(wanted)
        self.called: list[int] = []  # nodes that the graph gets, by their numbers
        self.fake_mode = FakeTensorMode(allow_non_fake_inputs=False)
        self.tracer = tracer = PythonKeyTracer()
        tracer.root = torch.nn.Module()
        tracer.graph = fx.Graph(tracer_cls=PythonKeyTracer)
        tracer.tensor_attrs = {}
        tracer.module_stack = {}
        names = ("inputs", "sizes", "scalars", "hooks")
        self.arguments = [tracer.create_proxy("placeholder", name, (), {}) for name in names]

    def capture(
        self, roots: Sequence[Edge], grads: Sequence[Tensor], tensors: Sequence[Tensor | None]
    ) -> fx.GraphModule:
        """The graph of the pass, a function of (inputs, sizes, scalars, hooks). Inputs are the
        gradients at the roots, then the tensors that nodes saved, and leaves."""
        values = iter([self._input(i, t) for i, t in enumerate((*grads, *tensors))])
        mode = ProxyTorchDispatchMode(self.tracer, "fake", _error_on_data_dependent_ops=True)
        with torch.no_grad(), self.fake_mode, mode:
            for root in roots:
                self._give(root, next(values))
            for number, node in enumerate(self.nodes):
                self._run(number, node, values)
            found = [flat_outputs(self.tracer, grad) for grad in self.captured]
        nodes = [grad.node if isinstance(grad, fx.Proxy) else grad for grad in found]
        self.tracer.graph.output(tuple(nodes))
        self.tracer.graph.eliminate_dead_code()
        return fx.GraphModule(self.tracer.root, self.tracer.graph, "CompiledAutograd")

    def _input(self, place: int, tensor: Tensor | None) -> Tensor | None:
        if tensor is None:
            return None
        fake = self.fake_mode.from_tensor(tensor.detach())
        track_tensor_tree(fake, self.arguments[0][place], constant=None, tracer=self.tracer)
        return fake

    def _give(self, edge: Edge, grad: Tensor | None) -> None:
        """Adds a gradient to those that arrived at a node."""
        node, place = edge
        number = self.numbers.get(id(node))
        if grad is None or number is None:
            return
        inputs = node._input_metadata
        held = self.waiting.setdefault(number, [None] * max(len(inputs), place + 1))
        if place < len(inputs):
            grad = _fitted(grad, *inputs[place])
        before = held[place]
        held[place] = grad if before is None else before + grad

    def _run(self, number: int, node: object, values: Iterator[Tensor | None]) -> None:
        kind, hooks, edges, count = _C._backward_describe(node)
        saved = [next(values) for _ in range(1 if kind == _LEAF else count)]
        grads = self.waiting.pop(number, None)
        if grads is None:
            return
        if hooks & _TENSOR_HOOKS:
            grads = self._hooked(number, _TENSOR_HOOKS, grads, grads)
        for i, (wanted, place) in enumerate(self.wanted):
            if wanted is node:
                self.captured[i] = grads[place]
        if kind == _LEAF:
            if self.accumulate:
                self._accumulate(number, hooks, saved[0], grads)
            return
        if hooks & _PRE_HOOKS:
            grads = self._hooked(number, _PRE_HOOKS, grads, grads)
        if kind == _INLINED:
            found = _C._backward_apply(node, grads, saved)
        else:
            found = self._called(number, grads, edges)
        if hooks & _POST_HOOKS:
            found = self._hooked(number, _POST_HOOKS, grads, found)
        for edge, grad in zip(edges, found, strict=False):
            self._give(edge, grad)

    # ---- recorded calls
    def _node(self, number: int) -> fx.Proxy:
        """A node of the pass as a value of the graph."""
        if number not in self.called:
            self.called.append(number)
        return self.arguments[3][self.called.index(number)]

    def _proxies(self, values: Sequence[Tensor | None]) -> list:
        return [flat_outputs(self.tracer, v) for v in values]

    def _recorded(self, target: Callable, args: tuple, like: Sequence[object]) -> list:
        """A call, with tensors like these as its results."""
        with disable_proxy_modes_tracing():
            proxy = self.tracer.create_proxy("call_function", target, args, {})
            found: list[Tensor | None] = []
            for i, one in enumerate(like):
                made = None
                if isinstance(one, Tensor):
                    made = torch.empty_like(one)
                elif one is not None:
                    shape, dtype, device = one
                    made = torch.empty(shape, dtype=dtype, device=device)
                if made is not None:
                    track_tensor_tree(made, proxy[i], constant=None, tracer=self.tracer)
                found.append(made)
        return found

    def _hooked(
        self, number: int, which: int, grads: Sequence[Tensor | None], like: Sequence
    ) -> list:
        outputs = self._proxies(like) if which == _POST_HOOKS else []
        args = (self._node(number), which, self._proxies(grads), outputs)
        return self._recorded(call_hooks, args, like)

    def _called(self, number: int, grads: list, edges: Sequence[Edge]) -> list:
        like = [
            None if node is None else tuple(node._input_metadata[place]) for node, place in edges
        ]
        args = (self._node(number), self._proxies(grads), like)
        return self._recorded(call_node, args, like)

    def _accumulate(
        self, number: int, hooks: int, variable: Tensor, grads: Sequence[Tensor | None]
    ) -> None:
        if grads[0] is None:
            return
        if hooks & (_PRE_HOOKS | _POST_HOOKS | _AFTER_ACCUMULATION):
            node = self._node(number)
            given = self._proxies(grads)
            if hooks & _PRE_HOOKS:
                given = self._proxies(self._hooked(number, _PRE_HOOKS, grads, grads))
            self._recorded(call_node, (node, given, []), [])
            if hooks & _POST_HOOKS:
                self._recorded(call_hooks, (node, _POST_HOOKS, given, []), [])
            return
        leaf, grad = self._proxies((variable, grads[0]))
        operator = torch.ops.inductor.accumulate_grad_.default
        self.tracer.create_proxy("call_function", operator, (leaf, grad), {})


def _fitted(grad: Tensor, shape: torch.Size, dtype: torch.dtype, device: torch.device) -> Tensor:
    """A gradient with the shape and the dtype of what it is the gradient of."""
    if grad.shape != shape:
        grad = grad.sum_to_size(shape)
    return grad if dtype is None or grad.dtype == dtype else grad.to(dtype)


# ---- passes ----------------------------------------------------------------------------------
# Compiled graphs by compiler and form, with the numbers of the nodes that they call.
_compiled: dict[tuple, tuple[Callable, list[int]]] = {}


def _likeness(grads: Sequence[Tensor]) -> tuple:
    return tuple((g.shape, g.stride(), g.dtype, g.device) for g in grads)


def _run_pass(
    compiler: Compiler,
    roots: Sequence[Edge],
    grads: Sequence[Tensor],
    wanted: Sequence[Edge],
    accumulate: bool,
    keep_graph: bool,
    create_graph: bool,
) -> Sequence[Tensor | None]:
    global in_compiled_autograd_region
    if create_graph:
        raise RuntimeError("compiled_autograd does not support create_graph")
    form, tensors, nodes = _C._backward_collect(roots, wanted)
    key = (compiler, form, accumulate, _likeness(grads))
    if key not in _compiled:
        counters["compiled_autograd"]["captures"] += 1
        capture = AutogradCompilerInstance(nodes, wanted, accumulate)
        graph = capture.capture(roots, grads, tensors)
        _compiled[key] = compiler(graph), capture.called
    compiled, called = _compiled[key]
    before, in_compiled_autograd_region = in_compiled_autograd_region, True
    try:
        with torch.no_grad():
            found = compiled([*grads, *tensors], [], [], [nodes[i] for i in called])
    finally:
        in_compiled_autograd_region = before
    if not keep_graph:
        _C._backward_release(nodes)
    return tuple(found)


# ---- switches --------------------------------------------------------------------------------
def _enable(
    compiler_fn: Compiler, *, dynamic: bool = True, ignore_active_disable_ctx: bool = True
) -> contextlib.AbstractContextManager:
    """A block in which backward passes of this thread are captured and compiled. `dynamic` is
    accepted: sizes are numbers here."""

    def run(*args: object) -> Sequence[Tensor | None]:
        # Passes inside of hooks, and of functions of users, are run by the engine.
        with _Switched(None):
            return _run_pass(compiler_fn, *args)

    return _Switched(run)


def _disable() -> contextlib.AbstractContextManager:
    """A block in which the engine runs backward passes."""
    return _Switched(None)


class _Switched(contextlib.AbstractContextManager):
    """A runner of backward passes, for blocks; may be entered again."""

    def __init__(self, run: Callable | None) -> None:
        self.run = run
        self.before: list[Callable | None] = []

    def __enter__(self) -> None:
        self.before.append(_C._set_backward_runner(self.run))

    def __exit__(self, *raised: object) -> None:
        _C._set_backward_runner(self.before.pop())


def enabled() -> bool:
    """Whether backward passes of this thread are captured."""
    run = _C._set_backward_runner(None)
    _C._set_backward_runner(run)
    return run is not None


def reset() -> None:
    """Forgets all compiled passes."""
    _compiled.clear()
    _C._set_backward_runner(None)
