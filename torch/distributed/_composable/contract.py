"""contract: for functions that make a module parallel in its place. They are applied to a module
once, keep a state for it, and leave the names of parameters, buffers and modules alone."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from torch import nn

__all__ = ["RegistryItem", "contract"]

_STATES, _REGISTRY = "_composable_states", "_composable_registry"


class _State:
    """What a function remembers of a module."""


class RegistryItem:
    """A function that was applied."""


def _names(module: nn.Module) -> dict[str, list[str]]:
    return {
        "parameters": [name for name, _ in module.named_parameters()],
        "buffers": [name for name, _ in module.named_buffers()],
        "modules": [name for name, _ in module.named_modules()],
    }


def _check_names(before: dict[str, list[str]], after: dict[str, list[str]]) -> None:
    for what, names in before.items():
        if names == after[what]:
            continue
        gone = sorted(set(names) - set(after[what]))
        new = sorted(set(after[what]) - set(names))
        raise RuntimeError(
            f"Checking {what}: Composable distributed API implementations cannot modify FQNs. "
            f"Gone are {gone}, new are {new}; as many stay in another order"
        )


def _get_registry(module: nn.Module) -> dict[str, RegistryItem] | None:
    """The functions that were applied to a module, by name; None for none."""
    return module.__dict__.get(_REGISTRY)


def contract(state_cls: type = _State) -> Callable:
    """Decorates a function whose first argument is a module or a list of modules."""

    def decorate(function: Callable) -> Callable:
        @functools.wraps(function)
        def applied(module: nn.Module | Sequence[nn.Module], *args: Any, **kwargs: Any) -> Any:
            modules = [module] if isinstance(module, nn.Module) else list(module)
            state, registry = state_cls(), dict(_get_registry(modules[0]) or {})
            for one in modules:
                if function in one.__dict__.get(_STATES, {}):
                    raise AssertionError(
                        "Each distinct composable distributed API can only be applied to a module "
                        f"once. {function.__name__} has already been applied to the following "
                        f"module:\n{one}"
                    )
            registry[function.__name__] = RegistryItem()
            for one in modules:
                one.__dict__.setdefault(_STATES, {})[function] = state
                one.__dict__[_REGISTRY] = registry
            before = [_names(one) for one in modules]
            result = function(module, *args, **kwargs)
            found = result if isinstance(result, (list, tuple)) else [result]
            after = modules if result is None else found
            if len(after) != len(modules):
                raise RuntimeError(
                    f"{function.__name__} got {len(modules)} modules and returned {len(after)}"
                )
            for names, one in zip(before, after, strict=True):
                _check_names(names, _names(one))
            return result

        def state_of(module: nn.Module) -> Any:
            """The state that the function has for a module; None where it was not applied."""
            return module.__dict__.get(_STATES, {}).get(function)

        applied.state = state_of
        return applied

    return decorate
