"""The older spectral_norm, by a hook before forward; parametrizations.spectral_norm replaces it."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch.nn.parameter import Parameter

__all__ = [
    "SpectralNorm",
    "SpectralNormLoadStateDictPreHook",
    "SpectralNormStateDictHook",
    "remove_spectral_norm",
    "spectral_norm",
]


class SpectralNorm:
    """The hook: divides `<name>_orig` by its largest singular value, found by power iteration."""

    # Version 1 saves both vectors of the power iteration.
    _version = 1

    def __init__(
        self, name: str = "weight", n_power_iterations=1, dim: int = 0, eps: float = 1e-12
    ) -> None:
        if n_power_iterations <= 0:
            raise ValueError(
                "Expected n_power_iterations to be positive, but got "
                f"n_power_iterations={n_power_iterations}"
            )
        self.name = name
        self.dim = dim
        self.n_power_iterations = n_power_iterations
        self.eps = eps

    def reshape_weight_to_matrix(self, weight) -> Any:
        """The weight as a matrix whose rows are its slices along dim."""
        if self.dim != 0:
            others = (d for d in range(weight.dim()) if d != self.dim)
            weight = weight.permute(self.dim, *others)
        return weight.reshape(weight.size(0), -1)

    def compute_weight(self, module, do_power_iteration) -> Any:
        """The normalized weight; in training, after some more power iterations."""
        weight = getattr(module, self.name + "_orig")
        u, v = getattr(module, self.name + "_u"), getattr(module, self.name + "_v")
        matrix = self.reshape_weight_to_matrix(weight)
        if do_power_iteration:
            with torch.no_grad():
                for _ in range(self.n_power_iterations):
                    v.copy_(F.normalize(torch.mv(matrix.t(), u), dim=0, eps=self.eps))
                    u.copy_(F.normalize(torch.mv(matrix, v), dim=0, eps=self.eps))
        # Copies: the next forward changes the buffers while backward still needs these values.
        u, v = u.clone(), v.clone()
        return weight / torch.dot(u, torch.mv(matrix, v))

    def remove(self, module) -> Any:
        """Makes the weight a parameter again."""
        with torch.no_grad():
            weight = self.compute_weight(module, do_power_iteration=False)
        for suffix in ("", "_u", "_v", "_orig"):
            delattr(module, self.name + suffix)
        module.register_parameter(self.name, Parameter(weight.detach()))

    def __call__(self, module, inputs) -> Any:
        weight = self.compute_weight(module, do_power_iteration=module.training)
        setattr(module, self.name, weight)

    @staticmethod
    def apply(module, name, n_power_iterations, dim, eps) -> Any:
        """Moves a module's weight aside and installs the hook."""
        for hook in module._forward_pre_hooks.values():
            if isinstance(hook, SpectralNorm) and hook.name == name:
                raise RuntimeError(
                    f"Cannot register two spectral_norm hooks on the same parameter {name}"
                )
        hook = SpectralNorm(name, n_power_iterations, dim, eps)
        weight = module._parameters[name]
        if weight is None:
            raise ValueError(f"`SpectralNorm` cannot be applied as parameter `{name}` is None")
        with torch.no_grad():
            matrix = hook.reshape_weight_to_matrix(weight)
            height, width = matrix.size()
            u = F.normalize(weight.new_empty(height).normal_(0, 1), dim=0, eps=eps)
            v = F.normalize(weight.new_empty(width).normal_(0, 1), dim=0, eps=eps)
        delattr(module, name)
        module.register_parameter(name + "_orig", weight)
        # A plain attribute, not a parameter: forward overwrites it with a computed tensor.
        setattr(module, name, weight.data)
        module.register_buffer(name + "_u", u)
        module.register_buffer(name + "_v", v)
        module.register_forward_pre_hook(hook)
        module._register_state_dict_hook(SpectralNormStateDictHook(hook))
        module._register_load_state_dict_pre_hook(SpectralNormLoadStateDictPreHook(hook))
        return hook


class SpectralNormLoadStateDictPreHook:
    """Completes a state from before version 1 of the hook: it held the normalized weight and the
    left vector only, from which the right one follows."""

    def __init__(self, fn) -> None:
        self.fn = fn

    def __call__(
        self, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs
    ) -> None:
        key, fn = prefix + self.fn.name, self.fn
        versions = local_metadata.get("spectral_norm", {})
        old = versions.get(fn.name + ".version", 0) < 1 and key + "_v" not in state_dict
        if not old or any(k not in state_dict for k in (key, key + "_orig", key + "_u")):
            return  # complete, or so incomplete that the report of missing keys says it best
        with torch.no_grad():
            weight, original = state_dict.pop(key), state_dict[key + "_orig"]
            matrix, u = fn.reshape_weight_to_matrix(original), state_dict[key + "_u"]
            v = torch.linalg.pinv(matrix) @ u
            sigma = (original / weight).mean()
            state_dict[key + "_v"] = v * (sigma / torch.dot(u, torch.mv(matrix, v)))


class SpectralNormStateDictHook:
    """Marks a saved state with the version of this hook."""

    def __init__(self, fn) -> None:
        self.fn = fn

    def __call__(self, module, state_dict, prefix, local_metadata) -> Any:
        versions = local_metadata.setdefault("spectral_norm", {})
        versions[self.fn.name + ".version"] = self.fn._version


def spectral_norm(module, name: str = "weight", n_power_iterations=1, eps: float = 1e-12, dim=None):
    """Keeps the largest singular value of a module's weight at one."""
    if dim is None:
        # Looked up late: torch.nn.modules itself may import this package.
        names = ("ConvTranspose1d", "ConvTranspose2d", "ConvTranspose3d")
        transposed = tuple(getattr(torch.nn, name) for name in names)
        dim = 1 if isinstance(module, transposed) else 0
    SpectralNorm.apply(module, name, n_power_iterations, dim, eps)
    return module


def remove_spectral_norm(module, name: str = "weight"):
    """Undoes spectral_norm; the weight keeps its present value."""
    for key, hook in module._forward_pre_hooks.items():
        if isinstance(hook, SpectralNorm) and hook.name == name:
            hook.remove(module)
            del module._forward_pre_hooks[key]
            break
    else:
        raise ValueError(f"spectral_norm of '{name}' not found in {module}")
    for hooks, kind in (
        (module._state_dict_hooks, SpectralNormStateDictHook),
        (module._load_state_dict_pre_hooks, SpectralNormLoadStateDictPreHook),
    ):
        for key, entry in list(hooks.items()):
            hook = getattr(entry, "hook", entry)
            if isinstance(hook, kind) and hook.fn.name == name:
                del hooks[key]
    return module
