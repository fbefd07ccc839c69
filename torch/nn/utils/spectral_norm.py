"""The older spectral_norm, by a hook before forward; parametrizations.spectral_norm replaces it."""

from __future__ import annotations

import torch
from torch.nn.parameter import Parameter
from torch.nn.utils import _power_iteration
from torch.nn.utils._weight_hooks import find_hook, pop_hook

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
        _power_iteration.check_count(n_power_iterations)
        self.name = name
        self.dim = dim
        self.n_power_iterations = n_power_iterations
        self.eps = eps

    def reshape_weight_to_matrix(self, weight) -> torch.Tensor:
        """The weight as a matrix whose rows are its slices along dim."""
        return _power_iteration.as_matrix(weight, self.dim)

    def compute_weight(self, module, do_power_iteration) -> torch.Tensor:
        """The normalized weight; in training, after some more power iterations."""
        weight = getattr(module, self.name + "_orig")
        u, v = getattr(module, self.name + "_u"), getattr(module, self.name + "_v")
        matrix = self.reshape_weight_to_matrix(weight)
        if do_power_iteration:
            _power_iteration.iterate(matrix, u, v, self.n_power_iterations, self.eps)
        return _power_iteration.divided(weight, matrix, u, v)

    def remove(self, module) -> None:
        """Makes the weight a parameter again."""
        with torch.no_grad():
            weight = self.compute_weight(module, do_power_iteration=False)
        for suffix in ("", "_u", "_v", "_orig"):
            delattr(module, self.name + suffix)
        module.register_parameter(self.name, Parameter(weight.detach()))

    def __call__(self, module, inputs) -> None:
        weight = self.compute_weight(module, do_power_iteration=module.training)
        setattr(module, self.name, weight)

    @staticmethod
    def apply(module, name, n_power_iterations, dim, eps) -> SpectralNorm:
        """Moves a module's weight aside and installs the hook."""
        if find_hook(module, SpectralNorm, name) is not None:
            raise RuntimeError(
                f"Cannot register two spectral_norm hooks on the same parameter {name}"
            )
        hook = SpectralNorm(name, n_power_iterations, dim, eps)
        if module._parameters[name] is None:
            raise ValueError(f"`SpectralNorm` cannot be applied as parameter `{name}` is None")
        hook._take_over(module)
        for register, function in (
            (module.register_forward_pre_hook, hook),
            (module._register_state_dict_hook, SpectralNormStateDictHook(hook)),
            (module._register_load_state_dict_pre_hook, SpectralNormLoadStateDictPreHook(hook)),
        ):
            register(function)
        return hook

    def _take_over(self, module) -> None:
        """Sets the weight aside as a parameter of another name, with the vectors beside it."""
        weight = module._parameters.pop(self.name)
        module.register_parameter(self.name + "_orig", weight)
        units = _power_iteration.random_units(self.reshape_weight_to_matrix(weight), self.eps)
        for suffix, unit in zip(("_u", "_v"), units, strict=True):
            module.register_buffer(self.name + suffix, unit)
        # A plain attribute, not a parameter: forward overwrites it with a computed tensor.
        setattr(module, self.name, weight.data)


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

    def __call__(self, module, state_dict, prefix, local_metadata) -> None:
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
    hook = pop_hook(module, SpectralNorm, name)
    if hook is None:
        raise ValueError(f"spectral_norm of '{name}' not found in {module}")
    hook.remove(module)
    for hooks, kind in (
        (module._state_dict_hooks, SpectralNormStateDictHook),
        (module._load_state_dict_pre_hooks, SpectralNormLoadStateDictPreHook),
    ):
        for key, entry in list(hooks.items()):
            hook = getattr(entry, "hook", entry)
            if isinstance(hook, kind) and hook.fn.name == name:
                del hooks[key]
    return module
