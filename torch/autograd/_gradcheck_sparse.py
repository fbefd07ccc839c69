"""Sparse inputs of gradcheck. A function of a sparse tensor is checked as one of a strided tensor:
of its values (`masked=True`: elements that are not stored have no gradient), or of all its
elements, each of which is then stored."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch

__all__ = ["over_strided"]


def _with_values(like: torch.Tensor, values: torch.Tensor) -> torch.Tensor:
    """A tensor with the indices of a sparse one; differentiable in the values."""
    if like.layout is torch.sparse_coo:
        return torch.sparse_coo_tensor(
            like._indices(), values, like.shape, is_coalesced=like.is_coalesced()
        )
    rows = like.layout in (torch.sparse_csr, torch.sparse_bsr)
    starts = like.crow_indices() if rows else like.ccol_indices()
    others = like.col_indices() if rows else like.row_indices()
    return torch.sparse_compressed_tensor(starts, others, values, like.shape, layout=like.layout)


def _full_pattern(like: torch.Tensor) -> torch.Tensor:
    """A sparse tensor of the layout of another in which every element is stored."""
    ones = torch.ones(like.shape, dtype=like.dtype)
    if like.layout is torch.sparse_coo:
        return ones.to_sparse(like.sparse_dim())
    blocks = None
    if like.layout in (torch.sparse_bsr, torch.sparse_bsc):
        batch = like.dim() - 2 - like.dense_dim()
        blocks = tuple(like.values().shape[batch + 1 : batch + 3])
    return ones.to_sparse(layout=like.layout, blocksize=blocks, dense_dim=like.dense_dim())


def _values_of(t: torch.Tensor) -> torch.Tensor:
    return t._values() if t.layout is torch.sparse_coo else t.values()


def _check_gradients_of(t: torch.Tensor) -> None:
    """Refuses gradients that split dimensions into sparse and dense ones in another way."""
    if not t.requires_grad or t.layout is not torch.sparse_coo:
        return
    split = (t.sparse_dim(), t.dense_dim())

    def check(grad: torch.Tensor | None) -> None:
        from torch.autograd.gradcheck import GradcheckError

        if grad is None or grad.layout is not torch.sparse_coo:
            return
        for what, wanted, got in zip(
            ("sparse_dim", "dense_dim"), split, (grad.sparse_dim(), grad.dense_dim()), strict=True
        ):
            if wanted != got:
                raise GradcheckError(
                    f"grad is sparse tensor, but has incorrect {what} {got}, expected {wanted}"
                )

    t.register_hook(check)


def over_strided(
    func: Callable[..., object], inputs: Sequence[object], masked: bool
) -> tuple[Callable[..., object], tuple[object, ...]]:
    """The function and inputs with strided tensors in place of sparse ones; those given where no
    input is sparse."""
    likes: dict[int, torch.Tensor] = {}
    given = list(inputs)
    for i, value in enumerate(inputs):
        if not isinstance(value, torch.Tensor) or value.layout is torch.strided:
            continue
        if value.layout is torch.jagged:
            continue
        like = value.detach() if masked else _full_pattern(value.detach())
        likes[i] = like
        source = like if masked else value.detach().sparse_mask(like)
        given[i] = _values_of(source).clone().requires_grad_(value.requires_grad)
    if not likes:
        return func, tuple(inputs)

    def over(*args: object) -> object:
        built = list(args)
        for i, like in likes.items():
            if isinstance(args[i], torch.Tensor):
                built[i] = _with_values(like, args[i])
                _check_gradients_of(built[i])
        return func(*built)

    return over, tuple(given)
