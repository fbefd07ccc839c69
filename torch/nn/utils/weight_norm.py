"""The older weight_norm, by a hook before forward; parametrizations.weight_norm replaces it."""

from __future__ import annotations

import warnings

import torch
from torch.nn.parameter import Parameter
from torch.nn.utils._weight_hooks import find_hook, pop_hook

__all__ = ["WeightNorm", "remove_weight_norm", "weight_norm"]


class WeightNorm:
    """The hook: computes the weight from its length `<name>_g` and direction `<name>_v`."""

    def __init__(self, name, dim) -> None:
        self.name = name
        self.dim = -1 if dim is None else dim

    def compute_weight(self, module) -> torch.Tensor:
        """The weight from its two parts."""
        g, v = getattr(module, self.name + "_g"), getattr(module, self.name + "_v")
        return torch._weight_norm(v, g, self.dim)

    @staticmethod
    def apply(module, name, dim) -> WeightNorm:
        """Splits a module's weight and installs the hook."""
        if find_hook(module, WeightNorm, name) is not None:
            raise RuntimeError(
                f"Cannot register two weight_norm hooks on the same parameter {name}"
            )
        hook = WeightNorm(name, dim)
        weight = getattr(module, name)
        del module._parameters[name]
        length = torch.norm_except_dim(weight.detach(), 2, hook.dim)
        module.register_parameter(name + "_g", Parameter(length))
        module.register_parameter(name + "_v", Parameter(weight.data))
        setattr(module, name, hook.compute_weight(module))
        module.register_forward_pre_hook(hook)
        return hook

    def remove(self, module) -> None:
        """Makes the weight a parameter again."""
        whole = Parameter(self.compute_weight(module).data)
        for suffix in ("", "_g", "_v"):
            delattr(module, self.name + suffix)
        module.register_parameter(self.name, whole)

    def __call__(self, module, inputs) -> None:
        setattr(module, self.name, self.compute_weight(module))


def weight_norm(module, name: str = "weight", dim: int | None = 0):
    """Splits a module's weight into length and direction."""
    warnings.warn(
        "`torch.nn.utils.weight_norm` is deprecated in favor of "
        "`torch.nn.utils.parametrizations.weight_norm`.",
        FutureWarning,
        stacklevel=2,
    )
    WeightNorm.apply(module, name, dim)
    return module


def remove_weight_norm(module, name: str = "weight"):
    """Undoes weight_norm; the weight keeps its present value."""
    hook = pop_hook(module, WeightNorm, name)
    if hook is None:
        raise ValueError(f"weight_norm of '{name}' not found in {module}")
    hook.remove(module)
    return module
