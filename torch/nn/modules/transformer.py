"""The Transformer of "Attention Is All You Need": layers, stacks of them, and both together.
Layers are computed step by step always; there is no separate path for evaluation."""

from __future__ import annotations

import copy
import warnings

import torch
from torch.nn import functional as F
from torch.nn import init
from torch.nn.modules.activation import GELU, MultiheadAttention, ReLU
from torch.nn.modules.container import ModuleList
from torch.nn.modules.dropout import Dropout
from torch.nn.modules.linear import Linear
from torch.nn.modules.module import Module
from torch.nn.modules.normalization import LayerNorm

__all__ = [
    "Transformer",
    "TransformerEncoder",
    "TransformerDecoder",
    "TransformerEncoderLayer",
    "TransformerDecoderLayer",
]


def _generate_square_subsequent_mask(sz, device=None, dtype=None) -> torch.Tensor:
    """0 on and below the diagonal, -inf above: no position sees a later one."""
    mask = torch.full((sz, sz), float("-inf"), dtype=dtype, device=device)
    return torch.triu(mask, diagonal=1)


def _get_clones(module, n) -> ModuleList:
    return ModuleList([copy.deepcopy(module) for _ in range(n)])


def _get_activation_fn(activation):
    if activation == "relu":
        return F.relu
    if activation == "gelu":
        return F.gelu
    raise RuntimeError(f"activation should be relu/gelu, not {activation}")


def _get_seq_len(src, batch_first):
    if src.is_nested:
        return None
    if src.dim() == 2:
        return src.size(0)
    return src.size(1 if batch_first else 0)


def _detect_is_causal_mask(mask, is_causal=None, size=None) -> bool:
    """Whether the mask is the causal one: as said, or, when nothing is said, by comparing."""
    if is_causal is not None or mask is None:
        return is_causal is True
    size = size if size is not None else mask.size(-2)
    causal = _generate_square_subsequent_mask(size, mask.device, mask.dtype)
    return mask.size() == causal.size() and bool((mask == causal).all())


class _Layer(Module):
    """What encoder and decoder layers share. A layer is a row of steps, some attentions and last a
    feed-forward network; step n has norm{n} and dropout{n}. The parts are made in the order in
    which checkpoints list them and initial values are drawn."""

    __constants__ = ["norm_first"]
    _attentions = ("self_attn",)

    def __init__(
        self,
        d_model: int,
        nhead: int,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation=F.relu,
        layer_norm_eps=1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        device=None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        made = {"bias": bias, "device": device, "dtype": dtype}
        heads = {"dropout": dropout, "batch_first": batch_first, **made}
        steps = range(1, len(self._attentions) + 2)
        parts = {name: MultiheadAttention(d_model, nhead, **heads) for name in self._attentions}
        parts["linear1"] = Linear(d_model, dim_feedforward, **made)
        parts["dropout"] = Dropout(dropout)
        parts["linear2"] = Linear(dim_feedforward, d_model, **made)
        parts |= {f"norm{n}": LayerNorm(d_model, layer_norm_eps, **made) for n in steps}
        parts |= {f"dropout{n}": Dropout(dropout) for n in steps}
        for name, part in parts.items():
            setattr(self, name, part)
        self.norm_first = norm_first
        self._set_activation(activation)

    def _set_activation(self, activation) -> None:
        if isinstance(activation, str):
            activation = _get_activation_fn(activation)
        if activation is F.relu or isinstance(activation, ReLU):
            self.activation_relu_or_gelu = 1
        elif activation is F.gelu or isinstance(activation, GELU):
            self.activation_relu_or_gelu = 2
        else:
            self.activation_relu_or_gelu = 0
        self.activation = activation

    def _sa_block(self, x, attn_mask, key_padding_mask, is_causal=False):
        x = self.self_attn(
            x,
            x,
            x,
            attn_mask=attn_mask,
            key_padding_mask=key_padding_mask,
            need_weights=False,
            is_causal=is_causal,
        )[0]
        return self.dropout1(x)

    def _ff_block_of(self, x, dropout):
        return dropout(self.linear2(self.dropout(self.activation(self.linear1(x)))))

    def __setstate__(self, state) -> None:
        super().__setstate__(state)
        if not hasattr(self, "activation"):
            self.activation = F.relu


class TransformerEncoderLayer(_Layer):
    """Self-attention, then a feed-forward network; each with a residual and a norm."""

    def forward(
        self,
        src: torch.Tensor,
        src_mask: torch.Tensor | None = None,
        src_key_padding_mask: torch.Tensor | None = None,
        is_causal: bool = False,
    ) -> torch.Tensor:
        x = src
        if self.norm_first:
            x = x + self._sa_block(self.norm1(x), src_mask, src_key_padding_mask, is_causal)
            return x + self._ff_block(self.norm2(x))
        x = self.norm1(x + self._sa_block(x, src_mask, src_key_padding_mask, is_causal))
        return self.norm2(x + self._ff_block(x))

    def _ff_block(self, x):
        return self._ff_block_of(x, self.dropout2)


class TransformerDecoderLayer(_Layer):
    """Self-attention, attention to the encoder's output, then a feed-forward network."""

    _attentions = ("self_attn", "multihead_attn")

    def forward(
        self,
        tgt: torch.Tensor,
        memory: torch.Tensor,
        tgt_mask: torch.Tensor | None = None,
        memory_mask: torch.Tensor | None = None,
        tgt_key_padding_mask: torch.Tensor | None = None,
        memory_key_padding_mask: torch.Tensor | None = None,
        tgt_is_causal: bool = False,
        memory_is_causal: bool = False,
    ) -> torch.Tensor:
        x = tgt
        own = (tgt_mask, tgt_key_padding_mask, tgt_is_causal)
        other = (memory, memory_mask, memory_key_padding_mask, memory_is_causal)
        if self.norm_first:
            x = x + self._sa_block(self.norm1(x), *own)
            x = x + self._mha_block(self.norm2(x), *other)
            return x + self._ff_block(self.norm3(x))
        x = self.norm1(x + self._sa_block(x, *own))
        x = self.norm2(x + self._mha_block(x, *other))
        return self.norm3(x + self._ff_block(x))

    def _mha_block(self, x, mem, attn_mask, key_padding_mask, is_causal=False) -> torch.Tensor:
        x = self.multihead_attn(
            x,
            mem,
            mem,
            attn_mask=attn_mask,
            key_padding_mask=key_padding_mask,
            is_causal=is_causal,
            need_weights=False,
        )[0]
        return self.dropout2(x)

    def _ff_block(self, x) -> torch.Tensor:
        return self._ff_block_of(x, self.dropout3)


def _keeps_padding(layer):
    """Why copies of a layer have to compute padding in evaluation, or "": the others may leave it
    out, and their output is zero there. Programs depend on which layers do."""
    name = "encoder_layer"
    if not isinstance(layer, TransformerEncoderLayer):
        return f"{name} was not TransformerEncoderLayer"
    attention = layer.self_attn
    reasons = {
        f"{name}.norm_first was True": layer.norm_first,
        f"{name}.self_attn.batch_first was not True"
        "(use batch_first for better inference performance)": not attention.batch_first,
        f"{name}.self_attn was passed bias=False": attention.in_proj_bias is None,
        f"{name}.self_attn._qkv_same_embed_dim was not True": not attention._qkv_same_embed_dim,
        f"{name}.activation_relu_or_gelu was not True": not layer.activation_relu_or_gelu,
        f"{name}.norm1.eps was not equal to {name}.norm2.eps": layer.norm1.eps != layer.norm2.eps,
        f"{name}.self_attn.num_heads is odd": attention.num_heads % 2 == 1,
    }
    return next((reason for reason, holds in reasons.items() if holds), "")


class TransformerEncoder(Module):
    """Copies of an encoder layer, one after the other."""

    __constants__ = ["norm"]

    def __init__(
        self,
        encoder_layer,
        num_layers: int,
        norm=None,
        enable_nested_tensor: bool = True,
        mask_check: bool = True,
    ) -> None:
        super().__init__()
        self.layers = _get_clones(encoder_layer, num_layers)
        self.num_layers = num_layers
        self.norm = norm
        self.enable_nested_tensor = enable_nested_tensor
        reason = _keeps_padding(encoder_layer)
        self.use_nested_tensor = enable_nested_tensor and not reason
        if enable_nested_tensor and reason:
            warnings.warn(
                "enable_nested_tensor is True, but self.use_nested_tensor is False because "
                f"{reason}",
                stacklevel=2,
            )
        self.mask_check = mask_check

    def _packed(self, src, mask, padding_mask):
        """The input without its padding as a nested tensor, in evaluation without gradients; None
        where padding has to be computed."""
        if not self.use_nested_tensor or self.training or torch.is_grad_enabled():
            return None
        if padding_mask is None or mask is not None or src.is_nested:
            return None
        if src.dim() != 3 or padding_mask.dtype != torch.bool or src.device.type == "meta":
            return None
        from torch.nested._multihead import pack

        return pack(src, padding_mask)

    def forward(
        self,
        src: torch.Tensor,
        mask=None,
        src_key_padding_mask: torch.Tensor | None = None,
        is_causal=None,
    ) -> torch.Tensor:
        first = self.layers[0] if len(self.layers) else None
        batch_first = first is not None and first.self_attn.batch_first
        is_causal = _detect_is_causal_mask(mask, is_causal, _get_seq_len(src, batch_first))
        packed = self._packed(src, mask, src_key_padding_mask)
        output = src if packed is None else packed
        for layer in self.layers:
            output = layer(
                output,
                src_mask=mask,
                is_causal=is_causal,
                src_key_padding_mask=src_key_padding_mask if packed is None else None,
            )
        if packed is not None:
            output = output.to_padded_tensor(0.0, src.shape)
        return output if self.norm is None else self.norm(output)


class TransformerDecoder(Module):
    """Copies of a decoder layer, one after the other."""

    __constants__ = ["norm"]

    def __init__(self, decoder_layer, num_layers: int, norm=None) -> None:
        super().__init__()
        self.layers = _get_clones(decoder_layer, num_layers)
        self.num_layers = num_layers
        self.norm = norm

    def forward(
        self,
        tgt: torch.Tensor,
        memory: torch.Tensor,
        tgt_mask: torch.Tensor | None = None,
        memory_mask: torch.Tensor | None = None,
        tgt_key_padding_mask: torch.Tensor | None = None,
        memory_key_padding_mask: torch.Tensor | None = None,
        tgt_is_causal=None,
        memory_is_causal: bool = False,
    ) -> torch.Tensor:
        first = self.layers[0] if len(self.layers) else None
        batch_first = first is not None and first.self_attn.batch_first
        tgt_is_causal = _detect_is_causal_mask(
            tgt_mask, tgt_is_causal, _get_seq_len(tgt, batch_first)
        )
        output = tgt
        for layer in self.layers:
            output = layer(
                output,
                memory,
                tgt_mask=tgt_mask,
                memory_mask=memory_mask,
                tgt_key_padding_mask=tgt_key_padding_mask,
                memory_key_padding_mask=memory_key_padding_mask,
                tgt_is_causal=tgt_is_causal,
                memory_is_causal=memory_is_causal,
            )
        return output if self.norm is None else self.norm(output)


class Transformer(Module):
    """An encoder and a decoder that attends to its output."""

    def __init__(
        self,
        d_model: int = 512,
        nhead: int = 8,
        num_encoder_layers: int = 6,
        num_decoder_layers: int = 6,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation=F.relu,
        custom_encoder=None,
        custom_decoder=None,
        layer_norm_eps=1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        device=None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        made = {"bias": bias, "device": device, "dtype": dtype}
        settings = (dim_feedforward, dropout, activation, layer_norm_eps, batch_first, norm_first)

        def stack(of, layer, count) -> TransformerEncoder | TransformerDecoder:
            parts = layer(d_model, nhead, *settings, **made)
            return of(parts, count, LayerNorm(d_model, layer_norm_eps, **made))

        if custom_encoder is None:
            kinds = (TransformerEncoder, TransformerEncoderLayer)
            custom_encoder = stack(*kinds, num_encoder_layers)
        if custom_decoder is None:
            kinds = (TransformerDecoder, TransformerDecoderLayer)
            custom_decoder = stack(*kinds, num_decoder_layers)
        self.encoder, self.decoder = custom_encoder, custom_decoder
        self._reset_parameters()
        self.d_model = d_model
        self.nhead = nhead
        self.batch_first = batch_first

    def forward(
        self,
        src: torch.Tensor,
        tgt: torch.Tensor,
        src_mask: torch.Tensor | None = None,
        tgt_mask: torch.Tensor | None = None,
        memory_mask: torch.Tensor | None = None,
        src_key_padding_mask: torch.Tensor | None = None,
        tgt_key_padding_mask: torch.Tensor | None = None,
        memory_key_padding_mask: torch.Tensor | None = None,
        src_is_causal=None,
        tgt_is_causal=None,
        memory_is_causal: bool = False,
    ) -> torch.Tensor:
        given = locals()
        batch = 0 if self.batch_first else 1
        if src.dim() == tgt.dim() == 3 and src.size(batch) != tgt.size(batch):
            raise RuntimeError("the batch number of src and tgt must be equal")
        if {src.size(-1), tgt.size(-1)} != {self.d_model}:
            raise RuntimeError("the feature number of src and tgt must be equal to d_model")
        about_src = {"mask": src_mask, "is_causal": src_is_causal}
        memory = self.encoder(src, src_key_padding_mask=src_key_padding_mask, **about_src)
        # The decoder has the arguments about tgt and memory, under the same names.
        kinds = ("mask", "key_padding_mask", "is_causal")
        names = [f"{of}_{kind}" for of in ("tgt", "memory") for kind in kinds]
        return self.decoder(tgt, memory, **{name: given[name] for name in names})

    @staticmethod
    def generate_square_subsequent_mask(
        sz, device=None, dtype: torch.dtype | None = None
    ) -> torch.Tensor:
        """0 on and below the diagonal, -inf above: no position sees a later one."""
        return _generate_square_subsequent_mask(sz, device, dtype)

    def _reset_parameters(self) -> None:
        for param in self.parameters():
            if param.dim() > 1:
                init.xavier_uniform_(param)
