"""Inference with parameters as constants (config.freezing): what is computed from them alone is
computed once, when the graph is compiled. A parameter that a graph writes or returns stays an
input."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence

import torch
from torch import fx
from torch._dynamo.utils import counters
from torch._inductor.freezing_utils import (
    enter_freezing,
    maybe_set_is_frozen_param,
    record_has_frozen_params,
)

__all__ = ["freeze", "freezing_compiler", "replace_params_with_constants"]

aten = torch.ops.aten
# Results as large as all their inputs together are not worth keeping if they are mere expansions.
_NEVER = (aten.full.default, aten.full_like.default, aten.empty.memory_format, aten.rand.default)


def replace_params_with_constants(gm: fx.GraphModule, values: dict[int, torch.Tensor]) -> list[int]:
    """Makes inputs attributes of the module; returns the numbers of the inputs that stay."""
    inputs = [n for n in gm.graph.nodes if n.op == "placeholder"]
    kept = [i for i in range(len(inputs)) if i not in values]
    output = gm.graph.output_node()
    for number, value in values.items():
        node = inputs[number]
        if output in node.users or any(_writes(user, node) for user in node.users):
            kept.append(number)
            continue
        name = f"_frozen_param{number}"
        constant_value = value.detach()
        maybe_set_is_frozen_param(constant_value)
        setattr(gm, name, constant_value)
        with gm.graph.inserting_before(node):
            constant = gm.graph.get_attr(name)
        constant.meta.update(node.meta)
        node.replace_all_uses_with(constant)
        gm.graph.erase_node(node)
    gm.recompile()
    return sorted(kept)


def _writes(user: fx.Node, node: fx.Node) -> bool:
    target = user.target
    if not isinstance(target, torch._ops.OpOverload) or not target._schema.is_mutable:
        return False
    written = [a.alias_info is not None and a.alias_info.is_write for a in target._schema.arguments]
    return any(w and a is node for w, a in zip(written, user.args, strict=False))


def _foldable(node: fx.Node, known: dict[fx.Node, object]) -> bool:
    target = node.target
    if node.op != "call_function" or target in _NEVER:
        return False
    if not isinstance(target, torch._ops.OpOverload) or target._schema.is_mutable:
        return False
    if torch.Tag.nondeterministic_seeded in target.tags or node.is_impure():
        return False
    return bool(node.all_input_nodes) and all(n in known for n in node.all_input_nodes)


def constant_fold(gm: fx.GraphModule) -> int:
    """Computes what depends on constants alone; the number of nodes that went."""
    known: dict[fx.Node, object] = {}
    for node in gm.graph.nodes:
        if node.op == "get_attr":
            value = getattr(gm, node.target, None)
            if isinstance(value, torch.Tensor):
                known[node] = value
        elif _foldable(node, known):
            args = fx.map_arg(node.args, known.__getitem__)
            kwargs = fx.map_arg(node.kwargs, known.__getitem__)
            with torch.no_grad(), torch.utils._python_dispatch._disable_current_modes():
                found = node.target(*args, **kwargs)
            if isinstance(found, torch.Tensor):
                known[node] = found
    folded = 0
    for node in list(gm.graph.nodes):
        if node.op != "call_function" or node not in known:
            continue
        if all(user in known for user in node.users):
            continue
        name = f"_frozen_value{folded}"
        setattr(gm, name, known[node])
        with gm.graph.inserting_before(node):
            constant = gm.graph.get_attr(name)
        constant.meta.update(node.meta)
        node.replace_all_uses_with(constant)
        folded += 1
    gm.graph.eliminate_dead_code()
    gm.recompile()
    return folded


def freeze(
    dynamo_gm: torch.nn.Module,
    aot_autograd_gm: fx.GraphModule,
    example_inputs: Sequence[object],
    frozen: dict[int, torch.Tensor] | None = None,
) -> tuple[fx.GraphModule, list[int]]:
    """The traced graph of a module with its parameters and buffers inside; and the numbers of the
    inputs that stay."""
    from torch._inductor.fx_passes.freezing_patterns import freezing_passes
    from torch._inductor.fx_passes.joint_graph import joint_graph_passes

    if frozen is None:
        frozen = dict(enumerate([*dynamo_gm.parameters(), *dynamo_gm.buffers()]))
    joint_graph_passes(aot_autograd_gm)
    with enter_freezing():
        kept = replace_params_with_constants(aot_autograd_gm, frozen)
        counters["inductor"]["frozen_values"] += constant_fold(aot_autograd_gm)
        freezing_passes(aot_autograd_gm, example_inputs)
    record_has_frozen_params(aot_autograd_gm)
    return aot_autograd_gm, kept


def _belongs_to_module(node: fx.Node) -> bool:
    source = node.meta.get("grapharg_source")
    name = source.name() if source is not None else ""
    return "._parameters[" in name or "._buffers[" in name


def frozen_inputs(model: torch.nn.Module, inputs: Sequence[object]) -> dict[int, torch.Tensor]:
    """The parameters and buffers among what the traced graph will get: those of the model, then
    inputs that Dynamo took from a module. A tensor without data is not among them."""
    state: list[object] = [*model.parameters(), *model.buffers()]
    taken: list[object] = [None] * len(inputs)
    if isinstance(model, fx.GraphModule):
        places = [n for n in model.graph.nodes if n.op == "placeholder"]
        for i, (node, value) in enumerate(zip(places, inputs, strict=False)):
            if _belongs_to_module(node) and getattr(value, "fake_mode", None) is None:
                taken[i] = value
    return {i: v for i, v in enumerate([*state, *taken]) if isinstance(v, torch.Tensor)}


_MOST_FORMS = 8


def freezing_compiler(
    model: torch.nn.Module, inputs: Sequence[object], inner: Callable
) -> Callable:
    """A compiler of inference graphs that freezes them first. Another module of the same kind may
    run the same code: its parameters are told apart by where they lie, and it gets a form of its
    own."""
    first = frozen_inputs(model, inputs)

    def compile_frozen(gm: fx.GraphModule, given: Sequence[object]) -> Callable:
        places = sorted(first)
        forms: dict[tuple[int, ...], tuple[Callable, list[int]]] = {}

        def form_of(values: dict[int, torch.Tensor]) -> tuple[Callable, list[int]]:
            frozen, kept = freeze(model, copy.deepcopy(gm), given, values)
            return inner(frozen, [given[i] for i in kept]), kept

        forms[tuple(first[i].data_ptr() for i in places)] = form_of(first)

        def run(args: list[object]) -> Sequence[object]:
            key = tuple(args[i].data_ptr() for i in places)
            if key not in forms:
                if len(forms) >= _MOST_FORMS:
                    forms.pop(next(iter(forms)))
                forms[key] = form_of({i: args[i] for i in places})
            compiled, kept = forms[key]
            chosen = [args[i] for i in kept]
            args.clear()
            boxed = getattr(compiled, "_boxed_call", False)
            return compiled(chosen) if boxed else compiled(*chosen)

        run._boxed_call = True
        return run

    return compile_frozen
