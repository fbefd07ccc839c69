"""Which modules are running, with hooks of the program's own around their passes."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch.utils.module_tracker import ModuleTracker, _differentiable

__all__ = ["ModTracker"]

Hook = Callable[..., Any]


class ModTracker(ModuleTracker):
    """A tracker that calls back before and after the passes of every module."""

    def __init__(self) -> None:
        super().__init__()
        self._user: dict[str, Hook | None] = {}

    def get_known_fqn(self, mod: nn.Module) -> str | None:
        """The name of a module that has run."""
        return self._known.get(mod)

    def register_user_hooks(
        self,
        pre_fw_hook: Hook | None = None,
        post_fw_hook: Hook | None = None,
        pre_bw_hook: Hook | None = None,
        post_bw_hook: Hook | None = None,
    ) -> None:
        """Calls pre_fw_hook(module, inputs), post_fw_hook(module, inputs, outputs),
        pre_bw_hook(module, gradients of outputs) and post_bw_hook(module, gradients of inputs); a
        module that is gone by then is None. Each can be set once."""
        given = {
            "pre_fw": pre_fw_hook,
            "post_fw": post_fw_hook,
            "pre_bw": pre_bw_hook,
            "post_bw": post_bw_hook,
        }
        for name, hook in given.items():
            if hook is not None and self._user.get(name) is not None:
                raise AssertionError(f"Only one {name} hook can be registered at a time.")
        self._user |= {name: hook for name, hook in given.items() if hook is not None}

    def clear_user_hooks(self) -> None:
        """Forgets the hooks."""
        self._user = {}

    def _call(self, name: str, *arguments: Any) -> None:
        hook = self._user.get(name)
        if hook is not None:
            hook(*arguments)

    def _before_forward(self, module: nn.Module, inputs: Any) -> None:
        name, held = self._name_of(module), weakref.ref(module)
        self._push(name)
        self._call("pre_fw", module, inputs)
        tensors = _differentiable(inputs)
        if torch.is_grad_enabled() and tensors:

            def leave(grads: Any) -> None:
                self._call("post_bw", held(), grads)
                self._pop(name)

            torch.autograd.graph.register_multi_grad_hook(tensors, leave)

    def _after_forward(self, module: nn.Module, inputs: Any, output: Any) -> None:
        name, held = self._name_of(module), weakref.ref(module)
        self._call("post_fw", module, inputs, output)
        self._pop(name)
        tensors = _differentiable(output)
        if torch.is_grad_enabled() and tensors:

            def enter(grad: Any) -> None:
                self._push(name)
                self._call("pre_bw", held(), grad)

            torch.autograd.graph.register_multi_grad_hook(tensors, enter, mode="any")
