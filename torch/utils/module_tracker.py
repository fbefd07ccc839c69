"""Which modules are running: names of all modules whose forward or backward is under way."""

from __future__ import annotations

import weakref

import torch
from torch.nn.modules.module import (
    register_module_forward_hook,
    register_module_forward_pre_hook,
)
from torch.utils._pytree import tree_leaves

__all__ = ["ModuleTracker"]


def _differentiable(value: object) -> list[torch.Tensor]:
    """The tensors in a value, however nested, that gradients flow through."""
    return [t for t in tree_leaves(value) if isinstance(t, torch.Tensor) and t.requires_grad]


class ModuleTracker:
    """Inside the block, `parents` holds the full names of the modules that are running, and
    "Global"; `is_bw` says whether a backward pass runs."""

    def __init__(self) -> None:
        self.parents = {"Global"}
        self._known = weakref.WeakKeyDictionary()
        self._seen_roots = weakref.WeakSet()
        self._hooks = []

    @property
    def is_bw(self) -> bool:
        """Whether a backward pass runs."""
        return torch._C._current_graph_task_id() != -1

    def _name_of(self, module) -> str:
        if module not in self._known:
            root = type(module).__name__
            for path, child in module.named_modules():
                if child not in self._known:
                    self._known[child] = f"{root}.{path}" if path else root
        return self._known[module]

    def _push(self, name) -> None:
        self.parents.add(name)

    def _pop(self, name) -> None:
        self.parents.discard(name)

    def _before_forward(self, module, inputs) -> None:
        name = self._name_of(module)
        self._push(name)
        tensors = _differentiable(inputs)
        if torch.is_grad_enabled() and tensors:
            torch.autograd.graph.register_multi_grad_hook(tensors, lambda grads: self._pop(name))

    def _after_forward(self, module, inputs, output) -> None:
        name = self._name_of(module)
        self._pop(name)
        tensors = _differentiable(output)
        if torch.is_grad_enabled() and tensors:
            torch.autograd.graph.register_multi_grad_hook(
                tensors, lambda grad: self._push(name), mode="any"
            )

    def __enter__(self) -> ModuleTracker:
        self._hooks = [
            register_module_forward_pre_hook(self._before_forward),
            register_module_forward_hook(self._after_forward, always_call=True),
        ]
        return self

    def __exit__(self, *exc) -> None:
        for hook in self._hooks:
            hook.remove()
        self._hooks = []
