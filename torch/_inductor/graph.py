"""From an FX graph of operator calls to a compiled function (torch/csrc/inductor). What a node is,
is decided here; what its operator does, is read from the operator in C++."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence

import torch
from torch import fx
from torch._inductor import config, metrics

__all__ = ["FirstCall", "NotLowered", "as_it_is", "compiled_graph", "hinted", "is_symbolic"]


class NotLowered(Exception):
    """The graph holds something that the compiler does not take; it is run as it is."""


# In the order of NumberOp in torch/csrc/inductor/program.h.
_NUMBER_OPS: list[tuple[Callable, ...]] = [
    (operator.add,),
    (operator.sub,),
    (operator.mul,),
    (operator.floordiv,),
    (operator.mod,),
    (operator.neg,),
    (torch.sym_max, max),
    (torch.sym_min, min),
    (operator.eq,),
    (operator.ne,),
    (operator.lt,),
    (operator.le,),
    (operator.gt,),
    (operator.ge,),
    (operator.truediv,),
    (operator.pow,),
    (operator.and_,),
    (operator.or_,),
    (torch.sym_not, operator.not_),
    (torch.sym_float, float),
    (torch.sym_int, int, math.trunc),
]
_NUMBERS = {function: place for place, many in enumerate(_NUMBER_OPS) for function in many}

Entry = tuple[str, str, object, tuple, dict]


def _attribute(module: torch.nn.Module, path: str) -> object:
    found: object = module
    for name in path.split("."):
        found = getattr(found, name)
    return found


class _Reader:
    """The nodes of a graph as the entries that torch._C._inductor.build takes."""

    def __init__(self, module: fx.GraphModule) -> None:
        self.module = module
        self.entries: list[Entry] = []
        self.constants: list[torch.Tensor] = []
        self.numbers: dict[fx.Node, int] = {}
        self.inputs = 0
        self.outputs: tuple = ()

    def read(self) -> None:
        for node in self.module.graph.nodes:
            if node.op == "output":
                found = node.args[0]
                self.outputs = tuple(found) if isinstance(found, (list, tuple)) else (found,)
                continue
            entry = self._entry(node)
            self.numbers[node] = len(self.entries)
            self.entries.append(entry)

    def _entry(self, node: fx.Node) -> Entry:
        if node.op == "placeholder":
            self.inputs += 1
            return ("input", node.name, self.inputs - 1, (), {})
        if node.op == "get_attr":
            value = _attribute(self.module, node.target)
            if not isinstance(value, torch.Tensor):
                raise NotLowered(f"get_attr {node.target} is no tensor")
            self.constants.append(value)
            return ("constant", node.name, len(self.constants) - 1, (), {})
        target = node.target
        if isinstance(target, torch._ops.OpOverload):
            schema = target._schema
            name = (schema.name, schema.overload_name)
            return ("call", node.name, name, tuple(node.args), dict(node.kwargs))
        if target is operator.getitem and isinstance(node.args[1], int):
            return ("item", node.name, node.args[1], (node.args[0],), {})
        if target in _NUMBERS and not node.kwargs:
            return ("number", node.name, _NUMBERS[target], tuple(node.args), {})
        raise NotLowered(f"{node.op} {target}")


def _is_symbolic(value: object) -> bool:
    if isinstance(value, torch.Tensor):
        return any(isinstance(n, torch.SymInt) for n in (*value.shape, *value.stride()))
    return isinstance(value, (torch.SymInt, torch.SymFloat, torch.SymBool))


def _compile_hot_kernels() -> None:
    from torch._inductor.codecache import compile_waiting

    compile_waiting()


def _record() -> int:
    """Which plans for CUDA are recorded as graphs, as a Record of torch/csrc/inductor/program.h."""
    if config.triton.cudagraphs:
        return 2
    return 1 if config.triton.record_launch_bound else 0


def compiled_graph(
    module: fx.GraphModule, example_inputs: Sequence[object] | None
) -> tuple[torch._C._inductor.Compiled, tuple[str, int, int, int] | None]:
    """The compiled function, and for inputs of known shapes what it will run: the text of the plan,
    kernels, calls and bytes. Without inputs no plan is made. Raises NotLowered."""
    torch._C._inductor.set_compiler(
        _compile_hot_kernels if config.cpp.compile_hot_kernels else None,
        config.cpp.hot_kernel_elements,
        config.cpp.check_tiers,
    )
    reader = _Reader(module)
    reader.read()
    try:
        compiled = torch._C._inductor.build(
            reader.entries,
            reader.outputs,
            reader.constants,
            reader.inputs,
            fx.Node,
            reader.numbers,
            _record(),
            config.triton.compile_in_background,
        )
        if example_inputs is None:
            return compiled, None
        if is_symbolic(example_inputs):
            return compiled, _prepared_for_hints(compiled, example_inputs)
        return compiled, compiled.prepare(list(example_inputs))
    except RuntimeError as error:  # of which NotImplementedError is one
        raise NotLowered(str(error)) from error


def is_symbolic(inputs: Sequence[object]) -> bool:
    """Whether sizes are known when the function is called."""
    return any(map(_is_symbolic, inputs))


def _hint(value: object) -> object:
    if not isinstance(value, (torch.SymInt, torch.SymFloat, torch.SymBool)):
        return value
    found = value.node.hint
    if found is None:
        raise NotLowered(f"{value} is not known before the function is called")
    return found


def hinted(inputs: Sequence[object]) -> list[object]:
    """Inputs as the trace met them: symbols become the numbers they stood for. Raises NotLowered
    where one stood for none."""
    found: list[object] = []
    for value in inputs:
        if isinstance(value, torch.Tensor):
            size, stride = map(_hint, value.shape), map(_hint, value.stride())
            value = torch.empty_strided(
                tuple(size), tuple(stride), dtype=value.dtype, device="meta"
            )
        found.append(_hint(value))
    return found


def _prepared_for_hints(
    compiled: torch._C._inductor.Compiled, inputs: Sequence[object]
) -> tuple[str, int, int, int] | None:
    """The plan for the sizes that the trace met, which most likely come first."""
    try:
        with torch.utils._python_dispatch._disable_current_modes():
            return compiled.prepare(hinted(inputs))
    except (NotLowered, RuntimeError):
        return None


def as_it_is(module: fx.GraphModule) -> Callable[[list[object]], Sequence[object]]:
    """The graph, run node by node, with the interface of a compiled one."""
    module.recompile()  # passes do not, as most graphs are never run like this

    def run(args: list[object]) -> Sequence[object]:
        out = module.forward(*args)
        return out if isinstance(out, (list, tuple)) else [out]

    run._boxed_call = True
    return run


class FirstCall:
    """A compiled function whose shapes are known when it is called: if no plan can be made for the
    first arguments the graph is run as it is from then on."""

    _boxed_call = True

    def __init__(self, compiled: torch._C._inductor.Compiled, module: fx.GraphModule) -> None:
        self.run: Callable[[list[object]], Sequence[object]] = self._first
        self.compiled = compiled
        self.module = module

    def __call__(self, args: list[object]) -> Sequence[object]:
        return self.run(args)

    def _first(self, args: list[object]) -> Sequence[object]:
        try:
            self.compiled.prepare(args)
        except RuntimeError as reason:
            metrics.not_lowered.append(str(reason))
            self.run = as_it_is(self.module)
        else:
            self.run = self.compiled
        return self.run(args)
