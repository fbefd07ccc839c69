"""Wrappers that compute a module's activations again in the backward pass, or keep them on the CPU.
Names of parameters and states stay those of the module."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from enum import Enum, auto
from functools import partial
from typing import Any

import torch
from torch import nn
from torch.autograd.graph import save_on_cpu
from torch.utils.checkpoint import checkpoint

__all__ = [
    "ActivationWrapper",
    "CheckpointImpl",
    "CheckpointWrapper",
    "OffloadWrapper",
    "apply_activation_checkpointing",
    "checkpoint_wrapper",
    "offload_wrapper",
]

_CHECKPOINT_WRAPPED_MODULE = "_checkpoint_wrapped_module"
_CHECKPOINT_PREFIX = _CHECKPOINT_WRAPPED_MODULE + "."


class CheckpointImpl(Enum):
    """Whether the backward pass enters the engine again."""

    REENTRANT = auto()
    NO_REENTRANT = auto()


class ActivationWrapper(nn.Module):
    """A module around another that shows the other's attributes and names."""

    def __init__(self, mod: nn.Module) -> None:
        super().__init__()
        self._checkpoint_wrapped_module = mod
        self._register_state_dict_hook(self._post_state_dict_hook)
        self._register_load_state_dict_pre_hook(self._pre_load_state_dict_hook, with_module=True)

    def __getattr__(self, name: str) -> Any:
        try:
            return super().__getattr__(name)
        except AttributeError:
            return getattr(self._checkpoint_wrapped_module, name)

    def __getitem__(self, key: int) -> Any:
        return self._checkpoint_wrapped_module.__getitem__(key)

    def named_parameters(self, *args: Any, **kwargs: Any) -> Iterator[tuple[str, nn.Parameter]]:
        """Parameters, by the names they have in the module."""
        for name, parameter in super().named_parameters(*args, **kwargs):
            yield name.replace(_CHECKPOINT_PREFIX, ""), parameter

    @staticmethod
    def _post_state_dict_hook(
        module: nn.Module, state_dict: dict[str, Any], prefix: str, *args: Any
    ) -> dict[str, Any]:
        for key in [key for key in state_dict if key.startswith(prefix + _CHECKPOINT_PREFIX)]:
            state_dict[prefix + key[len(prefix) + len(_CHECKPOINT_PREFIX) :]] = state_dict.pop(key)
        return state_dict

    @staticmethod
    def _pre_load_state_dict_hook(
        module: nn.Module, state_dict: dict[str, Any], prefix: str, *args: Any
    ) -> None:
        for key in [key for key in state_dict if key.startswith(prefix)]:
            rest = key[len(prefix) :]
            if not rest.startswith(_CHECKPOINT_PREFIX):
                state_dict[prefix + _CHECKPOINT_PREFIX + rest] = state_dict.pop(key)


class OffloadWrapper(ActivationWrapper):
    """Keeps what a module saves for the backward pass on the CPU."""

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """The module's own."""
        with save_on_cpu(pin_memory=torch.cuda.is_available()):
            return self._checkpoint_wrapped_module(*args, **kwargs)


class CheckpointWrapper(ActivationWrapper):
    """Computes a module again in the backward pass."""

    def __init__(
        self,
        mod: nn.Module,
        checkpoint_impl: CheckpointImpl = CheckpointImpl.NO_REENTRANT,
        checkpoint_fn: Callable | None = None,
        **checkpoint_fn_kwargs: Any,
    ) -> None:
        super().__init__(mod)
        self.checkpoint_impl = checkpoint_impl
        if checkpoint_fn is None:
            reentrant = checkpoint_impl == CheckpointImpl.REENTRANT
            self.checkpoint_fn = partial(
                checkpoint, use_reentrant=reentrant, **checkpoint_fn_kwargs
            )
        else:
            self.checkpoint_fn = partial(checkpoint_fn, **checkpoint_fn_kwargs)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """The module's own, to be done again."""
        module = self._checkpoint_wrapped_module
        if self.checkpoint_impl != CheckpointImpl.REENTRANT or not kwargs:
            return self.checkpoint_fn(module, *args, **kwargs)
        # The reentrant form passes positions alone.
        names, count = list(kwargs), len(args)

        def by_position(*values: Any) -> Any:
            return module(*values[:count], **dict(zip(names, values[count:], strict=True)))

        return self.checkpoint_fn(by_position, *args, *kwargs.values())


def offload_wrapper(module: nn.Module) -> nn.Module:
    """The module, with what it saves kept on the CPU."""
    return OffloadWrapper(module)


def checkpoint_wrapper(
    module: nn.Module,
    checkpoint_impl: CheckpointImpl = CheckpointImpl.NO_REENTRANT,
    checkpoint_fn: Callable | None = None,
    **checkpoint_fn_kwargs: Any,
) -> nn.Module:
    """The module, computed again in the backward pass."""
    return CheckpointWrapper(module, checkpoint_impl, checkpoint_fn, **checkpoint_fn_kwargs)


def apply_activation_checkpointing(
    model: nn.Module,
    checkpoint_wrapper_fn: Callable[[nn.Module], nn.Module] = checkpoint_wrapper,
    check_fn: Callable[[nn.Module], bool] = lambda _: True,
    auto_wrap_policy: Callable[[nn.Module, bool, int], bool] | None = None,
) -> None:
    """Wraps the submodules that check_fn (or the policy) chooses, in place."""

    def chosen(module: nn.Module) -> bool:
        if auto_wrap_policy is None:
            return check_fn(module)
        return bool(auto_wrap_policy(module=module, recurse=False, nonwrapped_numel=0))

    def visit(module: nn.Module) -> None:
        for name, child in list(module.named_children()):
            visit(child)
            if chosen(child):
                setattr(module, name, checkpoint_wrapper_fn(child))

    visit(model)
