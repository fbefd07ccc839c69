"""Attention under the names of the kernels that compute it on GPUs, and a whole encoder layer.

One formula serves all of them: the scores are computed in full, so the logarithm of their sum that
these operators hand to their gradients is exact. Programs reach the fused kernels by
scaled_dot_product_attention. Dropout would need the numbers of a kernel's own generator, and raises
as do packed sequences."""

import math

import torch
import torch.nn.functional as F
from torch import Tensor
from torch._composed_ops.registry import composed, declare

_WIDE = {torch.float16: torch.float32, torch.bfloat16: torch.float32}


def _refuse(operator: str, what: str, query: Tensor) -> NotImplementedError:
    return NotImplementedError(
        f"aten::{operator}: {what} not implemented for {query.dtype} on {query.device}"
    )


def _check(operator: str, query: Tensor, dropout_p: float, **absent: object) -> None:
    if dropout_p > 0:
        raise _refuse(operator, f"dropout_p={dropout_p} is", query)
    for name, value in absent.items():
        # A schema that wants a tensor gets an empty one for what is absent.
        if value is not None and not (isinstance(value, Tensor) and value.numel() == 0):
            raise _refuse(operator, f"{name} is", query)


class _Scores:
    """The scores of queries by keys, with sizes (batch, heads, rows, features). `causal` is the
    number of keys that the first row sees, or None."""

    def __init__(
        self,
        query: Tensor,
        key: Tensor,
        bias: Tensor | None,
        causal: int | None,
        scale: float | None,
    ) -> None:
        self.wide = _WIDE.get(query.dtype, query.dtype)
        self.scale = 1 / math.sqrt(query.size(-1)) if scale is None else scale
        self.query, self.key = query.to(self.wide), key.to(self.wide)
        scores = self.query @ self.key.mT * self.scale
        if bias is not None:
            scores = scores + bias.to(self.wide)
        if causal is not None:
            rows, keys = scores.shape[-2:]
            seen = torch.ones(rows, keys, dtype=torch.bool, device=scores.device)
            scores = scores.masked_fill(~seen.tril(causal - 1), float("-inf"))
        self.scores = scores

    def output(self, value: Tensor) -> tuple[Tensor, Tensor]:
        """The weighted values, and the logarithm of the sum of the weights."""
        logsumexp = self.scores.logsumexp(-1)
        return (self.weights(logsumexp) @ value.to(self.wide)).to(value.dtype), logsumexp

    def weights(self, logsumexp: Tensor) -> Tensor:
        """A row that sees no key has no weights."""
        shifted = self.scores - logsumexp.to(self.wide).unsqueeze(-1)
        return shifted.exp().nan_to_num(0.0)

    def gradients(
        self, grad: Tensor, value: Tensor, out: Tensor, logsumexp: Tensor
    ) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Of query, key, value and scores."""
        weights, given = self.weights(logsumexp), grad.to(self.wide)
        to_value = weights.mT @ given
        along = (given * out.to(self.wide)).sum(-1, keepdim=True)
        to_scores = weights * (given @ value.to(self.wide).mT - along)
        to_query = to_scores @ self.key * self.scale
        to_key = to_scores.mT @ self.query * self.scale
        return tuple(t.to(value.dtype) for t in (to_query, to_key, to_value, to_scores))


def _square_causal(operator: str, query: Tensor, key: Tensor, is_causal: bool) -> int | None:
    if is_causal and query.size(-2) != key.size(-2):
        raise _refuse(operator, "is_causal with as many queries as keys only is", query)
    return 1 if is_causal else None


def _seed(query: Tensor, dtype: torch.dtype, *size: int) -> Tensor:
    """Where a kernel keeps the state of its generator: without dropout there is none."""
    return torch.zeros(size, dtype=dtype, device=query.device)


# ---- flash attention
@composed(
    "_scaled_dot_product_flash_attention(Tensor query, Tensor key, Tensor value, "
    "float dropout_p=0., bool is_causal=False, bool return_debug_mask=False, *, "
    "float? scale=None) -> (Tensor output, Tensor logsumexp, Tensor cum_seq_q, Tensor cum_seq_k, "
    "SymInt max_q, SymInt max_k, Tensor rng_state, Tensor unused, Tensor debug_attn_mask)"
)
def _scaled_dot_product_flash_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    return_debug_mask: bool = False,
    *,
    scale: float | None = None,
) -> tuple[object, ...]:
    name = "_scaled_dot_product_flash_attention"
    _check(name, query, dropout_p)
    causal = _square_causal(name, query, key, is_causal)
    output, logsumexp = _Scores(query, key, None, causal, scale).output(value)
    state, unused = _seed(query, torch.uint64, 2), _seed(query, torch.uint64)
    sizes = query.size(-2), key.size(-2)
    return output, logsumexp, None, None, *sizes, state, unused, query.new_empty(0)


@composed(
    "_scaled_dot_product_flash_attention_backward(Tensor grad_out, Tensor query, Tensor key, "
    "Tensor value, Tensor out, Tensor logsumexp, Tensor cum_seq_q, Tensor cum_seq_k, SymInt max_q, "
    "SymInt max_k, float dropout_p, bool is_causal, Tensor philox_seed, Tensor philox_offset, *, "
    "float? scale=None) -> (Tensor grad_query, Tensor grad_key, Tensor grad_value)"
)
def _scaled_dot_product_flash_attention_backward(
    grad_out: Tensor,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    out: Tensor,
    logsumexp: Tensor,
    cum_seq_q: Tensor | None,
    cum_seq_k: Tensor | None,
    max_q: int,
    max_k: int,
    dropout_p: float,
    is_causal: bool,
    philox_seed: Tensor,
    philox_offset: Tensor,
    *,
    scale: float | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    name = "_scaled_dot_product_flash_attention_backward"
    _check(name, query, dropout_p, cum_seq_q=cum_seq_q, cum_seq_k=cum_seq_k)
    causal = _square_causal(name, query, key, is_causal)
    scores = _Scores(query, key, None, causal, scale)
    return scores.gradients(grad_out, value, out, logsumexp)[:3]


_PACKED = (
    "Tensor query, Tensor key, Tensor value, Tensor? cum_seq_q, Tensor? cum_seq_k, SymInt max_q, "
    "SymInt max_k, float dropout_p, bool is_causal, bool return_debug_mask"
)
_LIMITS = (
    "*, float? scale=None, SymInt? window_size_left=None, SymInt? window_size_right=None, "
    "Tensor? seqused_k=None, Tensor? alibi_slopes=None"
)


@composed(
    f"_flash_attention_forward({_PACKED}, {_LIMITS}, Tensor? block_table=None, "
    "int? num_splits=None) -> (Tensor output, Tensor softmax_logsumexp, Tensor rng_state, "
    "Tensor unused, Tensor debug_attn_mask)"
)
def _flash_attention_forward(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    cum_seq_q: Tensor | None,
    cum_seq_k: Tensor | None,
    max_q: int,
    max_k: int,
    dropout_p: float,
    is_causal: bool,
    return_debug_mask: bool,
    *,
    scale: float | None = None,
    num_splits: int | None = None,
    **limits: object,
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    """Rows stand before heads."""
    name = "_flash_attention_forward"
    _check(name, query, dropout_p, cum_seq_q=cum_seq_q, cum_seq_k=cum_seq_k, **limits)
    found = _scaled_dot_product_flash_attention(
        *(t.transpose(1, 2) for t in (query, key, value)), 0.0, is_causal, scale=scale
    )
    return found[0].transpose(1, 2), found[1], *found[6:]


@composed(
    f"_flash_attention_forward_no_dropout_inplace(Tensor(a!) out, {_PACKED}, {_LIMITS}, "
    "Tensor? block_table=None, int? num_splits=None) -> Tensor softmax_logsumexp"
)
def _flash_attention_forward_no_dropout_inplace(
    out: Tensor, *args: object, **kwargs: object
) -> Tensor:
    output, logsumexp, *_ = _flash_attention_forward(*args, **kwargs)
    out.copy_(output)
    return logsumexp


@composed(
    "_flash_attention_backward(Tensor grad_out, Tensor query, Tensor key, Tensor value, "
    "Tensor out, Tensor logsumexp, Tensor cum_seq_q, Tensor cum_seq_k, SymInt max_q, SymInt max_k, "
    "float dropout_p, bool is_causal, Tensor rng_state, Tensor unused, *, float? scale=None, "
    "SymInt? window_size_left=None, SymInt? window_size_right=None) -> (Tensor, Tensor, Tensor)"
)
def _flash_attention_backward(
    grad_out: Tensor,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    out: Tensor,
    logsumexp: Tensor,
    *rest: object,
    scale: float | None = None,
    **limits: object,
) -> tuple[Tensor, ...]:
    _check("_flash_attention_backward", query, 0.0, **limits)
    moved = (t.transpose(1, 2) for t in (grad_out, query, key, value, out))
    found = _scaled_dot_product_flash_attention_backward(*moved, logsumexp, *rest, scale=scale)
    return tuple(t.transpose(1, 2) for t in found)


# ---- memory-efficient attention
def _padded_rows(logsumexp: Tensor, wanted: bool) -> Tensor:
    """As the kernels store it: by blocks of 32 rows, those that are none infinite."""
    if not wanted:
        return logsumexp[..., :0].float()
    return F.pad(logsumexp, (0, -logsumexp.size(-1) % 32), value=float("inf")).float()


@composed(
    "_scaled_dot_product_efficient_attention(Tensor query, Tensor key, Tensor value, "
    "Tensor? attn_bias, bool compute_log_sumexp, float dropout_p=0., bool is_causal=False, *, "
    "float? scale=None) -> (Tensor output, Tensor log_sumexp, Tensor philox_seed, "
    "Tensor philox_offset)"
)
def _scaled_dot_product_efficient_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_bias: Tensor | None,
    compute_log_sumexp: bool,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    *,
    scale: float | None = None,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    _check("_scaled_dot_product_efficient_attention", query, dropout_p)
    scores = _Scores(query, key, attn_bias, 1 if is_causal else None, scale)
    output, logsumexp = scores.output(value)
    laid_out = output.transpose(1, 2).contiguous().transpose(1, 2)
    seeds = _seed(query, torch.int64), _seed(query, torch.int64)
    return laid_out, _padded_rows(logsumexp, compute_log_sumexp), *seeds


@composed(
    "_scaled_dot_product_efficient_attention_backward(Tensor grad_out_, Tensor query, Tensor key, "
    "Tensor value, Tensor attn_bias, Tensor out, Tensor logsumexp, Tensor philox_seed, "
    "Tensor philox_offset, float dropout_p, bool[4] grad_input_mask, bool is_causal=False, *, "
    "float? scale=None) -> (Tensor, Tensor, Tensor, Tensor)"
)
def _scaled_dot_product_efficient_attention_backward(
    grad_out_: Tensor,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_bias: Tensor | None,
    out: Tensor,
    logsumexp: Tensor,
    philox_seed: Tensor,
    philox_offset: Tensor,
    dropout_p: float,
    grad_input_mask: list[bool],
    is_causal: bool = False,
    *,
    scale: float | None = None,
) -> tuple[Tensor | None, ...]:
    _check("_scaled_dot_product_efficient_attention_backward", query, dropout_p)
    scores = _Scores(query, key, attn_bias, 1 if is_causal else None, scale)
    rows = logsumexp[..., : query.size(-2)]
    *found, to_bias = scores.gradients(grad_out_, value, out, rows)
    found.append(to_bias.sum_to_size(attn_bias.shape) if attn_bias is not None else None)
    return tuple(g if m else None for g, m in zip(found, grad_input_mask, strict=True))


def _causal_by_number(operator: str, kind: int, query: Tensor, key: Tensor) -> int | None:
    """0: every key; 1: the first row sees the first key; 2: the last row sees the last key."""
    if kind not in (0, 1, 2):
        raise RuntimeError(f"{operator}: unknown custom_mask_type {kind}")
    return (None, 1, key.size(-2) - query.size(-2) + 1)[kind]


@composed(
    "_efficient_attention_forward(Tensor query, Tensor key, Tensor value, Tensor? bias, "
    "Tensor? cu_seqlens_q, Tensor? cu_seqlens_k, SymInt? max_seqlen_q, SymInt? max_seqlen_k, "
    "float dropout_p, int custom_mask_type, bool compute_log_sumexp=False, *, float? scale=None, "
    "Tensor? seqlen_k=None, int? window_size=None) -> (Tensor output, Tensor logsumexp, "
    "Tensor philox_seed, Tensor philox_offset, SymInt max_seqlen_batch_q, "
    "SymInt max_seqlen_batch_k)"
)
def _efficient_attention_forward(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    bias: Tensor | None,
    cu_seqlens_q: Tensor | None,
    cu_seqlens_k: Tensor | None,
    max_seqlen_q: int | None,
    max_seqlen_k: int | None,
    dropout_p: float,
    custom_mask_type: int,
    compute_log_sumexp: bool = False,
    *,
    scale: float | None = None,
    **limits: object,
) -> tuple[object, ...]:
    """Rows stand before heads."""
    name = "_efficient_attention_forward"
    _check(name, query, dropout_p, cu_seqlens_q=cu_seqlens_q, cu_seqlens_k=cu_seqlens_k, **limits)
    q, k, v = (t.transpose(1, 2) for t in (query, key, value))
    causal = _causal_by_number(name, custom_mask_type, q, k)
    output, logsumexp = _Scores(q, k, bias, causal, scale).output(v)
    seeds = _seed(query, torch.int64), _seed(query, torch.int64)
    shown = output.transpose(1, 2).contiguous()
    return shown, _padded_rows(logsumexp, compute_log_sumexp), *seeds, q.size(-2), k.size(-2)


@composed(
    "_efficient_attention_backward(Tensor grad_out_, Tensor query, Tensor key, Tensor value, "
    "Tensor? bias, Tensor out, Tensor? cu_seqlens_q, Tensor? cu_seqlens_k, SymInt max_seqlen_q, "
    "SymInt max_seqlen_k, Tensor logsumexp, float dropout_p, Tensor philox_seed, "
    "Tensor philox_offset, int custom_mask_type, bool bias_requires_grad, *, float? scale=None, "
    "int? num_splits_key=None, int? window_size=None, bool shared_storage_dqdkdv=False) "
    "-> (Tensor, Tensor, Tensor, Tensor)"
)
def _efficient_attention_backward(
    grad_out_: Tensor,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    bias: Tensor | None,
    out: Tensor,
    cu_seqlens_q: Tensor | None,
    cu_seqlens_k: Tensor | None,
    max_seqlen_q: int,
    max_seqlen_k: int,
    logsumexp: Tensor,
    dropout_p: float,
    philox_seed: Tensor,
    philox_offset: Tensor,
    custom_mask_type: int,
    bias_requires_grad: bool,
    *,
    scale: float | None = None,
    num_splits_key: int | None = None,
    window_size: int | None = None,
    shared_storage_dqdkdv: bool = False,
) -> tuple[Tensor | None, ...]:
    name = "_efficient_attention_backward"
    packed = {"cu_seqlens_q": cu_seqlens_q, "cu_seqlens_k": cu_seqlens_k}
    _check(name, query, dropout_p, window_size=window_size, **packed)
    grad, q, k, v, o = (t.transpose(1, 2) for t in (grad_out_, query, key, value, out))
    scores = _Scores(q, k, bias, _causal_by_number(name, custom_mask_type, q, k), scale)
    *found, to_bias = scores.gradients(grad, v, o, logsumexp[..., : q.size(-2)])
    wanted = bias is not None and bias_requires_grad
    to_bias = to_bias.sum_to_size(bias.shape) if wanted else None
    return *(t.transpose(1, 2) for t in found), to_bias


# ---- cuDNN's attention
@composed(
    "_scaled_dot_product_cudnn_attention(Tensor query, Tensor key, Tensor value, "
    "Tensor? attn_bias, bool compute_log_sumexp, float dropout_p=0., bool is_causal=False, "
    "bool return_debug_mask=False, *, float? scale=None) -> (Tensor output, Tensor logsumexp, "
    "Tensor cum_seq_q, Tensor cum_seq_k, SymInt max_q, SymInt max_k, Tensor philox_seed, "
    "Tensor philox_offset, Tensor debug_attn_mask)"
)
def _scaled_dot_product_cudnn_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_bias: Tensor | None,
    compute_log_sumexp: bool,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    return_debug_mask: bool = False,
    *,
    scale: float | None = None,
) -> tuple[object, ...]:
    _check("_scaled_dot_product_cudnn_attention", query, dropout_p)
    scores = _Scores(query, key, attn_bias, 1 if is_causal else None, scale)
    output, logsumexp = scores.output(value)
    seeds = _seed(query, torch.int64), _seed(query, torch.int64)
    sizes = query.size(-2), key.size(-2)
    return output, logsumexp.unsqueeze(-1), None, None, *sizes, *seeds, None


@composed(
    "_scaled_dot_product_cudnn_attention_backward(Tensor grad_out, Tensor query, Tensor key, "
    "Tensor value, Tensor out, Tensor logsumexp, Tensor philox_seed, Tensor philox_offset, "
    "Tensor attn_bias, Tensor cum_seq_q, Tensor cum_seq_k, SymInt max_q, SymInt max_k, "
    "float dropout_p, bool is_causal, *, float? scale=None) -> (Tensor, Tensor, Tensor)"
)
def _scaled_dot_product_cudnn_attention_backward(
    grad_out: Tensor,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    out: Tensor,
    logsumexp: Tensor,
    philox_seed: Tensor,
    philox_offset: Tensor,
    attn_bias: Tensor | None,
    cum_seq_q: Tensor | None,
    cum_seq_k: Tensor | None,
    max_q: int,
    max_k: int,
    dropout_p: float,
    is_causal: bool,
    *,
    scale: float | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    packed = {"cum_seq_q": cum_seq_q, "cum_seq_k": cum_seq_k}
    _check("_scaled_dot_product_cudnn_attention_backward", query, dropout_p, **packed)
    scores = _Scores(query, key, attn_bias, 1 if is_causal else None, scale)
    return scores.gradients(grad_out, value, out, logsumexp.squeeze(-1))[:3]


# ---- kernels of other devices, and those of quantised values
_OVERRIDE = "Tensor query, Tensor key, Tensor value, Tensor? attn_bias=None"
declare(
    "_scaled_dot_product_flash_attention.quantized(Tensor query, Tensor key, Tensor value, "
    "Tensor? q_descale, Tensor? k_descale, Tensor? v_descale, float dropout_p=0., "
    "bool is_causal=False, bool return_debug_mask=False, *, float? scale=None) -> (Tensor output, "
    "Tensor logsumexp, Tensor cum_seq_q, Tensor cum_seq_k, SymInt max_q, SymInt max_k, "
    "Tensor rng_state, Tensor unused, Tensor debug_attn_mask)",
    f"_flash_attention_forward.quantized({_PACKED}, Tensor? q_descale, Tensor? k_descale, "
    f"Tensor? v_descale, {_LIMITS}) -> (Tensor output, Tensor softmax_logsumexp, "
    "Tensor rng_state, Tensor unused, Tensor debug_attn_mask)",
    "_scaled_dot_product_attention_math_for_mps(Tensor query, Tensor key, Tensor value, "
    "Tensor? attn_mask=None, float dropout_p=0., bool is_causal=False, Tensor? dropout_mask=None, "
    "*, float? scale=None, bool enable_gqa=False) -> (Tensor, Tensor)",
    f"_scaled_dot_product_fused_attention_overrideable({_OVERRIDE}, float dropout_p=0., "
    "bool is_causal=False, bool return_debug_mask=False, *, float? scale=None) -> (Tensor output, "
    "Tensor logsumexp, Tensor cum_seq_q, Tensor cum_seq_k, SymInt max_q, SymInt max_k, "
    "Tensor philox_seed, Tensor philox_offset, Tensor debug_attn_mask)",
    "_scaled_dot_product_fused_attention_overrideable_backward(Tensor grad_out, Tensor query, "
    "Tensor key, Tensor value, Tensor attn_bias, bool[4] grad_input_mask, Tensor out, "
    "Tensor logsumexp, Tensor cum_seq_q, Tensor cum_seq_k, SymInt max_q, SymInt max_k, "
    "float dropout_p, bool is_causal, Tensor philox_seed, Tensor philox_offset, *, "
    "float? scale=None) -> (Tensor grad_query, Tensor grad_key, Tensor grad_value, "
    "Tensor grad_attn_bias)",
    "_cudnn_attention_forward(Tensor query, Tensor key, Tensor value, Tensor? attn_bias, "
    "Tensor? cum_seq_q, Tensor? cum_seq_k, SymInt max_q, SymInt max_k, bool compute_log_sumexp, "
    "float dropout_p=0., bool is_causal=False, bool return_debug_mask=False, *, "
    "float? scale=None) -> (Tensor output, Tensor logsumexp, Tensor cum_seq_q, Tensor cum_seq_k, "
    "SymInt max_q, SymInt max_k, Tensor philox_seed, Tensor philox_offset, "
    "Tensor debug_attn_mask)",
    "_fill_mem_eff_dropout_mask_(Tensor(a!) self, float dropout_p, int seed, int offset) "
    "-> Tensor(a!)",
)
declare(
    "_triton_multi_head_attention(Tensor query, Tensor key, Tensor value, int embed_dim, "
    "int num_head, Tensor qkv_weight, Tensor qkv_bias, Tensor proj_weight, Tensor proj_bias, "
    "Tensor? mask=None) -> Tensor",
    out="out",
)
declare(
    "_triton_scaled_dot_attention(Tensor q, Tensor k, Tensor v, float dropout_p=0.) -> Tensor",
    out="out",
)


# ---- an encoder layer
@composed(
    "_transformer_encoder_layer_fwd(Tensor src, int embed_dim, int num_heads, Tensor qkv_weight, "
    "Tensor qkv_bias, Tensor proj_weight, Tensor proj_bias, bool use_gelu, bool norm_first, "
    "float eps, Tensor norm_weight_1, Tensor norm_bias_1, Tensor norm_weight_2, "
    "Tensor norm_bias_2, Tensor ffn_weight_1, Tensor ffn_bias_1, Tensor ffn_weight_2, "
    "Tensor ffn_bias_2, Tensor? mask=None, int? mask_type=None) -> Tensor",
    out="out",
)
def _transformer_encoder_layer_fwd(
    src: Tensor,
    embed_dim: int,
    num_heads: int,
    qkv_weight: Tensor,
    qkv_bias: Tensor,
    proj_weight: Tensor,
    proj_bias: Tensor,
    use_gelu: bool,
    norm_first: bool,
    eps: float,
    norm_weight_1: Tensor,
    norm_bias_1: Tensor,
    norm_weight_2: Tensor,
    norm_bias_2: Tensor,
    ffn_weight_1: Tensor,
    ffn_bias_1: Tensor,
    ffn_weight_2: Tensor,
    ffn_bias_2: Tensor,
    mask: Tensor | None = None,
    mask_type: int | None = None,
) -> Tensor:
    activation = F.gelu if use_gelu else F.relu

    def attended(x: Tensor) -> Tensor:
        projections = (qkv_weight, qkv_bias, proj_weight, proj_bias)
        return torch._native_multi_head_attention(
            x, x, x, embed_dim, num_heads, *projections, mask, False, True, mask_type
        )[0]

    def fed_forward(x: Tensor) -> Tensor:
        return F.linear(activation(F.linear(x, ffn_weight_1, ffn_bias_1)), ffn_weight_2, ffn_bias_2)

    def first_norm(x: Tensor) -> Tensor:
        return F.layer_norm(x, (embed_dim,), norm_weight_1, norm_bias_1, eps)

    def second_norm(x: Tensor) -> Tensor:
        return F.layer_norm(x, (embed_dim,), norm_weight_2, norm_bias_2, eps)

    if norm_first:
        x = src + attended(first_norm(src))
        return x + fed_forward(second_norm(x))
    x = first_norm(src + attended(src))
    return second_norm(x + fed_forward(x))
