"""Attention over sequences of different lengths packed one behind the other: (tokens, heads, size)
with the places where each sequence begins. Each sequence is attended on its own, so that no work is
spent on padding."""

from __future__ import annotations

import math
import typing

import torch

__all__ = ["AuxRequest", "varlen_attn", "varlen_attn_out"]


class AuxRequest(typing.NamedTuple):
    """What varlen_attn shall answer beside the output."""

    lse: bool = False


def _window_mask(rows, columns, window, device) -> torch.Tensor | None:
    """What queries may see, aligned at the last key; None when everything."""
    left, right = window
    if left < 0 and right < 0:
        return None
    place = torch.arange(columns - rows, columns, device=device).unsqueeze(1)
    distance = torch.arange(columns, device=device) - place
    mask = torch.ones(rows, columns, dtype=torch.bool, device=device)
    if right >= 0:
        mask &= distance <= right
    if left >= 0:
        mask &= distance >= -left
    return mask


def _one_sequence(q, k, v, scale, window, want_lse):
    """(tokens, heads, size) each; the output and, if wanted, the log-sum-exp (heads, tokens)."""
    group = q.size(1) // k.size(1)
    q, k, v = (t.transpose(0, 1) for t in (q, k, v))
    if group != 1:
        k, v = (t.repeat_interleave(group, dim=0) for t in (k, v))
    mask = _window_mask(q.size(1), k.size(1), window, q.device)
    out = torch.nn.functional.scaled_dot_product_attention(
        q.unsqueeze(0), k.unsqueeze(0), v.unsqueeze(0), attn_mask=mask, scale=scale
    )
    if not want_lse:
        return out[0].transpose(0, 1), None
    factor = 1.0 / math.sqrt(q.size(-1)) if scale is None else scale
    scores = torch.matmul(q.float() * factor, k.float().transpose(-2, -1))
    if mask is not None:
        scores = scores.masked_fill(~mask, -math.inf)
    return out[0].transpose(0, 1), torch.logsumexp(scores, -1)


def varlen_attn(
    query,
    key,
    value,
    cu_seq_q,
    cu_seq_k,
    max_q,
    max_k,
    *,
    return_aux=None,
    scale=None,
    window_size=(-1, -1),
    enable_gqa=False,
    seqused_k=None,
    block_table=None,
    num_splits=None,
):
    """Attention of packed sequences: cu_seq_q and cu_seq_k hold where each begins, and the total
    length at the end. window_size is how far a query sees to the left and to the right, -1 for
    without limit; (-1, 0) is causal."""
    if block_table is not None:
        raise NotImplementedError("varlen_attn: paged keys (block_table) are not implemented")
    if query.dim() != 3 or key.dim() != 3 or value.dim() != 3:
        raise ValueError("varlen_attn: query, key and value must be (tokens, heads, size)")
    if not enable_gqa and query.size(1) != key.size(1):
        raise ValueError(
            f"Expect query and key/value to have the same number of heads but got "
            f"Hq={query.size(1)} and Hkv={key.size(1)}. Try setting enable_gqa=True for GQA."
        )
    if key.size(1) == 0 or query.size(1) % key.size(1) != 0:
        raise ValueError(
            f"varlen_attn: {query.size(1)} query heads are no multiple of {key.size(1)} heads"
        )
    starts_q, starts_k = cu_seq_q.tolist(), cu_seq_k.tolist()
    used = None if seqused_k is None else seqused_k.tolist()
    want_lse = return_aux is not None and return_aux.lse
    outputs, sums = [query[:0, :, :1].expand(0, query.size(1), value.size(2))], []
    for i in range(len(starts_q) - 1):
        end_k = starts_k[i + 1] if used is None else starts_k[i] + used[i]
        out, lse = _one_sequence(
            query[starts_q[i] : starts_q[i + 1]],
            key[starts_k[i] : end_k],
            value[starts_k[i] : end_k],
            scale,
            window_size,
            want_lse,
        )
        outputs.append(out)
        sums.append(lse)
    output = torch.cat(outputs)
    if want_lse:
        return output, torch.cat(sums, dim=1) if sums else query.new_empty(query.size(1), 0)
    return output


def varlen_attn_out(
    out,
    query,
    key,
    value,
    cu_seq_q,
    cu_seq_k,
    max_q,
    max_k,
    *,
    return_aux=None,
    scale=None,
    window_size=(-1, -1),
    enable_gqa=False,
    seqused_k=None,
    block_table=None,
    num_splits=None,
):
    """varlen_attn into `out`."""
    result = varlen_attn(
        query,
        key,
        value,
        cu_seq_q,
        cu_seq_k,
        max_q,
        max_k,
        return_aux=return_aux,
        scale=scale,
        window_size=window_size,
        enable_gqa=enable_gqa,
        seqused_k=seqused_k,
        block_table=block_table,
        num_splits=num_splits,
    )
    if isinstance(result, tuple):
        out.copy_(result[0])
        return out, result[1]
    return out.copy_(result)
