"""multi_head_attention_forward: projections, masks and the two ways to attend. With the weights
asked for, the products stand here step by step; without, the fused operator does them."""

import math
import warnings
from collections.abc import Callable

import torch
from torch import _C
from torch.overrides import has_torch_function, redirect

__all__ = ["multi_head_attention_forward"]


def _require(condition, message) -> None:
    if not condition:
        raise AssertionError(message)


def map_shared(
    change: Callable[[torch.Tensor], torch.Tensor],
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Changes three tensors. One that is given twice stays one, so that its projections are made in
    one go."""
    new_query = change(query)
    new_key = new_query if key is query else change(key)
    if value is key:
        return new_query, new_key, new_key
    return new_query, new_key, new_query if value is query else change(value)


def _is_batched(query, key, value, key_padding_mask, attn_mask, num_heads) -> bool:
    """Whether query is (L, N, E) rather than (L, E); raises for ranks that do not fit together."""
    rank = query.dim()
    _require(
        rank in (2, 3),
        f"query should be unbatched 2D or batched 3D tensor but received {rank}-D query tensor",
    )
    kind = f"For {'batched' if rank == 3 else 'unbatched'} ({rank}-D) `query`, expected"
    _require(
        key.dim() == rank and value.dim() == rank,
        f"{kind} `key` and `value` to be {rank}-D but found {key.dim()}-D and {value.dim()}-D "
        "tensors respectively",
    )
    if key_padding_mask is not None:
        _require(
            key_padding_mask.dim() == rank - 1,
            f"{kind} `key_padding_mask` to be `None` or {rank - 1}-D but found "
            f"{key_padding_mask.dim()}-D tensor instead",
        )
    if attn_mask is not None:
        _require(
            attn_mask.dim() in (2, 3),
            f"{kind} `attn_mask` to be `None`, 2-D or 3-D but found {attn_mask.dim()}-D tensor "
            "instead",
        )
        if rank == 2 and attn_mask.dim() == 3:
            expected = (num_heads, query.shape[0], key.shape[0])
            _require(
                tuple(attn_mask.shape) == expected,
                f"Expected `attn_mask` shape to be {expected} but got {attn_mask.shape}",
            )
    return rank == 3


def _float_mask(mask, name, dtype) -> torch.Tensor | None:
    """A mask as something to add: -inf where a bool mask says no."""
    if mask is None:
        return None
    if mask.dtype != torch.bool:
        _require(mask.is_floating_point(), f"only bool and floating types of {name} are supported")
        return mask
    return torch.zeros_like(mask, dtype=dtype).masked_fill_(mask, float("-inf"))


def _prepare_masks(
    query, attn_mask, key_padding_mask, is_causal, need_weights
) -> tuple[torch.Tensor | None, torch.Tensor | None, bool]:
    """Both masks as something to add, and whether is_causal replaces attn_mask: it does when
    nothing else masks and no weights are asked for."""
    if attn_mask is not None and key_padding_mask is not None:
        if attn_mask.dtype != key_padding_mask.dtype:
            warnings.warn(
                "Support for mismatched key_padding_mask and attn_mask is deprecated. Use same "
                "type for both instead.",
                stacklevel=4,
            )
    key_padding_mask = _float_mask(key_padding_mask, "key_padding_mask", query.dtype)
    if is_causal and attn_mask is None:
        raise RuntimeError(
            "Need attn_mask if specifying the is_causal hint. You may use the Transformer module "
            "method `generate_square_subsequent_mask` to create this mask."
        )
    if is_causal and key_padding_mask is None and not need_weights:
        return None, None, True
    return _float_mask(attn_mask, "attn_mask", query.dtype), key_padding_mask, False


def _check_padding(mask, batch, source_len) -> None:
    for dim, expected in enumerate((batch, source_len)):
        _require(
            mask is None or mask.shape[dim] == expected,
            f"Expected key_padded_mask.shape[{dim}] to be {expected}, but got "
            f"{None if mask is None else mask.shape[dim]}",
        )


def _split_bias(bias) -> tuple[torch.Tensor | None, torch.Tensor | None, torch.Tensor | None]:
    return (None, None, None) if bias is None else bias.chunk(3)


def _project_packed(
    query, key, value, weight, bias
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """The three projections with one weight: one product where the inputs are one tensor."""
    width = query.size(-1)
    linear = _C._nn.linear
    if key is value and query is key:
        joint = linear(query, weight, bias)
        # (…, 3E) to 3 contiguous tensors (…, E).
        joint = joint.unflatten(-1, (3, width)).unsqueeze(0).transpose(0, -2).squeeze(-2)
        joint = joint.contiguous()
        return joint[0], joint[1], joint[2]
    if key is value:
        parts = [width, 2 * width]
        weight_q, weight_kv = weight.split(parts)
        bias_q, bias_kv = (None, None) if bias is None else bias.split(parts)
        joint = linear(key, weight_kv, bias_kv)
        joint = joint.unflatten(-1, (2, width)).unsqueeze(0).transpose(0, -2).squeeze(-2)
        joint = joint.contiguous()
        return linear(query, weight_q, bias_q), joint[0], joint[1]
    weights = weight.chunk(3)
    biases = _split_bias(bias)
    return tuple(
        linear(x, w, b) for x, w, b in zip((query, key, value), weights, biases, strict=True)
    )


def _project_separate(
    inputs, weights, bias, embed_dim
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    for name, weight, x in zip("qkv", weights, inputs, strict=True):
        _require(
            weight is not None, f"use_separate_proj_weight is True but {name}_proj_weight is None"
        )
        expected = (embed_dim, x.size(-1))
        _require(
            tuple(weight.shape) == expected,
            f"expecting {name}_proj_weight shape of {expected}, but got {tuple(weight.shape)}",
        )
    return tuple(
        _C._nn.linear(x, w, b) for x, w, b in zip(inputs, weights, _split_bias(bias), strict=True)
    )


def _check_attn_mask(mask, heads, batch, target_len, source_len) -> torch.Tensor | None:
    """The additive mask with three dimensions."""
    if mask is None:
        return None
    if mask.dim() == 2:
        expected = (target_len, source_len)
    else:
        expected = (batch * heads, target_len, source_len)
    if tuple(mask.shape) != expected:
        raise RuntimeError(
            f"The shape of the {mask.dim()}D attn_mask is {mask.shape}, but should be {expected}."
        )
    return mask.unsqueeze(0) if mask.dim() == 2 else mask


def _heads_first(x, batch, heads, static=None, name=""):
    """(L, N, E) to (N * heads, L, head_dim); a static tensor has that form already."""
    head_dim = x.shape[-1] // heads
    if static is None:
        return x.contiguous().view(x.shape[0], batch * heads, head_dim).transpose(0, 1)
    for dim, expected in ((0, batch * heads), (2, head_dim)):
        _require(
            static.size(dim) == expected,
            f"expecting {name}.size({dim}) of {expected}, but got {static.size(dim)}",
        )
    return static


def _pad_masks(attn_mask, key_padding_mask) -> tuple[None, torch.Tensor]:
    """One more source position, open to all."""
    pad = torch.nn.functional.pad
    attn_mask = None if attn_mask is None else pad(attn_mask, (0, 1))
    key_padding_mask = None if key_padding_mask is None else pad(key_padding_mask, (0, 1))
    return attn_mask, key_padding_mask


def _attend_with_weights(q, k, v, mask, dropout_p) -> tuple[torch.Tensor, torch.Tensor]:
    """(N * heads, L, d) with the attention weights."""
    scores_of = q * math.sqrt(1.0 / float(q.shape[-1]))
    if mask is not None:
        scores = torch.baddbmm(mask, scores_of, k.transpose(-2, -1))
    else:
        scores = torch.bmm(scores_of, k.transpose(-2, -1))
    weights = scores.softmax(-1)
    if dropout_p > 0.0:
        weights = torch.nn.functional.dropout(weights, p=dropout_p)
    return torch.bmm(weights, v), weights


def _attend_fused(q, k, v, mask, dropout_p, is_causal, batch, heads) -> torch.Tensor:
    """(L, N, heads, d) by the fused operator, which makes no weights."""
    if mask is not None:
        alike = mask.size(0) == 1
        mask = mask.unsqueeze(0) if alike else mask.view(batch, heads, -1, k.size(1))
    q, k, v = (x.view(batch, heads, x.size(1), x.size(2)) for x in (q, k, v))
    attend = _C._nn.scaled_dot_product_attention
    return attend(q, k, v, mask, dropout_p, is_causal).permute(2, 0, 1, 3)


def _join_masks(attn_mask, key_padding_mask, batch, heads, source_len) -> torch.Tensor | None:
    if key_padding_mask is None:
        return attn_mask
    _require(
        tuple(key_padding_mask.shape) == (batch, source_len),
        f"expecting key_padding_mask shape of {(batch, source_len)}, but got "
        f"{key_padding_mask.shape}",
    )
    padding = key_padding_mask.view(batch, 1, 1, source_len).expand(-1, heads, -1, -1)
    padding = padding.reshape(batch * heads, 1, source_len)
    return padding if attn_mask is None else attn_mask + padding


def _check_widths(query, key, value, embed_dim, embed_dim_to_check, heads, separate) -> None:
    _require(
        embed_dim == embed_dim_to_check,
        f"was expecting embedding dimension of {embed_dim_to_check}, but got {embed_dim}",
    )
    _require(
        embed_dim // heads * heads == embed_dim,
        f"embed_dim {embed_dim} not divisible by num_heads {heads}",
    )
    if separate:
        _require(
            key.shape[:2] == value.shape[:2],
            f"key's sequence and batch dims {key.shape[:2]} do not match value's {value.shape[:2]}",
        )
    else:
        _require(
            key.shape == value.shape,
            f"key shape {key.shape} does not match value shape {value.shape}",
        )


def _append_bias(q, k, v, bias_k, bias_v, static_k, static_v, masks):
    """The learned extra key and value."""
    if bias_k is None and bias_v is None:
        return k, v, masks
    _require(bias_k is not None and bias_v is not None, "bias_k and bias_v go together")
    _require(static_k is None, "bias cannot be added to static key.")
    _require(static_v is None, "bias cannot be added to static value.")
    batch = q.shape[1]
    k = torch.cat([k, bias_k.repeat(1, batch, 1)])
    v = torch.cat([v, bias_v.repeat(1, batch, 1)])
    return k, v, _pad_masks(*masks)


def multi_head_attention_forward(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    embed_dim_to_check,
    num_heads,
    in_proj_weight,
    in_proj_bias,
    bias_k,
    bias_v,
    add_zero_attn,
    dropout_p,
    out_proj_weight,
    out_proj_bias,
    training: bool = True,
    key_padding_mask: torch.Tensor | None = None,
    need_weights: bool = True,
    attn_mask: torch.Tensor | None = None,
    use_separate_proj_weight: bool = False,
    q_proj_weight=None,
    k_proj_weight=None,
    v_proj_weight=None,
    static_k=None,
    static_v=None,
    average_attn_weights: bool = True,
    is_causal: bool = False,
) -> tuple[torch.Tensor, torch.Tensor | None]:
    """Attention in several heads. query is (L, N, E) or (L, E), key and value (S, N, ...); gives
    the output and, with need_weights, the weights (N, L, S), or of each head (N, heads, L, S)."""
    tensors = (
        query, key, value, in_proj_weight, in_proj_bias, bias_k, bias_v, out_proj_weight,
        out_proj_bias,
    )  # fmt: skip
    if has_torch_function(tensors):
        return redirect(multi_head_attention_forward, locals())
    batched = _is_batched(query, key, value, key_padding_mask, attn_mask, num_heads)
    if not batched:
        query, key, value = map_shared(lambda t: t.unsqueeze(1), query, key, value)
        key_padding_mask = None if key_padding_mask is None else key_padding_mask.unsqueeze(0)
    target_len, batch, embed_dim = query.shape
    attn_mask, key_padding_mask, use_hint = _prepare_masks(
        query, attn_mask, key_padding_mask, is_causal, need_weights
    )
    _check_widths(
        query, key, value, embed_dim, embed_dim_to_check, num_heads, use_separate_proj_weight
    )
    _check_padding(key_padding_mask, batch, key.shape[0])
    if use_separate_proj_weight:
        weights = (q_proj_weight, k_proj_weight, v_proj_weight)
        q, k, v = _project_separate((query, key, value), weights, in_proj_bias, embed_dim)
    else:
        _require(
            in_proj_weight is not None,
            "use_separate_proj_weight is False but in_proj_weight is None",
        )
        q, k, v = _project_packed(query, key, value, in_proj_weight, in_proj_bias)
    attn_mask = _check_attn_mask(attn_mask, num_heads, batch, target_len, key.shape[0])
    masks = (attn_mask, key_padding_mask)
    k, v, masks = _append_bias(q, k, v, bias_k, bias_v, static_k, static_v, masks)
    q = _heads_first(q, batch, num_heads)
    k = _heads_first(k, batch, num_heads, static_k, "static_k")
    v = _heads_first(v, batch, num_heads, static_v, "static_v")
    if add_zero_attn:
        k, v = (torch.nn.functional.pad(x, (0, 0, 0, 1)) for x in (k, v))
        masks = _pad_masks(*masks)
    mask = _join_masks(*masks, batch, num_heads, k.size(1))
    dropout_p = dropout_p if training else 0.0
    attention = None
    if need_weights:
        output, attention = _attend_with_weights(q, k, v, mask, dropout_p)
        output = output.transpose(0, 1)
    else:
        output = _attend_fused(q, k, v, mask, dropout_p, use_hint, batch, num_heads)
    output = output.reshape(target_len * batch, embed_dim)
    output = _C._nn.linear(output, out_proj_weight, out_proj_bias)
    output = output.view(target_len, batch, output.size(-1))
    if attention is not None:
        attention = attention.view(batch, num_heads, target_len, k.size(1))
        attention = attention.mean(dim=1) if average_attn_weights else attention
    if not batched:
        output = output.squeeze(1)
        attention = None if attention is None else attention.squeeze(0)
    return output, attention
