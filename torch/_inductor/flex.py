"""FlexAttention on the CPU: the functions of scores and of positions are traced over a whole tile
of scores, compiled, and called by attention that computes one tile after the other
(torch/csrc/inductor/flex.h), so that the matrix of all scores is never there.

The functions of a call are graphs of one score; vmap makes them graphs of a tile. How a tile lies
depends on the sizes: with many queries rows are keys and columns queries of one head, with few rows
are queries of the heads that share keys, and columns are keys."""

from __future__ import annotations

import collections
import math
import operator
import weakref
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor, fx
from torch._inductor import metrics
from torch._inductor.graph import NotLowered, compiled_graph

__all__ = ["backward", "forward", "with_tiles"]

aten = torch.ops.aten
_LN2 = math.log(2.0)
# Sums of gradients that tasks may have of their own, and how much memory all of them take.
_MOST_PARTS, _BYTES_OF_SUMS = 8, 64 << 20
# Traced functions that are kept for one call of attention in a program, by shapes.
_KEPT = 16


class _Layout(NamedTuple):
    few: bool
    rows: int
    columns: int


class _Call(NamedTuple):
    """The functions of a call, and the tensors they read behind the place."""

    score_mod: fx.GraphModule
    mask_mod: fx.GraphModule
    buffers: tuple[Tensor, ...]
    mask_buffers: tuple[Tensor, ...]


# ---- functions over a tile


def _over_tile(fn: Callable[..., Tensor], few: bool, scores: int) -> Callable[..., Tensor]:
    """fn of (score, ...,) b, h, q, kv over a tile; its first `scores` arguments vary with both."""
    every = (0,) * scores
    by_key, by_query = (None, None, None, 0), (None, 0 if few else None, 0, None)
    inner, outer = (by_key, by_query) if few else (by_query, by_key)
    return torch.vmap(torch.vmap(fn, (*every, *inner)), (*every, *outer))


def _output(graph: fx.GraphModule) -> object:
    found = graph.graph.output_node().args[0]
    return found[0] if isinstance(found, (list, tuple)) else found


def _changes_nothing(score_mod: fx.GraphModule) -> bool:
    return _output(score_mod) is next(iter(score_mod.graph.nodes))


def _allows_everything(mask_mod: fx.GraphModule) -> bool:
    found = _output(mask_mod)
    if not isinstance(found, fx.Node) or found.op != "call_function":
        return False
    if found.target in (aten.full.default, aten.new_full.default, aten.full_like.default):
        return found.args[-1] is True
    return found.target in (aten.ones.default, aten.new_ones.default, aten.ones_like.default)


def _one(found: Any) -> Tensor:
    return found[0] if isinstance(found, (list, tuple)) else found


def _scores_over_tile(call: _Call, layout: _Layout, partial: bool) -> Callable[..., Tensor]:
    count = len(call.buffers)

    def run(scores: Tensor, *rest: Tensor) -> Tensor:
        place, buffers, mask_buffers = rest[:4], rest[4 : 4 + count], rest[4 + count :]
        new = _modified(call, layout, scores, place, buffers)
        if not partial or _allows_everything(call.mask_mod):
            return new
        return torch.where(_allowed(call, layout, place, mask_buffers), new, -math.inf)

    return run


def _modified(call, layout, scores, place, buffers) -> Tensor:
    def one(score: Tensor, *where: Tensor) -> Tensor:
        return _one(call.score_mod(score, *where, *buffers))

    return _over_tile(one, layout.few, 1)(scores, *place).to(scores.dtype)


def _allowed(call, layout, place, buffers) -> Tensor:
    def one(*where: Tensor) -> Tensor:
        return _one(call.mask_mod(*where, *buffers))

    return _over_tile(one, layout.few, 0)(*place)


def _gradients_over_tile(
    call: _Call, layout: _Layout, partial: bool, wanted: Sequence[bool]
) -> Callable[..., tuple]:
    """(scores, b, h, q, kv, gradient, *buffers, *sums) to the gradients of the scores and of the
    wanted buffers."""
    count = len(call.buffers)

    def run(scores: Tensor, *rest: Tensor) -> tuple:
        place, grad, given = rest[:4], rest[4], rest[5 : 5 + count]
        mask_buffers = rest[5 + count : 5 + count + len(call.mask_buffers)]

        def plain(scores: Tensor, *varied: Tensor) -> Tensor:
            own = iter(varied)
            buffers = [next(own) if w else b for w, b in zip(wanted, given, strict=True)]
            return _modified(call, layout, scores, place, buffers)

        varied = [b for w, b in zip(wanted, given, strict=True) if w]
        _, pull = torch.func.vjp(plain, scores, *varied)
        to_scores, *to_buffers = pull(grad)
        if partial and not _allows_everything(call.mask_mod):
            allowed = _allowed(call, layout, place, mask_buffers)
            to_scores = torch.where(allowed, to_scores, 0)
        return (to_scores, *to_buffers)

    return run


# ---- gradients of buffers are added where their sum lies


def _is_zeros(node: object) -> bool:
    if not isinstance(node, fx.Node) or node.op != "call_function":
        return False
    if node.target in (aten.full.default, aten.new_full.default, aten.full_like.default):
        return node.args[-1] == 0
    return node.target in (aten.zeros.default, aten.new_zeros.default, aten.zeros_like.default)


def _add_to(graph: fx.Graph, total: fx.Node, term: fx.Node) -> None:
    """total += term, without a term as large as the buffer where few of its elements are met."""
    target, args = term.target, term.args
    if (
        target is aten.add.Tensor
        and not term.kwargs
        and all(
            isinstance(a, fx.Node) and a.meta["val"].shape == term.meta["val"].shape for a in args
        )
    ):
        _add_to(graph, total, args[0])
        _add_to(graph, total, args[1])
        return
    puts = (aten.index_put.default, aten._unsafe_index_put.default)
    if target in puts and len(args) == 4 and args[3] and _is_zeros(args[0]):
        graph.call_function(aten.index_put_.default, (total, *args[1:]))
        return
    graph.call_function(aten.add_.Tensor, (total, term))


def _summed(gm: fx.GraphModule, totals: int) -> None:
    """Makes a graph that returns gradients of buffers add them to its last arguments instead."""
    graph = gm.graph
    output = graph.output_node()
    to_scores, *terms = output.args[0]
    places = graph.find_nodes(op="placeholder")[-totals:] if totals else []
    with graph.inserting_before(output):
        for total, term in zip(places, terms, strict=True):
            if term is not None:
                _add_to(graph, total, term)
    output.args = ((to_scores,),)
    graph.eliminate_dead_code()
    gm.recompile()


# ---- compiled functions, kept with the function of scores


class _Functions:
    """What was traced for one call of attention in a program, by what it depends on."""

    def __init__(self) -> None:
        self.kept: collections.OrderedDict[tuple, object] = collections.OrderedDict()

    def get(self, key: tuple, make: Callable[[], object]) -> object:
        if key not in self.kept:
            self.kept[key] = make()
            while len(self.kept) > _KEPT:
                self.kept.popitem(last=False)
        self.kept.move_to_end(key)
        return self.kept[key]


_functions: weakref.WeakKeyDictionary[fx.GraphModule, _Functions] = weakref.WeakKeyDictionary()


def _like(values: Sequence[Tensor]) -> tuple:
    return tuple((v.dtype, v.shape, v.stride()) for v in values)


def _tile_inputs(layout: _Layout, dtype: torch.dtype) -> list[Tensor]:
    def places(*size: int) -> Tensor:
        return torch.zeros(size, dtype=torch.int32)

    scores = torch.zeros(layout.rows, layout.columns, dtype=dtype)
    if layout.few:
        heads, queries, keys = places(layout.rows), places(layout.rows), places(layout.columns)
    else:
        heads, queries, keys = places(), places(layout.columns), places(layout.rows)
    return [scores, places(), heads, queries, keys]


def _compiled(fn: Callable, inputs: list[Tensor], totals: int | None = None) -> object:
    from torch._inductor.fx_passes.post_grad import post_grad_passes
    from torch.fx.experimental.proxy_tensor import make_fx

    gm = make_fx(fn, tracing_mode="fake")(*inputs)
    if totals is not None:
        _summed(gm, totals)
    post_grad_passes(gm, True)
    compiled, made = compiled_graph(gm, inputs)
    metrics.note_plan(*made[1:])
    return compiled


def _score_graphs(call: _Call, layout: _Layout, dtype: torch.dtype) -> tuple[object, object]:
    """The functions of scores where the mask allows everything, and where it is asked."""
    inputs = [*_tile_inputs(layout, dtype), *call.buffers, *call.mask_buffers]
    unchanged, unmasked = _changes_nothing(call.score_mod), _allows_everything(call.mask_mod)
    full = None if unchanged else _compiled(_scores_over_tile(call, layout, False), inputs)
    partial = full if unmasked else _compiled(_scores_over_tile(call, layout, True), inputs)
    return full, partial


def _gradient_graphs(
    call: _Call, layout: _Layout, dtype: torch.dtype, wanted: tuple[bool, ...]
) -> tuple[object, object]:
    if _changes_nothing(call.score_mod):
        return None, None
    tile = _tile_inputs(layout, dtype)
    sums = [torch.empty_like(b) for w, b in zip(wanted, call.buffers, strict=True) if w]
    inputs = [*tile, torch.zeros_like(tile[0]), *call.buffers, *call.mask_buffers, *sums]
    full = _compiled(_gradients_over_tile(call, layout, False, wanted), inputs, len(sums))
    if _allows_everything(call.mask_mod):
        return full, full
    return full, _compiled(_gradients_over_tile(call, layout, True, wanted), inputs, len(sums))


def _kept(call: _Call, key: tuple, make: Callable[[], object]) -> object:
    known = _functions.get(call.score_mod)
    if known is None:
        known = _functions[call.score_mod] = _Functions()
    buffers = (_like(call.buffers), _like(call.mask_buffers))
    return known.get((*key, id(call.mask_mod), *buffers), make)


# ---- calls


def _wide(t: Tensor) -> Tensor:
    """Scores are computed in float, or in double."""
    return t if t.dtype in (torch.float32, torch.float64) else t.float()


def _blocks(block_mask: tuple) -> tuple:
    def plain(t: Tensor | None) -> Tensor | None:
        return None if t is None else t.to(torch.int32).contiguous()

    lists = tuple(plain(t) for t in block_mask[2:6])
    return (*lists, block_mask[-3], block_mask[-2])


def _fits(tensors: Sequence[object], functions: Sequence[object]) -> bool:
    """Whether tiles are meant for this: tensors of the CPU and functions that are graphs."""
    return all(
        isinstance(t, Tensor) and t.device.type == "cpu" and t.layout == torch.strided
        for t in tensors
    ) and all(isinstance(f, fx.GraphModule) for f in functions)


def _floats(buffers: Sequence[Tensor]) -> tuple[Tensor, ...]:
    """Buffers whose gradients are summed over tiles: in float at least."""
    return tuple(_wide(b) if b.is_floating_point() else b for b in buffers)


def forward(
    query, key, value, score_mod, block_mask, scale, kernel_options, buffers=(), mask_buffers=()
) -> tuple[Tensor, Tensor, Tensor]:
    """torch.ops.higher_order.flex_attention, tile by tile where it can be."""
    call = _Call(score_mod, block_mask[-1], tuple(buffers), tuple(mask_buffers))
    tensors = (query, key, value, *block_mask[2:4], *buffers, *mask_buffers)
    if _fits(tensors, call[:2]) and query.dtype == key.dtype == value.dtype:
        q, k, v = map(_wide, (query, key, value))
        operands = (q, k, v, scale, *_blocks(block_mask))
        layout = _Layout(*torch._C._inductor.flex_layout(operands, False))
        try:
            full, partial = _kept(
                call, ("forward", layout, q.dtype), lambda: _score_graphs(call, layout, q.dtype)
            )
        except NotLowered as reason:
            metrics.not_lowered.append(str(reason))
        else:
            out, sums, largest = torch._C._inductor.flex_forward(
                operands, full, partial, [*buffers, *mask_buffers]
            )
            return out.to(query.dtype), sums / _LN2, largest
    return torch.ops.higher_order.flex_attention(
        query, key, value, score_mod, block_mask, scale, kernel_options, buffers, mask_buffers
    )


def _parts(key: Tensor, sums: Sequence[Tensor]) -> list[list[Tensor]]:
    """Sums of gradients for everyone who may work at the same time."""
    tasks = max(1, key.shape[0] * key.shape[1])
    if not sums:
        return [[] for _ in range(tasks)]
    fitting = _BYTES_OF_SUMS // max(1, sum(s.nbytes for s in sums))
    count = max(1, min(tasks, _MOST_PARTS, fitting))
    return [[torch.zeros_like(s) for s in sums] for _ in range(count)]


def backward(
    query,
    key,
    value,
    out,
    logsumexp,
    grad_out,
    grad_logsumexp,
    fw_graph,
    joint_graph,
    block_mask,
    scale,
    kernel_options,
    buffers=(),
    mask_buffers=(),
    *,
    wanted: tuple[bool, ...] | None = None,
) -> tuple:
    """torch.ops.higher_order.flex_attention_backward, tile by tile where it can be. `wanted` says
    which buffers need a gradient."""
    call = _Call(fw_graph, block_mask[-1], _floats(buffers), tuple(mask_buffers))
    tensors = (query, key, value, out, grad_out, *block_mask[2:4], *buffers, *mask_buffers)
    if _fits(tensors, call[:2]) and query.dtype == key.dtype == value.dtype:
        floating = [b.is_floating_point() for b in buffers]
        asked = tuple(f and (wanted is None or wanted[i]) for i, f in enumerate(floating))
        q, k, v, o, g = map(_wide, (query, key, value, out, grad_out))
        operands = (q, k, v, scale, *_blocks(block_mask))
        layout = _Layout(*torch._C._inductor.flex_layout(operands, True))
        try:
            functions = _kept(
                call,
                ("backward", layout, q.dtype, asked),
                lambda: (
                    *_score_graphs(call, layout, q.dtype),
                    *_gradient_graphs(call, layout, q.dtype, asked),
                ),
            )
        except NotLowered as reason:
            metrics.not_lowered.append(str(reason))
        else:
            parts = _parts(k, [b for w, b in zip(asked, call.buffers, strict=True) if w])
            to_sums = None if grad_logsumexp is None else (grad_logsumexp / _LN2).contiguous()
            given = [*call.buffers, *mask_buffers]
            natural = (logsumexp * _LN2).contiguous()
            found = torch._C._inductor.flex_backward(
                operands, o, natural, g.expand(o.shape), to_sums, functions, given, parts
            )
            sums = iter([sum(of[1:], of[0]) for of in zip(*parts, strict=True)])
            to_buffers = tuple(
                next(sums).to(b.dtype) if w else None for w, b in zip(asked, buffers, strict=True)
            )
            return (*(t.to(query.dtype) for t in found), to_buffers)
    return torch.ops.higher_order.flex_attention_backward(
        query, key, value, out, logsumexp, grad_out, grad_logsumexp, fw_graph, joint_graph,
        block_mask, scale, kernel_options, buffers, mask_buffers,
    )  # fmt: skip


def with_tiles(node: fx.Node) -> None:
    """Makes a call of an operator of FlexAttention one of the functions here."""
    if node.target is torch.ops.higher_order.flex_attention:
        node.target = forward
    elif node.target is torch.ops.higher_order.flex_attention_backward:
        node.target = backward
        node.kwargs = {**node.kwargs, "wanted": _wanted(node)}


def _wanted(node: fx.Node) -> tuple[bool, ...] | None:
    """Which gradients of buffers somebody reads; None where that is not seen."""
    wanted = [False] * len(node.args[12])
    for user in node.users:
        if user.target is not operator.getitem:
            return None
        if user.args[1] != 3:
            continue
        for item in user.users:
            if item.target is not operator.getitem:
                return None
            wanted[item.args[1]] = True
    return tuple(wanted)
