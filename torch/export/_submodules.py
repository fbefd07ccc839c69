"""The modules that an unflattened program is made of: one that runs a graph, and one that stands
for a module whose calls ran different graphs."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import torch
from torch import fx, nn

__all__ = ["InterpreterModule", "InterpreterModuleDispatcher"]


class InterpreterModule(fx.GraphModule):
    """A submodule of an unflattened program: a graph whose state and submodules are its own, or
    those of `root`. `ty` names the class of the module that it comes from."""

    def __init__(
        self, graph: fx.Graph, ty: str | None = None, root: nn.Module | None = None
    ) -> None:
        super().__init__(nn.Module() if root is None else root, graph, "InterpreterModule")
        self._ty = ty

    def forward(self, *args: object, **kwargs: object) -> object:
        """Runs the graph node by node. An instance has the code of its graph instead."""
        if kwargs:
            raise TypeError(f"InterpreterModule.forward takes no keywords, got {sorted(kwargs)}")
        return fx.Interpreter(self).run(*args)

    def finalize(self) -> None:
        """Makes changes of the graph take effect."""
        self.graph.lint()
        self.recompile()

    def type_name(self) -> str | None:
        """The class of the module that this one comes from."""
        return self._ty


class InterpreterModuleDispatcher(nn.Module):
    """A module whose calls ran different graphs: its calls go to the modules of those graphs in
    turn, and begin again after the last. `attrs` names what it shows of the first of them."""

    def __init__(self, attrs: Collection[str], call_modules: Sequence[InterpreterModule]) -> None:
        super().__init__()
        if not call_modules:
            raise ValueError("InterpreterModuleDispatcher: expected at least one module")
        self.__dict__["_call_modules"] = list(call_modules)
        self._next = 0
        first = call_modules[0]
        for name in sorted(attrs):
            value = getattr(first, name)
            if isinstance(value, torch.Tensor) and name in first._buffers:
                kept = name not in first._non_persistent_buffers_set
                self.register_buffer(name, value, persistent=kept)
            else:
                setattr(self, name, value)

    def forward(self, *args: object, **kwargs: object) -> object:
        """Calls the module whose turn it is."""
        module = self._call_modules[self._next]
        self._next = (self._next + 1) % len(self._call_modules)
        return module(*args, **kwargs)

    def call_modules(self) -> list[InterpreterModule]:
        """The modules, in the order of the calls."""
        return list(self._call_modules)

    def type_name(self) -> str | None:
        """The class of the module that this one comes from."""
        return self._call_modules[0].type_name()

    def print_readable(
        self,
        print_output: bool = True,
        include_stride: bool = False,
        include_device: bool = False,
        colored: bool = False,
    ) -> str:
        """The code of all modules."""
        text = "\n".join(
            module.print_readable(False, include_stride, include_device, colored)
            for module in self._call_modules
        )
        if print_output:
            print(text)
        return text
