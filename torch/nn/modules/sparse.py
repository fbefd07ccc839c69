"""Tables looked up by index. The name of this module is PyTorch's, because pickled modules hold
it."""

from __future__ import annotations

import torch
from torch.nn import functional as F
from torch.nn import init
from torch.nn.modules.module import Module
from torch.nn.parameter import Parameter

__all__ = ["Embedding", "EmbeddingBag"]


class _Table(Module):
    """What both share: a table of vectors, one of which may stand for padding."""

    weight: torch.Tensor
    # The arguments besides sizes, values and place: attributes of the same names.
    _OPTIONS: tuple[str, ...] = ()
    _PADDING_MESSAGE = ""

    def _fill(self, options, weight, freeze, device, dtype) -> None:
        """Takes over the sizes and options among a constructor's arguments; makes the table, of
        given values or of new ones."""
        size = rows, columns = options["num_embeddings"], options["embedding_dim"]
        self.num_embeddings, self.embedding_dim = size
        for name in self._OPTIONS:
            setattr(self, name, options[name])
        if self.padding_idx is not None:
            if not -rows <= self.padding_idx < rows:
                raise AssertionError(self._PADDING_MESSAGE)
            self.padding_idx %= rows
        if weight is not None and tuple(weight.shape) != (rows, columns):
            raise AssertionError("Shape of weight does not match num_embeddings and embedding_dim")
        values = torch.empty(size, device=device, dtype=dtype) if weight is None else weight
        self.weight = Parameter(values, requires_grad=not freeze)
        if weight is None:
            self.reset_parameters()

    @classmethod
    def _holding(cls, embeddings, options, **more):
        """A module with given vectors; the options are found by name."""
        if embeddings.dim() != 2:
            raise AssertionError("Embeddings parameter is expected to be 2-dimensional")
        named = {name: options[name] for name in cls._OPTIONS}
        rows, columns = embeddings.shape
        return cls(num_embeddings=rows, embedding_dim=columns, _weight=embeddings, **named, **more)

    def reset_parameters(self) -> None:
        """Draws new initial values; the padding row stays 0."""
        init.normal_(self.weight)
        self._fill_padding_idx_with_zero()

    def _fill_padding_idx_with_zero(self) -> None:
        if self.padding_idx is not None:
            with torch.no_grad():
                self.weight[self.padding_idx].fill_(0)


class Embedding(_Table):
    """A table of vectors looked up by index."""

    _OPTIONS = ("padding_idx", "max_norm", "norm_type", "scale_grad_by_freq", "sparse")
    _PADDING_MESSAGE = "Padding_idx must be within num_embeddings"

    __constants__ = ["num_embeddings", "embedding_dim", *_OPTIONS]

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        padding_idx=None,
        max_norm=None,
        norm_type=2.0,
        scale_grad_by_freq: bool = False,
        sparse: bool = False,
        _weight=None,
        _freeze: bool = False,
        device=None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        self._fill(locals(), _weight, _freeze, device, dtype)

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        return F.embedding(
            input,
            self.weight,
            self.padding_idx,
            self.max_norm,
            self.norm_type,
            self.scale_grad_by_freq,
            self.sparse,
        )

    def extra_repr(self) -> str:
        parts = [f"{self.num_embeddings}, {self.embedding_dim}"]
        defaults = {"padding_idx": None, "max_norm": None, "norm_type": 2}
        parts += [
            f"{key}={getattr(self, key)}"
            for key, default in defaults.items()
            if getattr(self, key) != default
        ]
        parts += [f"{key}=True" for key in ("scale_grad_by_freq", "sparse") if getattr(self, key)]
        return ", ".join(parts)

    @classmethod
    def from_pretrained(
        cls,
        embeddings,
        freeze: bool = True,
        padding_idx=None,
        max_norm=None,
        norm_type=2.0,
        scale_grad_by_freq: bool = False,
        sparse: bool = False,
    ):
        """An embedding with given vectors."""
        return cls._holding(embeddings, locals(), _freeze=freeze)


class EmbeddingBag(_Table):
    """Sums, means or maxima of embeddings, without the embeddings themselves."""

    _OPTIONS = (
        "max_norm",
        "norm_type",
        "scale_grad_by_freq",
        "mode",
        "sparse",
        "include_last_offset",
        "padding_idx",
    )
    _PADDING_MESSAGE = "padding_idx must be within num_embeddings"

    __constants__ = ["num_embeddings", "embedding_dim", *_OPTIONS]

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        max_norm=None,
        norm_type=2.0,
        scale_grad_by_freq: bool = False,
        mode: str = "mean",
        sparse: bool = False,
        _weight=None,
        include_last_offset: bool = False,
        padding_idx=None,
        device=None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        self._fill(locals(), _weight, False, device, dtype)

    def forward(
        self,
        input: torch.Tensor,
        offsets: torch.Tensor | None = None,
        per_sample_weights: torch.Tensor | None = None,
    ) -> torch.Tensor:
        return F.embedding_bag(
            input,
            self.weight,
            offsets,
            self.max_norm,
            self.norm_type,
            self.scale_grad_by_freq,
            self.mode,
            self.sparse,
            per_sample_weights,
            self.include_last_offset,
            self.padding_idx,
        )

    def extra_repr(self) -> str:
        parts = [f"{self.num_embeddings}, {self.embedding_dim}"]
        if self.max_norm is not None:
            parts.append(f"max_norm={self.max_norm}")
        if self.norm_type != 2:
            parts.append(f"norm_type={self.norm_type}")
        if self.scale_grad_by_freq:
            parts.append(f"scale_grad_by_freq={self.scale_grad_by_freq}")
        parts.append(f"mode={self.mode!r}")
        if self.padding_idx is not None:
            parts.append(f"padding_idx={self.padding_idx}")
        return ", ".join(parts)

    @classmethod
    def from_pretrained(
        cls,
        embeddings,
        freeze: bool = True,
        max_norm=None,
        norm_type=2.0,
        scale_grad_by_freq: bool = False,
        mode: str = "mean",
        sparse: bool = False,
        include_last_offset: bool = False,
        padding_idx=None,
    ):
        """An embedding bag with given vectors."""
        bag = cls._holding(embeddings, locals())
        bag.weight.requires_grad = not freeze
        return bag
