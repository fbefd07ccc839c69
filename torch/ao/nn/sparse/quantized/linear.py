"""A quantized linear layer with zeros in blocks. The product is the dense one, which gives the same
numbers; the sizes of the blocks are kept because files hold them."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch._quantized_ops import block_sparse
from torch.ao.nn.quantized.modules.utils import (
    OnGrid,
    Stateful,
    _hide_packed_params_repr,
    _quantize_weight,
    default_weight_watcher,
    inner_layer,
    output_grid,
)

__all__ = ["Linear", "LinearPackedParams"]


class LinearPackedParams(Stateful):
    """A weight, its bias and the sizes of its blocks."""

    _version = 1

    def __init__(
        self, row_block_size: int = 1, col_block_size: int = 4, dtype: torch.dtype = torch.qint8
    ) -> None:
        super().__init__()
        if dtype is not torch.qint8:
            raise NotImplementedError("Linear prepacking only supports QINT8")
        self.dtype = dtype
        self.blocks = row_block_size, col_block_size
        weight = torch._empty_affine_quantized([1, 1], scale=1, zero_point=0, dtype=torch.qint8)
        self.set_weight_bias(weight, None, row_block_size, col_block_size)

    def _get_name(self) -> str:
        return "SparseQuantizedLinearPackedParams"

    def set_weight_bias(
        self,
        weight: Tensor,
        bias: Tensor | None,
        row_block_size: int | None,
        col_block_size: int | None,
    ) -> None:
        """Packs another weight."""
        if row_block_size is None or col_block_size is None:
            raise AssertionError("row_block_size and col_block_size must be given")
        self.blocks = row_block_size, col_block_size
        self._packed_params = block_sparse.qlinear_prepack(weight, bias, *self.blocks)

    def _weight_bias(self) -> tuple[Tensor, Tensor | None, int, int]:
        weight, bias, sizes = block_sparse.qlinear_unpack(self._packed_params)
        return weight, bias, sizes[0], sizes[1]

    def forward(self, x: Tensor) -> Tensor:
        return x

    def entries(self) -> dict[str, object]:
        return {"dtype": self.dtype, "_packed_params": self._weight_bias()}

    def take(self, name: str, value: object) -> None:
        if name == "dtype":
            self.dtype = value
        else:
            self.set_weight_bias(*value)

    def __repr__(self) -> str:
        return repr(self._weight_bias())


class Linear(OnGrid):
    """nn.Linear with zeros in blocks, from quantized inputs to quantized outputs."""

    _version = 1
    _FLOAT_MODULE = nn.Linear

    def __init__(
        self,
        in_features: int,
        out_features: int,
        row_block_size: int,
        col_block_size: int,
        bias: bool = True,
        dtype: torch.dtype = torch.qint8,
    ) -> None:
        super().__init__()
        if dtype is not torch.qint8:
            raise NotImplementedError(f"Sparse Quantized Linear supports QINT8 only, got {dtype}")
        self.in_features, self.out_features = in_features, out_features
        self.scale, self.zero_point = 1.0, 0
        weight = torch._empty_affine_quantized(
            [out_features, in_features], scale=1, zero_point=0, dtype=torch.qint8
        )
        self._packed_params = LinearPackedParams(row_block_size, col_block_size, dtype)
        zeros = torch.zeros(out_features) if bias else None
        self.set_weight_bias(weight.fill_(0.0), zeros, row_block_size, col_block_size)

    def _get_name(self) -> str:
        return "SparseQuantizedLinear"

    def extra_repr(self) -> str:
        return (
            f"in_features={self.in_features}, out_features={self.out_features}, "
            f"scale={self.scale}, zero_point={self.zero_point}, qscheme={self.weight().qscheme()}"
        )

    def __repr__(self) -> str:
        return _hide_packed_params_repr(self, LinearPackedParams)

    def forward(self, x: Tensor) -> Tensor:
        return block_sparse.qlinear(
            x, self._packed_params._packed_params, self.scale, self.zero_point
        )

    def set_weight_bias(
        self, w: Tensor, b: Tensor | None, row_block_size: int | None, col_block_size: int | None
    ) -> None:
        """Packs another weight."""
        self._packed_params.set_weight_bias(w, b, row_block_size, col_block_size)

    def _weight_bias(self) -> tuple[Tensor, Tensor | None, int, int]:
        return self._packed_params._weight_bias()

    def weight(self) -> Tensor:
        """The quantized weight."""
        return self._weight_bias()[0]

    def bias(self) -> Tensor | None:
        """The float bias."""
        return self._weight_bias()[1]

    @classmethod
    def _packed(cls, mod: nn.Module) -> nn.Module:
        """A layer of this class with the weight of a float one, on the grid of its observer."""
        if not hasattr(mod, "sparse_params"):
            raise AssertionError(
                "Expecting the Linear to have `sparse_params`. Make sure you have provided "
                "arguments in the `sparsifier.squash_mask(params_to_save=('sparse_block_shape',))` "
                "method."
            )
        rows, columns = mod.sparse_params.get("sparse_block_shape")
        layer = inner_layer(mod)
        qconfig = getattr(mod, "qconfig", None)
        watcher = default_weight_watcher() if qconfig is None else qconfig.weight()
        weight = layer.weight.detach().float()
        watcher(weight)
        if watcher.dtype is not torch.qint8:
            raise AssertionError("Weight observer must have dtype torch.qint8")
        bias = None if layer.bias is None else layer.bias.detach().float()
        made = cls(layer.in_features, layer.out_features, rows, columns)
        made.set_weight_bias(_quantize_weight(weight, watcher), bias, rows, columns)
        return made

    @classmethod
    def from_float(cls, mod: nn.Module, use_precomputed_fake_quant: bool = False) -> nn.Module:
        """The quantized form of an observed layer with a squashed mask."""
        if type(mod) is not cls._FLOAT_MODULE:
            raise AssertionError(f"{cls.__name__}.from_float only works for nn.Linear")
        made = cls._packed(mod)
        made.scale, made.zero_point = output_grid(mod)
        return made
