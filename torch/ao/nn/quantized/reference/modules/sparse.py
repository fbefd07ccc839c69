"""Tables of embeddings whose rows lie on grids."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.ao.nn.qat.modules._rounded import run_bag
from torch.ao.nn.quantized.reference.modules.utils import ReferenceQuantizedModule

__all__ = ["Embedding", "EmbeddingBag"]


class Embedding(nn.Embedding, ReferenceQuantizedModule):
    """nn.Embedding with rounded rows."""

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
        weight_qparams: dict[str, object] | None = None,
    ) -> None:
        super().__init__(
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
        self._init_weight_qparams(weight_qparams, device)

    def _get_name(self) -> str:
        return "QuantizedEmbedding(Reference)"

    def forward(self, input: Tensor) -> Tensor:
        return nn.functional.embedding(
            input,
            self.get_weight(),
            self.padding_idx,
            self.max_norm,
            self.norm_type,
            self.scale_grad_by_freq,
            self.sparse,
        )

    @classmethod
    def from_float(cls, mod: nn.Embedding, weight_qparams: dict[str, object]) -> nn.Module:
        """With the rows of a float table."""
        made = cls(
            mod.num_embeddings,
            mod.embedding_dim,
            mod.padding_idx,
            mod.max_norm,
            mod.norm_type,
            mod.scale_grad_by_freq,
            mod.sparse,
            device=mod.weight.device,
            dtype=mod.weight.dtype,
            weight_qparams=weight_qparams,
        )
        made.weight = nn.Parameter(mod.weight.detach())
        return made


class EmbeddingBag(nn.EmbeddingBag, ReferenceQuantizedModule):
    """nn.EmbeddingBag with rounded rows."""

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
        device: object = None,
        dtype: torch.dtype | None = None,
        weight_qparams: dict[str, object] | None = None,
    ) -> None:
        super().__init__(
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
        self._init_weight_qparams(weight_qparams, device)

    def _get_name(self) -> str:
        return "QuantizedEmbeddingBag(Reference)"

    def forward(
        self, input: Tensor, offsets: Tensor | None = None, per_sample_weights: Tensor | None = None
    ) -> Tensor:
        return run_bag(self, self.get_weight(), input, offsets, per_sample_weights)

    @classmethod
    def from_float(
        cls,
        mod: nn.EmbeddingBag,
        weight_qparams: dict[str, object],
        use_precomputed_fake_quant: bool = False,
    ) -> nn.Module:
        """With the rows of a float table."""
        made = cls(
            mod.num_embeddings,
            mod.embedding_dim,
            mod.max_norm,
            mod.norm_type,
            mod.scale_grad_by_freq,
            mod.mode,
            mod.sparse,
            include_last_offset=mod.include_last_offset,
            padding_idx=mod.padding_idx,
            device=mod.weight.device,
            dtype=mod.weight.dtype,
            weight_qparams=weight_qparams,
        )
        made.weight = nn.Parameter(mod.weight.detach())
        return made
