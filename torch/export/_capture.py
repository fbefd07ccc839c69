"""Runs a module once on tensors without data and keeps the operators it calls, as they are above
autograd, in a graph whose inputs are the module's parameters and buffers and then the leaves of the
arguments. Python runs as usual, so that what it decides by values of the example is fixed; what it
assigns to attributes meanwhile is undone, and assignments to buffers become writes."""

from __future__ import annotations

import contextlib
import os
import sys
import traceback
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import torch
import torch.utils._pytree as pytree
from torch import Tensor, fx, nn
from torch.export._inputs import FakeInputs
from torch.export._state import Attributes, State
from torch.fx.experimental._proxy_tracers import proxy_of_number
from torch.fx.experimental.proxy_tensor import (
    _MakefxTracer,
    _ModuleStackTracer,
    get_proxy_slot,
    py_sym_types,
)
from torch.overrides import TorchFunctionMode

__all__ = ["CallRecord", "Captured", "capture", "exporting"]

_PLAIN = (int, float, bool, str, type(None), complex)


class CallRecord(NamedTuple):
    """A call of a submodule whose signature is kept: nodes or constants, and their structure."""

    inputs: list[object]
    in_spec: pytree.TreeSpec
    outputs: list[object]
    out_spec: pytree.TreeSpec
    names: list[str]


class Captured(NamedTuple):
    """A program as a graph over flat inputs: the state, then the leaves of the arguments."""

    module: fx.GraphModule
    state: State
    inputs: FakeInputs
    in_spec: pytree.TreeSpec
    out_spec: pytree.TreeSpec
    calls: dict[str, CallRecord]


@contextlib.contextmanager
def exporting() -> Iterator[None]:
    """torch.compiler.is_exporting() and is_compiling() are true inside."""
    names = ("_is_exporting_flag", "_is_compiling_flag")
    before = {name: getattr(torch.compiler, name, False) for name in names}
    try:
        for name in names:
            setattr(torch.compiler, name, True)
        yield
    finally:
        for name, value in before.items():
            setattr(torch.compiler, name, value)


class _Tracer(_ModuleStackTracer):
    """Notes the calls of submodules whose signature is to be kept."""

    def __init__(self, root: nn.Module, preserved: Sequence[str]) -> None:
        super().__init__(root)
        self.preserved = set(preserved)
        self.calls: dict[str, CallRecord] = {}

    def call_module(
        self, m: nn.Module, forward: Callable[..., object], args: tuple, kwargs: dict
    ) -> object:
        path = self.paths.get(id(m))
        if path is None or path not in self.preserved:
            return super().call_module(m, forward, args, kwargs)
        count = self.num_calls.get(path, 0)
        key = f"{path}@{count}" if count else path

        def noted(*args: object, **kwargs: object) -> object:
            flat, in_spec = pytree.tree_flatten((args, kwargs))
            inputs = [self._known(value) for value in flat]
            out = forward(*args, **kwargs)
            leaves, out_spec = pytree.tree_flatten(out)
            outputs = [self._known(value) for value in leaves]
            names = parameter_names(m, args, kwargs)
            self.calls[key] = CallRecord(inputs, in_spec, outputs, out_spec, names)
            return out

        return super().call_module(m, noted, args, kwargs)

    def _known(self, value: object) -> object:
        if isinstance(value, Tensor):
            proxy = get_proxy_slot(value, self, None, lambda known: known.proxy)
            return self.create_arg(value) if proxy is None else proxy.node
        if isinstance(value, py_sym_types):
            made = proxy_of_number(value, self)
            return made.node if isinstance(made, fx.Proxy) else made
        return value


def parameter_names(m: nn.Module, args: tuple, kwargs: dict) -> list[str]:
    """Names for the arguments of a call, positional ones first."""
    from torch.export.dynamic_shapes import _positional_names

    given = []
    for path in _positional_names(m, len(args)):
        given.append("_".join([path[0], *(str(key.idx) for key in path[1:])]))
    return [*given, *kwargs]


class _MakeGraph(_MakefxTracer):
    """make_fx above autograd with the tracer of this file."""

    def __init__(self, root: nn.Module, preserved: Sequence[str]) -> None:
        super().__init__(None, "real", True, True, True, False, True, record_stack_traces=True)
        self._root, self._preserved = root, preserved

    def _new_tracer(self, f: Callable[..., object]) -> _Tracer:
        return _Tracer(self._root, self._preserved)


class _FunctionNames(TorchFunctionMode):
    """Notes on each node the function of torch that the program called."""

    def __init__(self, maker: _MakeGraph) -> None:
        super().__init__()
        self.maker = maker
        self.counts: dict[str, int] = {}

    def __torch_function__(
        self,
        func: Callable[..., object],
        types: Sequence[type],
        args: tuple = (),
        kwargs: dict[str, object] | None = None,
    ) -> object:
        graph = self.maker.fx_tracer.graph
        last = graph._root.prev
        out = func(*args, **(kwargs or {}))
        node = graph._root.prev
        if node is last:
            return out
        name = getattr(func, "__name__", "")
        number = self.counts[name] = self.counts.get(name, 0) + 1
        called = (f"{name}_{number}", f"{type(func).__name__}.{name}")
        trace = _user_lines()
        while node is not last and node is not graph._root:
            if node.op == "call_function":
                node.meta.setdefault("torch_fn", called)
                if trace and not node.meta.get("stack_trace"):
                    node.meta["stack_trace"] = trace
            node = node.prev
        return out


_TORCH = os.path.dirname(os.path.abspath(torch.__file__))
_SHOWN = os.path.join(_TORCH, "nn") + os.sep


def _user_lines() -> str:
    """Where the program is, from the call of the module to the function of torch."""
    frames = []
    frame = sys._getframe(2)
    while frame is not None and frame.f_code is not _Program.__call__.__code__:
        name = frame.f_code.co_filename
        if not name.startswith(_TORCH) or name.startswith(_SHOWN):
            frames.append((frame, frame.f_lineno))
        frame = frame.f_back
    summary = traceback.StackSummary.extract(reversed(frames), lookup_lines=True)
    return "".join(traceback.format_list(summary)).strip()


def _check_outputs(leaves: Sequence[object]) -> None:
    from torch._dynamo.exc import UserError, UserErrorType

    for leaf in leaves:
        if not isinstance(leaf, (Tensor, *_PLAIN, *py_sym_types, torch._C.ScriptObject)):
            supported = [Tensor, *py_sym_types, *_PLAIN]
            raise UserError(
                UserErrorType.INVALID_OUTPUT,
                f"It looks like one of the outputs with type `{type(leaf)}` is not supported or "
                "pytree-flattenable. \nExported graphs outputs can only contain the following "
                f"supported types: {supported}. \nIf you are using a custom class object, please "
                "register a pytree_flatten/unflatten function using "
                "`torch.utils._pytree.register_pytree_node` or "
                "`torch.export.register_dataclass`.",
            )


class _Program:
    """The module as a function of flat values."""

    def __init__(
        self, mod: nn.Module, state: State, in_spec: pytree.TreeSpec, maker: _MakeGraph
    ) -> None:
        self.mod, self.state, self.in_spec, self.maker = mod, state, in_spec, maker
        self.out_spec: pytree.TreeSpec | None = None

    def __call__(self, *values: object) -> tuple[object, ...]:
        count = len(self.state.names)
        args, kwargs = pytree.tree_unflatten(list(values[count:]), self.in_spec)
        tensors = dict(zip(self.state.names, values[:count], strict=True))
        with self.state.replaced_by(tensors), Attributes(self.mod) as attributes:
            with _interpreted(self.mod), _FunctionNames(self.maker):
                out = self.mod(*args, **kwargs)
            attributes.check()
            self.state.write_assigned(tensors)
        leaves, self.out_spec = pytree.tree_flatten(out)
        _check_outputs(leaves)
        return tuple(leaves)


@contextlib.contextmanager
def _interpreted(mod: nn.Module) -> Iterator[None]:
    """A graph module runs node by node inside, so that new nodes keep what was noted on its own."""
    if not isinstance(mod, fx.GraphModule) or mod.graph._codegen.__class__ is fx.graph.CodeGen:
        yield
        return
    codegen = mod.graph._codegen

    def forward(*args: object, **kwargs: object) -> object:
        from torch.export._tree_utils import reorder_kwargs

        info = codegen.pytree_info
        flat = pytree.tree_leaves((args, reorder_kwargs(kwargs, info.in_spec)))
        with fx.traceback.preserve_node_meta():
            found = fx.Interpreter(mod).run(*flat, enable_io_processing=False)
        found = found if isinstance(found, (tuple, list)) else (found,)
        return pytree.tree_unflatten(list(found), info.out_spec)

    before = mod.__dict__.get("forward")
    mod.__dict__["forward"] = forward
    try:
        yield
    finally:
        if before is None:
            del mod.__dict__["forward"]
        else:
            mod.__dict__["forward"] = before


def capture(
    mod: nn.Module,
    args: tuple[object, ...],
    kwargs: dict[str, object],
    inputs: FakeInputs,
    state: State,
    preserved: Sequence[str] = (),
) -> Captured:
    """The graph of mod(*args, **kwargs), traced on `inputs`."""
    in_spec = pytree.tree_structure((args, kwargs))
    maker = _MakeGraph(mod, preserved)
    program = _Program(mod, state, in_spec, maker)
    mode = inputs.mode
    allowed = mode.allow_non_fake_inputs
    mode.allow_non_fake_inputs = True
    rng = torch.get_rng_state()
    try:
        fakes = state.fakes(mode)
        with exporting(), mode:
            module = maker.trace(program, *fakes, *inputs.leaves)
    finally:
        mode.allow_non_fake_inputs = allowed
        torch.set_rng_state(rng)
    if isinstance(mod, fx.GraphModule):
        module.meta.update({k: v for k, v in mod.meta.items() if k == "custom"})
    return Captured(module, state, inputs, in_spec, program.out_spec, maker.fx_tracer.calls)
