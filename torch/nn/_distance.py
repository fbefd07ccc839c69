"""Distances and similarities of vectors, composed of operators."""

import torch
from torch.overrides import handle_torch_function, has_torch_function_variadic

__all__ = ["cosine_similarity", "pairwise_distance"]


def cosine_similarity(x1, x2, dim=1, eps=1e-8):
    """The cosine of the angle between vectors along dim; lengths count as eps at least."""
    if has_torch_function_variadic(x1, x2):
        return handle_torch_function(cosine_similarity, (x1, x2), x1, x2, dim=dim, eps=eps)
    dtype = torch.promote_types(x1.dtype, x2.dtype)
    if not (dtype.is_floating_point or dtype.is_complex):
        raise RuntimeError(
            f"expected common dtype to be floating point, yet common dtype is {dtype}"
        )
    x1, x2 = torch.broadcast_tensors(x1.to(dtype), x2.to(dtype))
    # Each vector is divided by its own length, so that the product of two lengths cannot overflow.
    lengths = (torch.linalg.vector_norm(x, 2, dim, keepdim=True) for x in (x1, x2))
    scales = [length.clamp_min(eps) for length in lengths]
    return ((x1 / scales[0]) * (x2 / scales[1])).sum(dim)


def pairwise_distance(x1, x2, p=2.0, eps=1e-6, keepdim=False):
    """The p-norm of x1 - x2 + eps along the last dimension."""
    if has_torch_function_variadic(x1, x2):
        return handle_torch_function(
            pairwise_distance, (x1, x2), x1, x2, p=p, eps=eps, keepdim=keepdim
        )
    return torch.norm(x1 - x2 + eps, p=p, dim=-1, keepdim=keepdim)
