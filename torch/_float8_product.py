"""torch._scaled_mm: a product of matrices of 8-bit floating numbers that carry scales. Every such
number is exact in float32, and so is the product of two: the factors are widened, summed in float32
and scaled, and the result is rounded once to the dtype asked for."""

import torch

_FLOAT8 = {torch.float8_e4m3fn, torch.float8_e5m2, torch.float8_e4m3fnuz, torch.float8_e5m2fnuz}


def _is_single(scale: torch.Tensor) -> bool:
    return scale.dtype is torch.float32 and scale.numel() == 1


def _is_scale(scale: torch.Tensor, shape: tuple[int, int]) -> bool:
    return scale.dtype is torch.float32 and scale.shape == shape and scale.is_contiguous()


def _describe(tensor: torch.Tensor) -> str:
    return f"{str(tensor.dtype)[6:]}{list(tensor.shape)}"


def _check(a: torch.Tensor, b: torch.Tensor, scale_a: torch.Tensor, scale_b: torch.Tensor) -> None:
    for name, matrix in (("mat1", a), ("mat2", b)):
        if matrix.dim() != 2:
            raise RuntimeError(f"{name} must be a matrix, got {_describe(matrix)}")
    if a.shape[1] != b.shape[0]:
        sizes = f"{a.shape[0]}x{a.shape[1]} and {b.shape[0]}x{b.shape[1]}"
        raise RuntimeError(f"mat_a and mat_b shapes cannot be multiplied ({sizes})")
    whole = _is_single(scale_a) and _is_single(scale_b)
    by_row = _is_scale(scale_a, (a.shape[0], 1)) and _is_scale(scale_b, (1, b.shape[1]))
    if not ({a.dtype, b.dtype} <= _FLOAT8 and (whole or by_row)):
        raise ValueError(
            "Invalid scaling configuration. The matrices must be float8 and the scales float32: "
            "one number for each matrix, or contiguous, one for each row of the first "
            f"({a.shape[0]}x1) and each column of the second (1x{b.shape[1]}). Got matrices "
            f"{_describe(a)} and {_describe(b)}, scales {_describe(scale_a)} and "
            f"{_describe(scale_b)}"
        )


def _scaled_mm(
    self: torch.Tensor,
    mat2: torch.Tensor,
    scale_a: torch.Tensor,
    scale_b: torch.Tensor,
    bias: torch.Tensor | None = None,
    scale_result: torch.Tensor | None = None,
    out_dtype: torch.dtype | None = None,
    use_fast_accum: bool = False,
    *,
    out: torch.Tensor | None = None,
) -> torch.Tensor:
    """(scale_a * self) @ (scale_b * mat2) + bias in out_dtype, self's where it is not given. A
    result of 8 bits is divided by scale_result, the scale it is stored with."""
    _check(self, mat2, scale_a, scale_b)
    columns = mat2.shape[1]
    if bias is not None and bias.numel() != columns:
        raise RuntimeError(f"Bias must be size {columns} but got {bias.numel()}")
    dtype = self.dtype if out_dtype is None else out_dtype
    product = self.to(torch.float32) @ mat2.to(torch.float32)
    product = product * scale_a * scale_b
    if bias is not None:
        product = product + bias.to(torch.float32).reshape(columns)
    if scale_result is not None and dtype in _FLOAT8:
        product = product / scale_result
    if out is None:
        return product.to(dtype)
    return out.resize_(product.shape).copy_(product.to(dtype))
