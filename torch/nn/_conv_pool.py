"""Convolutions, pooling and folding of torch.nn.functional: a file of their own as they are many.
Convolutions are the operators themselves; pooling adds defaults and the choice of indices."""

import torch
from torch import _C, _VF
from torch.overrides import has_torch_function_unary, redirect

__all__ = [
    "adaptive_avg_pool1d",
    "adaptive_avg_pool2d",
    "adaptive_avg_pool3d",
    "adaptive_max_pool1d",
    "adaptive_max_pool1d_with_indices",
    "adaptive_max_pool2d",
    "adaptive_max_pool2d_with_indices",
    "adaptive_max_pool3d",
    "adaptive_max_pool3d_with_indices",
    "avg_pool1d",
    "avg_pool2d",
    "avg_pool3d",
    "conv1d",
    "conv2d",
    "conv3d",
    "conv_tbc",
    "conv_transpose1d",
    "conv_transpose2d",
    "conv_transpose3d",
    "fold",
    "fractional_max_pool2d",
    "fractional_max_pool2d_with_indices",
    "fractional_max_pool3d",
    "fractional_max_pool3d_with_indices",
    "lp_pool1d",
    "lp_pool2d",
    "lp_pool3d",
    "max_pool1d",
    "max_pool1d_with_indices",
    "max_pool2d",
    "max_pool2d_with_indices",
    "max_pool3d",
    "max_pool3d_with_indices",
    "max_unpool1d",
    "max_unpool2d",
    "max_unpool3d",
    "unfold",
]

conv1d = _VF.conv1d
conv2d = _VF.conv2d
conv3d = _VF.conv3d
conv_tbc = _VF.conv_tbc
conv_transpose1d = _VF.conv_transpose1d
conv_transpose2d = _VF.conv_transpose2d
conv_transpose3d = _VF.conv_transpose3d


def _pair(value) -> tuple[int, int]:
    return (value, value) if isinstance(value, int) else tuple(value)


def unfold(input: torch.Tensor, kernel_size, dilation=1, padding=0, stride=1) -> torch.Tensor:
    """The sliding windows of images, as columns."""
    if has_torch_function_unary(input):
        return redirect(unfold, locals())
    return _C._nn.im2col(input, *map(_pair, (kernel_size, dilation, padding, stride)))


def fold(
    input: torch.Tensor, output_size, kernel_size, dilation=1, padding=0, stride=1
) -> torch.Tensor:
    """The sum of columns back into images."""
    if has_torch_function_unary(input):
        return redirect(fold, locals())
    windows = map(_pair, (output_size, kernel_size, dilation, padding, stride))
    return _C._nn.col2im(input, *windows)


# ---- maximum
# ----------------------------------------------------------------------------------------------


def _max_pool(dims):
    """The functions with and without indices over so many dimensions."""
    with_indices = _VF.max_pool1d_with_indices if dims == 1 else None
    if with_indices is None:
        with_indices = getattr(_C._nn, f"max_pool{dims}d_with_indices")
    plain = getattr(torch, f"max_pool{dims}d")

    def pool_with_indices(
        input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False,
        return_indices=False,
    ):  # fmt: skip
        if has_torch_function_unary(input):
            return redirect(pool_with_indices, locals())
        stride = [] if stride is None else stride
        return with_indices(input, kernel_size, stride, padding, dilation, ceil_mode)

    def pool(
        input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False,
        return_indices=False,
    ) -> torch.Tensor | tuple[torch.Tensor, torch.Tensor]:  # fmt: skip
        if has_torch_function_unary(input):
            return redirect(pool, locals())
        stride = [] if stride is None else stride
        function = with_indices if return_indices else plain
        return function(input, kernel_size, stride, padding, dilation, ceil_mode)

    pool.__name__ = pool.__qualname__ = f"max_pool{dims}d"
    pool.__doc__ = f"The largest element of each window over {dims} dimensions."
    pool_with_indices.__name__ = pool_with_indices.__qualname__ = f"max_pool{dims}d_with_indices"
    pool_with_indices.__doc__ = "The largest element of each window, and where it stands."
    return pool, pool_with_indices


max_pool1d, max_pool1d_with_indices = _max_pool(1)
max_pool2d, max_pool2d_with_indices = _max_pool(2)
max_pool3d, max_pool3d_with_indices = _max_pool(3)


# ---- mean
# ----------------------------------------------------------------------------------------------

avg_pool1d = _VF.avg_pool1d
avg_pool2d = _C._nn.avg_pool2d
avg_pool3d = _C._nn.avg_pool3d
adaptive_avg_pool1d = _VF.adaptive_avg_pool1d


def _adaptive_size(output_size, input) -> int | list[int]:
    """A number stands for all dimensions; None in a list keeps the input's size."""
    if isinstance(output_size, int):
        return output_size
    sizes = input.size()
    if len(sizes) <= len(output_size):
        raise ValueError(f"Input dimension should be at least {len(output_size) + 1}")
    kept = sizes[-len(output_size) :]
    return [k if asked is None else asked for asked, k in zip(output_size, kept, strict=False)]


def adaptive_avg_pool2d(input: torch.Tensor, output_size) -> torch.Tensor:
    """The means of as many windows as asked for."""
    if has_torch_function_unary(input):
        return redirect(adaptive_avg_pool2d, locals())
    return _C._nn.adaptive_avg_pool2d(input, _adaptive_size(output_size, input))


def adaptive_avg_pool3d(input: torch.Tensor, output_size) -> torch.Tensor:
    """The means of as many windows as asked for."""
    if has_torch_function_unary(input):
        return redirect(adaptive_avg_pool3d, locals())
    return _C._nn.adaptive_avg_pool3d(input, _adaptive_size(output_size, input))


def _adaptive_max(dims):
    native = _VF.adaptive_max_pool1d if dims == 1 else getattr(_C._nn, f"adaptive_max_pool{dims}d")

    def pool_with_indices(
        input, output_size, return_indices=False
    ) -> tuple[torch.Tensor, torch.Tensor]:
        if has_torch_function_unary(input):
            return redirect(pool_with_indices, locals())
        if dims > 1:
            output_size = _adaptive_size(output_size, input)
        return native(input, output_size)

    def pool(input, output_size, return_indices=False) -> torch.Tensor | tuple[torch.Tensor, ...]:
        if has_torch_function_unary(input):
            return redirect(pool, locals())
        found = pool_with_indices(input, output_size)
        return found if return_indices else found[0]

    name = f"adaptive_max_pool{dims}d"
    pool.__name__ = pool.__qualname__ = name
    pool.__doc__ = "The maxima of as many windows as asked for."
    pool_with_indices.__name__ = pool_with_indices.__qualname__ = name + "_with_indices"
    pool_with_indices.__doc__ = "The maxima of as many windows as asked for, and where they stand."
    return pool, pool_with_indices


adaptive_max_pool1d, adaptive_max_pool1d_with_indices = _adaptive_max(1)
adaptive_max_pool2d, adaptive_max_pool2d_with_indices = _adaptive_max(2)
adaptive_max_pool3d, adaptive_max_pool3d_with_indices = _adaptive_max(3)


# ---- power mean
# ----------------------------------------------------------------------------------------------


def _lp_pool(dims, mean, input, norm_type, kernel_size, stride, ceil_mode) -> torch.Tensor:
    """The p-norm of each window, from the mean of the p-th powers."""
    count = kernel_size**dims if isinstance(kernel_size, int) else 1
    if not isinstance(kernel_size, int):
        for size in kernel_size:
            count *= size
    powers = mean(input.pow(norm_type), kernel_size, [] if stride is None else stride, 0, ceil_mode)
    return (torch.sign(powers) * torch.relu(torch.abs(powers))).mul(count).pow(1.0 / norm_type)


def lp_pool1d(
    input: torch.Tensor, norm_type, kernel_size, stride=None, ceil_mode: bool = False
) -> torch.Tensor:
    """The p-norm of each window."""
    if has_torch_function_unary(input):
        return redirect(lp_pool1d, locals())
    return _lp_pool(1, avg_pool1d, input, norm_type, kernel_size, stride, ceil_mode)


def lp_pool2d(
    input: torch.Tensor, norm_type, kernel_size, stride=None, ceil_mode: bool = False
) -> torch.Tensor:
    """The p-norm of each window."""
    if has_torch_function_unary(input):
        return redirect(lp_pool2d, locals())
    return _lp_pool(2, avg_pool2d, input, norm_type, kernel_size, stride, ceil_mode)


def lp_pool3d(
    input: torch.Tensor, norm_type, kernel_size, stride=None, ceil_mode: bool = False
) -> torch.Tensor:
    """The p-norm of each window."""
    if has_torch_function_unary(input):
        return redirect(lp_pool3d, locals())
    return _lp_pool(3, avg_pool3d, input, norm_type, kernel_size, stride, ceil_mode)


# ---- unpooling
# ----------------------------------------------------------------------------------------------


def _unpooled_size(input, dims, kernel_size, stride, padding, output_size):
    """The spatial sizes of the result: those that the pooling would have had, or those asked for
    when the pooling could have come from them."""
    sizes = input.size()
    default = [
        (sizes[d - dims] - 1) * stride[d] + kernel_size[d] - 2 * padding[d] for d in range(dims)
    ]
    if output_size is None:
        return default
    if len(output_size) == dims + 2:
        output_size = output_size[2:]
    if len(output_size) != dims:
        raise ValueError(
            f"output_size should be a sequence containing {dims} or {dims + 2} elements, "
            f"but it has a length of '{len(output_size)}'"
        )
    for d in range(dims):
        low, high = default[d] - stride[d], default[d] + stride[d]
        if not low < output_size[d] < high:
            raise ValueError(
                f'invalid output_size "{output_size}" (dim {d} must be between {low} and {high})'
            )
    return list(output_size)


def _max_unpool(dims):
    def unpool(
        input, indices, kernel_size, stride=None, padding=0, output_size=None
    ) -> torch.Tensor:
        if has_torch_function_unary(input):
            return redirect(unpool, locals())
        spread = lambda v: (v,) * dims if isinstance(v, int) else tuple(v)
        kernel_size, padding = spread(kernel_size), spread(padding)
        stride = kernel_size if stride is None else spread(stride)
        size = _unpooled_size(input, dims, kernel_size, stride, padding, output_size)
        if dims == 1:
            return _C._nn.max_unpool2d(
                input.unsqueeze(-1), indices.unsqueeze(-1), [*size, 1]
            ).squeeze(-1)
        if dims == 2:
            return _C._nn.max_unpool2d(input, indices, size)
        return _C._nn.max_unpool3d(input, indices, size, stride, padding)

    unpool.__name__ = unpool.__qualname__ = f"max_unpool{dims}d"
    unpool.__doc__ = "Puts values back to the places their maxima came from; the rest is zero."
    return unpool


max_unpool1d = _max_unpool(1)
max_unpool2d = _max_unpool(2)
max_unpool3d = _max_unpool(3)


# ---- fractional pooling
# ----------------------------------------------------------------------------------------------


def _fractional(dims):
    name = f"fractional_max_pool{dims}d"

    def pool_with_indices(
        input, kernel_size, output_size=None, output_ratio=None, return_indices=False,
        _random_samples=None,
    ) -> tuple[torch.Tensor, torch.Tensor]:  # fmt: skip
        if has_torch_function_unary(input):
            return redirect(pool_with_indices, locals())
        if output_size is None and output_ratio is None:
            raise ValueError(f"{name} requires specifying either an output_size or an output_ratio")
        spread = lambda v: (v,) * dims if isinstance(v, int) else v
        if output_size is None:
            if dims == 3 and isinstance(output_ratio, int | float):
                output_ratio = (output_ratio,) * dims
            if len(output_ratio) > dims:
                raise ValueError(
                    f"{name} requires output_ratio to either be a single Int or tuple of Ints."
                )
            output_size = [int(input.size(d - dims) * output_ratio[d]) for d in range(dims)]
        if _random_samples is None:
            batch = 1 if input.dim() == dims + 1 else input.size(0)
            shape = (batch, input.size(-dims - 1), dims)
            _random_samples = torch.rand(shape, dtype=input.dtype, device=input.device)
        return getattr(_C._nn, name)(
            input, spread(kernel_size), spread(output_size), _random_samples
        )

    def pool(
        input, kernel_size, output_size=None, output_ratio=None, return_indices=False,
        _random_samples=None,
    ) -> torch.Tensor | tuple[torch.Tensor, ...]:  # fmt: skip
        if has_torch_function_unary(input):
            return redirect(pool, locals())
        found = pool_with_indices(
            input, kernel_size, output_size, output_ratio, return_indices, _random_samples
        )
        return found if return_indices else found[0]

    pool.__name__ = pool.__qualname__ = name
    pool.__doc__ = "The maxima of windows at random places."
    pool_with_indices.__name__ = pool_with_indices.__qualname__ = name + "_with_indices"
    pool_with_indices.__doc__ = "The maxima of windows at random places, and where they stand."
    return pool, pool_with_indices


fractional_max_pool2d, fractional_max_pool2d_with_indices = _fractional(2)
fractional_max_pool3d, fractional_max_pool3d_with_indices = _fractional(3)
