"""How the functions that compute a weight in a hook before forward (weight_norm, spectral_norm and
pruning) find their hook on a module again."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from torch.nn.modules.module import Module

T = TypeVar("T")


def find_hook(module: Module, kind: type[T], name: str, attribute: str = "name") -> int | None:
    """The key of the hook of this kind for the parameter `name`, which `attribute` of it holds."""
    hooks = module._forward_pre_hooks.items()
    matches = (k for k, h in hooks if isinstance(h, kind) and getattr(h, attribute) == name)
    return next(matches, None)


def pop_hook(module: Module, kind: type[T], name: str, attribute: str = "name") -> T | None:
    """Takes the hook that find_hook finds off the module; None where there is none."""
    key = find_hook(module, kind, name, attribute)
    return None if key is None else module._forward_pre_hooks.pop(key)
