"""torch.sparse_coo_tensor and its like: what the operators of these names lack, which is to take
lists and numbers for tensors. Every index is looked at, whatever `check_invariants` says: a sparse
tensor with an index outside of its size must not come to be. What `check_invariants` adds is that
indices ascend: where a computation relies on that it looks for itself, and sorts."""

from __future__ import annotations

import torch

__all__ = [
    "sparse_bsc_tensor",
    "sparse_bsr_tensor",
    "sparse_compressed_tensor",
    "sparse_coo_tensor",
    "sparse_csc_tensor",
    "sparse_csr_tensor",
]


def _indices(given, values) -> torch.Tensor:
    """The indices as a tensor where the values are."""
    if isinstance(given, torch.Tensor):
        return given.to(values.device)
    return torch.as_tensor(given, device=values.device).to(torch.int64)


def _values(given, dtype, device) -> torch.Tensor:
    """The values as a tensor; a single number is a list of one."""
    if isinstance(given, torch.Tensor):
        found = given if dtype is None else given.to(dtype)
        found = found if device is None else found.to(device)
    else:
        found = torch.as_tensor(given, dtype=dtype, device=device)
    return found.reshape(1) if found.dim() == 0 else found


def _check_options(name, pin_memory) -> None:
    if pin_memory:
        raise NotImplementedError(f"torch.{name} is not implemented for page-locked memory")


def _finished(tensor, requires_grad) -> torch.Tensor:
    if requires_grad:
        tensor = tensor.detach().requires_grad_()
    return tensor


def _checks_order(check_invariants) -> bool:
    """Whether a tensor whose indices do not ascend as they should is an error."""
    if check_invariants is None:
        return torch.sparse.check_sparse_tensor_invariants.is_enabled()
    return check_invariants


def _is_size(given) -> bool:
    return isinstance(given, torch.Size) or (
        isinstance(given, (tuple, list)) and all(isinstance(n, int) for n in given)
    )


def sparse_coo_tensor(
    indices=None,
    values=None,
    size=None,
    *,
    dtype=None,
    layout=None,
    device=None,
    pin_memory=False,
    requires_grad=False,
    check_invariants=None,
    is_coalesced=None,
):
    """A tensor in coordinate layout, from the indices and values of its elements; from a size
    alone, one without elements.
    """
    _check_options("sparse_coo_tensor", pin_memory)
    if layout not in (None, torch.sparse_coo):
        raise RuntimeError(f"sparse_coo_tensor: expected layout torch.sparse_coo, got {layout}")
    if values is None:
        size = indices if size is None else size
        if not _is_size(size):
            raise TypeError(
                "sparse_coo_tensor(): expected (indices, values), (indices, values, size) or (size)"
            )
        made = torch.ops.aten.sparse_coo_tensor.size(list(size), dtype=dtype, device=device)
        return _finished(made, requires_grad)
    values = _values(values, dtype, device)
    indices = _indices(indices, values)
    if indices.is_floating_point():
        indices = indices.to(torch.int64)
    op = torch.ops.aten.sparse_coo_tensor
    if size is None:
        made = op.indices(indices, values, is_coalesced=is_coalesced)
    else:
        made = op.indices_size(indices, values, list(size), is_coalesced=is_coalesced)
    if is_coalesced and _checks_order(check_invariants):
        torch.ops.aten._validate_sparse_coo_tensor_args(indices, values, list(made.shape), True)
    return _finished(made, requires_grad)


def sparse_compressed_tensor(
    compressed_indices,
    plain_indices,
    values,
    size=None,
    *,
    dtype=None,
    layout=None,
    device=None,
    pin_memory=False,
    requires_grad=False,
    check_invariants=None,
) -> torch.Tensor:
    """A tensor in one of the compressed layouts: torch.sparse_csr, sparse_csc, sparse_bsr or
    sparse_bsc.
    """
    _check_options("sparse_compressed_tensor", pin_memory)
    values = _values(values, dtype, device)
    given = _indices(compressed_indices, values), _indices(plain_indices, values), values
    op = torch.ops.aten.sparse_compressed_tensor
    if size is None:
        made = op.comp_plain_value(*given, layout=layout)
    else:
        made = op.comp_plain_value_size(*given, list(size), layout=layout)
    if _checks_order(check_invariants):
        torch.ops.aten._validate_sparse_compressed_tensor_args(*given, list(made.shape), layout)
    return _finished(made, requires_grad)


def _of_layout(name, first, second):
    layout = getattr(torch, name)

    def make(compressed, plain, values, size=None, **options) -> torch.Tensor:
        options.setdefault("layout", layout)
        if options["layout"] is not layout:
            raise RuntimeError(f"{name}_tensor: expected layout {layout}, got {options['layout']}")
        return sparse_compressed_tensor(compressed, plain, values, size, **options)

    def by_name(*args, **kwargs) -> torch.Tensor:
        args = [*args, *(kwargs.pop(n) for n in (first, second)[len(args) :] if n in kwargs)]
        return make(*args, **kwargs)

    by_name.__name__ = by_name.__qualname__ = f"{name}_tensor"
    by_name.__doc__ = (
        f"A tensor of layout torch.{name} from {first}, {second} and values; its size is taken "
        "from them where it is not given."
    )
    return by_name


sparse_csr_tensor = _of_layout("sparse_csr", "crow_indices", "col_indices")
sparse_csc_tensor = _of_layout("sparse_csc", "ccol_indices", "row_indices")
sparse_bsr_tensor = _of_layout("sparse_bsr", "crow_indices", "col_indices")
sparse_bsc_tensor = _of_layout("sparse_bsc", "ccol_indices", "row_indices")


def _sparse_coo_tensor_unsafe(
    indices, values, size, dtype=None, device=None, requires_grad=False, is_coalesced=None
):
    """A COO tensor whose indices are looked at only when they are used."""
    if torch.sparse.check_sparse_tensor_invariants.is_enabled():
        return sparse_coo_tensor(
            indices, values, size, dtype=dtype, device=device, requires_grad=requires_grad,
            is_coalesced=is_coalesced,
        )  # fmt: skip
    values = _values(values, dtype, device)
    made = torch.ops.aten._sparse_coo_tensor_unsafe(
        _indices(indices, values), values, list(size), is_coalesced=is_coalesced
    )
    return _finished(made, requires_grad)


def _sparse_compressed_tensor_unsafe(
    compressed_indices, plain_indices, values, size, *, dtype=None, layout=None, device=None,
    requires_grad=False,
):  # fmt: skip
    """A compressed tensor whose indices are looked at only when they are used."""
    if torch.sparse.check_sparse_tensor_invariants.is_enabled():
        return sparse_compressed_tensor(
            compressed_indices, plain_indices, values, size, dtype=dtype, layout=layout,
            device=device, requires_grad=requires_grad,
        )  # fmt: skip
    values = _values(values, dtype, device)
    made = torch.ops.aten._sparse_compressed_tensor_unsafe(
        _indices(compressed_indices, values), _indices(plain_indices, values), values, list(size),
        layout=layout,
    )  # fmt: skip
    return _finished(made, requires_grad)


def _unsafe_of_layout(name):
    def make(compressed, plain, values, size, **options):
        layout = getattr(torch, name)
        return _sparse_compressed_tensor_unsafe(
            compressed, plain, values, size, layout=layout, **options
        )

    make.__name__ = make.__qualname__ = f"_{name}_tensor_unsafe"
    return make


_sparse_csr_tensor_unsafe = _unsafe_of_layout("sparse_csr")
_sparse_csc_tensor_unsafe = _unsafe_of_layout("sparse_csc")
_sparse_bsr_tensor_unsafe = _unsafe_of_layout("sparse_bsr")
_sparse_bsc_tensor_unsafe = _unsafe_of_layout("sparse_bsc")
