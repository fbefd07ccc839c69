"""Types and sizes of torch as those of ONNX, and tensors of torch as constants of a model."""

from __future__ import annotations

import ctypes
from collections.abc import Iterable, Mapping
from typing import BinaryIO

import numpy as np
import onnx_ir as ir
from onnx_ir import tensor_adapters

import torch

__all__ = ["TorchTensor", "onnx_type", "shape_of"]

_REAL = {
    torch.complex32: torch.float16,
    torch.complex64: torch.float32,
    torch.complex128: torch.float64,
}


def onnx_type(dtype: torch.dtype) -> ir.DataType:
    """The element type of a tensor in a model; complex ones are pairs of real numbers."""
    return tensor_adapters.from_torch_dtype(_REAL.get(dtype, dtype))


def shape_of(
    sizes: Iterable[int | torch.SymInt],
    names: Mapping[str, str] | None = None,
    pairs: bool = False,
) -> ir.Shape:
    """Sizes; those that vary have names. `pairs` adds the dimension of complex numbers."""
    found: list[int | str] = []
    for size in sizes:
        if isinstance(size, int):
            found.append(size)
        else:
            text = str(size.node.expr)
            found.append((names or {}).get(text, text))
    if pairs:
        found.append(2)
    return ir.Shape(found)


class TorchTensor(ir.Tensor):
    """A tensor of torch as a constant. Its bytes are read when the model is written."""

    def __init__(
        self, tensor: torch.Tensor, name: str | None = None, doc_string: str | None = None
    ) -> None:
        super().__init__(
            tensor,
            dtype=tensor_adapters.from_torch_dtype(tensor.dtype),
            shape=ir.Shape(list(tensor.shape)),
            name=name,
            doc_string=doc_string,
        )

    def _memory(self) -> torch.Tensor:
        """The tensor on the CPU in one piece, also where a mode without data is on."""
        from torch._subclasses.fake_tensor import FakeTensor, unset_fake_temporarily

        with unset_fake_temporarily():
            raw = self.raw
            if isinstance(raw, FakeTensor) or raw.is_meta:
                raise TypeError(
                    f"Cannot take the data of {self.name!r}: it has none. Replace it with a "
                    "tensor that does, with ONNXProgram.apply_weights."
                )
            return raw.detach().cpu().contiguous().resolve_conj().resolve_neg()

    def numpy(self) -> np.ndarray:
        """The values; types that NumPy does not know as unsigned integers of their size."""
        from torch._subclasses.fake_tensor import unset_fake_temporarily

        tensor = self._memory()
        with unset_fake_temporarily():
            if tensor.dtype == torch.bfloat16:
                return tensor.view(torch.uint16).numpy()
            if tensor.dtype.is_floating_point and tensor.dtype.itemsize == 1:
                return tensor.view(torch.uint8).numpy()
            return tensor.numpy()

    def __array__(self, dtype: object = None, copy: bool | None = None) -> np.ndarray:
        made = self.numpy()
        return made if dtype is None else made.astype(dtype)

    def tobytes(self) -> bytes:
        """The bytes as a file holds them."""
        tensor = self._memory()
        size = tensor.element_size() * tensor.numel()
        return bytes((ctypes.c_ubyte * size).from_address(tensor.data_ptr())) if size else b""

    def tofile(self, file: BinaryIO) -> None:
        """Writes the bytes."""
        file.write(self.tobytes())
