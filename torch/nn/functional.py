"""The functional forms of layers: activations, dropout, linear maps, padding and rearrangements.

Each function checks what the operator cannot know, picks the in-place form when asked, and
calls the operator."""

import warnings

import torch
from torch import _C, _VF
from torch.nn._attention import *  # noqa: F403
from torch.nn._attention import _is_batched as _mha_shape_check  # noqa: F401
from torch.nn._conv_pool import *  # noqa: F403
from torch.nn._embedding_bag import *  # noqa: F403
from torch.nn._grouped import grouped_mm  # noqa: F401
from torch.nn._interpolate import *  # noqa: F403
from torch.nn._losses import *  # noqa: F403
from torch.nn._scaled import (  # noqa: F401
    ScalingType,
    SwizzleType,
    scaled_grouped_mm,
    scaled_mm,
)
from torch.overrides import (
    handle_torch_function,  # noqa: F401
    has_torch_function,  # noqa: F401
    has_torch_function_unary,
    has_torch_function_variadic,
    redirect,
)


def _nn(name):
    """An operator of torch._C._nn; NotImplementedError names what is missing."""
    function = getattr(_C._nn, name, None)
    if function is None:
        raise NotImplementedError(f"torch.nn.functional.{name} is not implemented")
    return function


# ---- activations
# ----------------------------------------------------------------------------------------------


def relu(input: torch.Tensor, inplace: bool = False) -> torch.Tensor:
    """max(0, x)."""
    if has_torch_function_unary(input):
        return redirect(relu, locals())
    return torch.relu_(input) if inplace else torch.relu(input)


relu_ = torch.relu_
selu_ = torch.selu_
celu_ = torch.celu_
rrelu_ = torch.rrelu_
threshold_ = torch.threshold_


def _activation(name, native=None):
    """A function of (input, inplace=False) over the operators name and name_ of torch._C._nn."""
    native = native or name

    def function(input: torch.Tensor, inplace: bool = False) -> torch.Tensor:
        if has_torch_function_unary(input):
            return redirect(function, locals())
        return _nn(native + "_")(input) if inplace else _nn(native)(input)

    function.__name__ = function.__qualname__ = name
    return function


relu6 = _activation("relu6")
relu6.__doc__ = "min(max(0, x), 6)."
silu = _activation("silu")
silu.__doc__ = "x * sigmoid(x)."
mish = _activation("mish")
mish.__doc__ = "x * tanh(softplus(x))."
hardswish = _activation("hardswish")
hardswish.__doc__ = "x * relu6(x + 3) / 6."
hardsigmoid = _activation("hardsigmoid")
hardsigmoid.__doc__ = "relu6(x + 3) / 6."


gelu = _C._nn.gelu


def sigmoid(input: torch.Tensor) -> torch.Tensor:
    """1 / (1 + exp(-x))."""
    return input.sigmoid()


def tanh(input: torch.Tensor) -> torch.Tensor:
    """The hyperbolic tangent."""
    return input.tanh()


def tanhshrink(input: torch.Tensor) -> torch.Tensor:
    """x - tanh(x)."""
    if has_torch_function_unary(input):
        return redirect(tanhshrink, locals())
    return input - input.tanh()


def softsign(input: torch.Tensor) -> torch.Tensor:
    """x / (1 + |x|)."""
    if has_torch_function_unary(input):
        return redirect(softsign, locals())
    return input / (input.abs() + 1)


logsigmoid = _C._nn.log_sigmoid


def elu(input: torch.Tensor, alpha=1.0, inplace: bool = False) -> torch.Tensor:
    """x above zero, alpha * (exp(x) - 1) below."""
    if has_torch_function_unary(input):
        return redirect(elu, locals())
    return _nn("elu_")(input, alpha) if inplace else _nn("elu")(input, alpha)


elu_ = _C._nn.elu_


def selu(input: torch.Tensor, inplace: bool = False) -> torch.Tensor:
    """The self-normalising elu."""
    if has_torch_function_unary(input):
        return redirect(selu, locals())
    return _VF.selu_(input) if inplace else _VF.selu(input)


def celu(input: torch.Tensor, alpha=1.0, inplace: bool = False) -> torch.Tensor:
    """max(0, x) + min(0, alpha * (exp(x / alpha) - 1))."""
    if has_torch_function_unary(input):
        return redirect(celu, locals())
    return _VF.celu_(input, alpha) if inplace else _VF.celu(input, alpha)


def leaky_relu(
    input: torch.Tensor, negative_slope: float = 0.01, inplace: bool = False
) -> torch.Tensor:
    """x above zero, negative_slope * x below."""
    if has_torch_function_unary(input):
        return redirect(leaky_relu, locals())
    name = "leaky_relu_" if inplace else "leaky_relu"
    return _nn(name)(input, negative_slope)


leaky_relu_ = _C._nn.leaky_relu_


prelu = _VF.prelu


def rrelu(
    input: torch.Tensor, lower=1.0 / 8, upper=1.0 / 3, training: bool = False, inplace: bool = False
) -> torch.Tensor:
    """leaky_relu with a random slope while training, the mean slope otherwise."""
    if has_torch_function_unary(input):
        return redirect(rrelu, locals())
    return (_VF.rrelu_ if inplace else _VF.rrelu)(input, lower, upper, training)


def hardtanh(input: torch.Tensor, min_val=-1.0, max_val=1.0, inplace: bool = False) -> torch.Tensor:
    """x clamped to [min_val, max_val]."""
    if has_torch_function_unary(input):
        return redirect(hardtanh, locals())
    if min_val > max_val:
        raise ValueError("min_val cannot be greater than max_val")
    return _nn("hardtanh_" if inplace else "hardtanh")(input, min_val, max_val)


hardtanh_ = _C._nn.hardtanh_


def threshold(
    input: torch.Tensor, threshold, value: torch.Tensor, inplace: bool = False
) -> torch.Tensor:
    """x where it is above the threshold, value elsewhere."""
    if has_torch_function_unary(input):
        return redirect(_threshold, locals())
    return (_VF.threshold_ if inplace else _VF.threshold)(input, threshold, value)


_threshold = threshold


softplus = _C._nn.softplus


softshrink = _C._nn.softshrink


hardshrink = _VF.hardshrink


def glu(input: torch.Tensor, dim=-1) -> torch.Tensor:
    """The first half times the sigmoid of the second half along dim."""
    if has_torch_function_unary(input):
        return redirect(glu, locals())
    if input.dim() == 0:
        raise RuntimeError("glu does not support scalars because halving size must be even")
    return _nn("glu")(input, dim)


# ---- softmax
# --------------------------------------------------------------------------------------------------


def _softmax_dim(name, ndim, stacklevel) -> int:
    warnings.warn(
        f"Implicit dimension choice for {name} has been deprecated. Change the call to include "
        "dim=X as an "
        "argument.",
        stacklevel=stacklevel,
    )
    return 0 if ndim in (0, 1, 3) else 1


def softmax(
    input: torch.Tensor, dim=None, _stacklevel=3, dtype: torch.dtype | None = None
) -> torch.Tensor:
    """exp(x) scaled to sum to one along dim."""
    if has_torch_function_unary(input):
        return redirect(softmax, locals())
    if dim is None:
        dim = _softmax_dim("softmax", input.dim(), _stacklevel)
    return input.softmax(dim) if dtype is None else input.softmax(dim, dtype=dtype)


def softmin(
    input: torch.Tensor, dim=None, _stacklevel=3, dtype: torch.dtype | None = None
) -> torch.Tensor:
    """softmax of -x."""
    if has_torch_function_unary(input):
        return redirect(softmin, locals())
    if dim is None:
        dim = _softmax_dim("softmin", input.dim(), _stacklevel)
    return (-input).softmax(dim) if dtype is None else (-input).softmax(dim, dtype=dtype)


def log_softmax(
    input: torch.Tensor, dim=None, _stacklevel=3, dtype: torch.dtype | None = None
) -> torch.Tensor:
    """The logarithm of softmax, exact for small probabilities."""
    if has_torch_function_unary(input):
        return redirect(log_softmax, locals())
    if dim is None:
        dim = _softmax_dim("log_softmax", input.dim(), _stacklevel)
    return input.log_softmax(dim) if dtype is None else input.log_softmax(dim, dtype=dtype)


def gumbel_softmax(
    logits: torch.Tensor, tau=1, hard: bool = False, eps: float = 1e-10, dim=-1
) -> torch.Tensor:
    """A Gumbel-softmax sample; with hard, one-hot forward and soft backward."""
    if has_torch_function_unary(logits):
        return redirect(gumbel_softmax, locals())
    noise = (
        -torch.empty_like(logits, memory_format=torch.legacy_contiguous_format).exponential_().log()
    )
    soft = ((logits + noise) / tau).softmax(dim)
    if not hard:
        return soft
    index = soft.max(dim, keepdim=True)[1]
    one_hot = torch.zeros_like(logits, memory_format=torch.legacy_contiguous_format)
    return one_hot.scatter_(dim, index, 1.0) - soft.detach() + soft


# ---- dropout
# --------------------------------------------------------------------------------------------------


def _dropout(name, input, p, training, inplace) -> torch.Tensor:
    if p < 0.0 or p > 1.0:
        raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")
    return getattr(_VF, name + ("_" if inplace else ""))(input, p, training)


def dropout(
    input: torch.Tensor, p: float = 0.5, training: bool = True, inplace: bool = False
) -> torch.Tensor:
    """Zeroes each element with probability p and scales the others by 1 / (1 - p)."""
    if has_torch_function_unary(input):
        return redirect(dropout, locals())
    return _dropout("dropout", input, p, training, inplace)


def alpha_dropout(
    input: torch.Tensor, p: float = 0.5, training: bool = False, inplace: bool = False
) -> torch.Tensor:
    """Dropout that keeps mean and variance for self-normalising networks."""
    if has_torch_function_unary(input):
        return redirect(alpha_dropout, locals())
    return _dropout("alpha_dropout", input, p, training, inplace)


def feature_alpha_dropout(
    input: torch.Tensor, p: float = 0.5, training: bool = False, inplace: bool = False
) -> torch.Tensor:
    """alpha_dropout of whole channels."""
    if has_torch_function_unary(input):
        return redirect(feature_alpha_dropout, locals())
    return _dropout("feature_alpha_dropout", input, p, training, inplace)


def _warn_shape(name, input, expected, unbatched) -> None:
    warnings.warn(
        f"{name}: Received a {input.dim()}-D input to {name}, which is deprecated and will "
        "result in an error in "
        "a future release. To retain the behavior and silence this warning, please use dropout "
        "instead. Note that "
        f"{name} exists to provide channel-wise dropout on inputs with {unbatched} spatial "
        "dimensions, a channel "
        f"dimension, and an optional batch dimension (i.e. {expected}D inputs).",
        stacklevel=3,
    )


def dropout1d(
    input: torch.Tensor, p: float = 0.5, training: bool = True, inplace: bool = False
) -> torch.Tensor:
    """Zeroes whole channels of (N, C, L) or (C, L)."""
    if has_torch_function_unary(input):
        return redirect(dropout1d, locals())
    if input.dim() not in (2, 3):
        raise RuntimeError(
            f"dropout1d: Expected 2D or 3D input, but received a {input.dim()}D input. Note "
            "that dropout1d exists "
            "to provide channel-wise dropout on inputs with 1 spatial dimension, a channel "
            "dimension, and an "
            "optional batch dimension (i.e. 2D or 3D inputs)."
        )
    batched = input.dim() == 3
    whole = input if batched else (input.unsqueeze_(0) if inplace else input.unsqueeze(0))
    result = _dropout("feature_dropout", whole, p, training, inplace)
    if batched:
        return result
    return result.squeeze_(0) if inplace else result.squeeze(0)


def dropout2d(
    input: torch.Tensor, p: float = 0.5, training: bool = True, inplace: bool = False
) -> torch.Tensor:
    """Zeroes whole channels of (N, C, H, W)."""
    if has_torch_function_unary(input):
        return redirect(dropout2d, locals())
    if input.dim() not in (3, 4):
        _warn_shape("dropout2d", input, "3D or 4", "2")
    elif input.dim() == 3:
        warnings.warn(
            "dropout2d: Received a 3D input to dropout2d and assuming that channel-wise 1D dropout "
            "behavior is desired - input is interpreted as shape (N, C, L), where C is the channel "
            "dim. This behavior will change in a future release to interpret the input as one "
            "without a batch dimension, i.e. shape (C, H, W). To maintain the 1D channel-wise "
            "dropout behavior, please switch to using dropout1d instead.",
            stacklevel=2,
        )
    return _dropout("feature_dropout", input, p, training, inplace)


def dropout3d(
    input: torch.Tensor, p: float = 0.5, training: bool = True, inplace: bool = False
) -> torch.Tensor:
    """Zeroes whole channels of (N, C, D, H, W) or (C, D, H, W)."""
    if has_torch_function_unary(input):
        return redirect(dropout3d, locals())
    if input.dim() not in (4, 5):
        _warn_shape("dropout3d", input, "4D or 5", "3")
    batched = input.dim() == 5
    whole = input if batched else (input.unsqueeze_(0) if inplace else input.unsqueeze(0))
    result = _dropout("feature_dropout", whole, p, training, inplace)
    if batched:
        return result
    return result.squeeze_(0) if inplace else result.squeeze(0)


# ---- linear maps, padding, rearrangement
# ----------------------------------------------------------------------


# Called for every layer of every network: the operator itself, which asks __torch_function__ too.
linear = _C._nn.linear


bilinear = _VF.bilinear


def pad(input: torch.Tensor, pad, mode: str = "constant", value=None) -> torch.Tensor:
    """Pads the last dimensions: pad lists (before, after) from the last dimension backwards."""
    if has_torch_function_unary(input):
        return redirect(_pad, locals())
    return _nn("pad")(input, pad, mode, value)


_pad = pad


def embedding(
    input: torch.Tensor,
    weight: torch.Tensor,
    padding_idx=None,
    max_norm=None,
    norm_type=2.0,
    scale_grad_by_freq: bool = False,
    sparse: bool = False,
) -> torch.Tensor:
    """The rows of weight that the indices in input name."""
    if has_torch_function_variadic(input, weight):
        return redirect(embedding, locals())
    rows = weight.size(0)
    if padding_idx is None:
        padding_idx = -1
    elif not -rows <= padding_idx < rows:
        raise AssertionError("Padding_idx must be within num_embeddings")
    elif padding_idx < 0:
        padding_idx += rows
    if max_norm is not None:
        input = input.contiguous()
        with torch.no_grad():
            torch.embedding_renorm_(weight, input, max_norm, norm_type)
    return torch.embedding(weight, input, padding_idx, scale_grad_by_freq, sparse)


one_hot = _C._nn.one_hot


pixel_shuffle = _VF.pixel_shuffle


pixel_unshuffle = _VF.pixel_unshuffle


channel_shuffle = _VF.channel_shuffle


native_channel_shuffle = _VF.native_channel_shuffle


# ---- normalisation
# -------------------------------------------------------------------------------------------


def _verify_batch_size(size) -> None:
    """Training statistics of one value are meaningless."""
    count = size[0]
    for n in size[2:]:
        count *= n
    if count == 1:
        raise ValueError(
            f"Expected more than 1 value per channel when training, got input size {size}"
        )


def batch_norm(
    input: torch.Tensor,
    running_mean,
    running_var,
    weight: torch.Tensor | None = None,
    bias: torch.Tensor | None = None,
    training: bool = False,
    momentum=0.1,
    eps: float = 1e-5,
) -> torch.Tensor:
    """Each channel to mean 0 and variance 1: of the batch in training, else the running ones."""
    tensors = (input, running_mean, running_var, weight, bias)
    if has_torch_function_variadic(*tensors):
        return redirect(batch_norm, locals())
    if training:
        _verify_batch_size(input.size())
    return torch.batch_norm(
        input, weight, bias, running_mean, running_var, training, momentum, eps, True
    )


def instance_norm(
    input: torch.Tensor,
    running_mean: torch.Tensor | None = None,
    running_var: torch.Tensor | None = None,
    weight: torch.Tensor | None = None,
    bias: torch.Tensor | None = None,
    use_input_stats: bool = True,
    momentum=0.1,
    eps: float = 1e-5,
) -> torch.Tensor:
    """Each channel of each sample to mean 0 and variance 1."""
    tensors = (input, running_mean, running_var, weight, bias)
    if has_torch_function_variadic(*tensors):
        return redirect(instance_norm, locals())
    if (running_mean is None) != (running_var is None):
        raise ValueError("running_mean and running_var must either both be None or neither be None")
    if use_input_stats:
        count = 1
        for n in input.size()[2:]:
            count *= n
        if count == 1:
            raise ValueError(
                f"Expected more than 1 spatial element when training, got input size {input.size()}"
            )
    return torch.instance_norm(
        input, weight, bias, running_mean, running_var, use_input_stats, momentum, eps, True
    )


def layer_norm(
    input: torch.Tensor,
    normalized_shape,
    weight: torch.Tensor | None = None,
    bias: torch.Tensor | None = None,
    eps: float = 1e-5,
) -> torch.Tensor:
    """Each slice of the last dimensions to mean 0 and variance 1, then scaled and shifted."""
    if has_torch_function_variadic(input, weight, bias):
        return redirect(layer_norm, locals())
    return torch.layer_norm(input, normalized_shape, weight, bias, eps)


def rms_norm(
    input: torch.Tensor, normalized_shape, weight: torch.Tensor | None = None, eps=None
) -> torch.Tensor:
    """Each slice of the last dimensions divided by its root mean square, then scaled."""
    if has_torch_function_variadic(input, weight):
        return redirect(rms_norm, locals())
    return torch.rms_norm(input, normalized_shape, weight, eps)


def group_norm(
    input: torch.Tensor,
    num_groups,
    weight: torch.Tensor | None = None,
    bias: torch.Tensor | None = None,
    eps: float = 1e-5,
) -> torch.Tensor:
    """Each group of channels of each sample to mean 0 and variance 1."""
    if has_torch_function_variadic(input, weight, bias):
        return redirect(group_norm, locals())
    if input.dim() < 2:
        raise RuntimeError(
            f"Expected at least 2 dimensions for input tensor but received {input.dim()}"
        )
    size = input.size()
    _verify_batch_size([size[0] * size[1] // num_groups, num_groups, *size[2:]])
    return torch.group_norm(input, num_groups, weight, bias, eps)


def local_response_norm(input: torch.Tensor, size, alpha=1e-4, beta=0.75, k=1.0) -> torch.Tensor:
    """Divides by (k + alpha * mean(x^2))^beta, the mean over size neighbouring channels."""
    if has_torch_function_unary(input):
        return redirect(local_response_norm, locals())
    if input.dim() < 3:
        raise ValueError(
            f"Expected 3D or higher dimensionality input (got {input.dim()} dimensions)"
        )
    if input.numel() == 0:
        return input
    square = input.mul(input)
    padding = [0, 0] * (input.dim() - 2) + [size // 2, (size - 1) // 2]
    if square.is_floating_point() and input.dim() == 3:
        rows = _pad(square.unsqueeze(1), padding)
        mean = avg_pool2d(rows, (size, 1), stride=1).squeeze(1)  # noqa: F405
    else:
        windows = _pad(square, padding).unfold(1, size, 1)
        mean = windows.sum(-1) // size if not square.is_floating_point() else windows.mean(-1)
    return input / mean.mul(alpha).add(k).pow(beta)


def normalize(
    input: torch.Tensor, p: float = 2.0, dim: int = 1, eps: float = 1e-12, out=None
) -> torch.Tensor:
    """Divides by the p-norm along dim."""
    if has_torch_function_variadic(input, out):
        return redirect(normalize, locals())
    scale = input.norm(p, dim, keepdim=True)
    if out is None:
        return input / scale.clamp_min(eps).expand_as(input)
    return torch.div(input, scale.clamp_min_(eps).expand_as(input), out=out)


pdist = _VF.pdist
cosine_similarity = _VF.cosine_similarity
pairwise_distance = _VF.pairwise_distance


scaled_dot_product_attention = _C._nn.scaled_dot_product_attention


def assert_int_or_pair(arg, arg_name, message) -> None:
    """Raises unless arg is an int or a sequence of two."""
    assert isinstance(arg, int) or len(arg) == 2, message.format(arg_name)


# The functions of the files above belong to this module, where their names are public.
for _member in list(globals().values()):
    if (getattr(_member, "__module__", None) or "").startswith("torch.nn._"):
        _member.__module__ = __name__
del _member

_BORROWED = {
    **dict.fromkeys(
        ("_canonical_mask", "_in_projection", "_in_projection_packed", "_none_or_dtype"),
        "torch.nn._borrowed",
    ),
    **dict.fromkeys(("_single", "_pair", "_triple"), "torch.nn.modules.utils"),
}


def __getattr__(name):
    from importlib import import_module

    if name in _BORROWED:
        return getattr(import_module(_BORROWED[name]), name)
    if name == "_Reduction":
        return import_module("torch.nn._reduction")
    if name == "grad":
        return import_module("torch.nn.grad")
    raise AttributeError(f"module 'torch.nn.functional' has no attribute {name!r}")
