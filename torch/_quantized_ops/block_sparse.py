"""Products with quantized weights that have zeros in blocks. The packed form is a
tuple of tensors in an object of its own, so that the sizes of the blocks stay with the weight; the
product is the dense one, which gives the same numbers."""

import torch
from torch import Tensor


class BlockWeight:
    """A packed dense weight and the sizes of the blocks it was pruned in."""

    def __init__(self, weight: Tensor, bias: Tensor | None, rows: int, columns: int) -> None:
        if rows < 1 or columns < 1:
            raise RuntimeError(
                f"qlinear_prepack: expected positive block sizes, got {rows} x {columns}"
            )
        self.packed = torch.ops.quantized.linear_prepack(weight, bias)
        self.sizes = [rows, columns]

    def __reduce__(self) -> tuple[object, ...]:
        weight, bias = torch.ops.quantized.linear_unpack(self.packed)
        return BlockWeight, (weight, bias, *self.sizes)

    def __deepcopy__(self, memo: dict) -> "BlockWeight":
        return self.__reduce__()[0](*self.__reduce__()[1])


def qlinear_prepack(
    W: Tensor, B: Tensor | None, out_features_block_size: int, in_features_block_size: int
) -> BlockWeight:
    """Packs a weight."""
    return BlockWeight(W, B, out_features_block_size, in_features_block_size)


def qlinear_unpack(W_prepack: BlockWeight) -> tuple[Tensor, Tensor | None, list[int]]:
    """Weight, bias and the sizes of the blocks."""
    return *torch.ops.quantized.linear_unpack(W_prepack.packed), W_prepack.sizes


def qlinear(X: Tensor, W_prepack: BlockWeight, Y_scale_i: float, Y_zero_point_i: int) -> Tensor:
    """From levels to levels."""
    return torch.ops.quantized.linear(X, W_prepack.packed, Y_scale_i, Y_zero_point_i)


def qlinear_relu(
    X: Tensor, W_prepack: BlockWeight, Y_scale_i: float, Y_zero_point_i: int
) -> Tensor:
    """The same with an activation."""
    return torch.ops.quantized.linear_relu(X, W_prepack.packed, Y_scale_i, Y_zero_point_i)


def qlinear_dynamic(X: Tensor, W_prepack: BlockWeight) -> Tensor:
    """On float tensors."""
    return torch.ops.quantized.linear_dynamic(X, W_prepack.packed, True)


def qlinear_relu_dynamic(X: Tensor, W_prepack: BlockWeight) -> Tensor:
    """The same with an activation."""
    return torch.ops.quantized.linear_relu_dynamic(X, W_prepack.packed, True)
