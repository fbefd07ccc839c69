"""How operators become loops. Ours are read from the operators themselves in C++
(torch/csrc/inductor/lower.cpp); this is where users add theirs:

    @register_lowering(torch.ops.mylib.scale)
    def scale(x, factor):
        load = x.make_loader()
        return Pointwise.create(device=x.get_device(), dtype=x.get_dtype(), ranges=x.get_size(),
                                inner_fn=lambda index: ops.mul(load(index), factor))

A lowering of a user is traced when the graph is lowered and its operators take the place of the
node."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence

import torch
from torch import fx
from torch._dynamo.utils import counters
from torch._inductor.exc import LoweringException
from torch._inductor.ir import FallbackKernel, IRNode, Pointwise, TensorBox
from torch._prims_common import ELEMENTWISE_TYPE_PROMOTION_KIND, elementwise_dtypes
from torch.utils import _pytree as pytree

__all__ = [
    "expand_lowerings",
    "fallback_handler",
    "fallbacks",
    "lowerings",
    "make_fallback",
    "make_pointwise",
    "register_lowering",
    "to_dtype",
]

aten = torch.ops.aten
Lowering = Callable[..., object]
fallbacks: set[object] = set()


class _Lowerings(dict):
    """Lowerings by operator. Every operator has one: if nobody registered another, its call."""

    def __missing__(self, op: object) -> Lowering:
        if not isinstance(op, (torch._ops.OpOverload, torch._ops.OpOverloadPacket)):
            raise KeyError(op)
        return functools.partial(FallbackKernel.create, op)

    def __contains__(self, op: object) -> bool:
        known = isinstance(op, torch._ops.OpOverload) and op.namespace in ("aten", "prims")
        return super().__contains__(op) or known


lowerings: dict[object, Lowering] = _Lowerings()


def _overloads(fn: object) -> list[object]:
    many = list(fn) if isinstance(fn, (list, tuple)) else [fn]
    found: list[object] = []
    for one in many:
        found.append(one)
        if isinstance(one, torch._ops.OpOverloadPacket):
            found += [getattr(one, name) for name in one.overloads()]
    return found


def register_lowering(
    aten_fn: object,
    broadcast: bool = False,
    type_promotion_kind: ELEMENTWISE_TYPE_PROMOTION_KIND | None = (
        ELEMENTWISE_TYPE_PROMOTION_KIND.DEFAULT
    ),
    convert_input_to_bool: bool = False,
    lowering_dict: dict[object, Lowering] = lowerings,
) -> Callable[[Lowering], Lowering]:
    """Decorates a lowering of an operator, of all overloads of a packet, or of several operators.
    Its tensors come as TensorBoxes, promoted to a common dtype unless the kind is None."""

    def decorator(decomp_fn: Lowering) -> Lowering:
        @functools.wraps(decomp_fn)
        def lowered(*args: object, **kwargs: object) -> object:
            given, named = _unpacked(args), kwargs
            if convert_input_to_bool:
                given = pytree.tree_map_only(IRNode, lambda b: to_dtype(b, torch.bool), given)
            elif type_promotion_kind is not None:
                given = _promoted(given, type_promotion_kind)
            return decomp_fn(*(_broadcast(given) if broadcast else given), **named)

        for op in _overloads(aten_fn):
            lowering_dict[op] = lowered
        return lowered

    return decorator


def _unpacked(args: tuple) -> list[object]:
    return list(args[0]) if len(args) == 1 and isinstance(args[0], (list, tuple)) else list(args)


def _promoted(args: Sequence[object], kind: ELEMENTWISE_TYPE_PROMOTION_KIND) -> list[object]:
    tensors = [a for a in args if isinstance(a, IRNode)]
    if not tensors:
        return list(args)
    numbers = [a for a in args if isinstance(a, (int, float, complex))]
    wanted, _ = elementwise_dtypes(*[t.tensor for t in tensors], *numbers, type_promotion_kind=kind)
    return [to_dtype(a, wanted) if isinstance(a, IRNode) else a for a in args]


def _broadcast(args: Sequence[object]) -> list[object]:
    tensors = [a for a in args if isinstance(a, IRNode)]
    shape = torch.broadcast_shapes(*[t.get_size() for t in tensors]) if tensors else ()
    return [
        TensorBox.of(a.tensor.expand(shape))
        if isinstance(a, IRNode) and list(a.get_size()) != list(shape)
        else a
        for a in args
    ]


def to_dtype(x: IRNode, dtype: torch.dtype, copy: bool = False) -> IRNode:
    """x converted."""
    return x if x.get_dtype() == dtype and not copy else TensorBox.of(x.tensor.to(dtype))


def make_pointwise(
    fn: Callable,
    override_return_dtype: torch.dtype | None = None,
    override_device: torch.device | None = None,
    override_fn_when_input_bool: Callable | None = None,
    allow_alpha: bool = False,
    **unused: object,
) -> Lowering:
    """The lowering that computes fn(element, ...) for the elements of its arguments. fn uses
    `ops`."""

    def inner(*inputs: object, alpha: object = None) -> TensorBox:
        given = _broadcast(inputs)
        tensors = [a for a in given if isinstance(a, IRNode)]
        loaders = [a.make_loader() if isinstance(a, IRNode) else None for a in given]
        first = tensors[0]
        chosen = fn
        if override_fn_when_input_bool is not None and first.get_dtype() == torch.bool:
            chosen = override_fn_when_input_bool

        def inner_fn(index: Sequence[object]) -> object:
            values = [
                value if load is None else load(index)
                for value, load in zip(given, loaders, strict=True)
            ]
            if allow_alpha and alpha is not None:
                values[-1] = values[-1] * alpha
            return chosen(*values)

        return Pointwise.create(
            device=override_device or first.get_device(),
            dtype=override_return_dtype or first.get_dtype(),
            inner_fn=inner_fn,
            ranges=first.get_size(),
        )

    return inner


def fallback_handler(kernel: object, add_to_fallback_set: bool = True) -> Lowering:
    """The lowering that calls an operator."""
    if add_to_fallback_set:
        fallbacks.add(kernel)
    return functools.partial(FallbackKernel.create, kernel)


def make_fallback(
    op: object, layout_constraint: object = None, warn: bool = True, **unused: object
) -> None:
    """The operator is called, whatever was registered for it before."""
    for one in _overloads(op):
        lowerings.pop(one, None)
        fallbacks.add(one)


def add_layout_constraint(fn: object, constraint: object) -> None:
    """Accepted: calls get their arguments with the strides of eager code anyway."""


def __getattr__(name: str) -> Lowering:
    """Lowerings of aten operators by their names: lowering.clone(x)."""
    if name.startswith("__") or not hasattr(aten, name):
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
    packet = getattr(aten, name)
    return functools.partial(FallbackKernel.create, packet)


# ---- putting lowerings into graphs ----------------------------------------------------------


def expand_lowerings(gm: fx.GraphModule) -> None:
    """Replaces nodes that users lower by the operators of their lowerings."""
    from torch._inductor.compiler_bisector import CompilerBisector

    changed = False
    for node in list(gm.graph.nodes):
        if node.op != "call_function":
            continue
        function = _lowering_of(node)
        if function is None:
            continue
        if CompilerBisector.disable_subsystem("inductor", "lowerings", lambda n=node: repr(n)):
            continue
        _expand(gm, node, function)
        counters["inductor"]["user_lowerings"] += 1
        changed = True
    if changed:
        gm.graph.eliminate_dead_code()
        gm.graph.lint()
        gm.recompile()


def _lowering_of(node: fx.Node) -> Lowering | None:
    if getattr(node.target, "_inductor_lowering_function", False):
        return node.target
    return dict.get(lowerings, node.target)


def _expand(gm: fx.GraphModule, node: fx.Node, function: Lowering) -> None:
    from torch._inductor._matching.match import _copied
    from torch._inductor._matching.replacement import in_fake_mode
    from torch.fx.experimental.proxy_tensor import make_fx

    leaves, spec = pytree.tree_flatten((node.args, node.kwargs))
    places = [i for i, leaf in enumerate(leaves) if isinstance(leaf, fx.Node)]
    sources = [leaves[i] for i in places]

    def run(*values: object) -> object:
        filled = list(leaves)
        for place, value in zip(places, values, strict=True):
            filled[place] = TensorBox.of(value) if isinstance(value, torch.Tensor) else value
        args, kwargs = pytree.tree_unflatten(filled, spec)
        found = function(*args, **kwargs)
        return pytree.tree_map_only(IRNode, lambda b: b.tensor, found)

    values = [n.meta["val"] for n in sources]
    try:
        with in_fake_mode(values), torch.no_grad():
            traced = make_fx(run)(*values)
    except Exception as error:
        raise LoweringException(error, node.target, node.args, dict(node.kwargs)) from error
    results, _ = _copied(gm.graph, traced.graph, list(sources), node)
    _replace(gm.graph, node, results)


def _replace(graph: fx.Graph, node: fx.Node, results: list[object]) -> None:
    import operator

    if len(results) == 1 and not isinstance(node.meta.get("val"), (list, tuple)):
        node.replace_all_uses_with(results[0])
    else:
        for user in list(node.users):
            if user.target is not operator.getitem:
                raise RuntimeError(f"{user} uses several results of {node} at once")
            user.replace_all_uses_with(results[user.args[1]])
            graph.erase_node(user)
    graph.erase_node(node)
