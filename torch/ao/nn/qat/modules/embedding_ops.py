"""Tables of embeddings that train with rows rounded to levels."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.ao.nn.qat.modules._rounded import Rounded, run_bag

__all__ = ["Embedding", "EmbeddingBag"]


class _Table(Rounded):
    def watch(self, qconfig: object, device: object = None, dtype: object = None) -> None:
        super().watch(qconfig, device, dtype)
        scheme = getattr(self.weight_fake_quant, "qscheme", None)
        if scheme is not torch.per_channel_affine_float_qparams:
            what = "Embedding Bag" if isinstance(self, nn.EmbeddingBag) else "Embedding"
            raise AssertionError(
                f"{what} weights requires a qscheme of torch.per_channel_affine_float_qparams "
                f"Got {scheme}"
            )


class Embedding(_Table, nn.Embedding):
    """nn.Embedding with rounded rows."""

    _FLOAT_MODULE = nn.Embedding

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        padding_idx: int | None = None,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        sparse: bool = False,
        *,
        device: object = None,
        dtype: torch.dtype | None = None,
        qconfig: object = None,
    ) -> None:
        nn.Embedding.__init__(
            self,
            num_embeddings,
            embedding_dim,
            padding_idx,
            max_norm,
            norm_type,
            scale_grad_by_freq,
            sparse,
            device=device,
            dtype=dtype,
        )
        self.watch(qconfig, device, dtype)

    def forward(self, input: Tensor) -> Tensor:
        return nn.functional.embedding(
            input,
            self.weight_fake_quant(self.weight),
            self.padding_idx,
            self.max_norm,
            self.norm_type,
            self.scale_grad_by_freq,
            self.sparse,
        )


class EmbeddingBag(_Table, nn.EmbeddingBag):
    """nn.EmbeddingBag with rounded rows."""

    _FLOAT_MODULE = nn.EmbeddingBag

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        mode: str = "mean",
        sparse: bool = False,
        *,
        include_last_offset: bool = False,
        padding_idx: int | None = None,
        qconfig: object = None,
        device: object = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        nn.EmbeddingBag.__init__(
            self,
            num_embeddings,
            embedding_dim,
            max_norm,
            norm_type,
            scale_grad_by_freq,
            mode,
            sparse,
            include_last_offset=include_last_offset,
            padding_idx=padding_idx,
            device=device,
            dtype=dtype,
        )
        self.watch(qconfig, device, dtype)

    def forward(
        self, input: Tensor, offsets: Tensor | None = None, per_sample_weights: Tensor | None = None
    ) -> Tensor:
        return run_bag(
            self, self.weight_fake_quant(self.weight), input, offsets, per_sample_weights
        )
