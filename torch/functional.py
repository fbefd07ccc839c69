"""Functions of torch that are written in Python: flexible signatures and results over native
operators."""

from __future__ import annotations

from typing import Any

import torch
from torch import _C, _VF
from torch._tensor import _override

__all__ = [
    "atleast_1d",
    "atleast_2d",
    "atleast_3d",
    "broadcast_shapes",
    "broadcast_tensors",
    "cartesian_prod",
    "block_diag",
    "cdist",
    "chain_matmul",
    "einsum",
    "istft",
    "lu",
    "norm",
    "meshgrid",
    "split",
    "stft",
    "tensordot",
    "unique",
    "unique_consecutive",
    "unravel_index",
]


_overridden = _C._has_torch_function


# ---- shapes --------------------------------------------------------------------------------------
# -------------


def broadcast_tensors(*tensors) -> tuple[torch.Tensor, ...]:
    """The tensors expanded to their common shape, as views."""
    if _overridden(tensors):
        return _override(broadcast_tensors, tensors, *tensors)
    return _VF.broadcast_tensors(tensors)


def broadcast_shapes(*shapes) -> torch.Size:
    """The shape that tensors of these shapes broadcast to."""
    result = []
    for position, shape in enumerate(shapes):
        dims = [shape] if isinstance(shape, (int, torch.SymInt)) else list(shape)
        result = [1] * (len(dims) - len(result)) + result
        for k in range(-1, -len(dims) - 1, -1):
            length = dims[k]
            if length < 0:
                raise ValueError("Attempting to broadcast a dimension with negative length!")
            if length == 1 or result[k] == length:
                continue
            if result[k] != 1:
                raise RuntimeError(
                    f"Attempting to broadcast a dimension of length {length} at {k}! "
                    "Mismatching argument at "
                    f"index {position} had {tuple(dims)}; but expected shape should be "
                    f"broadcastable to {result}"
                )
            result[k] = length
    return torch.Size(result)


def split(tensor, split_size_or_sections, dim=0) -> tuple[torch.Tensor, ...]:
    """Views of consecutive parts along dim: each of one size (the last may be smaller), or of the
    sizes listed."""
    if _overridden((tensor,)):
        return torch.overrides.redirect(split, locals())
    if isinstance(split_size_or_sections, (int, torch.SymInt)):
        return _VF.split(tensor, split_size_or_sections, dim)
    return _VF.split_with_sizes(tensor, split_size_or_sections, dim)


def _as_sequence(tensors):
    """The arguments of f(a, b, ...) or of f([a, b, ...]) as a tuple."""
    if len(tensors) == 1 and isinstance(tensors[0], (list, tuple)):
        return tuple(tensors[0])
    return tensors


def meshgrid(*tensors, indexing=None) -> tuple[torch.Tensor, ...]:
    """Grids of coordinates from vectors. indexing: "ij" (the default) for matrix order, "xy" for
    plot order."""
    tensors = _as_sequence(tensors)
    if _overridden(tensors):
        return _override(meshgrid, tensors, *tensors, indexing=indexing)
    kwargs = {} if indexing is None else {"indexing": indexing}
    return _VF.meshgrid(tensors, **kwargs)


def atleast_1d(*tensors) -> torch.Tensor | tuple[torch.Tensor, ...]:
    """Scalars as vectors of one element; everything else as it is."""
    if _overridden(tensors):
        return _override(atleast_1d, tensors, *tensors)
    return _VF.atleast_1d(tensors[0] if len(tensors) == 1 else tensors)


def atleast_2d(*tensors) -> torch.Tensor | tuple[torch.Tensor, ...]:
    """Scalars and vectors as matrices; everything else as it is."""
    if _overridden(tensors):
        return _override(atleast_2d, tensors, *tensors)
    return _VF.atleast_2d(tensors[0] if len(tensors) == 1 else tensors)


def atleast_3d(*tensors) -> torch.Tensor | tuple[torch.Tensor, ...]:
    """Tensors of fewer than three dimensions with dimensions added; everything else as it is."""
    if _overridden(tensors):
        return _override(atleast_3d, tensors, *tensors)
    return _VF.atleast_3d(tensors[0] if len(tensors) == 1 else tensors)


def cartesian_prod(*tensors) -> torch.Tensor:
    """All combinations of the elements of vectors, one per row."""
    if _overridden(tensors):
        return _override(cartesian_prod, tensors, *tensors)
    return _VF.cartesian_prod(tensors)


def block_diag(*tensors) -> torch.Tensor:
    """A matrix with the given matrices along its diagonal."""
    if _overridden(tensors):
        return _override(block_diag, tensors, *tensors)
    return _VF.block_diag(tensors)


def nonzero(input, *, out=None, as_tuple=False) -> Any:
    """Positions of elements that are not zero: a row for each, or a tensor for each dimension."""
    if _overridden((input,)):
        return torch.overrides.redirect(nonzero, locals())
    if not isinstance(as_tuple, bool):
        raise TypeError(
            f"nonzero(): argument 'as_tuple' must be bool, not {type(as_tuple).__name__}"
        )
    if as_tuple:
        if out is not None:
            raise RuntimeError("nonzero does not support the out kwarg when as_tuple is True")
        return _VF.nonzero(input.unsqueeze(0) if input.dim() == 0 else input).unbind(1)
    return _VF.nonzero(input) if out is None else _VF.nonzero(input, out=out)


nonzero.__module__ = "torch"


def unravel_index(indices, shape) -> tuple[torch.Tensor, ...]:
    """The coordinates, one tensor per dimension, of positions in a flattened array of `shape`."""
    if _overridden((indices,)):
        return _override(unravel_index, (indices,), indices, shape=shape)
    if not isinstance(indices, torch.Tensor):
        raise TypeError(f"expected 'indices' to be a Tensor, but got {type(indices)}")
    if indices.is_complex() or indices.is_floating_point() or indices.dtype is torch.bool:
        raise TypeError(f"expected 'indices' to be integer dtype, but got {indices.dtype}")
    indices = indices.to(torch.int64)
    if isinstance(shape, (int, torch.SymInt)):
        shape = (shape,)
    elif not isinstance(shape, (list, tuple)):
        raise TypeError(f"expected 'shape' to be int or sequence of ints, but got {type(shape)}")
    for length in shape:
        if not isinstance(length, (int, torch.SymInt)):
            raise TypeError(
                f"expected 'shape' sequence to only contain ints, but got {type(length)}"
            )
        if length < 0:
            raise ValueError(f"'shape' cannot have negative values, but got {tuple(shape)}")
    below = [1]
    for length in reversed(shape):
        below.insert(0, below[0] * length)
    # Nothing to divide by in the last dimension.
    rows = [indices.div(step, rounding_mode="floor") for step in below[1:-1]] + [indices]
    coordinates = [row % length for row, length in zip(rows, shape, strict=False)]
    # Parts of one tensor, as PyTorch's are.
    return torch.stack(coordinates, -1).unbind(-1) if coordinates else ()


# ---- products
# -------------------------------------------------------------------------------------------------


def _sublist_equation(args):
    """Translates einsum(a, [0, 1], b, [1, 2], [0, 2]) into an equation and its operands."""

    def letters(sublist) -> str:
        if not isinstance(sublist, (list, tuple, range)):
            raise TypeError(f"einsum(): subscripts must be a list, not {type(sublist).__name__}")
        return "".join("..." if item is Ellipsis else _letter(item) for item in sublist)

    def _letter(number):
        if 0 <= number < 26:
            return chr(ord("A") + number)
        if 26 <= number < 52:
            return chr(ord("a") + number - 26)
        raise ValueError(
            "einsum(): subscript in subscript list is not within the valid range [0, 52)"
        )

    equation = ",".join(letters(sublist) for sublist in args[1::2])
    if len(args) % 2 == 1:
        equation = ",".join(letters(sublist) for sublist in args[1:-1:2]) + "->" + letters(args[-1])
        return equation, args[:-1:2]
    return equation, args[::2]


def einsum(equation=None, *operands) -> torch.Tensor:
    """Sums products of elements by Einstein's convention: einsum("bij,bjk->bik", a, b)."""
    if not operands:
        raise ValueError(
            "einsum(): must specify the equation string and at least one operand, or at least "
            "one operand "
            "and its subscripts list"
        )
    if isinstance(equation, torch.Tensor):
        equation, operands = _sublist_equation((equation, *operands))
    else:
        operands = _as_sequence(operands)
    if _overridden(operands):
        return _override(einsum, operands, equation, *operands)
    return _VF.einsum(equation, tuple(operands))


def tensordot(a, b, dims=2, out=None) -> torch.Tensor:
    """Contracts dimensions of two tensors: the last `dims` of a with the first of b, or those in
    two lists."""
    if _overridden((a, b)):
        return torch.overrides.redirect(tensordot, locals())
    if isinstance(dims, torch.Tensor):
        dims = dims.tolist() if dims.numel() > 1 else int(dims.item())
    if isinstance(dims, (tuple, list)):
        if len(dims) != 2:
            raise RuntimeError(
                f"tensordot expects dims to be two lists of dimensions, got {len(dims)}"
            )
        dims_a, dims_b = ([d] if isinstance(d, int) else list(d) for d in dims)
    else:
        if dims < 0:
            raise RuntimeError(f"tensordot expects dims >= 0, but got dims={dims}")
        if dims > min(a.dim(), b.dim()):
            raise RuntimeError(
                f"tensordot expects dims < ndim_a or ndim_b, but got dims={dims}\n"
                f"  for tensors of {a.dim()} and {b.dim()} dimensions"
            )
        dims_a, dims_b = list(range(-dims, 0)), list(range(dims))
    if out is None:
        return _VF.tensordot(a, b, dims_a, dims_b)
    return _VF.tensordot(a, b, dims_a, dims_b, out=out)


def chain_matmul(*matrices, out=None) -> torch.Tensor:
    """The product of matrices in the cheapest order (the same as torch.linalg.multi_dot)."""
    matrices = _as_sequence(matrices)
    if _overridden(matrices):
        return _override(chain_matmul, matrices, *matrices)
    return _VF.chain_matmul(matrices) if out is None else _VF.chain_matmul(matrices, out=out)


_CDIST_MODES = {
    "use_mm_for_euclid_dist_if_necessary": None,
    "use_mm_for_euclid_dist": 1,
    "donot_use_mm_for_euclid_dist": 2,
}


def cdist(x1, x2, p=2.0, compute_mode="use_mm_for_euclid_dist_if_necessary") -> torch.Tensor:
    """The p-norm distances between all rows of two batches of vectors."""
    if _overridden((x1, x2)):
        return torch.overrides.redirect(cdist, locals())
    if compute_mode not in _CDIST_MODES:
        raise ValueError(f"{compute_mode} is not a valid value for compute_mode")
    return _VF.cdist(x1, x2, p, _CDIST_MODES[compute_mode])


def norm(input, p="fro", dim=None, keepdim=False, out=None, dtype=None) -> torch.Tensor:
    """A vector or matrix norm (kept for old programs: torch.linalg.vector_norm and matrix_norm say
    what they do)."""
    if _overridden((input,)):
        return torch.overrides.redirect(norm, locals())
    if dtype is not None and p == "fro" and input.layout is not torch.strided:
        raise ValueError("dtype argument is not supported in frobenius norm")
    dims = [dim] if isinstance(dim, int) else dim
    kwargs = {"dtype": dtype}
    if out is not None:
        kwargs["out"] = out
    if p is None:
        p = 2.0
    if isinstance(p, str) and p != "fro":
        dims = tuple(range(input.dim())) if dims is None else tuple(dims)
        return torch.linalg.matrix_norm(input, p, dims, keepdim, **kwargs)
    return torch.linalg.vector_norm(input, 2 if p == "fro" else p, dims, keepdim, **kwargs)


# ---- sets ----------------------------------------------------------------------------------------
# -------------


def _unique_results(
    output, inverse, counts, return_inverse, return_counts
) -> torch.Tensor | tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    wanted = [output]
    if return_inverse:
        wanted.append(inverse)
    if return_counts:
        wanted.append(counts)
    return wanted[0] if len(wanted) == 1 else tuple(wanted)


def unique(
    input, sorted=True, return_inverse=False, return_counts=False, dim=None
) -> torch.Tensor | tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """The distinct elements (or slices along dim), with where each went and how often it occurred
    if asked."""
    if _overridden((input,)):
        return torch.overrides.redirect(unique, locals())
    if dim is not None:
        results = _VF.unique_dim(input, dim, sorted, return_inverse, return_counts)
    else:
        results = torch._unique2(input, sorted, return_inverse, return_counts)
    return _unique_results(*results, return_inverse, return_counts)


def unique_consecutive(
    input, return_inverse=False, return_counts=False, dim=None
) -> torch.Tensor | tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """The elements (or slices along dim) that differ from the one before."""
    if _overridden((input,)):
        return torch.overrides.redirect(unique_consecutive, locals())
    results = _VF.unique_consecutive(input, return_inverse, return_counts, dim)
    return _unique_results(*results, return_inverse, return_counts)


# ---- spectra and factorisations
# -------------------------------------------------------------------------------


def _padded_ends(signal, count, mode) -> torch.Tensor:
    """A signal, or a batch of them, continued on both sides; reflection asks for three
    dimensions."""
    missing = max(3 - signal.dim(), 0)
    whole = signal.reshape((1,) * missing + tuple(signal.shape))
    padded = torch.nn.functional.pad(whole, [count, count], mode)
    return padded.reshape(padded.shape[missing:])


def stft(
    input,
    n_fft,
    hop_length=None,
    win_length=None,
    window=None,
    center=True,
    pad_mode="reflect",
    normalized=False,
    onesided=None,
    return_complex=None,
    align_to_window=None,
) -> torch.Tensor:
    """The short-time Fourier transform of signals."""
    if _overridden((input,)):
        return torch.overrides.redirect(stft, locals())
    if center and align_to_window is not None:
        raise RuntimeError("stft align_to_window should only be set when center = false")
    signal = _padded_ends(input, n_fft // 2, pad_mode) if center else input
    frames = (n_fft, hop_length, win_length, window)
    return _VF.stft(signal, *frames, normalized, onesided, return_complex, align_to_window)


istft = _VF.istft


def lu(A, pivot=True, get_infos=False, out=None) -> Any:
    """The LU factorisation in packed form (kept for old programs: see torch.linalg.lu_factor)."""
    if _overridden((A,)):
        return torch.overrides.redirect(lu, locals())
    factors, pivots, infos = torch._lu_with_info(A, pivot=pivot, check_errors=not get_infos)
    results = (factors, pivots, infos) if get_infos else (factors, pivots)
    if out is None:
        return results
    if not isinstance(out, (tuple, list)):
        raise TypeError(f"argument 'out' must be tuple of Tensors, not {type(out).__name__}")
    if len(out) != len(results):
        raise TypeError(f"expected tuple of {len(results)} elements but got {len(out)}")
    for target, result in zip(out, results, strict=True):
        target.resize_as_(result).copy_(result)
    return out


def __getattr__(name):
    """Programs also import `F` and `Tensor` from here; both need more than this module does."""
    if name == "F":
        return torch.nn.functional
    if name == "Tensor":
        return torch.Tensor
    raise AttributeError(f"module 'torch.functional' has no attribute '{name}'")
