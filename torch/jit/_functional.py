"""torch.nn.functional in the scripted language. The functions of the library are written for
Python:
they take numbers for lists, choose operators by name and look at subclasses. These are the same
functions with declared types, as the compiler needs them; only it calls them."""

from __future__ import annotations

import math
import warnings

import torch
from torch import Tensor
from torch.jit.annotations import BroadcastingList1, BroadcastingList2, BroadcastingList3


def product(x: list[int]) -> int:
    """math.prod of integers."""
    out = 1
    for n in x:
        out *= n
    return out


FUNCTIONS: dict[str, object] = {}
REPLACED: dict[tuple[str, str], object] = {}


def _script(fn):
    FUNCTIONS[fn.__name__] = fn
    return fn


def _flagged(name: str, *extra: str) -> None:
    """A function (input, ..., inplace=False) over the operators NAME and NAME_."""
    params = "".join(f", {e}" for e in extra)
    values = "".join(f", {e.partition(':')[0]}" for e in extra)
    text = (
        f"def {name}(input: Tensor{params}, inplace: bool = False) -> Tensor:\n"
        f"    if inplace:\n        result = torch._C._nn.{name}_(input{values})\n"
        f"    else:\n        result = torch._C._nn.{name}(input{values})\n"
        f"    return result\n"
    )
    _made(name, text)


def _made(name: str, text: str) -> None:
    import linecache

    filename = f"<torch.nn.functional.{name}>"
    linecache.cache[filename] = (len(text), None, text.splitlines(keepends=True), filename)
    scope: dict[str, object] = {**globals()}
    exec(compile(text, filename, "exec"), scope)
    FUNCTIONS[name] = scope[name]


for _name, _extra in {
    "relu6": (),
    "silu": (),
    "mish": (),
    "hardswish": (),
    "hardsigmoid": (),
    "elu": ("alpha: float = 1.0",),
    "leaky_relu": ("negative_slope: float = 0.01",),
    "hardtanh": ("min_val: float = -1.0", "max_val: float = 1.0"),
}.items():
    _flagged(_name, *_extra)


@_script
def relu(input: Tensor, inplace: bool = False) -> Tensor:
    if inplace:
        result = torch.relu_(input)
    else:
        result = torch.relu(input)
    return result


@_script
def selu(input: Tensor, inplace: bool = False) -> Tensor:
    if inplace:
        result = torch.selu_(input)
    else:
        result = torch.selu(input)
    return result


@_script
def celu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    if inplace:
        result = torch.celu_(input, alpha)
    else:
        result = torch.celu(input, alpha)
    return result


@_script
def rrelu(
    input: Tensor,
    lower: float = 1.0 / 8,
    upper: float = 1.0 / 3,
    training: bool = False,
    inplace: bool = False,
) -> Tensor:
    if inplace:
        result = torch.rrelu_(input, lower, upper, training)
    else:
        result = torch.rrelu(input, lower, upper, training)
    return result


@_script
def threshold(input: Tensor, threshold: float, value: float, inplace: bool = False) -> Tensor:
    if inplace:
        result = torch.threshold_(input, threshold, value)
    else:
        result = torch.threshold(input, threshold, value)
    return result


@_script
def sigmoid(input: Tensor) -> Tensor:
    return input.sigmoid()


@_script
def tanh(input: Tensor) -> Tensor:
    return input.tanh()


@_script
def tanhshrink(input: Tensor) -> Tensor:
    return input - input.tanh()


@_script
def softsign(input: Tensor) -> Tensor:
    return input / (input.abs() + 1)


@_script
def glu(input: Tensor, dim: int = -1) -> Tensor:
    if input.dim() == 0:
        raise RuntimeError("glu does not support scalars because halving size must be even")
    return torch._C._nn.glu(input, dim)


# ---- softmax


def _softmax_dim(name: str, ndim: int, stacklevel: int) -> int:
    warnings.warn(
        f"Implicit dimension choice for {name} has been deprecated. Change the call to include "
        f"dim=X "
        "as an argument.",
        stacklevel=stacklevel,
    )
    if ndim == 0 or ndim == 1 or ndim == 3:
        return 0
    return 1


def _soft(name: str, operator: str, sign: str) -> None:
    text = (
        f"def {name}(input: Tensor, dim: Optional[int] = None, _stacklevel: int = 3, "
        "dtype: Optional[int] = None) -> Tensor:\n"
        f"    axis = dim if dim is not None else _softmax_dim('{name}', input.dim(), _stacklevel)\n"
        f"    return torch.{operator}({sign}input, axis, dtype)\n"
    )
    _made(name, text)


for _name, _operator, _sign in (
    ("softmax", "softmax", ""),
    ("softmin", "softmax", "-"),
    ("log_softmax", "log_softmax", ""),
):
    _soft(_name, _operator, _sign)


# ---- dropout


def _dropout(name: str) -> None:
    text = (
        f"def {name}(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) "
        f"-> "
        "Tensor:\n"
        "    if p < 0.0 or p > 1.0:\n"
        "        raise ValueError(f'dropout probability has to be between 0 and 1, but got {p}')\n"
        f"    if inplace:\n        result = torch.{name}_(input, p, training)\n"
        f"    else:\n        result = torch.{name}(input, p, training)\n"
        "    return result\n"
    )
    _made(name, text)


for _name in ("dropout", "alpha_dropout", "feature_alpha_dropout"):
    _dropout(_name)


def _feature_dropout(name: str, rank: int) -> None:
    text = (
        f"def {name}(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) "
        f"-> "
        "Tensor:\n"
        "    if p < 0.0 or p > 1.0:\n"
        "        raise ValueError(f'dropout probability has to be between 0 and 1, but got {p}')\n"
        f"    batched = input.dim() != {rank - 1}\n"
        "    if not batched:\n        input = input.unsqueeze(0)\n"
        "    if inplace:\n        result = torch.feature_dropout_(input, p, training)\n"
        "    else:\n        result = torch.feature_dropout(input, p, training)\n"
        "    if not batched:\n        result = result.squeeze(0)\n"
        "    return result\n"
    )
    _made(name, text)


for _name, _rank in (("dropout1d", 3), ("dropout2d", 4), ("dropout3d", 5)):
    _feature_dropout(_name, _rank)


# ---- linear maps, norms, embeddings


def _padding_row(row: int | None, rows: int) -> int:
    """The row without a gradient; -1 for none."""
    if row is None:
        return -1
    assert -rows <= row < rows, "Padding_idx must be within num_embeddings"
    return row % rows


@_script
def embedding(
    input: Tensor,
    weight: Tensor,
    padding_idx: int | None = None,
    max_norm: float | None = None,
    norm_type: float = 2.0,
    scale_grad_by_freq: bool = False,
    sparse: bool = False,
) -> Tensor:
    row = _padding_row(padding_idx, weight.size(0))
    if max_norm is not None:
        limited = torch.embedding_renorm_(weight.detach(), input.contiguous(), max_norm, norm_type)
        assert limited.size(0) == weight.size(0)
    return torch.embedding(weight, input, row, scale_grad_by_freq, sparse)


@_script
def embedding_bag(
    input: Tensor,
    weight: Tensor,
    offsets: Tensor | None = None,
    max_norm: float | None = None,
    norm_type: float = 2.0,
    scale_grad_by_freq: bool = False,
    mode: str = "mean",
    sparse: bool = False,
    per_sample_weights: Tensor | None = None,
    include_last_offset: bool = False,
    padding_idx: int | None = None,
) -> Tensor:
    weights = per_sample_weights
    if input.dim() == 2:
        assert offsets is None, "if input is 2D, then offsets has to be None"
        starts = torch.arange(
            0, input.numel(), input.size(1), dtype=input.dtype, device=input.device
        )
        input = input.reshape(-1)
        if weights is not None:
            weights = weights.reshape(-1)
    else:
        assert offsets is not None, "offsets has to be a 1D Tensor but got None"
        starts = offsets
    number = ["sum", "mean", "max"].index(mode)
    if max_norm is not None:
        limited = torch.embedding_renorm_(weight.detach(), input, max_norm, norm_type)
        assert limited.size(0) == weight.size(0)
    row: int | None = None
    if padding_idx is not None:
        row = _padding_row(padding_idx, weight.size(0))
    result = torch.embedding_bag(
        weight, input, starts, scale_grad_by_freq, number, sparse, weights, include_last_offset, row
    )
    return result[0]


def _check_batch(size: list[int]) -> None:
    count = size[0]
    for i in range(len(size) - 2):
        count *= size[i + 2]
    if count == 1:
        raise ValueError(
            f"Expected more than 1 value per channel when training, got input size {size}"
        )


@_script
def batch_norm(
    input: Tensor,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    training: bool = False,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    if training:
        _check_batch(input.size())
    return torch.batch_norm(
        input, weight, bias, running_mean, running_var, training, momentum, eps, True
    )


@_script
def instance_norm(
    input: Tensor,
    running_mean: Tensor | None = None,
    running_var: Tensor | None = None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    use_input_stats: bool = True,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    return torch.instance_norm(
        input, weight, bias, running_mean, running_var, use_input_stats, momentum, eps, True
    )


@_script
def layer_norm(
    input: Tensor,
    normalized_shape: list[int],
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
) -> Tensor:
    return torch.layer_norm(input, normalized_shape, weight, bias, eps, True)


@_script
def rms_norm(
    input: Tensor,
    normalized_shape: list[int],
    weight: Tensor | None = None,
    eps: float | None = None,
) -> Tensor:
    return torch.rms_norm(input, normalized_shape, weight, eps)


@_script
def group_norm(
    input: Tensor,
    num_groups: int,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
) -> Tensor:
    return torch.group_norm(input, num_groups, weight, bias, eps, True)


@_script
def local_response_norm(
    input: Tensor, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0
) -> Tensor:
    if input.numel() == 0:
        return input
    div = input.mul(input)
    if input.dim() == 3:
        div = torch._C._nn.avg_pool2d(
            pad(div.unsqueeze(1), [0, 0, size // 2, (size - 1) // 2]), [size, 1], [1, 1]
        ).squeeze(1)
    else:
        sizes = input.size()
        div = div.view(sizes[0], 1, sizes[1], sizes[2], -1)
        div = pad(div, [0, 0, 0, 0, size // 2, (size - 1) // 2])
        div = torch._C._nn.avg_pool3d(div, [size, 1, 1], [1, 1, 1]).squeeze(1)
        div = div.view(sizes)
    div = div.mul(alpha).add(k).pow(beta)
    return input / div


@_script
def normalize(
    input: Tensor, p: float = 2.0, dim: int = 1, eps: float = 1e-12, out: Tensor | None = None
) -> Tensor:
    denom = input.norm(p, [dim], True).clamp_min(eps).expand_as(input)
    return input / denom


@_script
def pad(
    input: Tensor, pad: list[int], mode: str = "constant", value: float | None = None
) -> Tensor:
    return torch._C._nn.pad(input, pad, mode, value)


@_script
def cosine_similarity(x1: Tensor, x2: Tensor, dim: int = 1, eps: float = 1e-8) -> Tensor:
    return torch.cosine_similarity(x1, x2, dim, eps)


@_script
def pairwise_distance(
    x1: Tensor, x2: Tensor, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False
) -> Tensor:
    return torch.pairwise_distance(x1, x2, p, eps, keepdim)


@_script
def one_hot(tensor: Tensor, num_classes: int = -1) -> Tensor:
    return torch.ops.aten.one_hot(tensor, num_classes)


@_script
def unfold(
    input: Tensor,
    kernel_size: BroadcastingList2[int],
    dilation: BroadcastingList2[int] = 1,
    padding: BroadcastingList2[int] = 0,
    stride: BroadcastingList2[int] = 1,
) -> Tensor:
    return torch._C._nn.im2col(input, kernel_size, dilation, padding, stride)


@_script
def fold(
    input: Tensor,
    output_size: BroadcastingList2[int],
    kernel_size: BroadcastingList2[int],
    dilation: BroadcastingList2[int] = 1,
    padding: BroadcastingList2[int] = 0,
    stride: BroadcastingList2[int] = 1,
) -> Tensor:
    return torch._C._nn.col2im(input, output_size, kernel_size, dilation, padding, stride)


# ---- pooling


def _compiled(name: str, text: str) -> object:
    import linecache

    filename = f"<torch.nn.functional.{name}>"
    linecache.cache[filename] = (len(text), None, text.splitlines(keepends=True), filename)
    scope = {**globals()}
    exec(compile(text, filename, "exec"), scope)
    return scope[name]


def _max_pool(n: int) -> None:
    many = f"BroadcastingList{n}[int]"
    params = (
        f"input: Tensor, kernel_size: {many}, stride: Optional[{many}] = None, padding: {many} = "
        f"0, "
        f"dilation: {many} = 1, ceil_mode: bool = False, return_indices: bool = False"
    )
    body = "    if stride is None:\n        stride = torch.jit.annotate(List[int], [])\n    return "
    given = "(input, kernel_size, stride, padding, dilation, ceil_mode)"
    plain = _compiled(
        f"max_pool{n}d", f"def max_pool{n}d({params}) -> Tensor:\n{body}torch.max_pool{n}d{given}\n"
    )
    full = (
        f"torch.max_pool1d_with_indices{given}"
        if n == 1
        else f"torch._C._nn.max_pool{n}d_with_indices{given}"
    )
    name = f"max_pool{n}d_with_indices"
    both = _compiled(name, f"def {name}({params}) -> Tuple[Tensor, Tensor]:\n{body}{full}\n")
    FUNCTIONS[f"max_pool{n}d"] = ("return_indices", 6, False, both, plain)


def _adaptive_pool(kind: str, n: int) -> None:
    call = f"torch._C._nn.adaptive_{kind}_pool{n}d" if n > 1 else f"torch.adaptive_{kind}_pool1d"
    name = f"adaptive_{kind}_pool{n}d"
    sizes = (
        "    sizes = torch.jit.annotate(List[int], [])\n"
        "    for i, size in enumerate(output_size):\n"
        "        if size is None:\n"
        f"            sizes.append(input.size(i - {n}))\n"
        "        else:\n            sizes.append(size)\n"
    )
    more = ", return_indices: bool = False" if kind == "max" else ""
    head = f"(input: Tensor, output_size: BroadcastingList{n}[Optional[int]]{more})"
    last = "[0]" if kind == "max" else ""
    plain = _compiled(
        name, f"def {name}{head} -> Tensor:\n{sizes}    return {call}(input, sizes){last}\n"
    )
    if kind == "avg":
        FUNCTIONS[name] = plain
        return
    both = _compiled(
        name,
        f"def {name}{head} -> Tuple[Tensor, Tensor]:\n{sizes}    return {call}(input, sizes)\n",
    )
    FUNCTIONS[name] = ("return_indices", 2, False, both, plain)


for _n in (1, 2, 3):
    _max_pool(_n)
    _adaptive_pool("avg", _n)
    _adaptive_pool("max", _n)


# ---- losses


def _reduction(reduction: str) -> int:
    if reduction == "none":
        return 0
    if reduction == "mean":
        return 1
    if reduction == "sum":
        return 2
    raise ValueError(f"{reduction} is not a valid value for reduction")


@_script
def cross_entropy(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    ignore_index: int = -100,
    reduce: bool | None = None,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> Tensor:
    return torch._C._nn.cross_entropy_loss(
        input, target, weight, _reduction(reduction), ignore_index, label_smoothing
    )


@_script
def nll_loss(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    ignore_index: int = -100,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    return torch._C._nn.nll_loss_nd(input, target, weight, _reduction(reduction), ignore_index)


@_script
def mse_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    return torch._C._nn.mse_loss(input, target, _reduction(reduction))


@_script
def l1_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    return torch._C._nn.l1_loss(input, target, _reduction(reduction))


@_script
def smooth_l1_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    beta: float = 1.0,
) -> Tensor:
    return torch._C._nn.smooth_l1_loss(input, target, _reduction(reduction), beta)


@_script
def huber_loss(
    input: Tensor, target: Tensor, reduction: str = "mean", delta: float = 1.0
) -> Tensor:
    return torch._C._nn.huber_loss(input, target, _reduction(reduction), delta)


@_script
def binary_cross_entropy(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    return torch._C._nn.binary_cross_entropy(input, target, weight, _reduction(reduction))


@_script
def binary_cross_entropy_with_logits(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    pos_weight: Tensor | None = None,
) -> Tensor:
    return torch.binary_cross_entropy_with_logits(
        input, target, weight, pos_weight, _reduction(reduction)
    )


@_script
def kl_div(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    log_target: bool = False,
) -> Tensor:
    if reduction == "batchmean":
        return torch.kl_div(input, target, 2, log_target=log_target) / input.size(0)
    return torch.kl_div(input, target, _reduction(reduction), log_target=log_target)


# ---- resizing


@_script
def grid_sample(
    input: Tensor,
    grid: Tensor,
    mode: str = "bilinear",
    padding_mode: str = "zeros",
    align_corners: bool | None = None,
) -> Tensor:
    modes = ["bilinear", "nearest", "bicubic"]
    paddings = ["zeros", "border", "reflection"]
    if mode not in modes:
        raise ValueError(
            f"nn.functional.grid_sample(): expected mode to be one of {modes}, got {mode}"
        )
    if padding_mode not in paddings:
        raise ValueError(
            f"nn.functional.grid_sample(): expected padding_mode to be one of {paddings}"
        )
    align = False
    if align_corners is not None:
        align = align_corners
    return torch.grid_sampler(input, grid, modes.index(mode), paddings.index(padding_mode), align)


def _sizes(input: Tensor, size: list[int] | None, factors: list[float] | None) -> list[int]:
    if size is not None:
        return size
    if factors is None:
        raise ValueError("either size or scale_factor should be defined")
    out: list[int] = []
    for i, factor in enumerate(factors):
        out.append(math.floor(float(input.size(i + 2)) * factor))
    return out


def _resize(
    input: Tensor,
    size: list[int] | None,
    scale: list[float] | None,
    mode: str,
    align_corners: bool | None,
    recompute: bool | None,
    antialias: bool,
) -> Tensor:
    align = False
    if align_corners is not None:
        align = align_corners
    sizes = _sizes(input, size, scale)
    factors = scale
    if size is not None or (recompute is not None and recompute):
        factors = None
    dim = input.dim()
    target: list[int] | None = sizes
    if factors is not None:
        target = None
    if mode == "nearest":
        if dim == 3:
            return torch._C._nn.upsample_nearest1d(input, target, factors)
        if dim == 4:
            return torch._C._nn.upsample_nearest2d(input, target, factors)
        return torch._C._nn.upsample_nearest3d(input, target, factors)
    if mode == "area":
        if dim == 3:
            return torch.adaptive_avg_pool1d(input, sizes)
        if dim == 4:
            return torch._C._nn.adaptive_avg_pool2d(input, sizes)
        return torch._C._nn.adaptive_avg_pool3d(input, sizes)
    if mode == "linear":
        return torch._C._nn.upsample_linear1d(input, target, align, factors)
    if mode == "bilinear":
        if antialias:
            return torch._C._nn._upsample_bilinear2d_aa(input, target, align, factors)
        return torch._C._nn.upsample_bilinear2d(input, target, align, factors)
    if mode == "trilinear":
        return torch._C._nn.upsample_trilinear3d(input, target, align, factors)
    if mode == "bicubic":
        if antialias:
            return torch._C._nn._upsample_bicubic2d_aa(input, target, align, factors)
        return torch._C._nn.upsample_bicubic2d(input, target, align, factors)
    raise NotImplementedError(f"interpolation of a {dim}-D input with mode {mode}")


@_script
def interpolate(
    input: Tensor,
    size=None,
    scale_factor=None,
    mode: str = "nearest",
    align_corners: bool | None = None,
    recompute_scale_factor: bool | None = None,
    antialias: bool = False,
) -> Tensor:
    rank = input.dim() - 2
    sizes: list[int] | None = None
    factors: list[float] | None = None
    if size is not None:
        if isinstance(size, int):
            sizes = [size] * rank
        else:
            sizes = size
    if scale_factor is not None:
        if isinstance(scale_factor, (int, float)):
            factors = [float(scale_factor)] * rank
        else:
            factors = scale_factor
    return _resize(input, sizes, factors, mode, align_corners, recompute_scale_factor, antialias)


def _number(size_average: bool | None, reduce: bool | None, reduction: str) -> int:
    if size_average is None and reduce is None:
        return _reduction(reduction)
    if reduce is not None and not reduce:
        return 0
    if size_average is not None and not size_average:
        return 2
    return 1


def tensordot(a: Tensor, b: Tensor, dims=2, out: Tensor | None = None) -> Tensor:
    if isinstance(dims, int):
        rank = a.dim()
        left = list(range(rank - dims, rank))
        right = list(range(dims))
    else:
        left, right = dims[0], dims[1]
    return torch.ops.aten.tensordot(a, b, left, right)


def broadcast_shapes(a: list[int], b: list[int]) -> list[int]:
    long = a if len(a) >= len(b) else b
    short = b if len(a) >= len(b) else a
    out: list[int] = []
    for i in range(len(long)):
        at = i - (len(long) - len(short))
        n, m = long[i], short[at] if at >= 0 else 1
        if n != m and n != 1 and m != 1:
            raise RuntimeError(f"Shape mismatch: {a} and {b} cannot be broadcast to one shape")
        out.append(m if n == 1 else n)
    return out


REPLACED["torch.functional", "tensordot"] = tensordot
REPLACED["torch.functional", "broadcast_shapes"] = broadcast_shapes
REPLACED["torch.nn._reduction", "get_enum"] = _reduction
REPLACED["torch.nn._losses", "_number"] = _number
_USED_BY_TEXT = (tuple, BroadcastingList1, BroadcastingList2, BroadcastingList3)
