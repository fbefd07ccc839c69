"""Matrices of which two in every four neighbours of a row are zero. Kept are the other two, in
order, and their places, two bits each, four groups of four to a 16-bit number. Products put the
zeros back and run as dense ones: what is saved is memory. As in PyTorch, such tensors live on CUDA
devices."""

from __future__ import annotations

from typing import Any, ClassVar, NamedTuple

import torch

__all__ = [
    "SparseSemiStructuredTensor",
    "SparseSemiStructuredTensorCUSPARSELT",
    "SparseSemiStructuredTensorCUTLASS",
    "to_sparse_semi_structured",
]


class _Limits(NamedTuple):
    """The sizes that a dtype asks for: multiples of these, of the sparse and the dense factor."""

    sparse_min_rows: int
    sparse_min_cols: int
    dense_min_rows: int
    dense_min_cols: int


def _compress(dense: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """The kept values and their places. A group with fewer than two values keeps zeros too."""
    rows, columns = dense.shape
    groups = dense.reshape(rows, columns // 4, 4)
    taken = groups != 0
    if bool((taken.sum(-1) > 2).any()):
        raise RuntimeError("expected at most two values other than zero in each group of four")
    # Kept ones first, in the order of their places; the sort is stable.
    places = torch.sort((~taken).to(torch.int8), dim=-1, stable=True).indices[..., :2]
    places = torch.sort(places, dim=-1).values
    values = torch.gather(groups, -1, places).reshape(rows, columns // 2)
    codes = (places[..., 0] | (places[..., 1] << 2)).reshape(rows, columns // 16, 4)
    shifts = torch.tensor([0, 4, 8, 12], device=dense.device)
    meta = (codes << shifts).sum(-1)
    return values, torch.where(meta > 32767, meta - 65536, meta).to(torch.int16)


def _expand(values: torch.Tensor, meta: torch.Tensor) -> torch.Tensor:
    rows, half = values.shape
    shifts = torch.tensor([0, 4, 8, 12], device=values.device)
    codes = ((meta.to(torch.int64).unsqueeze(-1) >> shifts) & 15).reshape(rows, half // 2)
    places = torch.stack((codes & 3, codes >> 2), dim=-1)
    groups = torch.zeros(rows, half // 2, 4, dtype=values.dtype, device=values.device)
    return groups.scatter(-1, places, values.reshape(rows, half // 2, 2)).reshape(rows, half * 2)


class SparseSemiStructuredTensor(torch.Tensor):
    """See the module. `packed` and `meta` hold the matrix, `packed_t` and `meta_t` its transpose;
    one of the pairs is enough."""

    BACKEND: ClassVar[str]
    _DEFAULT_ALG_ID: ClassVar[int] = 0
    _DTYPE_SHAPE_CONSTRAINTS: ClassVar[dict[torch.dtype, _Limits]] = {}
    _FORCE_CUTLASS: ClassVar[bool] = False
    _FUSE_TRANSPOSE: ClassVar[bool] = False
    _PROTOTYPE_WARNING_SHOWN: ClassVar[bool] = False
    _PARTS = ("packed", "meta", "packed_t", "meta_t", "compressed_swizzled_bitmask")

    packed: torch.Tensor | None
    meta: torch.Tensor | None
    packed_t: torch.Tensor | None
    meta_t: torch.Tensor | None
    compressed_swizzled_bitmask: torch.Tensor | None

    @staticmethod
    def __new__(
        cls: type,
        shape: torch.Size,
        packed: torch.Tensor | None,
        meta: torch.Tensor | None,
        packed_t: torch.Tensor | None,
        meta_t: torch.Tensor | None,
        compressed_swizzled_bitmask: torch.Tensor | None,
        fuse_transpose_cusparselt: bool = False,
        alg_id_cusparselt: int = 0,
        requires_grad: bool = False,
    ) -> SparseSemiStructuredTensor:
        kept = packed if packed is not None else packed_t
        if kept is None:
            raise ValueError("At least one of packed or packed_t must be provided")
        self = torch.Tensor._make_wrapper_subclass(
            cls, shape, dtype=kept.dtype, device=kept.device, requires_grad=requires_grad
        )
        self.packed, self.meta = packed, meta
        self.packed_t, self.meta_t = packed_t, meta_t
        self.compressed_swizzled_bitmask = compressed_swizzled_bitmask
        self.fuse_transpose_cusparselt = fuse_transpose_cusparselt
        self.alg_id_cusparselt = alg_id_cusparselt
        return self

    def __repr__(self, *, tensor_contents: object = None) -> str:
        return f"{type(self).__name__}(shape={self.shape})"

    def __tensor_flatten__(self) -> tuple[list[str], tuple[torch.Size, bool, int, bool]]:
        parts = [name for name in self._PARTS if getattr(self, name) is not None]
        rest = (self.shape, self.fuse_transpose_cusparselt, self.alg_id_cusparselt)
        return parts, (*rest, self.requires_grad)

    @classmethod
    def __tensor_unflatten__(
        cls, inner_tensors: dict, tensor_meta: tuple, outer_size: object, outer_stride: object
    ) -> SparseSemiStructuredTensor:
        shape, fuse, algorithm, requires_grad = tensor_meta
        parts = [inner_tensors.get(name) for name in cls._PARTS]
        return cls(shape, *parts, fuse, algorithm, requires_grad)

    __torch_function__ = torch._C._disabled_torch_function_impl

    @classmethod
    def __torch_dispatch__(
        cls, func: Any, types: object, args: tuple = (), kwargs: dict | None = None
    ) -> Any:
        own: dict[object, Any] = {
            torch.ops.aten.detach.default: lambda t: t._with_parts(t),
            torch.ops.aten.t.default: lambda t: t._transposed(),
            torch.ops.aten.transpose.int: lambda t, a, b: t._transposed() if a != b else t,
        }
        if func in own:
            return own[func](*args)
        dense_args, dense_kwargs = torch.utils._pytree.tree_map_only(
            SparseSemiStructuredTensor, lambda t: t.to_dense(), (args, kwargs or {})
        )
        return func(*dense_args, **dense_kwargs)

    def _with_parts(self, source: SparseSemiStructuredTensor) -> SparseSemiStructuredTensor:
        parts = [getattr(source, name) for name in self._PARTS]
        return type(self)(
            self.shape, *parts, self.fuse_transpose_cusparselt, self.alg_id_cusparselt
        )

    def _transposed(self) -> SparseSemiStructuredTensor:
        rows, columns = self.shape
        mask = self.compressed_swizzled_bitmask
        return type(self)(
            torch.Size((columns, rows)),
            self.packed_t,
            self.meta_t,
            self.packed,
            self.meta,
            None if mask is None else mask.t(),
            self.fuse_transpose_cusparselt,
            self.alg_id_cusparselt,
        )

    def to_dense(self) -> torch.Tensor:
        """The matrix with its zeros."""
        if self.packed is not None and self.meta is not None:
            return _expand(self.packed, self.meta)
        return _expand(self.packed_t, self.meta_t).t()

    @classmethod
    def _validate_device_dim_dtype_shape(cls, original_tensor: torch.Tensor) -> None:
        """Raises unless the matrix can be held."""
        device, shape = original_tensor.device, tuple(original_tensor.shape)
        if not original_tensor.is_cuda:
            raise RuntimeError(
                f"Error original_tensor.device= {device} is not supported! "
                "Only CUDA tensors are currently supported."
            )
        if original_tensor.dim() != 2:
            raise RuntimeError(
                f"Error original_tensor.dim = {original_tensor.dim()} is not supported! "
                "Only 2d tensors are currently supported."
            )
        limits = cls._DTYPE_SHAPE_CONSTRAINTS.get(original_tensor.dtype)
        if limits is None:
            raise RuntimeError(
                f"Error original_tensor.dtype {original_tensor.dtype} is not a supported dtype "
                f"for {cls.__name__}"
            )
        least = limits.sparse_min_rows, limits.sparse_min_cols
        if any(n < m or n % m for n, m in zip(shape, least, strict=True)):
            raise RuntimeError(
                f"Error original_tensor.shape {shape} is not supported! "
                f"Both dimensions must be larger or equal than and a multiple of {least}"
            )

    @classmethod
    def from_dense(
        cls, original_tensor: torch.Tensor, alg_id: int = 0
    ) -> SparseSemiStructuredTensor:
        """The matrix in this form; its zeros must be in place."""
        cls._validate_device_dim_dtype_shape(original_tensor)
        packed, meta = _compress(original_tensor)
        return cls(original_tensor.shape, packed, meta, None, None, None, alg_id_cusparselt=alg_id)

    def _mm(self, B: torch.Tensor, *, bias: torch.Tensor | None = None, **kwargs: object):
        """self @ B, plus a bias for each row."""
        if B.dim() != 2:
            raise NotImplementedError(f"{type(self).__name__} @ a tensor of {B.dim()} dimensions")
        product = torch.mm(self.to_dense(), B)
        return product if bias is None else product + bias.unsqueeze(1)


_HALF = (torch.float16, torch.bfloat16)


class SparseSemiStructuredTensorCUTLASS(SparseSemiStructuredTensor):
    """With the sizes that CUTLASS takes."""

    BACKEND = "cutlass"
    _DTYPE_SHAPE_CONSTRAINTS: ClassVar = {
        torch.int8: _Limits(16, 128, 16, 16),
        **dict.fromkeys(_HALF, _Limits(32, 64, 8, 8)),
        torch.float32: _Limits(32, 32, 4, 4),
    }


class SparseSemiStructuredTensorCUSPARSELT(SparseSemiStructuredTensor):
    """With the sizes that cuSPARSELt takes."""

    BACKEND = "cusparselt"
    _DTYPE_SHAPE_CONSTRAINTS: ClassVar = {
        torch.float8_e4m3fn: _Limits(32, 32, 16, 16),
        torch.int8: _Limits(32, 32, 16, 16),
        **dict.fromkeys(_HALF, _Limits(16, 16, 8, 8)),
    }


def to_sparse_semi_structured(
    original_tensor: torch.Tensor, transposed: bool = False, alg_id: int = 0
) -> SparseSemiStructuredTensor:
    """A dense matrix with two zeros in every four neighbours of a row, in this form."""
    if transposed:
        raise DeprecationWarning(
            "Setting transpose from to_sparse_semi_structured is deprecated and will be removed "
            "in a future release. SparseSemiStructuredTensor only support contiguous input tensors."
        )
    forced = SparseSemiStructuredTensor._FORCE_CUTLASS
    kind = SparseSemiStructuredTensorCUTLASS if forced else SparseSemiStructuredTensorCUSPARSELT
    return kind.from_dense(original_tensor, alg_id)
