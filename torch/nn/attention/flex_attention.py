"""Attention whose scores pass through a function (score_mod) and whose mask is a function of
positions (mask_mod). Run as it is, the scores of all pairs are computed (`_flex_dense.py`); a trace
records one operator (torch/_higher_order_ops/flex_attention.py) that has the functions as graphs.
Gradients flow through all of it, also to tensors that the functions refer to."""

from __future__ import annotations

import functools
import inspect
import math
import operator
import typing
import warnings
from collections.abc import Callable

import torch
from torch.nn.attention import _flex_dense
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

# A block of this size holds every score.
_LARGE_SPARSE_BLOCK_SIZE = 1 << 30

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
    places = _flex_dense.positions(sizes, device)
    with torch.no_grad():
        if _takes_scores(mod_fn):
            zeros = torch.zeros(sizes, device=device)
            scores = _flex_dense.over_positions(mod_fn, 1)(zeros, *places)
            return scores != -math.inf
        mask = _flex_dense.over_positions(mod_fn)(*places)
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


def _identity(score, batch, head, token_q, token_kv) -> torch.Tensor:
    """The score_mod that changes nothing."""
    return score


def _create_empty_block_mask(query, key) -> BlockMask:
    """A mask of one block that allows everything."""
    one = torch.ones([1, 1, 1], dtype=torch.int32, device=query.device)
    zero = torch.zeros([1, 1, 1, 1], dtype=torch.int32, device=query.device)
    return BlockMask.from_kv_blocks(
        kv_num_blocks=one,
        kv_indices=zero,
        BLOCK_SIZE=_LARGE_SPARSE_BLOCK_SIZE,
        seq_lengths=(1, 1),
    )


def _is_traced() -> bool:
    """Whether a trace runs, which keeps the call whole."""
    return torch._C._get_dispatch_mode(torch._C._TorchDispatchModeKey.PROXY) is not None


def _call_operator(
    query, key, value, score_mod, mask_mod, mask, scale, kernel_options
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """torch.ops.higher_order.flex_attention. Tensors that the functions refer to become its
    operands."""
    from torch._higher_order_ops import flex_attention as flex_operator
    from torch._higher_order_ops import utils
    from torch._higher_order_ops.flex_attention import one_position

    mods, buffers = [], []
    for mod, score in ((score_mod, True), (mask_mod, False)):
        with torch.no_grad():
            example = one_position(query, score=score)
        (made,), captured = utils.lifted([mod], example)
        mods.append(made)
        buffers.append(tuple(captured))
    return flex_operator(
        query, key, value, mods[0], (*mask, mods[1]), scale, kernel_options, *buffers
    )


def _as_operator(
    query, key, value, score_mod, block_mask, scale, kernel_options
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """The call as an operator that takes functions."""
    from torch._higher_order_ops.flex_attention import indexed_by_tensors

    block_mask = block_mask or _create_empty_block_mask(query, key)
    return _call_operator(
        query,
        key,
        value,
        indexed_by_tensors(score_mod or _identity),
        indexed_by_tensors(block_mask.mask_mod),
        block_mask.as_tuple()[:-1],
        scale,
        dict(kernel_options or {}),
    )


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
    scale = 1.0 / math.sqrt(query.size(-1)) if scale is None else scale
    wanted = AuxRequest(lse=True) if return_lse else return_aux
    if _is_traced():
        output, lse, largest = _as_operator(
            query, key, value, score_mod, block_mask, scale, kernel_options
        )
        lse = lse * math.log(2)
    else:
        output, scores = _flex_dense.forward(query, key, value, score_mod, block_mask, scale)
        lse = torch.logsumexp(scores, dim=-1) if wanted is not None and wanted.lse else None
        largest = scores.amax(-1) if wanted is not None and wanted.max_scores else None
    if return_lse:
        return output, lse
    if return_aux is None:
        return output
    return output, AuxOutput(
        lse=lse if return_aux.lse else None, max_scores=largest if return_aux.max_scores else None
    )
