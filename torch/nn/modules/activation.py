"""Activation functions as modules. Those without parameters are made from one table: the module's
name, the functional it calls, and the attributes it passes on. Attention stands here too, because
pickled modules name this place."""

from __future__ import annotations

import warnings

import torch
from torch.nn import functional as F
from torch.nn._attention import map_shared
from torch.nn.modules._parameters import declare
from torch.nn.modules.linear import NonDynamicallyQuantizableLinear
from torch.nn.modules.module import Module
from torch.nn.parameter import Parameter

__all__ = ["PReLU"]


_REQUIRED = object()


def _init_from(defaults):
    names = list(defaults)
    least = sum(default is _REQUIRED for default in defaults.values())
    takes = f"from {1 + least} to {1 + len(names)}" if least < len(names) else f"{1 + len(names)}"

    def __init__(self, *args, **kwargs) -> None:
        Module.__init__(self)
        where = f"{type(self).__name__}.__init__()"
        if len(args) > len(names):
            plural = "s" if names else ""
            raise TypeError(
                f"{where} takes {takes} positional argument{plural} but {1 + len(args)} were given"
            )
        values = {**defaults, **dict(zip(names, args, strict=False))}
        for key, value in kwargs.items():
            if key not in defaults:
                raise TypeError(f"{where} got an unexpected keyword argument '{key}'")
            values[key] = value
        missing = [repr(key) for key, value in values.items() if value is _REQUIRED]
        if missing:
            plural = "s" if len(missing) > 1 else ""
            raise TypeError(
                f"{where} missing {len(missing)} required positional argument{plural}: "
                f"{' and '.join(missing)}"
            )
        for key, value in values.items():
            setattr(self, key, value)

    import inspect

    parameters = [inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD)]
    for name, default in defaults.items():
        default = inspect.Parameter.empty if default is _REQUIRED else default
        parameters.append(
            inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD, default=default)
        )
    __init__.__signature__ = inspect.Signature(parameters)
    return __init__


def _make(name, function, doc, shown=None, **defaults) -> None:
    """`shown` is how the repr gives the attributes, "" not at all; `inplace` only when set."""

    def forward(self, input):
        return getattr(F, function)(input, **{key: getattr(self, key) for key in defaults})

    def extra_repr(self) -> str:
        parts = []
        for key in defaults:
            value = getattr(self, key)
            if key == "inplace" and shown != "":
                parts += ["inplace=True"] if value else []
            elif shown is None:
                parts.append(f"{key}={value!r}" if isinstance(value, str) else f"{key}={value}")
            else:
                parts += [shown.format(value)] if shown else []
        return ", ".join(parts)

    body = {
        "__doc__": doc,
        "__init__": _init_from(defaults),
        "__constants__": list(defaults),
        "__module__": __name__,
        "forward": forward,
        "extra_repr": extra_repr,
    }
    globals()[name] = type(name, (Module,), body)
    __all__.append(name)


_make("ReLU", "relu", "max(x, 0).", inplace=False)
_make("ReLU6", "relu6", "min(max(x, 0), 6).", inplace=False)
_make("SELU", "selu", "The self-normalising exponential unit.", inplace=False)
_make("CELU", "celu", "The continuously differentiable ELU.", alpha=1.0, inplace=False)
_make("ELU", "elu", "x above 0, alpha * (exp(x) - 1) below.", alpha=1.0, inplace=False)
_make("GELU", "gelu", "x times the normal distribution function of x.", approximate="none")
_make("SiLU", "silu", "x * sigmoid(x).", inplace=False)
_make("Mish", "mish", "x * tanh(softplus(x)).", inplace=False)
_make("Hardswish", "hardswish", "A piecewise form of x * sigmoid(x).", shown="", inplace=False)
_make("Hardsigmoid", "hardsigmoid", "A piecewise linear sigmoid.", shown="", inplace=False)
_make(
    "LeakyReLU", "leaky_relu", "x above 0, a small slope below.", negative_slope=0.01, inplace=False
)
_make("LogSigmoid", "logsigmoid", "log(sigmoid(x)).")
_make("Softplus", "softplus", "A smooth max(x, 0).", beta=1.0, threshold=20.0)
_make("Softshrink", "softshrink", "x moved towards 0 by lambd.", shown="{}", lambd=0.5)
_make("Hardshrink", "hardshrink", "x, or 0 near 0.", shown="{}", lambd=0.5)
_make("Softsign", "softsign", "x / (1 + |x|).")
_make("Tanhshrink", "tanhshrink", "x - tanh(x).")
_make("Softmin", "softmin", "Softmax of -x.", dim=None)
_make("Softmax", "softmax", "exp(x) over its sum along dim.", dim=None)
_make("LogSoftmax", "log_softmax", "The logarithm of softmax.", dim=None)
_make("GLU", "glu", "The first half times the sigmoid of the second.", dim=-1)
_make(
    "Threshold",
    "threshold",
    "x above threshold, value elsewhere.",
    threshold=_REQUIRED,
    value=_REQUIRED,
    inplace=False,
)


class Tanh(Module):
    """tanh(x)."""

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        return torch.tanh(input)


class Sigmoid(Module):
    """1 / (1 + exp(-x))."""

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        return torch.sigmoid(input)


class Hardtanh(Module):
    """x limited to a range."""

    __constants__ = ["min_val", "max_val", "inplace"]

    def __init__(
        self, min_val=-1.0, max_val=1.0, inplace: bool = False, min_value=None, max_value=None
    ) -> None:
        super().__init__()
        for old, new in (("min_value", "min_val"), ("max_value", "max_val")):
            if (min_value if old == "min_value" else max_value) is not None:
                warnings.warn(
                    f"keyword argument `{old}` is deprecated and rename to `{new}`",
                    FutureWarning,
                    stacklevel=2,
                )
        self.min_val = min_val if min_value is None else min_value
        self.max_val = max_val if max_value is None else max_value
        self.inplace = inplace
        if self.max_val <= self.min_val:
            raise AssertionError(
                f"max_val ({self.max_val}) must be greater than min_val ({self.min_val})"
            )

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        return F.hardtanh(input, self.min_val, self.max_val, self.inplace)

    def extra_repr(self) -> str:
        place = ", inplace=True" if self.inplace else ""
        return f"min_val={self.min_val}, max_val={self.max_val}{place}"


class RReLU(Module):
    """x above 0; below, a slope drawn from [lower, upper] in training, their mean otherwise."""

    __constants__ = ["lower", "upper", "inplace"]

    def __init__(self, lower=1.0 / 8, upper=1.0 / 3, inplace: bool = False) -> None:
        super().__init__()
        self.lower = lower
        self.upper = upper
        self.inplace = inplace

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        return F.rrelu(input, self.lower, self.upper, self.training, self.inplace)

    def extra_repr(self) -> str:
        place = ", inplace=True" if self.inplace else ""
        return f"lower={self.lower}, upper={self.upper}{place}"


class Softmax2d(Module):
    """Softmax over channels of (N, C, H, W) or (C, H, W)."""

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        if input.dim() not in (3, 4):
            raise ValueError(
                f"Softmax2d: expected input to be 3D or 4D, got {input.dim()}D instead"
            )
        return F.softmax(input, -3)


class PReLU(Module):
    """x above 0, a learned slope below."""

    __constants__ = ["num_parameters"]

    def __init__(
        self, num_parameters: int = 1, init=0.25, device=None, dtype: torch.dtype | None = None
    ) -> None:
        super().__init__()
        self.num_parameters = num_parameters
        self.init = init
        self.weight = Parameter(torch.empty(num_parameters, device=device, dtype=dtype))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """The initial slope everywhere."""
        torch.nn.init.constant_(self.weight, self.init)

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        return F.prelu(input, self.weight)

    def extra_repr(self) -> str:
        return f"num_parameters={self.num_parameters}"


class MultiheadAttention(Module):
    """Attention in several subspaces at once: projects query, key and value, attends in each head,
    joins the heads and projects again."""

    __constants__ = ["batch_first"]
    _INPUT_WEIGHTS = ("in_proj_weight", "q_proj_weight", "k_proj_weight", "v_proj_weight")

    def __init__(
        self,
        embed_dim: int,
        num_heads: int,
        dropout: float = 0.0,
        bias: bool = True,
        add_bias_kv: bool = False,
        add_zero_attn: bool = False,
        kdim=None,
        vdim=None,
        batch_first: bool = False,
        device=None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        if embed_dim <= 0 or num_heads <= 0:
            raise ValueError(
                f"embed_dim and num_heads must be greater than 0, got embed_dim={embed_dim} and "
                f"num_heads={num_heads} instead"
            )
        self.head_dim, unshared = divmod(embed_dim, num_heads)
        if unshared:
            raise AssertionError("embed_dim must be divisible by num_heads")
        self.embed_dim, self.num_heads = embed_dim, num_heads
        self.kdim, self.vdim = (embed_dim if width is None else width for width in (kdim, vdim))
        self._qkv_same_embed_dim = {self.kdim, self.vdim} == {embed_dim}
        self.dropout, self.batch_first, self.add_zero_attn = dropout, batch_first, add_zero_attn
        place = {"device": device, "dtype": dtype}
        in_bias = {"in_proj_bias": 3 * embed_dim if bias else None}
        declare(self, self._input_weights() | in_bias, **place)
        self.out_proj = NonDynamicallyQuantizableLinear(embed_dim, embed_dim, bias, **place)
        if add_bias_kv:
            declare(self, dict.fromkeys(("bias_k", "bias_v"), (1, 1, embed_dim)), **place)
        else:
            self.bias_k = self.bias_v = None
        self._reset_parameters()

    def _input_weights(self) -> dict[str, tuple[int, int] | None]:
        """The shapes: one weight for all three inputs when they have one width, else three."""
        width = self.embed_dim
        shapes = dict.fromkeys(self._INPUT_WEIGHTS)
        if self._qkv_same_embed_dim:
            shapes["in_proj_weight"] = (3 * width, width)
        else:
            inputs = (width, self.kdim, self.vdim)
            shapes |= {f"{i}_proj_weight": (width, n) for i, n in zip("qkv", inputs, strict=True)}
        return shapes

    def _reset_parameters(self) -> None:
        init = torch.nn.init
        start = dict.fromkeys(self._INPUT_WEIGHTS, init.xavier_uniform_)
        start |= dict.fromkeys(("bias_k", "bias_v"), init.xavier_normal_)
        for name, draw in start.items():
            if getattr(self, name) is not None:
                draw(getattr(self, name))
        if self.in_proj_bias is not None:
            init.constant_(self.in_proj_bias, 0.0)
            init.constant_(self.out_proj.bias, 0.0)

    def _separate_weights(self) -> dict[str, bool | torch.Tensor]:
        """The arguments for three weights, where the inputs have different widths."""
        if self._qkv_same_embed_dim:
            return {}
        weights = {name: getattr(self, name) for name in self._INPUT_WEIGHTS[1:]}
        return {"use_separate_proj_weight": True, **weights}

    def __setstate__(self, state) -> None:
        # Modules pickled by old versions had one width only and did not say so.
        state.setdefault("_qkv_same_embed_dim", True)
        super().__setstate__(state)

    def forward(
        self,
        query: torch.Tensor,
        key: torch.Tensor,
        value: torch.Tensor,
        key_padding_mask: torch.Tensor | None = None,
        need_weights: bool = True,
        attn_mask: torch.Tensor | None = None,
        average_attn_weights: bool = True,
        is_causal: bool = False,
    ):
        asked = {
            "attn_mask": attn_mask,
            "key_padding_mask": key_padding_mask,
            "is_causal": is_causal,
            "need_weights": need_weights,
            "average_attn_weights": average_attn_weights,
        }
        if query.is_nested:
            from torch.nested._multihead import multihead_attention

            return multihead_attention(self, query, key, value, **asked)
        swap = self.batch_first and query.dim() == 3
        if swap:
            query, key, value = map_shared(lambda t: t.transpose(0, 1), query, key, value)
        output, weights = F.multi_head_attention_forward(
            *(query, key, value),
            *(self.embed_dim, self.num_heads),
            *(self.in_proj_weight, self.in_proj_bias),
            *(self.bias_k, self.bias_v, self.add_zero_attn),
            *(self.dropout, self.out_proj.weight, self.out_proj.bias, self.training),
            **asked,
            **self._separate_weights(),
        )
        return (output.transpose(0, 1) if swap else output), weights


__all__ += ["Tanh", "Sigmoid", "Softmax2d", "Hardtanh", "RReLU", "MultiheadAttention"]
