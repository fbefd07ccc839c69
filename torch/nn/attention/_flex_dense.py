"""FlexAttention by the matrix of all scores: functions of positions applied everywhere at once by
vmap, masks by blocks spread over positions, and the gradients."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import torch
from torch import Tensor
from torch.nn.attention._block_mask import BlockMask, _dense_from_lists, noop_mask

__all__ = ["allowed_by", "backward", "forward", "over_positions", "positions"]


def over_positions(fn: Callable[..., Tensor], extra: int = 0) -> Callable[..., Tensor]:
    """fn of (score,) b, h, q, kv over all batches, heads, queries and keys; the first `extra`
    arguments vary with all four."""
    axes = ((None, None, None, 0), (None, None, 0, None), (None, 0, None, None), (0,) + (None,) * 3)
    for dims in axes:
        fn = torch.vmap(fn, in_dims=(0,) * extra + dims, out_dims=0)
    return fn


def positions(sizes: Sequence[int], device: torch.device) -> tuple[Tensor, ...]:
    """All batches, heads, queries and keys by number."""
    return tuple(torch.arange(n, device=device) for n in sizes)


def allowed_by(block_mask: BlockMask, sizes: Sequence[int], device: torch.device) -> Tensor:
    """What the mask allows as a bool tensor that broadcasts to the scores: blocks that are full,
    and in partial ones what mask_mod says."""
    block_rows, block_columns = block_mask.BLOCK_SIZE
    columns = -(-sizes[3] // block_columns)
    row_of = torch.arange(sizes[2], device=device) // block_rows
    column_of = torch.arange(sizes[3], device=device) // block_columns

    def spread(count: Tensor, indices: Tensor) -> Tensor:
        blocks = _dense_from_lists(count, indices, max(columns, indices.shape[-1])).bool()
        return blocks.index_select(-2, row_of).index_select(-1, column_of)

    allowed = spread(block_mask.kv_num_blocks, block_mask.kv_indices)
    if block_mask.mask_mod is not noop_mask:
        batches, heads = allowed.shape[0], allowed.shape[1]
        # A mask for all heads may still look at the head: it is asked for every one.
        wanted = (sizes[0] if batches == 1 else batches, sizes[1] if heads == 1 else heads)
        places = positions((*wanted, *sizes[2:]), device)
        allowed = allowed & over_positions(block_mask.mask_mod)(*places)
    if block_mask.full_kv_num_blocks is not None:
        allowed = allowed | spread(block_mask.full_kv_num_blocks, block_mask.full_kv_indices)
    return allowed


def _wide(dtype: torch.dtype) -> torch.dtype:
    """Half types would round the scores: they are computed in float."""
    return torch.float64 if dtype == torch.float64 else torch.float32


def _spread_heads(query: Tensor, t: Tensor) -> Tensor:
    """Keys or values once for each head of the queries."""
    group = query.size(-3) // t.size(-3) if t.size(-3) else 1
    return t if group == 1 else t.repeat_interleave(group, dim=-3)


class _Scores:
    """The scores of all pairs: `raw`, after score_mod, and with -inf where the mask excludes."""

    def __init__(
        self,
        query: Tensor,
        key: Tensor,
        score_mod: Callable[..., Tensor] | None,
        block_mask: BlockMask | None,
        scale: float,
    ) -> None:
        self.dtype = _wide(query.dtype)
        self.score_mod = score_mod
        keys = _spread_heads(query, key).to(self.dtype)
        self.raw = torch.matmul(query.to(self.dtype) * scale, keys.transpose(-2, -1))
        self.sizes = tuple(self.raw.shape)
        self.device = query.device
        self.allowed: Tensor | None = None
        if block_mask is not None:
            with torch.no_grad():
                self.allowed = allowed_by(block_mask, self.sizes, self.device)

    def modified(self, raw: Tensor) -> Tensor:
        if self.score_mod is None:
            return raw
        places = positions(self.sizes, self.device)
        return over_positions(self.score_mod, 1)(raw, *places).to(self.dtype)

    def masked(self, scores: Tensor) -> Tensor:
        return scores if self.allowed is None else scores.masked_fill(~self.allowed, -math.inf)


def forward(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    score_mod: Callable[..., Tensor] | None,
    block_mask: BlockMask | None,
    scale: float,
) -> tuple[Tensor, Tensor]:
    """The output, and the scores after score_mod and mask. A query without any key gives 0."""
    parts = _Scores(query, key, score_mod, block_mask, scale)
    scores = parts.masked(parts.modified(parts.raw))
    weights = torch._safe_softmax(scores, -1)
    values = _spread_heads(query, value).to(parts.dtype)
    return torch.matmul(weights, values).to(query.dtype), scores


def _gathered(grad: Tensor, like: Tensor) -> Tensor:
    """The gradient of keys or values: summed over what shared them."""
    if grad.size(-3) != like.size(-3):
        grad = grad.unflatten(-3, (like.size(-3), -1)).sum(-3)
    if grad.size(0) != like.size(0):
        grad = grad.sum(0, keepdim=True)
    return grad.to(like.dtype)


def backward(
    tensors: tuple[Tensor, Tensor, Tensor, Tensor, Tensor],
    grad_out: Tensor,
    grad_lse: Tensor | None,
    score_mod: Callable[..., Tensor],
    block_mask: BlockMask | None,
    scale: float,
    buffers: Sequence[Tensor],
) -> tuple[Tensor, Tensor, Tensor, list[Tensor | None]]:
    """The gradients of query, key, value, and of tensors that score_mod takes behind the position.
    `tensors` are query, key, value, output and the natural logarithm of the sums."""
    query, key, value, out, lse = tensors

    def plain(score: Tensor, *place: Tensor) -> Tensor:
        return score_mod(score, *place, *leaves)

    leaves = [_leaf(b) for b in buffers]
    parts = _Scores(query, key, plain, block_mask, scale)
    wide = parts.dtype
    with torch.enable_grad():
        raw = parts.raw.detach().requires_grad_()
        modified = parts.modified(raw)
    with torch.no_grad():
        weights = torch.exp(parts.masked(modified) - lse.unsqueeze(-1).to(wide))
        weights = weights.masked_fill((lse == -math.inf).unsqueeze(-1), 0)
        grad = grad_out.to(wide)
        row = (out.to(wide) * grad).sum(-1, keepdim=True)
        if grad_lse is not None:
            row = row - grad_lse.unsqueeze(-1).to(wide)
        values = _spread_heads(query, value).to(wide)
        to_scores = weights * (torch.matmul(grad, values.transpose(-2, -1)) - row)
    wanted = [raw, *(b for b in leaves if b.requires_grad)]
    found = torch.autograd.grad(modified, wanted, to_scores, allow_unused=True)
    rest = iter(found[1:])
    to_buffers = [next(rest) if b.requires_grad else None for b in leaves]
    with torch.no_grad():
        to_raw = torch.zeros_like(raw) if found[0] is None else found[0]
        keys = _spread_heads(query, key).to(wide)
        grad_query = torch.matmul(to_raw, keys) * scale
        grad_key = torch.matmul(to_raw.transpose(-2, -1), query.to(wide)) * scale
        grad_value = torch.matmul(weights.transpose(-2, -1), grad)
    return (
        grad_query.to(query.dtype),
        _gathered(grad_key, key),
        _gathered(grad_value, value),
        to_buffers,
    )


def _leaf(buffer: Tensor) -> Tensor:
    detached = buffer.detach()
    return detached.requires_grad_() if detached.is_floating_point() else detached
