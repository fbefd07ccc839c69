"""Activation functions as modules. Those without parameters are made from one table: the module's
name, the functional it calls, and the attributes it passes on."""

import torch
from torch.nn import functional as F
from torch.nn.modules.module import Module
from torch.nn.parameter import Parameter

__all__ = ["PReLU"]


def _init_from(defaults):
    names = list(defaults)

    def __init__(self, *args, **kwargs):
        Module.__init__(self)
        if len(args) > len(names):
            raise TypeError(
                f"{type(self).__name__}.__init__() takes at most {len(names)} arguments "
                f"({len(args)} given)"
            )
        values = {**defaults, **dict(zip(names, args, strict=False))}
        for key, value in kwargs.items():
            if key not in defaults:
                raise TypeError(
                    f"{type(self).__name__}.__init__() got an unexpected keyword argument '{key}'"
                )
            values[key] = value
        for key, value in values.items():
            setattr(self, key, value)

    import inspect

    parameters = [inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD)]
    for name, default in defaults.items():
        parameters.append(
            inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD, default=default)
        )
    __init__.__signature__ = inspect.Signature(parameters)
    return __init__


def _make(name, function, doc, shown=None, **defaults):
    """`shown` names the attributes the repr gives; `inplace` only when it is set."""

    def forward(self, input):
        return getattr(F, function)(input, **{key: getattr(self, key) for key in defaults})

    def extra_repr(self):
        parts = []
        for key in defaults:
            value = getattr(self, key)
            if key == "inplace":
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
_make("Hardswish", "hardswish", "A piecewise form of x * sigmoid(x).", inplace=False)
_make("Hardsigmoid", "hardsigmoid", "A piecewise linear sigmoid.", inplace=False)
_make("Hardtanh", "hardtanh", "x limited to a range.", min_val=-1.0, max_val=1.0, inplace=False)
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
    threshold=0,
    value=0,
    inplace=False,
)


class Tanh(Module):
    """tanh(x)."""

    def forward(self, input):
        return torch.tanh(input)


class Sigmoid(Module):
    """1 / (1 + exp(-x))."""

    def forward(self, input):
        return torch.sigmoid(input)


class Softmax2d(Module):
    """Softmax over channels of (N, C, H, W) or (C, H, W)."""

    def forward(self, input):
        if input.dim() not in (3, 4):
            raise ValueError(
                f"Softmax2d: expected input to be 3D or 4D, got {input.dim()}D instead"
            )
        return F.softmax(input, -3)


class PReLU(Module):
    """x above 0, a learned slope below."""

    __constants__ = ["num_parameters"]

    def __init__(self, num_parameters=1, init=0.25, device=None, dtype=None):
        super().__init__()
        self.num_parameters = num_parameters
        self.init = init
        self.weight = Parameter(torch.empty(num_parameters, device=device, dtype=dtype))
        self.reset_parameters()

    def reset_parameters(self):
        """The initial slope everywhere."""
        torch.nn.init.constant_(self.weight, self.init)

    def forward(self, input):
        return F.prelu(input, self.weight)

    def extra_repr(self):
        return f"num_parameters={self.num_parameters}"


__all__ += ["Tanh", "Sigmoid", "Softmax2d"]
