"""A whole encoder layer as one operator: what PyTorch's fast path of transformers calls, and so
what
its programs in archives contain."""

import torch
from torch import Tensor
from torch._composed_ops.registry import composed


@composed(
    "_transformer_encoder_layer_fwd(Tensor src, int embed_dim, int num_heads, Tensor qkv_weight, "
    "Tensor qkv_bias, Tensor proj_weight, Tensor proj_bias, bool use_gelu, bool norm_first, float "
    "eps, "
    "Tensor norm_weight_1, Tensor norm_bias_1, Tensor norm_weight_2, Tensor norm_bias_2, "
    "Tensor ffn_weight_1, Tensor ffn_bias_1, Tensor ffn_weight_2, Tensor ffn_bias_2, "
    "Tensor? mask=None, int? mask_type=None) -> Tensor",
    out="out",
)
def transformer_encoder_layer(
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
    def first_norm(x: Tensor) -> Tensor:
        return torch.layer_norm(x, [embed_dim], norm_weight_1, norm_bias_1, eps)

    def second_norm(x: Tensor) -> Tensor:
        return torch.layer_norm(x, [embed_dim], norm_weight_2, norm_bias_2, eps)

    def attend(x: Tensor) -> Tensor:
        weights = (qkv_weight, qkv_bias, proj_weight, proj_bias)
        return torch._native_multi_head_attention(
            x, x, x, embed_dim, num_heads, *weights, mask, False, True, mask_type
        )[0]

    def feed(x: Tensor) -> Tensor:
        inner = torch.nn.functional.linear(x, ffn_weight_1, ffn_bias_1)
        inner = torch.nn.functional.gelu(inner) if use_gelu else torch.relu(inner)
        return torch.nn.functional.linear(inner, ffn_weight_2, ffn_bias_2)

    if norm_first:
        src = src + attend(first_norm(src))
        return src + feed(second_norm(src))
    src = first_norm(src + attend(src))
    return second_norm(src + feed(src))
