"""Masks as parametrizations, and the names of tensors in a model."""

from __future__ import annotations

from itertools import chain
from typing import Any

from torch import Tensor, nn
from torch.nn.utils.parametrize import is_parametrized, type_before_parametrizations

__all__ = [
    "FakeSparsity",
    "fqn_to_module",
    "get_arg_info_from_tensor_fqn",
    "module_contains_param",
    "module_to_fqn",
    "swap_module",
]


class FakeSparsity(nn.Module):
    """A parametrization that multiplies a weight by a mask."""

    def __init__(self, mask: Tensor) -> None:
        super().__init__()
        self.register_buffer("mask", mask)

    def forward(self, x: Tensor) -> Tensor:
        if self.mask.shape != x.shape:
            raise AssertionError(
                f"mask of shape {tuple(self.mask.shape)} for a weight of {tuple(x.shape)}"
            )
        return self.mask * x

    def state_dict(self, *args: Any, **kwargs: Any) -> dict[str, Any]:
        # The mask belongs to the sparsifier, which saves it.
        return {}


def module_contains_param(module: nn.Module, parametrization: type[nn.Module]) -> bool:
    """Whether some tensor of a module has a parametrization of a class."""
    if not is_parametrized(module):
        return False
    parts = chain.from_iterable(module.parametrizations.values())
    return any(isinstance(part, parametrization) for part in parts)


def swap_module(mod: nn.Module, mapping: dict[type[nn.Module], type[nn.Module]]) -> nn.Module:
    """The module that a table has for `mod`, with its hooks; `mod` itself where there is none."""
    target = mapping.get(type_before_parametrizations(mod))
    if target is None:
        return mod
    made = target.from_dense(mod)
    made._forward_pre_hooks.update(mod._forward_pre_hooks)
    made._forward_hooks.update(mod._forward_hooks)
    devices = {t.device for t in chain(mod.parameters(), mod.buffers())}
    if len(devices) > 1:
        raise AssertionError(f"swap_module only works with modules on one device, got {devices}")
    return made.to(next(iter(devices))) if devices else made


def module_to_fqn(model: nn.Module, module: nn.Module, prefix: str = "") -> str | None:
    """The dotted name of a part; None where it is no part."""
    for name, part in model.named_modules():
        if part is module:
            return ".".join(word for word in (prefix, name) if word)
    return None


def fqn_to_module(model: nn.Module | None, path: str) -> nn.Module | Tensor | None:
    """The part or tensor of a dotted name; None where there is none."""
    found: Any = model
    for word in path.split(".") if path else []:
        found = getattr(found, word, None)
    return found


def get_arg_info_from_tensor_fqn(model: nn.Module, tensor_fqn: str) -> dict[str, Any]:
    """The parts of the name of a tensor: its module, the module's name, and its own name."""
    module_fqn, _, tensor_name = tensor_fqn.rpartition(".")
    return {
        "module_fqn": module_fqn,
        "module": fqn_to_module(model, module_fqn),
        "tensor_name": tensor_name,
        "tensor_fqn": tensor_fqn,
    }


class FakeStructuredSparsity(nn.Module):
    """A parametrization that sets whole rows of a weight to zero."""

    def __init__(self, mask: Tensor) -> None:
        super().__init__()
        self.register_buffer("mask", mask)

    def forward(self, x: Tensor) -> Tensor:
        if self.mask.shape[0] != x.shape[0]:
            raise AssertionError(f"mask of {self.mask.shape[0]} rows for {x.shape[0]}")
        return self.mask.reshape([-1] + [1] * (x.dim() - 1)) * x

    def state_dict(self, *args: Any, **kwargs: Any) -> dict[str, Any]:
        return {}
