"""Parts of sparse tensors as copies, and reductions and products of compressed matrices."""

import torch
from torch import Tensor
from torch._composed_ops.registry import composed, define, define_out

_PARTS = {
    "_indices": Tensor._indices,
    "_values": Tensor._values,
    "indices": Tensor.indices,
    "values": Tensor.values,
    "crow_indices": Tensor.crow_indices,
    "col_indices": Tensor.col_indices,
    "ccol_indices": Tensor.ccol_indices,
    "row_indices": Tensor.row_indices,
}


def _define_copies() -> None:
    for name, part in _PARTS.items():

        def copied(self: Tensor, part: object = part) -> Tensor:
            return part(self).clone()

        schema = f"{name}_copy(Tensor self) -> Tensor"
        define(schema, copied)
        define_out(schema, "out", copied)


_define_copies()


def _reduced(self: Tensor, dim: list[int], keepdim: bool, reduce: object) -> Tensor:
    """Over dims of a matrix in CSR layout. What is left out counts as absent, not as zero."""
    if not keepdim:
        raise RuntimeError("reduction operations on CSR tensors with keepdim=False is unsupported")
    dims = sorted({d % 2 for d in dim}) or [0, 1]
    rows = torch.repeat_interleave(
        torch.arange(self.size(0), device=self.device), self.crow_indices().diff()
    )
    index = {0: self.col_indices(), 1: rows}
    if dims == [0, 1]:
        keys, size = torch.zeros_like(rows), [1, 1]
    else:
        keys, size = index[dims[0]], [1 if d in dims else self.size(d) for d in (0, 1)]
    kept, places = torch.unique(keys, return_inverse=True)
    values = reduce(self.values(), places, kept.numel())
    at = torch.stack([torch.zeros_like(kept), kept] if dims[0] == 0 else [kept, kept * 0])
    return torch.sparse_coo_tensor(at, values, size).to_sparse_csr()


@composed(
    "_sparse_csr_sum.dim_dtype(Tensor self, int[1] dim, bool keepdim=False, *, "
    "ScalarType? dtype=None) -> Tensor"
)
def _sparse_csr_sum(
    self: Tensor, dim: list[int], keepdim: bool = False, *, dtype: torch.dtype | None = None
) -> Tensor:
    def total(values: Tensor, places: Tensor, count: int) -> Tensor:
        values = values if dtype is None else values.to(dtype)
        return values.new_zeros(count).index_add(0, places, values)

    return _reduced(self, dim, keepdim, total)


@composed(
    "_sparse_csr_prod.dim_dtype(Tensor self, int[1] dim, bool keepdim=False, *, "
    "ScalarType? dtype=None) -> Tensor"
)
def _sparse_csr_prod(
    self: Tensor, dim: list[int], keepdim: bool = False, *, dtype: torch.dtype | None = None
) -> Tensor:
    def product(values: Tensor, places: Tensor, count: int) -> Tensor:
        values = values if dtype is None else values.to(dtype)
        return values.new_ones(count).scatter_reduce(0, places, values, "prod")

    return _reduced(self, dim, keepdim, product)


@composed("_sparse_broadcast_to_copy(Tensor self, int[] size) -> Tensor")
def _sparse_broadcast_to_copy(self: Tensor, size: list[int]) -> Tensor:
    return torch._sparse_broadcast_to(self, size).clone()


@composed(
    "copy_sparse_to_sparse_(Tensor(a!) self, Tensor src, bool non_blocking=False) -> Tensor(a!)"
)
def copy_sparse_to_sparse_(self: Tensor, src: Tensor, non_blocking: bool = False) -> Tensor:
    return self.copy_(src, non_blocking)


@composed("copy_sparse_to_sparse(Tensor self, Tensor src, bool non_blocking=False) -> Tensor")
def copy_sparse_to_sparse(self: Tensor, src: Tensor, non_blocking: bool = False) -> Tensor:
    return self.clone().copy_(src, non_blocking)


@composed("_spsolve(Tensor A, Tensor B, *, bool left=True) -> Tensor")
def _spsolve(A: Tensor, B: Tensor, *, left: bool = True) -> Tensor:
    return torch.sparse.spsolve(A, B) if left else torch.sparse.spsolve(A.mT, B.mT).mT


@composed(
    "_sparse_mask_projection(Tensor self, Tensor mask, bool accumulate_matches=False) -> Tensor"
)
def _sparse_mask_projection(self: Tensor, mask: Tensor, accumulate_matches: bool = False) -> Tensor:
    """The values of `self` at the places of `mask`, zero where it has none."""
    return self.to_dense().sparse_mask(mask.coalesce())


define_out(
    "_sparse_mask_projection(Tensor self, Tensor mask, bool accumulate_matches=False) -> Tensor",
    "out",
    _sparse_mask_projection,
)
