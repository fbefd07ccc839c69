"""From a module with state to the graph that is compiled: no writes, no composite operators,
parameters and buffers as attributes with the names that the module has for them."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable, Sequence

import torch
from torch import Tensor, fx, nn
from torch._guards import detect_fake_mode
from torch.utils import _pytree as pytree

__all__ = ["Traced", "trace_module"]

aten = torch.ops.aten
_SYMBOLIC = (torch.SymInt, torch.SymFloat, torch.SymBool)


@dataclasses.dataclass
class Traced:
    """A graph ready to be lowered. Its placeholders are `inputs`; `state` names what its attributes
    are; the leaves of the arguments that are inputs are numbered by `leaves`."""

    graph: fx.GraphModule
    state: dict[str, tuple[str, Tensor]]
    leaves: list[int]
    names: list[str]
    in_spec: pytree.TreeSpec
    out_spec: pytree.TreeSpec


class _Flat(nn.Module):
    """A graph module as a function of its inputs that are no constants, with flat results."""

    def __init__(self, inner: fx.GraphModule, values: list[object], places: list[int]) -> None:
        super().__init__()
        self.inner = inner
        self.values = values
        self.places = places
        self.out_spec: pytree.TreeSpec | None = None

    def forward(self, *given: object) -> list[object]:
        from torch.export._decompose import _Again

        flat = list(self.values)
        for place, value in zip(self.places, given, strict=True):
            flat[place] = value
        mode = detect_fake_mode([v for v in given if isinstance(v, Tensor)])
        runner = _Again(self.inner, mode.shape_env if mode is not None else None)
        found = runner.run(*flat, enable_io_processing=False)
        leaves, self.out_spec = pytree.tree_flatten(found)
        return leaves


def _example(node: fx.Node, given: object) -> object:
    """What an input was traced with: with symbols where its sizes vary."""
    for key in ("val", "example_value"):
        if key in node.meta:
            found = node.meta[key]
            # Inputs whose value is fixed are told by the arguments.
            if isinstance(found, (Tensor, *_SYMBOLIC)) or not isinstance(given, Tensor):
                return found if isinstance(found, (Tensor, *_SYMBOLIC)) else given
    return given


def _specs(
    module: fx.GraphModule, args: tuple[object, ...], kwargs: dict[str, object]
) -> tuple[pytree.TreeSpec, pytree.TreeSpec | None]:
    info = getattr(module.graph._codegen, "pytree_info", None)
    if info is not None:
        in_spec = info.in_spec
        if len(in_spec.children_specs) != 2 or in_spec.type is not tuple:
            in_spec = pytree.tree_structure((args, kwargs))
        return in_spec, info.out_spec
    return pytree.tree_structure((args, kwargs)), None


def trace_module(
    module: fx.GraphModule, args: tuple[object, ...], kwargs: dict[str, object]
) -> Traced:
    """Traces a graph module, as exported programs and the bytecode tracer give it."""
    from torch._inductor.decomposition import select_decomp_table
    from torch.export._inputs import fake_mode_for
    from torch.export.decomp_utils import composite_table

    in_spec, out_spec = _specs(module, args, kwargs)
    given = pytree.tree_leaves((args, kwargs))
    places = [n for n in module.graph.nodes if n.op == "placeholder"]
    if len(places) != len(given):
        raise ValueError(f"the graph takes {len(places)} inputs and {len(given)} were given")
    values = [_example(node, value) for node, value in zip(places, given, strict=True)]
    leaves = [i for i, v in enumerate(values) if isinstance(v, (Tensor, *_SYMBOLIC))]
    flat = _Flat(module, values, leaves)
    inputs = [values[i] for i in leaves]
    state = {**dict(flat.named_parameters()), **dict(flat.named_buffers())}
    names = list(state)
    mode = detect_fake_mode([v for v in inputs if isinstance(v, Tensor)]) or _mode_of(inputs)
    mode = mode or fake_mode_for([*state.values()])
    with mode:
        fakes = [mode.from_tensor(t, static_shapes=True) for t in state.values()]
    inputs = [_faked(v, mode) for v in inputs]

    def run(*all_values: object) -> list[object]:
        own = dict(zip(names, all_values[: len(names)], strict=True))
        return torch.func.functional_call(flat, own, tuple(all_values[len(names) :]))

    table = {**composite_table(), **select_decomp_table()}
    traced = _traced(run, [*fakes, *inputs], mode, table)
    graph, written = traced.module, traced.meta.written
    held = _as_attributes(graph, names, state, written)
    if out_spec is None:
        out_spec = flat.out_spec
    shown = [places[i].name for i in leaves]
    return Traced(graph, held, leaves, shown, in_spec, out_spec)


def _mode_of(inputs: Sequence[object]) -> object:
    from torch._subclasses import FakeTensorMode

    for value in inputs:
        if isinstance(value, _SYMBOLIC):
            return FakeTensorMode(shape_env=value.node.shape_env, allow_non_fake_inputs=True)
    return None


def _faked(value: object, mode: object) -> object:
    if isinstance(value, Tensor) and getattr(value, "fake_mode", None) is None:
        return mode.from_tensor(value, static_shapes=True)
    return value


def _traced(run: Callable, values: list[object], mode: object, table: dict) -> object:
    from torch._functorch._aot_autograd.export import _settings
    from torch._functorch._aot_autograd.pre_dispatch import trace_above_autograd
    from torch.export._capture import exporting
    from torch.export._regions import drop_switches

    table.setdefault(aten.lift_fresh_copy.default, aten.clone.default)
    settings = _settings(table, 0, pre_dispatch=True)
    allowed, mode.allow_non_fake_inputs = mode.allow_non_fake_inputs, True
    quiet = mode.shape_env.suppress_guards if mode.shape_env else contextlib.nullcontext
    try:
        with exporting(), torch.no_grad(), mode, quiet(), fx.traceback.preserve_node_meta():
            traced = trace_above_autograd(run, values, settings)
    finally:
        mode.allow_non_fake_inputs = allowed
    drop_switches(traced.module)
    return traced


def _as_attributes(
    gm: fx.GraphModule, names: list[str], state: dict[str, Tensor], written: Sequence[int]
) -> dict[str, tuple[str, Tensor]]:
    """Inputs that stand for state become attributes; new values of inputs and of state are copied
    there at the end and returned no more. {attribute: (name in the module, value)}"""
    graph = gm.graph
    places = [n for n in graph.nodes if n.op == "placeholder"]
    held: dict[str, tuple[str, Tensor]] = {}
    for i, (name, node) in enumerate(zip(names, places, strict=False)):
        shown = name.removeprefix("inner.")
        attribute = f"_state{i}_" + "".join(c if c.isalnum() else "_" for c in shown)
        setattr(gm, attribute, state[name].detach())
        with graph.inserting_before(node):
            read = graph.get_attr(attribute)
        read.meta.update(node.meta)
        node.replace_all_uses_with(read)
        graph.erase_node(node)
        places[i] = read
        held[attribute] = (shown, state[name].detach())
    output = graph.output_node()
    returned = list(output.args[0])
    kept = returned[len(written) :]
    with graph.inserting_before(output):
        for index, value in zip(written, returned, strict=False):
            copy = graph.call_function(aten.copy_.default, (places[index], value))
            copy.meta["val"] = places[index].meta.get("val")
            kept = [copy if k is value else k for k in kept]
    output.args = (tuple(kept),)
    graph.eliminate_dead_code()
    gm.recompile()
    return held
