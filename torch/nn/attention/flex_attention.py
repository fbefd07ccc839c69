"""Attention whose scores pass through a function (score_mod) and whose mask is a function of
positions (mask_mod), in eager form: the scores of all pairs are computed, the functions applied to
all of them at once by vmap, and the rest is a softmax. Gradients flow through all of it."""

from __future__ import annotations

import functools
import inspect
import math
import operator
import typing
import warnings
from collections.abc import Callable

import torch
from torch.nn.attention._block_mask import (
    _DEFAULT_SPARSE_BLOCK_SIZE,
    BlockMask,
    _lists_from_dense,
    _pair,
    noop_mask,
)

__all__ = [
    "AuxOutput",
    "AuxRequest",
    "BlockMask",
    "FlexKernelOptions",
    "and_masks",
    "create_block_mask",
    "create_mask",
    "flex_attention",
    "noop_mask",
    "or_masks",
]

_Tensor = torch.Tensor
_mask_mod_signature = Callable[[_Tensor, _Tensor, _Tensor, _Tensor], _Tensor]
_score_mod_signature = Callable[[_Tensor, _Tensor, _Tensor, _Tensor, _Tensor], _Tensor]


class AuxRequest(typing.NamedTuple):
    """What flex_attention shall answer beside the output."""

    lse: bool = False
    max_scores: bool = False


class AuxOutput(typing.NamedTuple):
    """The log-sum-exp and the largest of the scores of each query, where asked for."""

    lse: torch.Tensor | None = None
    max_scores: torch.Tensor | None = None


class FlexKernelOptions(typing.TypedDict, total=False):
    """Tuning of compiled kernels; accepted, and without effect here."""

    num_warps: int
    num_stages: int
    BLOCK_M: int
    BLOCK_N: int
    BACKEND: str


def _joined(mask_mods, join, without):
    """The mask that joins what several say; `without` is what none of them says."""
    if not all(map(callable, mask_mods)):
        raise RuntimeError(f"All inputs should be callable mask_mods: {mask_mods}")

    def mask(b, h, q_idx, kv_idx) -> torch.Tensor:
        votes = (mod(b, h, q_idx, kv_idx) for mod in mask_mods)
        return functools.reduce(join, votes, b.new_full((), without, dtype=torch.bool))

    return mask


def or_masks(*mask_mods) -> Callable[..., torch.Tensor]:
    """The mask that allows what any of these allows."""
    return _joined(mask_mods, operator.or_, False)


def and_masks(*mask_mods) -> Callable[..., torch.Tensor]:
    """The mask that allows what all of these allow."""
    return _joined(mask_mods, operator.and_, True)


def _over_positions(fn, extra=0):
    """fn of (score,) b, h, q, kv over all batches, heads, queries and keys; the first `extra`
    arguments vary with all four."""
    axes = ((None, None, None, 0), (None, None, 0, None), (None, 0, None, None), (0,) + (None,) * 3)
    for dims in axes:
        fn = torch.vmap(fn, in_dims=(0,) * extra + dims, out_dims=0)
    return fn


def _positions(sizes, device) -> tuple[torch.Tensor, ...]:
    return tuple(torch.arange(n, device=device) for n in sizes)


def _takes_scores(fn) -> bool:
    """Whether fn is a score_mod (five positional arguments) and not a mask_mod (four)."""
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    parameters = inspect.signature(fn).parameters.values()
    count = sum(p.kind in kinds and p.default is inspect.Parameter.empty for p in parameters)
    if count not in (4, 5):
        raise AssertionError(f"Expected 4 or 5 positional args, got {count}")
    return count == 5


def _default_device(device):
    if device is None:
        return torch.accelerator.current_accelerator(check_available=True) or torch.device("cpu")
    return device


def create_mask(mod_fn, B, H, Q_LEN, KV_LEN, device=None) -> torch.Tensor:
    """The mask of a mask_mod as a bool tensor (B, H, Q_LEN, KV_LEN); of a score_mod, where it does
    not answer -inf for a score of 0."""
    device = _default_device(device)
    sizes = (1 if B is None else B, 1 if H is None else H, Q_LEN, KV_LEN)
    with torch.no_grad():
        if _takes_scores(mod_fn):
            zeros = torch.zeros(sizes, device=device)
            scores = _over_positions(mod_fn, 1)(zeros, *_positions(sizes, device))
            return scores != -math.inf
        mask = _over_positions(mod_fn)(*_positions(sizes, device))
        return mask.expand(sizes)


def create_block_mask(
    mask_mod,
    B,
    H,
    Q_LEN,
    KV_LEN,
    device=None,
    BLOCK_SIZE=_DEFAULT_SPARSE_BLOCK_SIZE,
    _compile=False,
    separate_full_blocks=True,
    compute_dq_write_order=False,
    dq_kv_order=True,
) -> BlockMask:
    """The BlockMask of a mask_mod(b, h, q_idx, kv_idx). B or H of None mean that the mask is the
    same for all."""
    if _takes_scores(mask_mod):
        raise AssertionError(f"create-block_mask requires a mask_mod function! Got {mask_mod}")
    if compute_dq_write_order:
        raise NotImplementedError(
            "create_block_mask: compute_dq_write_order needs compiled kernels"
        )
    block = _pair(BLOCK_SIZE)
    mask = create_mask(mask_mod, B, H, Q_LEN, KV_LEN, device)
    rows, columns = -(-Q_LEN // block[0]), -(-KV_LEN // block[1])
    padding = (0, columns * block[1] - KV_LEN, 0, rows * block[0] - Q_LEN)
    mask = torch.nn.functional.pad(mask, padding, value=False)
    mask = mask.view(*mask.shape[:2], rows, block[0], columns, block[1])
    counts = mask.sum(dim=(3, 5))
    full = counts == block[0] * block[1]
    partial = (counts > 0) & ~full if separate_full_blocks else counts > 0
    lists = _lists_from_dense(partial)
    full_lists = _lists_from_dense(full) if separate_full_blocks else (None, None)
    return BlockMask.from_kv_blocks(
        *lists, *full_lists, BLOCK_SIZE=block, mask_mod=mask_mod, seq_lengths=(Q_LEN, KV_LEN)
    )


def _check_inputs(query, key, value, block_mask, enable_gqa) -> None:
    if query.dim() != 4 or key.dim() != 4 or value.dim() != 4:
        raise NotImplementedError("NYI: query, key, and value must be 4D tensors")
    if key.size(-3) != value.size(-3) or key.size(-2) != value.size(-2):
        raise ValueError(
            "Expect key and value to have the same number of heads and the same length but got "
            f"{tuple(key.shape)} and {tuple(value.shape)}."
        )
    heads, kv_heads = query.size(-3), key.size(-3)
    if not enable_gqa and heads != kv_heads:
        raise ValueError(
            "Expect query and key/value to have the same number of heads but got "
            f"Hq={heads} and Hkv={kv_heads}. Try setting enable_gqa=True for GQA."
        )
    if enable_gqa and (kv_heads == 0 or heads % kv_heads != 0):
        raise ValueError(
            "Expect number of query heads to be a multiple of kv heads for GQA but got "
            f"Hq={heads} and Hkv={kv_heads}."
        )
    if query.size(0) != key.size(0) and (block_mask is None or key.size(0) != 1):
        raise ValueError(
            "Expect query and key/value to have the same batch size, or non-none block_mask, but "
            f"got block_mask={block_mask}, Bq={query.size(0)}, and Bkv={key.size(0)}."
        )


def _check_block_mask(block_mask, q_len, kv_len) -> None:
    if block_mask.seq_lengths == (q_len, kv_len):
        return
    mask_q, mask_kv = block_mask.seq_lengths
    about = f"block_mask was created for block_mask.shape={block_mask.shape} but got {q_len=} and "
    if q_len <= mask_q and kv_len <= mask_kv:
        raise ValueError(
            about + f"{kv_len=}. As the block mask was created for a larger length than you're "
            "using it for, you can either 1. create a new block mask with the correct length, or "
            "2. 'adjust' the existing block mask to the correct length by calling "
            "block_mask._adjust(q_len, kv_len). This essentially 'crops' the block mask to the "
            "upper left corner, which does not work for all mask_mods!"
        )
    raise ValueError(
        about + f"{kv_len=}. As the block mask was created for a smaller length than you're using "
        "it for, you likely need to create a new block mask."
    )


def _allowed(block_mask, sizes, device) -> torch.Tensor:
    """What the mask allows as a bool tensor that broadcasts to the scores: blocks that are full,
    and in partial ones what mask_mod says."""
    columns = -(-sizes[3] // block_mask.BLOCK_SIZE[1])
    from torch.nn.attention._block_mask import _dense_from_lists

    def spread(count, indices) -> torch.Tensor:
        blocks = _dense_from_lists(count, indices, max(columns, indices.shape[-1])).bool()
        for dim, size in zip((-2, -1), block_mask.BLOCK_SIZE, strict=True):
            blocks = blocks.repeat_interleave(size, dim)
        return blocks[..., : sizes[2], : sizes[3]]

    allowed = spread(block_mask.kv_num_blocks, block_mask.kv_indices)
    if block_mask.mask_mod is not noop_mask:
        batches, heads = allowed.shape[0], allowed.shape[1]
        # A mask for all heads may still look at the head: it is asked for every one.
        wanted = (sizes[0] if batches == 1 else batches, sizes[1] if heads == 1 else heads)
        positions = _positions((*wanted, *sizes[2:]), device)
        allowed = allowed & _over_positions(block_mask.mask_mod)(*positions)
    if block_mask.full_kv_num_blocks is not None:
        allowed = allowed | spread(block_mask.full_kv_num_blocks, block_mask.full_kv_indices)
    return allowed


def flex_attention(
    query,
    key,
    value,
    score_mod=None,
    block_mask=None,
    scale=None,
    enable_gqa=False,
    return_lse=False,
    kernel_options=None,
    *,
    return_aux=None,
) -> torch.Tensor | tuple[torch.Tensor, AuxOutput | torch.Tensor]:
    """softmax(score_mod(scale * query @ key^T)) @ value, with what block_mask excludes at -inf.
    query is (B, Hq, L, E), key and value (B, Hkv, S, E) and (B, Hkv, S, Ev). A query without any
    key gives 0."""
    _check_inputs(query, key, value, block_mask, enable_gqa)
    if block_mask is not None:
        _check_block_mask(block_mask, query.size(-2), key.size(-2))
    if return_lse:
        if return_aux is not None:
            raise ValueError(
                "Cannot specify both return_lse and return_aux. return_lse is deprecated, please "
                "use return_aux=AuxRequest(lse=True) instead."
            )
        warnings.warn(
            "return_lse is deprecated and will be removed in v2.10. Please use "
            "return_aux=AuxRequest(lse=True) instead.",
            FutureWarning,
            stacklevel=2,
        )
    group = query.size(-3) // key.size(-3) if key.size(-3) else 1
    if group != 1:
        key, value = (t.repeat_interleave(group, dim=-3) for t in (key, value))
    scale = 1.0 / math.sqrt(query.size(-1)) if scale is None else scale
    # Half types would round the scores: they are computed in float.
    wide = torch.float64 if query.dtype == torch.float64 else torch.float32
    scores = torch.matmul(query.to(wide) * scale, key.to(wide).transpose(-2, -1))
    sizes = tuple(scores.shape)
    if score_mod is not None:
        scores = _over_positions(score_mod, 1)(scores, *_positions(sizes, query.device)).to(wide)
    if block_mask is not None:
        with torch.no_grad():
            allowed = _allowed(block_mask, sizes, query.device)
        scores = scores.masked_fill(~allowed, -math.inf)
    weights = torch._safe_softmax(scores, -1)
    output = torch.matmul(weights, value.to(wide)).to(query.dtype)
    if return_lse:
        return output, _log_sum(scores)
    if return_aux is None:
        return output
    return output, AuxOutput(
        lse=_log_sum(scores) if return_aux.lse else None,
        max_scores=scores.amax(-1) if return_aux.max_scores else None,
    )


def _log_sum(scores) -> torch.Tensor:
    return torch.logsumexp(scores, dim=-1)
