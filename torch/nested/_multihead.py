"""nn.MultiheadAttention and nn.TransformerEncoder on nested tensors: the same projections and
attention as for a padded batch, without computing the padding."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch.nested import _strided
from torch.nested._jagged import NestedTensor, from_components
from torch.nested._structure import Structure


def multihead_attention(module, query, key, value, **options):
    """What nn.MultiheadAttention returns for nested tensors of shape (B, j, D)."""
    tensors = query, key, value
    if not all(t.is_nested and t.dim() == 3 for t in tensors):
        raise RuntimeError(
            "MultiheadAttention: query, key and value must all be nested tensors of three "
            f"dimensions, got {', '.join(f'{t.dim()}' for t in tensors)} dimensions"
        )
    _refuse(module, options)
    if query.layout is torch.strided:
        jagged = {id(t): from_components(t.unbind(), 1) for t in tensors}
        found, weights = _attend(module, *(jagged[id(t)] for t in tensors), options)
        return _strided.from_list(found.unbind()), weights
    return _attend(module, *tensors, options)


def _refuse(module, options) -> None:
    wrong = {
        "batch_first=False": not module.batch_first,
        "key_padding_mask": options["key_padding_mask"] is not None,
        "attn_mask": options["attn_mask"] is not None,
        "add_bias_kv": module.bias_k is not None,
        "add_zero_attn": module.add_zero_attn,
    }
    for name, given in wrong.items():
        if given:
            raise NotImplementedError(
                f"MultiheadAttention with {name} is not implemented for nested tensors"
            )


def _attend(module, query, key, value, options) -> tuple[NestedTensor, torch.Tensor | None]:
    heads = [
        t.unflatten(-1, (module.num_heads, module.head_dim)).transpose(1, 2)
        for t in _projections(module, query, key, value)
    ]
    dropout = module.dropout if module.training else 0.0
    causal, weights = options["is_causal"], None
    if options["need_weights"]:
        found, weights = _weighted(*heads, dropout, causal)
        weights = weights.mean(1) if options["average_attn_weights"] else weights
    else:
        found = F.scaled_dot_product_attention(*heads, dropout_p=dropout, is_causal=causal)
    return module.out_proj(found.transpose(1, 2).flatten(2)), weights


def _weighted(query, key, value, dropout, causal) -> tuple[NestedTensor, torch.Tensor]:
    """Attention step by step, and its weights in a plain tensor with zeros for the padding."""
    longest = key._structure.longest, query._structure.longest
    found, weights = [], []
    for q, k, v in zip(query.unbind(), key.unbind(), value.unbind(), strict=True):
        scores = q @ k.mT / q.size(-1) ** 0.5
        if causal:
            hidden = torch.ones_like(scores, dtype=torch.bool).triu(1)
            scores = scores.masked_fill(hidden, float("-inf"))
        weight = F.dropout(scores.softmax(-1), dropout)
        found.append(weight @ v)
        gaps = longest[0] - k.size(1), longest[1] - q.size(1)
        weights.append(F.pad(weight, (0, gaps[0], 0, gaps[1])))
    return from_components(found, 2, query._compact()._structure), torch.stack(weights)


def _projections(module, query, key, value):
    bias = module.in_proj_bias
    if module._qkv_same_embed_dim:
        if query is key and key is value:
            return F.linear(query, module.in_proj_weight, bias).chunk(3, -1)
        weights = module.in_proj_weight.chunk(3)
    else:
        weights = module.q_proj_weight, module.k_proj_weight, module.v_proj_weight
    biases = (None,) * 3 if bias is None else bias.chunk(3)
    inputs = query, key, value
    return [F.linear(t, w, b) for t, w, b in zip(inputs, weights, biases, strict=True)]


def pack(padded, padding_mask) -> NestedTensor | None:
    """The rows of (B, T, D) that the mask does not hide as a nested tensor, or None where a mask
    hides rows before others."""
    keep = ~padding_mask
    lengths = keep.sum(1)
    front = torch.arange(keep.size(1), device=keep.device) < lengths.unsqueeze(1)
    if not bool((front == keep).all()):
        return None
    structure = Structure.of_lengths(lengths.tolist(), padded.device)
    return NestedTensor(padded[keep], structure)
