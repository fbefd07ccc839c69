"""Sparse and quantized embeddings of a trained model."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from torch.ao.nn.quantized import Embedding, EmbeddingBag
from torch.ao.pruning._experimental.data_sparsifier.base_data_sparsifier import (
    EMBEDDING_TYPES,
    BaseDataSparsifier,
)
from torch.ao.pruning.sparsifier.utils import fqn_to_module, module_to_fqn
from torch.ao.quantization import convert, float_qparams_weight_only_qconfig, prepare

__all__ = ["post_training_sparse_quantize"]


def _fetch_all_embeddings(model: nn.Module) -> list[tuple[str, nn.Module]]:
    return [(name, part) for name, part in model.named_modules() if type(part) in EMBEDDING_TYPES]


def _sparsify(sparsifier: BaseDataSparsifier, name: str, data: Any) -> None:
    """Leaves zeros in the data, and nothing in the sparsifier."""
    attribute = "_".join(name.split("."))
    sparsifier.add_data(attribute, data)
    sparsifier.step()
    sparsifier.squash_mask(names=[attribute])
    sparsifier._delete_data(attribute)


def _quantize(model: nn.Module, embeddings: list[nn.Module]) -> None:
    for embedding in embeddings:
        embedding.qconfig = float_qparams_weight_only_qconfig
    prepare(model, inplace=True)
    convert(model, inplace=True)


def _sparsify_quantized(sparsifier: BaseDataSparsifier, name: str, module: nn.Module) -> None:
    """Zeros of a quantized embedding: of its values, which are then quantized on the same grid."""
    levels = module.weight()
    values = torch.dequantize(levels)
    _sparsify(sparsifier, name, values)
    module.set_weight(
        torch.quantize_per_channel(
            values,
            levels.q_per_channel_scales(),
            levels.q_per_channel_zero_points(),
            levels.q_per_channel_axis(),
            levels.dtype,
        )
    )


def post_training_sparse_quantize(
    model: nn.Module,
    data_sparsifier_class: type[BaseDataSparsifier],
    sparsify_first: bool = True,
    select_embeddings: list[nn.Module] | None = None,
    **sparse_config: Any,
) -> None:
    """Makes embeddings of a model, all or those given, sparse and quantized, in place."""
    if select_embeddings is None:
        chosen = _fetch_all_embeddings(model)
    else:
        for module in select_embeddings:
            if type(module) not in EMBEDDING_TYPES:
                raise AssertionError(f"expected an embedding, got {type(module).__name__}")
        chosen = [(module_to_fqn(model, module), module) for module in select_embeddings]
    sparsifier = data_sparsifier_class(**sparse_config)
    if sparsify_first:
        for name, module in chosen:
            _sparsify(sparsifier, name, module)
    _quantize(model, [module for _, module in chosen])
    if sparsify_first:
        return
    for name, _ in chosen:
        module = fqn_to_module(model, name)
        if not isinstance(module, (Embedding, EmbeddingBag)):
            raise AssertionError(f"{name} was not quantized")
        _sparsify_quantized(sparsifier, name, module)
