"""FlexAttention as an operator: attention with functions of scores and of positions. A trace keeps
the functions as graphs of one score, which compilers put into their kernels; run as it is, the
operator computes all scores (torch/nn/attention/_flex_dense.py).

Sums of exponentials are returned as logarithms to the base 2, as kernels compute them."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch._C import DispatchKey
from torch._higher_order_ops import utils
from torch._ops import HigherOrderOperator
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.proxy_tensor import (
    ProxyTorchDispatchMode,
    disable_proxy_modes_tracing,
)
from torch.nn.attention import _flex_dense as dense
from torch.nn.attention._block_mask import BlockMask
from torch.overrides import TorchFunctionMode

__all__ = ["TransformGetItemToIndex", "flex_attention", "flex_attention_backward"]

_LN2 = math.log(2.0)


class _FlexOperator(HigherOrderOperator):
    """What both operators share: the last two of their `count` arguments are buffers."""

    def __init__(self, name: str, count: int) -> None:
        super().__init__(name, cacheable=True)
        self.count = count

    def __call__(self, *args: Any) -> tuple:
        if not self.count - 2 <= len(args) <= self.count:
            raise TypeError(f"{self._name} takes {self.count} arguments, got {len(args)}")
        given = args + ((),) * (self.count - len(args))
        _check_buffers(*given[-2:])
        return super().__call__(*given)


class FlexAttentionHOP(_FlexOperator):
    """flex_attention(query, key, value, score_mod, block_mask, scale, kernel_options,
    score_mod_other_buffers, mask_mod_other_buffers): output, log2 of the sums, largest scores.
    block_mask is BlockMask.as_tuple(); the functions take the other buffers behind the position.
    """

    def __init__(self) -> None:
        super().__init__("flex_attention", 9)


class FlexAttentionBackwardHOP(_FlexOperator):
    """flex_attention_backward(query, key, value, out, logsumexp, grad_out, grad_logsumexp,
    fw_graph, joint_graph, block_mask, scale, kernel_options, score_mod_other_buffers,
    mask_mod_other_buffers): gradients of query, key, value and a tuple of those of the buffers.
    joint_graph(score, b, h, q, kv, grad, *buffers) is the derivative of the function of scores.
    """

    def __init__(self) -> None:
        super().__init__("flex_attention_backward", 14)


flex_attention = FlexAttentionHOP()
flex_attention_backward = FlexAttentionBackwardHOP()


def _check_buffers(*rows: tuple) -> None:
    for buffers in rows:
        if not isinstance(buffers, tuple) or not all(
            isinstance(x, (Tensor, int, torch.SymInt)) for x in buffers
        ):
            raise RuntimeError("Other buffers must be tensors, in a tuple.")


class TransformGetItemToIndex(TorchFunctionMode):
    """Inside, x[i] with a tensor of one number as index is an operator on it: its value is not
    looked at."""

    def __torch_function__(
        self, func: Any, types: Any, args: tuple = (), kwargs: dict | None = None
    ) -> Any:
        if func is torch.Tensor.__getitem__:
            keys = args[1] if isinstance(args[1], tuple) else (args[1],)
            if keys and all(isinstance(k, Tensor) and k.dtype != torch.bool for k in keys):
                return torch.ops.aten.index.Tensor(args[0], list(keys))
        return func(*args, **(kwargs or {}))


def indexed_by_tensors(fn: Callable[..., Any]) -> Callable[..., Any]:
    """fn, run inside of TransformGetItemToIndex."""

    def call(*args: Any) -> Any:
        with TransformGetItemToIndex():
            return fn(*args)

    call.__name__ = getattr(fn, "__name__", type(fn).__name__)
    return call


def one_position(query: Tensor, *, score: bool) -> list[Tensor]:
    """Arguments of a function of one score: the score and its place."""
    place = [query.new_zeros((), dtype=torch.int32) for _ in range(4)]
    return [query.new_zeros(()), *place] if score else place


# ---- kernels
def _mask_of(block_mask: tuple, buffers: tuple) -> BlockMask:
    """The mask, with the buffers given to its function."""
    *rest, rows, columns, mask_mod = block_mask
    names = BlockMask._TENSOR_ATTRS
    lists = rest[2 : 2 + len(names)]

    def bound(*place: Tensor) -> Tensor:
        return mask_mod(*place, *buffers)

    return BlockMask(tuple(rest[:2]), *lists, BLOCK_SIZE=(rows, columns), mask_mod=bound)


@flex_attention.py_impl(utils.COMPOSITE)
def _run(
    query,
    key,
    value,
    score_mod,
    block_mask,
    scale,
    kernel_options,
    score_mod_other_buffers=(),
    mask_mod_other_buffers=(),
) -> tuple[Tensor, Tensor, Tensor]:
    def bound(*args: Tensor) -> Tensor:
        return score_mod(*args, *score_mod_other_buffers)

    mask = _mask_of(block_mask, mask_mod_other_buffers)
    out, scores = dense.forward(query, key, value, bound, mask, scale)
    return out, torch.logsumexp(scores, -1) / _LN2, scores.amax(-1)


@flex_attention_backward.py_impl(utils.COMPOSITE)
def _run_backward(
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
    score_mod_other_buffers=(),
    mask_mod_other_buffers=(),
) -> tuple[Tensor, Tensor, Tensor, tuple]:
    mask = _mask_of(block_mask, mask_mod_other_buffers)
    tensors = (query, key, value, out, logsumexp * _LN2)
    to_sums = None if grad_logsumexp is None else grad_logsumexp / _LN2
    *found, to_buffers = dense.backward(
        tensors, grad_out, to_sums, fw_graph, mask, scale, score_mod_other_buffers
    )
    return (*found, tuple(to_buffers))


def _sums_dtype(query: Tensor) -> torch.dtype:
    return torch.float64 if query.dtype == torch.float64 else torch.float32


@flex_attention.py_impl(FakeTensorMode)
def _without_data(mode, query, key, value, *rest) -> tuple[Tensor, Tensor, Tensor]:
    with mode:
        shape = query.shape[:-1]
        out = query.new_empty((*shape, value.shape[-1]))
        sums = query.new_empty(shape, dtype=_sums_dtype(query))
        return out, sums, torch.empty_like(sums)


@flex_attention_backward.py_impl(FakeTensorMode)
def _backward_without_data(mode, query, key, value, *rest) -> tuple:
    buffers = rest[9]
    with mode:
        grads = tuple(t.new_empty(t.shape) for t in (query, key, value))
        return (*grads, tuple(torch.empty_like(b) if _takes_gradient(b) else None for b in buffers))


def _takes_gradient(buffer: Any) -> bool:
    return isinstance(buffer, Tensor) and buffer.is_floating_point()


@flex_attention.py_impl(ProxyTorchDispatchMode)
def _trace(mode, query, key, value, score_mod, block_mask, *rest) -> tuple:
    scale, options, buffers, mask_buffers = rest
    score_graph = _graph(score_mod, query, buffers, score=True)
    mask_graph = _graph(block_mask[-1], query, mask_buffers, score=False)
    mask = (*block_mask[:-1], mask_graph)
    args = (query, key, value, score_graph, mask, scale, options, buffers, mask_buffers)
    graphs = {"sdpa_score": score_graph, "sdpa_mask": mask_graph}
    return utils.record(mode, flex_attention, graphs, args, flex_attention(*args))


@flex_attention_backward.py_impl(ProxyTorchDispatchMode)
def _trace_backward(mode, *args) -> tuple:
    *tensors, fw_graph, joint_graph, block_mask, scale, options, buffers, mask_buffers = args
    query = tensors[0]
    forward = _graph(fw_graph, query, buffers, score=True)
    joint = _graph(joint_graph, query, (query.new_zeros(()), *buffers), score=True)
    mask_graph = _graph(block_mask[-1], query, mask_buffers, score=False)
    mask = (*block_mask[:-1], mask_graph)
    given = (*tensors, forward, joint, mask, scale, options, buffers, mask_buffers)
    graphs = {"fw_graph": forward, "joint_graph": joint, "mask_graph": mask_graph}
    found = flex_attention_backward(*given)
    return utils.record(mode, flex_attention_backward, graphs, given, found)


def _graph(fn: Callable[..., Any], query: Tensor, buffers: tuple, *, score: bool) -> Any:
    place = one_position(query, score=score)
    return utils.reenter_make_fx(indexed_by_tensors(fn))(*place, *buffers)


# ---- gradients
def _joint_of(score_mod: Callable[..., Tensor], wanted: list[bool]) -> Callable[..., tuple]:
    """The derivative of a function of one score: (gradient of the score, None for the place, and
    the gradients of wanted buffers, None for others)."""
    vjp = utils.vjp_of(score_mod, [True, False, False, False, False, *wanted])

    def joint(score: Tensor, b: Tensor, h: Tensor, q: Tensor, kv: Tensor, grad: Tensor, *buffers):
        to_score, *rest = vjp(score, b, h, q, kv, *buffers, grad)
        found = iter(rest)
        return (to_score, None, None, None, None, *(next(found) if w else None for w in wanted))

    return joint


class _Differentiated(torch.autograd.Function):
    @staticmethod
    def forward(ctx, query, key, value, functions, block_mask, settings, mask_buffers, *buffers):
        score_mod, mask_mod, _ = functions
        with torch._C._AutoDispatchBelowAutograd():
            out, sums, largest = flex_attention(
                query,
                key,
                value,
                score_mod,
                (*block_mask, mask_mod),
                *settings,
                buffers,
                mask_buffers,
            )
        lists = [x for x in block_mask if isinstance(x, Tensor)]
        tensors = [x for x in buffers if isinstance(x, Tensor)]
        ctx.save_for_backward(query, key, value, out, sums, *lists, *tensors)
        ctx.functions, ctx.settings, ctx.mask_buffers = functions, settings, mask_buffers
        ctx.block = [None if isinstance(x, Tensor) else (x,) for x in block_mask]
        ctx.plain = [None if isinstance(x, Tensor) else (x,) for x in buffers]
        ctx.mark_non_differentiable(largest)
        ctx.set_materialize_grads(False)
        return out, sums, largest

    @staticmethod
    def backward(ctx, grad_out, grad_sums, grad_largest) -> tuple:
        query, key, value, out, sums, *rest = ctx.saved_tensors
        saved = iter(rest)
        block_mask = tuple(next(saved) if x is None else x[0] for x in ctx.block)
        buffers = tuple(next(saved) if x is None else x[0] for x in ctx.plain)
        score_mod, mask_mod, joint = ctx.functions
        if grad_out is None:
            grad_out = torch.zeros_like(out)
        *found, to_buffers = flex_attention_backward(
            query,
            key,
            value,
            out,
            sums,
            grad_out,
            grad_sums,
            score_mod,
            joint,
            (*block_mask, mask_mod),
            *ctx.settings,
            buffers,
            ctx.mask_buffers,
        )
        asked = ctx.needs_input_grad[7:]
        taken = tuple(g if want else None for g, want in zip(to_buffers, asked, strict=True))
        return (*found, None, None, None, None, *taken)


@flex_attention.py_impl(DispatchKey.Autograd)
def _differentiate(
    query, key, value, score_mod, block_mask, scale, kernel_options, buffers=(), mask_buffers=()
) -> tuple:
    args = (query, key, value, score_mod, block_mask, scale, kernel_options, buffers, mask_buffers)
    if not torch.is_grad_enabled():
        return NotImplemented
    if not utils.being_traced():
        return _run(*args)
    operands = (query, key, value, *buffers, *mask_buffers)
    with disable_proxy_modes_tracing():
        scored, place = one_position(query, score=True), one_position(query, score=False)
        scored, place = list(map(utils.plain, scored)), list(map(utils.plain, place))
        grad = torch.zeros_like(scored[0])
    joint = _joint_of(score_mod, [_takes_gradient(b) for b in buffers])
    functions = (
        utils.traced_now(indexed_by_tensors(score_mod), (*scored, *buffers), operands),
        utils.traced_now(indexed_by_tensors(block_mask[-1]), (*place, *mask_buffers), operands),
        utils.traced_now(indexed_by_tensors(joint), (*scored, grad, *buffers), operands),
    )
    settings = (scale, kernel_options)
    return _Differentiated.apply(
        query, key, value, functions, block_mask[:-1], settings, mask_buffers, *buffers
    )


@flex_attention.py_functionalize_impl
def _functional(ctx, query, key, value, score_mod, block_mask, *rest) -> tuple:
    inner = ctx.unwrap_tensors((query, key, value, block_mask[:-1], rest))
    tensors, lists, others = inner[:3], inner[3], inner[4]
    mask = (*lists, ctx.functionalize(block_mask[-1]))
    with ctx.redispatch_to_next():
        found = flex_attention(*tensors, ctx.functionalize(score_mod), mask, *others)
    return ctx.wrap_tensors(found)


@flex_attention_backward.py_functionalize_impl
def _functional_backward(ctx, *args) -> tuple:
    *tensors, fw_graph, joint_graph, block_mask, scale, options, buffers, mask_buffers = args
    inner = ctx.unwrap_tensors((tensors, block_mask[:-1], buffers, mask_buffers))
    mask = (*inner[1], ctx.functionalize(block_mask[-1]))
    with ctx.redispatch_to_next():
        found = flex_attention_backward(
            *inner[0],
            ctx.functionalize(fw_graph),
            ctx.functionalize(joint_graph),
            mask,
            scale,
            options,
            *inner[2:],
        )
    return ctx.wrap_tensors(found)
