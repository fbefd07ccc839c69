"""Tables of embeddings whose rows have levels of 8 or 4 bits."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.ao.nn.quantized.modules.utils import (
    Stateful,
    _hide_packed_params_repr,
    _quantize_weight,
)

__all__ = ["Embedding", "EmbeddingBag", "EmbeddingPackedParams"]

_TABLES = (torch.quint8, torch.quint4x2)


class EmbeddingPackedParams(Stateful):
    """A packed table."""

    _version = 1

    def __init__(
        self, num_embeddings: int, embedding_dim: int, dtype: torch.dtype = torch.quint8
    ) -> None:
        super().__init__()
        if dtype not in _TABLES:
            raise NotImplementedError(
                f"Unsupported dtype on quantized embedding! Supports quint8 and quint4x2, "
                f"got {dtype}"
            )
        self.dtype = dtype
        ones = torch.ones(num_embeddings, dtype=torch.float)
        self.set_weight(
            torch._empty_per_channel_affine_quantized(
                [num_embeddings, embedding_dim],
                scales=ones,
                zero_points=torch.zeros(num_embeddings, dtype=torch.float),
                axis=0,
                dtype=dtype,
            )
        )

    def set_weight(self, weight: Tensor) -> None:
        """Packs another table."""
        self._packed_weight = torch.ops.quantized.embedding_bag_prepack(weight)

    def _weight(self) -> Tensor:
        return torch.ops.quantized.embedding_bag_unpack(self._packed_weight)

    def forward(self, x: Tensor) -> Tensor:
        return x

    def entries(self) -> dict[str, object]:
        return {"dtype": self.dtype, "_packed_weight": self._weight()}

    def take(self, name: str, value: object) -> None:
        if name == "dtype":
            self.dtype = value
        else:
            self.set_weight(value)

    def __repr__(self) -> str:
        return repr(self._weight())


class Embedding(nn.Module):
    """nn.Embedding with quantized rows."""

    _version = 1

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        padding_idx: int | None = None,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        sparse: bool = False,
        _weight: Tensor | None = None,
        dtype: torch.dtype = torch.quint8,
    ) -> None:
        super().__init__()
        self.num_embeddings, self.embedding_dim = num_embeddings, embedding_dim
        self.dtype = dtype
        self._packed_params = EmbeddingPackedParams(num_embeddings, embedding_dim, dtype)
        if _weight is not None:
            if list(_weight.shape) != [num_embeddings, embedding_dim]:
                raise AssertionError(
                    "Shape of weight does not match num_embeddings and embedding_dim"
                )
            self.set_weight(_weight)

    def forward(self, indices: Tensor) -> Tensor:
        packed = self._packed_params._packed_weight
        if self.dtype == torch.quint4x2:
            return torch.ops.quantized.embedding_4bit(packed, indices)
        return torch.ops.quantized.embedding_byte(packed, indices)

    def _get_name(self) -> str:
        return "QuantizedEmbedding"

    def __repr__(self) -> str:
        return _hide_packed_params_repr(self, EmbeddingPackedParams)

    def extra_repr(self) -> str:
        return (
            f"num_embeddings={self.num_embeddings}, embedding_dim={self.embedding_dim}, "
            f"dtype={self._packed_params.dtype}, qscheme={self.weight().qscheme()}"
        )

    def set_weight(self, w: Tensor) -> None:
        """Packs another table."""
        self._packed_params.set_weight(w)

    def weight(self) -> Tensor:
        """The quantized table."""
        return self._packed_params._weight()

    @classmethod
    def from_float(cls, mod: nn.Module, use_precomputed_fake_quant: bool = False) -> nn.Module:
        """The quantized form of a float table with a configuration, or of one that was trained."""
        if hasattr(mod, "weight_fake_quant"):
            watcher = mod.weight_fake_quant
        else:
            qconfig = getattr(mod, "qconfig", None)
            watcher = _default_watcher() if qconfig is None else qconfig.weight()
        _check_watcher(watcher)
        watcher(mod.weight.detach())
        made = cls(mod.num_embeddings, mod.embedding_dim, dtype=watcher.dtype)
        made._adopt(mod, _quantize_weight(mod.weight, watcher))
        return made

    def _adopt(self, mod: nn.Module, weight: Tensor) -> None:
        self.set_weight(weight)
        for name in ("mode", "include_last_offset"):
            if hasattr(mod, name) and hasattr(self, name):
                setattr(self, name, getattr(mod, name))

    @classmethod
    def from_reference(cls, ref_embedding: nn.Module) -> nn.Module:
        """With the rows of a reference table."""
        made = cls(
            ref_embedding.num_embeddings,
            ref_embedding.embedding_dim,
            dtype=ref_embedding.weight_dtype,
        )
        made._adopt(ref_embedding, ref_embedding.get_quantized_weight())
        return made


def _default_watcher() -> nn.Module:
    from torch.ao.quantization.observer import default_float_qparams_observer

    return default_float_qparams_observer()


def _check_watcher(watcher: nn.Module) -> None:
    if watcher.dtype not in _TABLES:
        raise AssertionError(
            f"The only supported dtype for nnq.Embedding is torch.quint8 and torch.quint4x2, "
            f"got {watcher.dtype}"
        )
    wanted = (torch.per_channel_affine_float_qparams,)
    if watcher.qscheme not in wanted:
        raise AssertionError(
            f"Embedding weights requires a qscheme of {wanted[0]}, got {watcher.qscheme}"
        )


class EmbeddingBag(Embedding):
    """nn.EmbeddingBag with quantized rows."""

    _version = 1

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        mode: str = "sum",
        sparse: bool = False,
        _weight: Tensor | None = None,
        include_last_offset: bool = False,
        dtype: torch.dtype = torch.quint8,
    ) -> None:
        super().__init__(num_embeddings, embedding_dim, _weight=_weight, dtype=dtype)
        self.mode = mode
        self.pruned_weights = False
        self.include_last_offset = include_last_offset

    def forward(
        self,
        indices: Tensor,
        offsets: Tensor | None = None,
        per_sample_weights: Tensor | None = None,
        compressed_indices_mapping: Tensor | None = None,
    ) -> Tensor:
        packed = self._packed_params._packed_weight
        pruned, last = self.pruned_weights, self.include_last_offset
        weights, mapping = per_sample_weights, compressed_indices_mapping
        if self.dtype == torch.quint4x2:
            return torch.ops.quantized.embedding_bag_4bit(
                packed, indices, offsets, False, 0, pruned, weights, mapping, last
            )
        return torch.ops.quantized.embedding_bag_byte(
            packed, indices, offsets, False, 0, pruned, weights, mapping, last
        )

    def _get_name(self) -> str:
        return "QuantizedEmbeddingBag"

    @classmethod
    def from_reference(cls, ref_embedding_bag: nn.Module) -> nn.Module:
        """With the rows of a reference table."""
        return super().from_reference(ref_embedding_bag)
