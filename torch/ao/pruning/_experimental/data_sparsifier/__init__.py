"""Masks for tensors, parameters and embeddings given by name."""

from torch.ao.pruning._experimental.data_sparsifier.base_data_sparsifier import BaseDataSparsifier
from torch.ao.pruning._experimental.data_sparsifier.data_norm_sparsifier import DataNormSparsifier

__all__ = ["BaseDataSparsifier", "DataNormSparsifier"]
