"""Small tools of the distributions: turning numbers into tensors of one shape, moving between
probabilities and log odds, lower triangles as vectors, and properties computed once.
"""

from __future__ import annotations

from functools import update_wrapper
from numbers import Number
from typing import Any, Final

import torch
import torch.nn.functional as F
from torch.overrides import is_tensor_like

euler_constant: Final = 0.57721566490153286060

__all__ = [
    "broadcast_all",
    "logits_to_probs",
    "clamp_probs",
    "probs_to_logits",
    "lazy_property",
    "tril_matrix_to_vec",
    "vec_to_tril_matrix",
]


def broadcast_all(*values) -> Any:
    """The values as tensors of one shape. Numbers take the dtype and device of the first tensor,
    or the default dtype where there is none.
    """
    if not all(is_tensor_like(v) or isinstance(v, Number) for v in values):
        raise ValueError(
            "Input arguments must all be instances of Number, torch.Tensor or objects "
            "implementing __torch_function__."
        )
    if not all(is_tensor_like(v) for v in values):
        options = {"dtype": torch.get_default_dtype()}
        for value in values:
            if isinstance(value, torch.Tensor):
                options = {"dtype": value.dtype, "device": value.device}
                break
        values = [v if is_tensor_like(v) else torch.tensor(v, **options) for v in values]
    return torch.broadcast_tensors(*values)


def _plain(tensor):
    """The tensor below the transforms of torch.func that surround the call, batches included."""
    while torch._C._functorch.is_functorch_wrapped_tensor(tensor):
        tensor = torch._C._functorch.get_unwrapped(tensor)
    return tensor


def _holds(valid):
    """Whether all checks hold, over the batches of surrounding vmaps too."""
    return bool(_plain(valid).all())


def _standard_normal(shape, dtype, device):
    return torch.randn(shape, dtype=dtype, device=device)


def _sum_rightmost(value, dim):
    """The sum over the last `dim` dimensions."""
    if dim == 0:
        return value
    return value.reshape(value.shape[:-dim] + (-1,)).sum(-1)


def logits_to_probs(logits, is_binary: bool = False):
    """Probabilities of log odds (binary) or of unnormalised log probabilities in the last
    dimension.
    """
    return torch.sigmoid(logits) if is_binary else F.softmax(logits, dim=-1)


def clamp_probs(probs) -> Any:
    """Probabilities moved inside the open unit interval by one epsilon of their dtype."""
    eps = torch.finfo(probs.dtype).eps
    return probs.clamp(min=eps, max=1 - eps)


def probs_to_logits(probs, is_binary: bool = False):
    """Log odds (binary) or log probabilities; 0 and 1 are moved inside the interval first."""
    clamped = clamp_probs(probs)
    if is_binary:
        return torch.log(clamped) - torch.log1p(-clamped)
    return torch.log(clamped)


class lazy_property:
    """A property that is computed at its first use and then stored in the instance, where it
    hides this descriptor. It is computed with gradients enabled, since whoever asks first may be
    inside no_grad and whoever asks next may not.
    """

    def __init__(self, wrapped) -> None:
        self.wrapped = wrapped
        update_wrapper(self, wrapped)

    def __get__(self, instance, owner=None) -> Any:
        if instance is None:
            return _Documented(self.wrapped, doc=self.wrapped.__doc__)
        with torch.enable_grad():
            found = self.wrapped(instance)
        instance.__dict__[self.wrapped.__name__] = found
        return found


class _Documented(property, lazy_property):
    """What the class attribute of a lazy_property shows: a property, with its documentation, that
    is still known as lazy."""


def tril_matrix_to_vec(mat, diag=0) -> Any:
    """The lower triangle of square matrices, up to diagonal `diag`, row after row."""
    n = mat.shape[-1]
    if not -n <= diag < n:
        raise ValueError(f"diag ({diag}) provided is outside [{-n}, {n - 1}].")
    rows, columns = torch.tril_indices(n, n, offset=diag, device=mat.device)
    return mat[..., rows, columns]


def vec_to_tril_matrix(vec, diag=0) -> Any:
    """The square matrices whose lower triangle, up to diagonal `diag`, is the vector."""
    length = vec.shape[-1]
    # An n x n triangle up to `diag` has sum over rows i of clamp(i + 1 + diag, 0, n) elements.
    n = abs(diag)
    while (count := sum(min(max(i + 1 + diag, 0), n) for i in range(n))) < length:
        n += 1
    if count != length:
        raise ValueError(
            f"The size of last dimension is {length} which cannot be expressed as "
            "the lower triangular part of a square D x D matrix."
        )
    mat = vec.new_zeros(vec.shape[:-1] + (n, n))
    rows, columns = torch.tril_indices(n, n, offset=diag, device=vec.device)
    mat[..., rows, columns] = vec
    return mat
