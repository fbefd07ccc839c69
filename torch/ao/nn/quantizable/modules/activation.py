"""Attention as modules: the three projections are linear layers, the products carry observers."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

__all__ = ["MultiheadAttention"]


def _functional() -> nn.Module:
    from torch.ao.nn.quantized.modules.functional_modules import FloatFunctional

    return FloatFunctional()


class MultiheadAttention(nn.MultiheadAttention):
    """nn.MultiheadAttention whose parts can be observed and converted."""

    _FLOAT_MODULE = nn.MultiheadAttention

    def __init__(
        self,
        embed_dim: int,
        num_heads: int,
        dropout: float = 0.0,
        bias: bool = True,
        add_bias_kv: bool = False,
        add_zero_attn: bool = False,
        kdim: int | None = None,
        vdim: int | None = None,
        batch_first: bool = False,
        device: object = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        options = {"device": device, "dtype": dtype}
        super().__init__(
            embed_dim,
            num_heads,
            dropout,
            bias,
            add_bias_kv,
            add_zero_attn,
            kdim,
            vdim,
            batch_first,
            **options,
        )
        self.linear_Q = nn.Linear(self.embed_dim, self.embed_dim, bias, **options)
        self.linear_K = nn.Linear(self.kdim, self.embed_dim, bias, **options)
        self.linear_V = nn.Linear(self.vdim, self.embed_dim, bias, **options)
        self.out_proj = nn.Linear(self.embed_dim, self.embed_dim, bias, **options)
        self.q_scaling_product = _functional()
        from torch.ao.quantization.stubs import DeQuantStub, QuantStub

        self.quant_attn_output, self.quant_attn_output_weights = QuantStub(), QuantStub()
        self.dequant_q, self.dequant_k, self.dequant_v = (DeQuantStub() for _ in range(3))

    def _get_name(self) -> str:
        return "QuantizableMultiheadAttention"

    def take_extra(self, name: str, value: Tensor) -> None:
        """Replaces the extra key or value by a quantized one."""
        scale, zero = _grid_of(value)
        self._parameters.pop(name, None)
        setattr(self, name, torch.quantize_per_tensor(value.detach(), scale, zero, torch.quint8))

    @classmethod
    def from_float(cls, other: nn.Module) -> nn.Module:
        """The same attention as nn.MultiheadAttention, observed."""
        from torch.ao.quantization.quantize import prepare, prepare_qat

        if type(other) is not cls._FLOAT_MODULE:
            raise AssertionError(f"expected {cls._FLOAT_MODULE}, got {type(other)}")
        if not hasattr(other, "qconfig"):
            raise AssertionError("The float module must have 'qconfig'")
        made = cls(
            other.embed_dim,
            other.num_heads,
            other.dropout,
            other.in_proj_bias is not None,
            other.bias_k is not None,
            other.add_zero_attn,
            other.kdim,
            other.vdim,
            other.batch_first,
        )
        made.bias_k, made.bias_v, made.qconfig = other.bias_k, other.bias_v, other.qconfig
        made._take_projections(other)
        if other.training:
            made.train()
            return prepare_qat(made, inplace=True)
        made.eval()
        return prepare(made, inplace=True)

    def _take_projections(self, other: nn.Module) -> None:
        self.out_proj.weight, self.out_proj.bias = other.out_proj.weight, other.out_proj.bias
        if other._qkv_same_embed_dim:
            weights = other.in_proj_weight.chunk(3)
        else:
            weights = (other.q_proj_weight, other.k_proj_weight, other.v_proj_weight)
        biases = (None,) * 3 if other.in_proj_bias is None else other.in_proj_bias.chunk(3)
        layers = (self.linear_Q, self.linear_K, self.linear_V)
        for layer, weight, bias in zip(layers, weights, biases, strict=True):
            layer.weight = nn.Parameter(weight.detach())
            layer.bias = None if bias is None else nn.Parameter(bias.detach())

    @torch.jit.unused
    def dequantize(self) -> nn.Module:
        """A float attention with the weights that the quantized parts stand for."""
        extra = self.bias_k is not None
        made = self._FLOAT_MODULE(
            self.embed_dim,
            self.num_heads,
            self.dropout,
            self.linear_Q._weight_bias()[1] is not None,
            extra,
            self.add_zero_attn,
            self.kdim,
            self.vdim,
            self.batch_first,
        )
        if extra:
            made.bias_k = nn.Parameter(self.bias_k.dequantize())
            made.bias_v = nn.Parameter(self.bias_v.dequantize())
        pairs = [part._weight_bias() for part in (self.linear_Q, self.linear_K, self.linear_V)]
        weight, bias = self.out_proj._weight_bias()
        made.out_proj.weight = nn.Parameter(weight.dequantize())
        if bias is not None:
            made.out_proj.bias = nn.Parameter(bias)
            made.in_proj_bias = nn.Parameter(torch.cat([b for _, b in pairs]))
        weights = [w.dequantize() for w, _ in pairs]
        if made._qkv_same_embed_dim:
            made.in_proj_weight = nn.Parameter(torch.cat(weights))
        else:
            for name, value in zip("qkv", weights, strict=True):
                setattr(made, f"{name}_proj_weight", nn.Parameter(value))
        return made

    @classmethod
    def from_observed(cls, other: nn.Module) -> nn.Module:
        """The quantized form of an observed attention."""
        from torch.ao.nn.quantized import MultiheadAttention as Quantized

        return Quantized.from_observed(other)

    def forward(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        key_padding_mask: Tensor | None = None,
        need_weights: bool = True,
        attn_mask: Tensor | None = None,
        average_attn_weights: bool = True,
        is_causal: bool = False,
    ) -> tuple[Tensor, Tensor | None]:
        if attn_mask is not None and is_causal:
            raise AssertionError("Only allow causal mask or attn_mask")
        if is_causal:
            raise AssertionError("causal mask not supported by AO MHA module")
        if self.batch_first:
            query, key, value = (t.transpose(0, 1) for t in (query, key, value))
        q = self.q_scaling_product.mul_scalar(self.linear_Q(query), 1 / math.sqrt(self.head_dim))
        k, v = self.linear_K(key), self.linear_V(value)
        q, k, v = self._heads(q), self._with_extra(k, self.bias_k), self._with_extra(v, self.bias_v)
        # Products of activations, the softmax and the masks are computed in float.
        q, k, v = self.dequant_q(q), self.dequant_k(k), self.dequant_v(v)
        batch, length = query.shape[1], query.shape[0]
        mask = self._mask(attn_mask, key_padding_mask, batch, k.shape[1])
        scores = torch.bmm(q, k.transpose(1, 2))
        if mask is not None:
            scores = scores + mask
        weights = nn.functional.dropout(scores.softmax(-1), self.dropout, self.training)
        mixed = torch.bmm(weights, v).transpose(0, 1).reshape(length, batch, self.embed_dim)
        if self.batch_first:
            mixed = mixed.transpose(0, 1)
        result = self.out_proj(self.quant_attn_output(mixed))
        weights = self.quant_attn_output_weights(weights)
        if not need_weights:
            return result, None
        shown = weights.view(batch, self.num_heads, length, -1)
        return result, shown.mean(dim=1) if average_attn_weights else shown

    def _heads(self, t: Tensor) -> Tensor:
        """(length, batch, width) to (batch * heads, length, width of a head)."""
        rows = t.contiguous().view(t.shape[0], t.shape[1] * self.num_heads, self.head_dim)
        return rows.transpose(0, 1)

    def _with_extra(self, t: Tensor, bias: Tensor | None) -> Tensor:
        """The heads with one more key or value, and a zero one where wanted."""
        if bias is not None:
            t = _joined(t, bias.repeat(1, t.shape[1], 1))
        heads = self._heads(t)
        if self.add_zero_attn:
            zeros = torch.zeros(heads.shape[0], 1, heads.shape[2])
            turned = _joined(heads.transpose(0, 1), zeros.transpose(0, 1))
            heads = turned.transpose(0, 1)
        return heads

    def _mask(
        self, attn_mask: Tensor | None, padding: Tensor | None, batch: int, keys: int
    ) -> Tensor | None:
        """One additive mask of (batch * heads, 1 or length, keys)."""
        total = None
        if attn_mask is not None:
            total = _additive(attn_mask)
            total = total.unsqueeze(0) if total.dim() == 2 else total
            total = nn.functional.pad(total, (0, keys - total.shape[-1]))
        if padding is not None:
            cut = nn.functional.pad(_additive(padding), (0, keys - padding.shape[-1]))
            cut = cut.view(batch, 1, 1, keys).expand(-1, self.num_heads, -1, -1)
            cut = cut.reshape(batch * self.num_heads, 1, keys)
            total = cut if total is None else total + cut
        return total


def _additive(mask: Tensor) -> Tensor:
    if mask.dtype in (torch.bool, torch.uint8):
        return torch.zeros(mask.shape).masked_fill_(mask.bool(), -math.inf)
    return mask


def _joined(t: Tensor, extra: Tensor) -> Tensor:
    """t with further rows; on the grid of t where it is quantized."""
    if not t.is_quantized:
        return torch.cat([t, extra])
    values = extra.dequantize() if extra.is_quantized else extra
    return torch.quantize_per_tensor(
        torch.cat([t.dequantize(), values]), t.q_scale(), t.q_zero_point(), t.dtype
    )


def _grid_of(value: Tensor) -> tuple[float, int]:
    from torch.ao.quantization.observer import MinMaxObserver

    watcher = MinMaxObserver(dtype=torch.quint8)
    watcher(value.detach())
    scale, zero = watcher.calculate_qparams()
    return float(scale), int(zero)
