"""What a module holds while it is exported: parameters and buffers, which a trace replaces by
tensors without data, and other attributes, whose changes a trace must not leave behind."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from types import TracebackType

import torch
import torch.utils._pytree as pytree
from torch import Tensor, nn
from torch._subclasses.fake_tensor import FakeTensorMode

__all__ = ["Attributes", "State"]


class State:
    """Parameters and buffers by name, and the names of other tensors and objects."""

    def __init__(self, mod: nn.Module, runs: nn.Module | None = None) -> None:
        """`runs` is the module that is traced where that is not mod itself; it holds the same
        tensors under other names."""
        self.mod = mod
        self.runs = mod if runs is None else runs
        self.parameters = dict(mod.named_parameters(remove_duplicate=False))
        self.buffers = dict(mod.named_buffers(remove_duplicate=False))
        self.not_persistent = {
            f"{prefix}.{name}" if prefix else name
            for prefix, module in mod.named_modules(remove_duplicate=False)
            for name in module._non_persistent_buffers_set
        }
        self.constants: dict[int, str] = {}  # names of tensors and objects that are attributes
        self._kept: list[object] = []
        known = {id(t) for t in (*self.parameters.values(), *self.buffers.values())}
        for prefix, module in mod.named_modules(remove_duplicate=False):
            for name, value in vars(module).items():
                if isinstance(value, (Tensor, torch._C.ScriptObject)) and id(value) not in known:
                    self.constants.setdefault(id(value), f"{prefix}.{name}" if prefix else name)
                    self._kept.append(value)

    @property
    def tensors(self) -> dict[str, Tensor]:
        """Parameters, then buffers."""
        return {**self.parameters, **self.buffers}

    @property
    def names(self) -> list[str]:
        """The names of what a trace takes as inputs; a tensor with several names has one input for
        each."""
        return list(self.tensors)

    def fakes(self, mode: FakeTensorMode) -> list[Tensor]:
        """The tensors without data."""
        return [mode.from_tensor(t, static_shapes=True) for t in self.tensors.values()]

    def _slots(self) -> Iterator[tuple[dict[str, object], str, str]]:
        """(dictionary, key, name) of every parameter and buffer; the last name of one that has
        several."""
        names = {} if self.runs is self.mod else {id(t): n for n, t in self.tensors.items()}
        for prefix, module in self.runs.named_modules(remove_duplicate=False):
            for held in (module._parameters, module._buffers):
                for key, value in held.items():
                    name = f"{prefix}.{key}" if prefix else key
                    if self.runs is not self.mod:
                        name = names.get(id(value))
                    if value is not None and name is not None:
                        yield held, key, name

    @contextlib.contextmanager
    def replaced_by(self, tensors: dict[str, Tensor]) -> Iterator[None]:
        """The module holds other tensors inside."""
        slots = list(self._slots())
        before = [held[key] for held, key, _ in slots]
        first: dict[int, Tensor] = {}
        for (held, key, name), real in zip(slots, before, strict=True):
            held[key] = first.setdefault(id(real), tensors[name])
        try:
            yield
        finally:
            for (held, key, _), value in zip(slots, before, strict=True):
                held[key] = value

    def write_assigned(self, tensors: dict[str, Tensor]) -> None:
        """Buffers that were assigned to get what was assigned."""
        known = {id(t) for t in tensors.values()}
        if self.runs is not self.mod:
            return  # assignments were turned into results by whoever made the module
        for held, key, name in list(self._slots()):
            value = held[key]
            if name in self.buffers and isinstance(value, Tensor) and id(value) not in known:
                tensors[name].copy_(value)
                held[key] = tensors[name]


class Attributes:
    """The attributes of all submodules, put back at the end of the block."""

    _OWN = ("_parameters", "_buffers", "_modules", "forward")

    def __init__(self, mod: nn.Module) -> None:
        self.mod = mod
        self.before: list[tuple[str, dict, dict]] = []
        self.containers: list[tuple[list | dict, list | dict]] = []

    def __enter__(self) -> Attributes:
        seen: set[int] = set()
        for prefix, module in self.mod.named_modules():
            held = vars(module)
            kept = {k: v for k, v in held.items() if k not in self._OWN}
            self.before.append((prefix, held, kept))
            for value in kept.values():
                self._keep(value, seen)
        self.leaves = dict(self._tensors())
        return self

    def _keep(self, value: object, seen: set[int]) -> None:
        if type(value) not in (list, dict) or id(value) in seen:
            return
        seen.add(id(value))
        self.containers.append((value, value.copy()))
        for part in value.values() if isinstance(value, dict) else value:
            self._keep(part, seen)

    def _tensors(self) -> Iterator[tuple[str, Tensor]]:
        """Tensors among the attributes, by a path as the program would write it."""
        for prefix, held, kept in self.before:
            owner = f"self.{prefix}" if prefix else "self"
            for name in kept:
                value = held.get(name)
                if isinstance(value, Tensor):
                    yield f"{owner}.{name}", value
                elif type(value) in (list, dict, tuple):
                    for path, leaf in pytree.tree_leaves_with_path(value):
                        if isinstance(leaf, Tensor):
                            yield f"{owner}.{name}{pytree.keystr(path)}", leaf

    def check(self) -> None:
        """Raises where a tensor was assigned in the place of another that is no buffer."""
        changed = [
            path
            for path, value in self._tensors()
            if path in self.leaves and self.leaves[path] is not value
        ]
        if changed:
            several = len(changed) > 1
            raise ValueError(
                f"The tensor attribute{'s' if several else ''} {', '.join(changed)} "
                f"{'were' if several else 'was'} assigned during export. Such attributes must be "
                "registered as buffers using the `register_buffer` API "
                "(https://pytorch.org/docs/stable/generated/torch.nn.Module.html"
                "#torch.nn.Module.register_buffer)."
            )

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for container, copy in self.containers:
            container.clear()
            if isinstance(container, dict):
                container.update(copy)
            else:
                container.extend(copy)
        for _, held, kept in self.before:
            for name in [n for n in held if n not in kept and n not in self._OWN]:
                del held[name]
            held.update(kept)
