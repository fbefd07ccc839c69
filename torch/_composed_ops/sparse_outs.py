"""Overloads that write a sparse result, or one made of sparse tensors, into a tensor of the caller.
The schema is that of the operator with the tensor to write added."""

import torch
from torch._composed_ops import sparse, state  # noqa: F401
from torch._composed_ops.registry import define_out

# Operators with an entry, their overload, and the name of the one that writes the result.
_OUTS = (
    ("_coalesce", "default", "out"),
    ("_coalesced", "default", "out"),
    ("_sparse_addmm", "default", "out"),
    ("_sparse_coo_tensor_with_dims", "default", "out"),
    ("_sparse_coo_tensor_with_dims_and_tensors", "default", "out"),
    ("_sparse_csr_prod", "dim_dtype", "dim_dtype_out"),
    ("_sparse_csr_sum", "dim_dtype", "dim_dtype_out"),
    ("_sparse_broadcast_to_copy", "default", "out"),
    ("_sparse_log_softmax", "default", "out"),
    ("_sparse_log_softmax_backward_data", "default", "out"),
    ("_sparse_softmax", "default", "out"),
    ("_sparse_softmax_backward_data", "default", "out"),
    ("_sparse_sparse_matmul", "default", "out"),
    ("_sparse_sum", "dim", "dim_out"),
    ("_sparse_sum_backward", "default", "out"),
    ("_spdiags", "default", "out"),
    ("_to_sparse", "default", "out"),
    ("_to_sparse", "sparse_dim", "sparse_dim_out"),
    ("_to_sparse_bsc", "default", "out"),
    ("_to_sparse_bsr", "default", "out"),
    ("_to_sparse_csc", "default", "out"),
    ("_to_sparse_csr", "default", "out"),
    ("copy_sparse_to_sparse", "default", "out"),
    ("hspmm", "default", "out"),
    ("resize_as_sparse", "default", "out"),
    ("sparse_coo_tensor", "size", "size_out"),
    ("sparse_mask", "default", "out"),
    ("sparse_resize", "default", "out"),
    ("sparse_resize_and_clear", "default", "out"),
    ("sparse_sampled_addmm", "default", "out"),
    ("sspaddmm", "default", "out"),
)


def _define_outs() -> None:
    for name, overload, out in _OUTS:
        operator = getattr(getattr(torch.ops.aten, name), overload)
        define_out(str(operator._schema).removeprefix("aten::"), out, operator)


_define_outs()
