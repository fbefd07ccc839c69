"""Initial values of parameters. The streams are PyTorch's: the same seed gives the same weights."""

from __future__ import annotations

import math
import warnings
from typing import Any as _Any

import torch

__all__ = [
    "calculate_gain",
    "uniform_",
    "normal_",
    "trunc_normal_",
    "constant_",
    "ones_",
    "zeros_",
    "eye_",
    "dirac_",
    "xavier_uniform_",
    "xavier_normal_",
    "kaiming_uniform_",
    "kaiming_normal_",
    "orthogonal_",
    "sparse_",
]

_LINEAR = {
    "linear",
    "conv1d",
    "conv2d",
    "conv3d",
    "conv_transpose1d",
    "conv_transpose2d",
    "conv_transpose3d",
    "sigmoid",
}


def calculate_gain(nonlinearity, param=None) -> _Any:
    """The factor by which a nonlinearity shrinks the spread of its input; weights undo it."""
    if nonlinearity in _LINEAR:
        return 1
    if nonlinearity == "tanh":
        return 5.0 / 3
    if nonlinearity == "relu":
        return math.sqrt(2.0)
    if nonlinearity == "leaky_relu":
        slope = 0.01 if param is None else param
        if isinstance(slope, bool) or not isinstance(slope, (int, float)):
            raise ValueError(f"negative_slope {slope} not a valid number")
        return math.sqrt(2.0 / (1 + slope**2))
    if nonlinearity == "selu":
        return 3.0 / 4
    raise ValueError(f"Unsupported nonlinearity {nonlinearity}")


@torch.no_grad()
def uniform_(
    tensor: torch.Tensor, a=0.0, b=1.0, generator: torch.Generator | None = None
) -> torch.Tensor:
    """Uniform in [a, b)."""
    if torch.overrides.has_torch_function_unary(tensor):
        return torch.overrides.handle_torch_function(uniform_, (tensor,), **locals())
    return tensor.uniform_(a, b, generator=generator)


@torch.no_grad()
def normal_(
    tensor: torch.Tensor,
    mean: float = 0.0,
    std: float = 1.0,
    generator: torch.Generator | None = None,
) -> torch.Tensor:
    """Normal with mean and std."""
    if torch.overrides.has_torch_function_unary(tensor):
        return torch.overrides.handle_torch_function(normal_, (tensor,), **locals())
    return tensor.normal_(mean, std, generator=generator)


# Above this share of the normal distribution between the bounds, normal numbers are drawn until
# they fall there; below it, uniform ones that are kept by chance.
_NORMAL_SHARE = 0.3
_MOST_DRAWS = 20000


def _normal_share(low, high):
    return (math.erf(high / math.sqrt(2.0)) - math.erf(low / math.sqrt(2.0))) / 2.0


def _uniform_until_kept(tensor, mean, std, a, b, generator):
    """Uniform numbers between a and b, each kept with the density of the normal distribution there
    over the highest one. Returns the places that are still open, which only bounds far apart and
    far out leave."""
    top = (min(max(mean, a), b) - mean) ** 2
    open_places = torch.ones_like(tensor, dtype=torch.bool)
    for _ in range(_MOST_DRAWS):
        x = torch.empty_like(tensor).uniform_(a, b, generator=generator)
        chance = torch.rand(
            tensor.shape, generator=generator, dtype=tensor.dtype, device=tensor.device
        )
        kept = open_places & (chance <= torch.exp((top - (x - mean) ** 2) / (2 * std * std)))
        tensor.copy_(torch.where(kept, x, tensor))
        open_places &= ~kept
        if not bool(open_places.any()):
            break
    return open_places


@torch.no_grad()
def trunc_normal_(
    tensor: torch.Tensor,
    mean: float = 0.0,
    std: float = 1.0,
    a=-2.0,
    b=2.0,
    generator: torch.Generator | None = None,
) -> torch.Tensor:
    """Normal with mean and std; values outside [a, b] are drawn again."""
    if mean < a - 2 * std or mean > b + 2 * std:
        import warnings

        warnings.warn(
            "mean is more than 2 std from [a, b] in nn.init.trunc_normal_. "
            "The distribution of values may be incorrect.",
            stacklevel=2,
        )
    if _normal_share((a - mean) / std, (b - mean) / std) <= _NORMAL_SHARE:
        left = _uniform_until_kept(tensor, mean, std, a, b, generator)
        return tensor.masked_fill_(left, a if mean < a else b)
    tensor.normal_(mean, std, generator=generator)
    while True:
        outside = (tensor < a) | (tensor > b)
        if not bool(outside.any()):
            return tensor
        again = torch.empty_like(tensor).normal_(mean, std, generator=generator)
        tensor.copy_(torch.where(outside, again, tensor))


@torch.no_grad()
def constant_(tensor: torch.Tensor, val) -> torch.Tensor:
    """One value everywhere."""
    if torch.overrides.has_torch_function_unary(tensor):
        return torch.overrides.handle_torch_function(constant_, (tensor,), **locals())
    return tensor.fill_(val)


@torch.no_grad()
def ones_(tensor: torch.Tensor) -> torch.Tensor:
    """1 everywhere."""
    return tensor.fill_(1.0)


@torch.no_grad()
def zeros_(tensor: torch.Tensor) -> torch.Tensor:
    """0 everywhere."""
    return tensor.zero_()


@torch.no_grad()
def eye_(tensor: torch.Tensor) -> torch.Tensor:
    """The identity matrix."""
    if tensor.ndimension() != 2:
        raise ValueError("Only tensors with 2 dimensions are supported")
    torch.eye(*tensor.shape, out=tensor, requires_grad=tensor.requires_grad)
    return tensor


@torch.no_grad()
def dirac_(tensor: torch.Tensor, groups: int = 1) -> torch.Tensor:
    """A convolution that passes as many channels through as it can."""
    dims = tensor.ndimension()
    if dims not in (3, 4, 5):
        raise ValueError("Only tensors with 3, 4, or 5 dimensions are supported")
    sizes = tensor.size()
    if sizes[0] % groups != 0:
        raise ValueError("dim 0 must be divisible by groups")
    per_group = sizes[0] // groups
    tensor.zero_()
    centre = [n // 2 for n in sizes[2:]]
    for group in range(groups):
        for channel in range(min(per_group, sizes[1])):
            tensor[(group * per_group + channel, channel, *centre)] = 1
    return tensor


def _calculate_fan_in_and_fan_out(tensor) -> tuple[int, int]:
    if tensor.dim() < 2:
        raise ValueError(
            "Fan in and fan out can not be computed for tensor with fewer than 2 dimensions"
        )
    field = math.prod(tensor.shape[2:])
    return tensor.size(1) * field, tensor.size(0) * field


def _calculate_correct_fan(tensor, mode) -> int:
    mode = mode.lower()
    if mode not in ("fan_in", "fan_out"):
        raise ValueError(f"Mode {mode} not supported, please use one of ['fan_in', 'fan_out']")
    return _calculate_fan_in_and_fan_out(tensor)[mode == "fan_out"]


def xavier_uniform_(
    tensor: torch.Tensor, gain: float = 1.0, generator: torch.Generator | None = None
) -> torch.Tensor:
    """Uniform with the variance that keeps signals and gradients the same size (Glorot 2010)."""
    fan_in, fan_out = _calculate_fan_in_and_fan_out(tensor)
    bound = math.sqrt(3.0) * gain * math.sqrt(2.0 / float(fan_in + fan_out))
    return uniform_(tensor, -bound, bound, generator)


def xavier_normal_(
    tensor: torch.Tensor, gain: float = 1.0, generator: torch.Generator | None = None
) -> torch.Tensor:
    """Normal with the variance that keeps signals and gradients the same size (Glorot 2010)."""
    fan_in, fan_out = _calculate_fan_in_and_fan_out(tensor)
    return normal_(tensor, 0.0, gain * math.sqrt(2.0 / float(fan_in + fan_out)), generator)


def _kaiming_std(tensor, a, mode, nonlinearity) -> float | None:
    if 0 in tensor.shape:
        import warnings

        warnings.warn("Initializing zero-element tensors is a no-op", stacklevel=3)
        return None
    fan = _calculate_correct_fan(tensor, mode)
    return calculate_gain(nonlinearity, a) / math.sqrt(fan)


def kaiming_uniform_(
    tensor: torch.Tensor,
    a=0,
    mode: str = "fan_in",
    nonlinearity: str = "leaky_relu",
    generator: torch.Generator | None = None,
) -> torch.Tensor:
    """Uniform with the variance that suits rectifiers (He 2015)."""
    if torch.overrides.has_torch_function_variadic(tensor):
        return torch.overrides.handle_torch_function(kaiming_uniform_, (tensor,), **locals())
    std = _kaiming_std(tensor, a, mode, nonlinearity)
    if std is None:
        return tensor
    bound = math.sqrt(3.0) * std
    return uniform_(tensor, -bound, bound, generator)


def kaiming_normal_(
    tensor: torch.Tensor,
    a=0,
    mode: str = "fan_in",
    nonlinearity: str = "leaky_relu",
    generator: torch.Generator | None = None,
) -> torch.Tensor:
    """Normal with the variance that suits rectifiers (He 2015)."""
    std = _kaiming_std(tensor, a, mode, nonlinearity)
    return tensor if std is None else normal_(tensor, 0, std, generator)


def _positive_q(matrix) -> torch.Tensor:
    """The orthonormal factor of matrix = QR for the R with a positive diagonal, which is unique:
    Q of a normal matrix is then uniform over the orthogonal ones."""
    q, r = torch.linalg.qr(matrix)
    return q * r.diagonal(dim1=-2, dim2=-1).sgn().unsqueeze(-2)


@torch.no_grad()
def orthogonal_(
    tensor: torch.Tensor, gain=1, generator: torch.Generator | None = None
) -> torch.Tensor:
    """A (semi-)orthogonal matrix: the Q of a random matrix, signs fixed by R's diagonal."""
    if tensor.ndimension() < 2:
        raise ValueError("Only tensors with 2 or more dimensions are supported")
    if not tensor.numel():
        return tensor
    rows = len(tensor)
    drawn = tensor.new_empty((rows, tensor.numel() // rows)).normal_(0, 1, generator=generator)
    # Only a tall matrix has orthonormal columns; a wide one gets orthonormal rows.
    wide = rows < drawn.size(1)
    q = _positive_q(drawn.mT if wide else drawn)
    return tensor.copy_((q.mT if wide else q).reshape(tensor.shape)).mul_(gain)


@torch.no_grad()
def sparse_(
    tensor: torch.Tensor, sparsity, std: float = 0.01, generator: torch.Generator | None = None
) -> torch.Tensor:
    """Normal values with a share of each column set to 0."""
    if tensor.ndimension() != 2:
        raise ValueError("Only tensors with 2 dimensions are supported")
    rows, cols = tensor.shape
    zeros = math.ceil(sparsity * rows)
    tensor.normal_(0, std, generator=generator)
    for column in range(cols):
        tensor[torch.randperm(rows)[:zeros], column] = 0
    return tensor


# Names for the same without gradients, which all of them are: projects import these.


def _no_grad_uniform_(tensor, a, b, generator=None):
    return uniform_(tensor, a, b, generator)


def _no_grad_normal_(tensor, mean, std, generator=None) -> torch.Tensor:
    return normal_(tensor, mean, std, generator)


def _no_grad_trunc_normal_(tensor, mean, std, a, b, generator=None):
    return trunc_normal_(tensor, mean, std, a, b, generator)


def _no_grad_fill_(tensor, val) -> torch.Tensor:
    return constant_(tensor, val)


def _no_grad_zero_(tensor):
    return zeros_(tensor)


def _deprecated(function):
    """The former name of a function, without the underscore, which warns."""
    new = function.__name__
    old = new[:-1]

    def renamed(*args, **kwargs):
        warnings.warn(
            f"`nn.init.{old}` is now deprecated in favor of `nn.init.{new}`.",
            FutureWarning,
            stacklevel=2,
        )
        return function(*args, **kwargs)

    renamed.__name__ = renamed.__qualname__ = old
    renamed.__doc__ = f"The former name of {new}."
    return renamed


uniform = _deprecated(uniform_)
normal = _deprecated(normal_)
constant = _deprecated(constant_)
eye = _deprecated(eye_)
dirac = _deprecated(dirac_)
xavier_uniform = _deprecated(xavier_uniform_)
xavier_normal = _deprecated(xavier_normal_)
kaiming_uniform = _deprecated(kaiming_uniform_)
kaiming_normal = _deprecated(kaiming_normal_)
orthogonal = _deprecated(orthogonal_)
sparse = _deprecated(sparse_)
