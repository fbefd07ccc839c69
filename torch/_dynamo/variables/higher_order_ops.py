"""Operators that take functions. Each function is traced into a graph of its own; values of the
enclosing trace that it uses become its inputs (they are lifted)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import torch
import torch.fx
from torch._dynamo import polyfills, trace_rules
from torch._dynamo.exc import UncapturedHigherOrderOpError, Unsupported, unimplemented
from torch._dynamo.trace_rules import handler
from torch._dynamo.variables.base import Args, Kwargs, VariableTracker, bodies
from torch._dynamo.variables.constant import FALSE, TRUE, ConstantVariable
from torch._dynamo.variables.dicts import ConstDictVariable
from torch._dynamo.variables.lists import BaseListVariable, ListVariable, TupleVariable
from torch._dynamo.variables.tensor import SymNodeVariable, TensorVariable
from torch._higher_order_ops import utils
from torch._higher_order_ops.associative_scan import associative_scan_op
from torch._higher_order_ops.cond import cond, cond_op
from torch._higher_order_ops.flex_attention import flex_attention as flex_attention_op
from torch._higher_order_ops.flex_attention import one_position
from torch._higher_order_ops.hints_wrap import check as check_hints
from torch._higher_order_ops.hints_wrap import hints_wrapper
from torch._higher_order_ops.invoke_subgraph import _Region, invoke_subgraph
from torch._higher_order_ops.map import map_impl
from torch._higher_order_ops.out_dtype import out_dtype
from torch._higher_order_ops.scan import scan_op
from torch._higher_order_ops.strict_mode import strict_mode_op
from torch._higher_order_ops.while_loop import while_loop_op
from torch._higher_order_ops.wrap import (
    tag_activation_checkpoint,
    wrap,
    wrap_with_autocast,
    wrap_with_set_grad_enabled,
)
from torch.fx.node import map_aggregate
from torch.nn.attention import flex_attention as flex
from torch.utils import _pytree as pytree
from torch.utils import checkpoint as checkpointing

if TYPE_CHECKING:
    from torch._dynamo.symbolic_convert import Frame


class Body(NamedTuple):
    """A traced function: its graph, the outer values it uses, what it returned and the tensors
    among that."""

    graph: torch.fx.Graph
    attrs: dict[str, object]
    lifted: dict[torch.fx.Node, torch.fx.Node]
    result: VariableTracker
    leaves: list[VariableTracker]


def trace_body(
    tx: Frame,
    fn: VariableTracker,
    args: Args,
    kwargs: Kwargs,
    fresh: Sequence[torch.Tensor] = (),
) -> Body:
    """Traces a function into a graph of its own. The function gets a placeholder for each of the
    `fresh` values before its other arguments."""
    out = tx.out
    graph, attrs, lifted = torch.fx.Graph(), {}, {}
    saved = out.graph, out.attrs
    before, bodies[0] = out.body_start, bodies[0] + 1
    out.body_start = bodies[0]
    changes = out.side_effects.count()
    out.scopes.append((graph, lifted))
    out.graph, out.attrs = graph, attrs
    try:
        given = [_placeholder(graph, i, example) for i, example in enumerate(fresh)]
        result = fn.call_function(tx, [*given, *args], kwargs)
        leaves: list[VariableTracker] = []
        _collect(result, leaves)
        graph.output(tuple([out.lift(leaf.as_proxy()) for leaf in leaves]))
    finally:
        out.scopes.pop()
        out.graph, out.attrs = saved
        out.body_start = before
    if out.side_effects.count() != changes:
        unimplemented(
            "HigherOrderOperator: Mutating a variable not in the current scope (SideEffects)",
            fn.describe(),
            "the function of a higher-order operator changes something outside of itself",
        )
    return Body(graph, attrs, lifted, result, leaves)


def _placeholder(graph: torch.fx.Graph, index: int, example: torch.Tensor) -> TensorVariable:
    node = graph.placeholder(f"arg{index}")
    node.meta["example_value"] = example
    return TensorVariable(node, example)


def _collect(vt: VariableTracker, leaves: list[VariableTracker]) -> None:
    vt = vt.realize()
    if isinstance(vt, TensorVariable | SymNodeVariable):
        leaves.append(vt)
    elif type(vt) is TupleVariable or isinstance(vt, ListVariable):
        for item in vt.items:
            _collect(item, leaves)
    elif isinstance(vt, ConstDictVariable):
        for _, value in vt.items.values():
            _collect(value, leaves)
    elif not isinstance(vt, ConstantVariable):
        unimplemented("result of a higher-order operator", repr(vt), "only tensors can be returned")


def _rebuilt(vt: VariableTracker, values: list[VariableTracker]) -> VariableTracker:
    """The result with tensors of the outer graph in place of those of the body."""
    vt = vt.realize()
    if isinstance(vt, TensorVariable | SymNodeVariable):
        return values.pop(0)
    if isinstance(vt, BaseListVariable):
        return vt.like([_rebuilt(item, values) for item in vt.items])
    if isinstance(vt, ConstDictVariable):
        items = {h: (k, _rebuilt(v, values)) for h, (k, v) in vt.items.items()}
        return ConstDictVariable(items, cls=vt.cls)
    return vt


def module_node(tx: Frame, body: Body, name: str) -> torch.fx.Node:
    """A node that reads the graph of a body; the innermost graphs are numbered first."""
    tx.out.current_frame = tx
    root = torch.nn.Module()
    for key, value in body.attrs.items():
        setattr(root, key, value)
    number = tx.out.body_counts[name]
    tx.out.body_counts[name] += 1
    return tx.out.attribute_node(f"{name}_{number}", torch.fx.GraphModule(root, body.graph))


def call_operator(
    tx: Frame, op: object, args: tuple, kwargs: dict[str, object], body: Body
) -> VariableTracker:
    """A node for the operator; its result in the structure of the body's."""
    examples = tuple(leaf.as_proxy().meta["example_value"] for leaf in body.leaves)
    args = tx.out.lift_all(args)
    node = tx.out.graph.create_node("call_function", op, args, kwargs)
    node.meta["example_value"] = examples
    tx.out.describe(tx, node)
    made = tx.out.wrap_node(tx, node, examples)
    return _rebuilt(body.result, list(made.items))


def _captured(
    tx: Frame,
    name: str,
    fn: VariableTracker,
    args: Args,
    kwargs: Kwargs,
    fresh: Sequence[torch.Tensor] = (),
) -> Body:
    try:
        return trace_body(tx, fn, args, kwargs, fresh)
    except Unsupported as error:
        raise UncapturedHigherOrderOpError(
            f"{name}: the function {fn.describe()} cannot be captured whole: {error}"
        ) from error


@handler(wrap)
def _wrap(
    tx: Frame, fn: VariableTracker, *args: VariableTracker, **kwargs: VariableTracker
) -> VariableTracker:
    tx.out.operators.append(("wrap", wrap))
    try:
        body = trace_body(tx, fn, list(args), kwargs)
    finally:
        tx.out.operators.pop()
    node = module_node(tx, body, "wrap_body")
    return call_operator(tx, wrap, (node, *body.lifted), {}, body)


@handler(wrap_with_autocast)
def _under_autocast(
    tx: Frame, *args: VariableTracker, **kwargs: VariableTracker
) -> VariableTracker:
    """The switches become part of the graph."""
    return tx.inline(VariableTracker.build(tx, polyfills.under_autocast), list(args), kwargs)


@handler(wrap_with_set_grad_enabled)
def _under_grad_mode(
    tx: Frame, *args: VariableTracker, **kwargs: VariableTracker
) -> VariableTracker:
    return tx.inline(VariableTracker.build(tx, polyfills.under_grad_mode), list(args), kwargs)


@handler(checkpointing.checkpoint)
def _checkpoint(
    tx: Frame, fn: VariableTracker, *args: VariableTracker, **kwargs: VariableTracker
) -> VariableTracker:
    settings, own = tag_activation_checkpoint.divide_kwargs(kwargs)
    if "context_fn" in settings and not settings["context_fn"].is_python_constant():
        unimplemented("checkpoint", "context_fn", "a policy made in the compiled function")
    body = trace_body(tx, fn, list(args), own)
    node = module_node(tx, body, "wrap_body")
    plain = {k: v.as_python_constant() for k, v in settings.items()}
    policy = plain.get("context_fn")
    if policy is not None:
        plain["context_fn"] = tx.out.attribute_node("context_fn", policy)
    return call_operator(tx, tag_activation_checkpoint, (node, *body.lifted), plain, body)


@handler(hints_wrapper)
def _hints_wrapper(
    tx: Frame,
    body_fn: VariableTracker,
    args: VariableTracker,
    kwargs: VariableTracker,
    hints: VariableTracker | None = None,
) -> VariableTracker:
    if hints is None:
        raise UncapturedHigherOrderOpError("hints_wrapper - key hints not provided")
    given = args.unpack(tx)
    named = {k.as_python_constant(): v.realize() for k, v in tx.pairs(kwargs)}
    plain = {k.as_python_constant(): v.as_python_constant() for k, v in tx.pairs(hints)}
    shown = [_number_or_tensor(vt) for vt in (*given, *named.values())]
    check_hints(shown[: len(given)], dict(zip(named, shown[len(given) :], strict=True)), plain)
    body = _captured(tx, "hints_wrapper", body_fn, given, named)
    node = module_node(tx, body, "hints_wrapper_body")
    call = (node, tuple(body.lifted), {})
    return call_operator(tx, hints_wrapper, call, {"hints": plain}, body)


@handler(strict_mode_op)
def _strict_mode(
    tx: Frame, callable: VariableTracker, operands: VariableTracker
) -> VariableTracker:
    given = operands.unpack(tx)
    if not all(isinstance(_number_or_tensor(vt), torch.Tensor) for vt in given):
        raise UncapturedHigherOrderOpError("strict_mode: its operands must be a tuple of tensors")
    body = _captured(tx, "strict_mode", callable, given, {})
    node = module_node(tx, body, "strict_graph")
    return call_operator(tx, strict_mode_op, (node, tuple(body.lifted)), {}, body)


def _number_or_tensor(vt: VariableTracker) -> object:
    if isinstance(vt, TensorVariable):
        return vt.fake
    if isinstance(vt, SymNodeVariable):
        return vt.sym
    return vt.as_python_constant() if vt.is_python_constant() else vt


@handler(cond)
def _cond(
    tx: Frame,
    pred: VariableTracker,
    true_fn: VariableTracker,
    false_fn: VariableTracker,
    operands: VariableTracker | None = None,
) -> VariableTracker:
    values = operands.unpack(tx) if operands is not None else []
    if pred.is_python_constant():
        fn = true_fn if pred.as_python_constant() else false_fn
        return fn.call_function(tx, values, {})
    if not isinstance(pred, TensorVariable | SymNodeVariable):
        raise UncapturedHigherOrderOpError(
            f"Expected pred to be bool or tensor, but got {pred.python_type()}"
        )
    bodies = [_captured(tx, "cond", fn, values, {}) for fn in (true_fn, false_fn)]
    if len(bodies[0].leaves) != len(bodies[1].leaves):
        raise UncapturedHigherOrderOpError(
            "Expected true_fn and false_fn to return the same number of tensors"
        )
    inputs = list(dict.fromkeys([*bodies[0].lifted, *bodies[1].lifted]))
    nodes = []
    for name, body in zip(("cond_true", "cond_false"), bodies, strict=True):
        _take_inputs(body, inputs)
        nodes.append(module_node(tx, body, name))
    return call_operator(tx, cond_op, (pred.as_proxy(), *nodes, tuple(inputs)), {}, bodies[0])


def _take_inputs(body: Body, inputs: list[torch.fx.Node]) -> None:
    """Gives the graph of a body these inputs, in this order."""
    graph = body.graph
    lifted = set(body.lifted.values())
    first = next(n for n in graph.nodes if n.op != "placeholder" or n in lifted)
    for outer in inputs:
        with graph.inserting_before(first):
            made = graph.placeholder(outer.name)
        made.meta["example_value"] = outer.meta["example_value"]
        known = body.lifted.get(outer)
        if known is not None:
            if known is first:
                first = first.next
            known.replace_all_uses_with(made)
            graph.erase_node(known)


# ---- loops. The public functions are run by their bytecode; they call these operators.


def _tensors(tx: Frame, values: VariableTracker, what: str) -> list[TensorVariable]:
    found = values.unpack(tx)
    for vt in found:
        if not isinstance(vt, TensorVariable):
            unimplemented(what, repr(vt), f"{what} takes tensors alone")
    return found


def _first(tx: Frame, values: list[TensorVariable]) -> list[torch.Tensor]:
    """The slices at the first place of dimension 0."""
    with tx.out.fake_mode:
        return [vt.fake[0] for vt in values]


def _loop(
    tx: Frame,
    op: object,
    bodies: list[Body],
    names: tuple[str, ...],
    operands: list[list[TensorVariable]],
    extra: list[torch.fx.Node],
) -> VariableTracker:
    """A node of an operator that takes functions, flat tuples of operands, and what the functions
    use besides."""
    used = list(dict.fromkeys([*extra, *[node for body in bodies for node in body.lifted]]))
    nodes = []
    for name, body in zip(names, bodies, strict=True):
        _take_inputs(body, used)
        nodes.append(module_node(tx, body, name))
    flat = [tuple([vt.as_proxy() for vt in group]) for group in operands]
    return _recorded(tx, op, (*nodes, *flat, tuple(used)))


def _recorded(tx: Frame, op: object, args: tuple) -> VariableTracker:
    """A node of an operator that returns tensors, as it is run on the examples of its arguments."""
    examples = map_aggregate(
        args, lambda x: x.meta["example_value"] if isinstance(x, torch.fx.Node) else x
    )
    try:
        with torch._C._AutoDispatchBelowAutograd(), tx.out.fake_mode:
            result = tuple(op(*examples))
    except (RuntimeError, TypeError) as error:
        raise UncapturedHigherOrderOpError(f"{op.name()}: {error}") from error
    tensors = [e for e in pytree.tree_leaves(examples) if isinstance(e, torch.Tensor)]
    if torch.is_grad_enabled() and any(e.requires_grad for e in tensors):
        for item in result:
            if isinstance(item, torch.Tensor) and item.is_floating_point():
                item.requires_grad_()
    made = tx.out.graph.create_node("call_function", op, tx.out.lift_all(args), {})
    made.meta["example_value"] = result
    tx.out.describe(tx, made)
    return tx.out.wrap_node(tx, made, result)


@handler(map_impl)
def _map(
    tx: Frame, f: VariableTracker, xs: VariableTracker, pos_args: VariableTracker | None = None
) -> VariableTracker:
    mapped = _tensors(tx, xs, "map")
    rest = [] if pos_args is None else pos_args.unpack(tx)
    body = _captured(tx, "map", f, rest, {}, _first(tx, mapped))
    return _loop(tx, map_impl, [body], ("map_body",), [mapped], [])


@handler(scan_op)
def _scan(
    tx: Frame,
    combine_fn: VariableTracker,
    init: VariableTracker,
    xs: VariableTracker,
    additional_inputs: VariableTracker | None = None,
) -> VariableTracker:
    carries, along = _tensors(tx, init, "scan"), _tensors(tx, xs, "scan")
    fresh = [*[vt.fake for vt in carries], *_first(tx, along)]
    body = _captured(tx, "scan", combine_fn, [], {}, fresh)
    return _loop(tx, scan_op, [body], ("scan_combine_fn",), [carries, along], [])


@handler(associative_scan_op)
def _associative_scan(
    tx: Frame,
    combine_fn: VariableTracker,
    xs: VariableTracker,
    additional_inputs: VariableTracker | None = None,
) -> VariableTracker:
    along = _tensors(tx, xs, "associative_scan")
    slices = _first(tx, along)
    body = _captured(tx, "associative_scan", combine_fn, [], {}, [*slices, *slices])
    names = ("associative_scan_combine_fn",)
    return _loop(tx, associative_scan_op, [body], names, [along], [])


@handler(while_loop_op)
def _while_loop(
    tx: Frame,
    cond_fn: VariableTracker,
    body_fn: VariableTracker,
    carried_inputs: VariableTracker,
    additional_inputs: VariableTracker | None = None,
) -> VariableTracker:
    carried = _tensors(tx, carried_inputs, "while_loop")
    fresh = [vt.fake for vt in carried]
    bodies = [_captured(tx, "while_loop", fn, [], {}, fresh) for fn in (cond_fn, body_fn)]
    if len(bodies[0].leaves) == 1:
        # The condition is one value, not a tuple of one.
        end = list(bodies[0].graph.nodes)[-1]
        end.args = (end.args[0][0],)
    return _loop(tx, while_loop_op, bodies, ("while_loop_cond", "while_loop_body"), [carried], [])


@handler(_Region.__call__)
def _region(
    tx: Frame, region: VariableTracker, *args: VariableTracker, **kwargs: VariableTracker
) -> VariableTracker:
    """A function that was marked by nested_compile_region: equal graphs are one."""
    body = trace_body(tx, region.getattr(tx, "fn"), list(args), kwargs)
    likeness = (
        id(region.value),
        _structure(body.graph),
        *[_shape(node.meta["example_value"]) for node in body.lifted],
    )
    known = tx.out.regions.get(likeness)
    if known is None or known[0].graph is not tx.out.graph:
        node = module_node(tx, body, "subgraph")
        known = tx.out.regions[likeness] = (node, node.target)
    node, name = known
    return call_operator(tx, invoke_subgraph, (node, name, *body.lifted), {}, body)


def _structure(graph: torch.fx.Graph) -> str:
    """A graph as text without the names of its nodes."""
    numbers = {node: f"%{i}" for i, node in enumerate(graph.nodes)}
    rows = [
        (node.op, None if node.op == "placeholder" else str(node.target))
        + map_aggregate((node.args, node.kwargs), lambda x: numbers.get(x, x))
        for node in graph.nodes
    ]
    return str(rows)


def _shape(value: object) -> object:
    if isinstance(value, torch.Tensor):
        return (tuple(map(str, value.shape)), value.dtype, value.device, value.requires_grad)
    return str(value)


@handler(out_dtype)
def _out_dtype(
    tx: Frame, op: VariableTracker, output_dtype: VariableTracker, *args: VariableTracker
) -> VariableTracker:
    return tx.out.call(tx, out_dtype, [op, output_dtype, *args], {})


# ---- attention with functions of scores and positions
@handler(flex._is_traced)
def _flex_is_traced(tx: Frame) -> VariableTracker:
    return TRUE


def _operand(vt: VariableTracker) -> object:
    """A value as an argument of a node."""
    vt = vt.realize()
    if isinstance(vt, TensorVariable | SymNodeVariable):
        return vt.as_proxy()
    return vt.as_python_constant()


@handler(flex._call_operator)
def _flex_attention(
    tx: Frame,
    query: VariableTracker,
    key: VariableTracker,
    value: VariableTracker,
    score_mod: VariableTracker,
    mask_mod: VariableTracker,
    mask: VariableTracker,
    scale: VariableTracker,
    kernel_options: VariableTracker,
) -> VariableTracker:
    given = [query.realize(), key.realize(), value.realize()]
    nodes, buffers = [], []
    for mod, is_score in ((score_mod, True), (mask_mod, False)):
        with tx.out.fake_mode, torch.no_grad():
            position = one_position(given[0].fake.detach(), score=is_score)
        body = _captured(tx, "flex_attention", mod, [], {}, position)
        if len(body.leaves) != 1:
            raise UncapturedHigherOrderOpError(
                f"flex_attention: {mod.describe()} returns {len(body.leaves)} tensors, not one"
            )
        end = body.graph.output_node()
        end.args = (end.args[0][0],)
        buffers.append(tuple(body.lifted))
        _take_inputs(body, list(body.lifted))
        nodes.append(module_node(tx, body, "score_mod" if is_score else "mask_fn"))
    places = tuple([_operand(vt) for vt in mask.unpack(tx)])
    options = {k.as_python_constant(): v.as_python_constant() for k, v in tx.pairs(kernel_options)}
    args = (
        *[vt.as_proxy() for vt in given],
        nodes[0],
        (*places, nodes[1]),
        _operand(scale),
        options,
        *buffers,
    )
    return _recorded(tx, flex_attention_op, args)


@handler(utils.being_traced)
def _being_traced(tx: Frame) -> VariableTracker:
    # Values that functions take from around them are lifted here.
    return FALSE


for _op in (wrap, cond_op, tag_activation_checkpoint):
    if trace_rules.explicit(_op) is None:
        trace_rules.register(_op, trace_rules.SKIP)
del _op
