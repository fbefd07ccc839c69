"""Pruning by masks: sparsifiers choose the masks, schedulers how many zeros there are."""

from torch.ao.pruning._mappings import (
    get_dynamic_sparse_quantized_mapping,
    get_static_sparse_quantized_mapping,
)
from torch.ao.pruning.scheduler.base_scheduler import BaseScheduler
from torch.ao.pruning.scheduler.cubic_scheduler import CubicSL
from torch.ao.pruning.scheduler.lambda_scheduler import LambdaSL
from torch.ao.pruning.sparsifier.base_sparsifier import BaseSparsifier
from torch.ao.pruning.sparsifier.nearly_diagonal_sparsifier import NearlyDiagonalSparsifier
from torch.ao.pruning.sparsifier.utils import (
    FakeSparsity,
    fqn_to_module,
    get_arg_info_from_tensor_fqn,
    module_to_fqn,
)
from torch.ao.pruning.sparsifier.weight_norm_sparsifier import WeightNormSparsifier

__all__ = [
    "BaseScheduler",
    "BaseSparsifier",
    "CubicSL",
    "FakeSparsity",
    "LambdaSL",
    "NearlyDiagonalSparsifier",
    "WeightNormSparsifier",
    "fqn_to_module",
    "get_arg_info_from_tensor_fqn",
    "get_dynamic_sparse_quantized_mapping",
    "get_static_sparse_quantized_mapping",
    "module_to_fqn",
]
