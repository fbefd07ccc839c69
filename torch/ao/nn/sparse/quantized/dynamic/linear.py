"""A linear layer with a sparse quantized weight on float tensors."""

from __future__ import annotations

from torch import Tensor, nn
from torch._quantized_ops import block_sparse
from torch.ao.nn.sparse.quantized import linear

__all__ = ["Linear"]


class Linear(linear.Linear):
    """nn.Linear with zeros in blocks and a grid of the input found at each call."""

    def _get_name(self) -> str:
        return "SparseQuantizedDynamicLinear"

    def forward(self, x: Tensor) -> Tensor:
        return block_sparse.qlinear_dynamic(x, self._packed_params._packed_params)

    @classmethod
    def from_float(cls, mod: nn.Module, use_precomputed_fake_quant: bool = False) -> nn.Module:
        """The dynamic form of a float layer with a squashed mask."""
        from torch.ao.nn.intrinsic import LinearReLU

        if type(mod) not in (nn.Linear, LinearReLU):
            raise AssertionError(f"{cls.__name__}.from_float only works for nn.Linear")
        return cls._packed(mod)
