"""Hooks of tensors. A hook on an input of the graph is registered on the running program's tensor
after the graph, where the trace did not remove it again. One on a value that the graph computes
is registered by the graph, which gets the hook as an input; only compiled autograd can follow
that, so without it the graph breaks."""

from __future__ import annotations

import sys
from collections import OrderedDict
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import torch
from torch._dynamo.exc import unimplemented
from torch._dynamo.variables.base import Args, Kwargs, VariableTracker
from torch._dynamo.variables.constant import NONE
from torch.utils.hooks import RemovableHandle

if TYPE_CHECKING:
    from torch._dynamo.codegen import Codegen
    from torch._dynamo.symbolic_convert import Frame
    from torch._dynamo.variables.tensor import TensorVariable


class RemovableHandleVariable(VariableTracker):
    """What registering a hook on an input returns. `method` registers it."""

    __slots__ = ("hook", "method", "removed", "tensor")

    def __init__(self, tensor: VariableTracker, method: str, hook: VariableTracker) -> None:
        super().__init__(None)
        self.tensor = tensor
        self.method = method
        self.hook = hook
        self.removed = False

    def python_type(self) -> type:
        return RemovableHandle

    def truth(self, tx: Frame) -> bool:
        return True

    def children(self) -> Iterator[VariableTracker]:
        yield self.tensor
        yield self.hook

    def getattr(self, tx: Frame, name: str) -> VariableTracker:
        return tx.attribute_of_builtin(self, name)

    def call_method(self, tx: Frame, name: str, args: Args, kwargs: Kwargs) -> VariableTracker:
        if name in ("remove", "__exit__"):
            self.removed = True
            return NONE
        if name == "__enter__":
            return self
        return super().call_method(tx, name, args, kwargs)

    def reconstruct(self, cg: Codegen) -> str:
        if self.removed:
            return f"{cg.const(RemovableHandle)}({cg.const(OrderedDict)}())"
        return f"{cg.expr(self.tensor)}.{self.method}({cg.expr(self.hook)})"


def register_in_graph(tensor: torch.Tensor, hook: Callable) -> torch.Tensor:
    """Registers a hook on a value of the graph."""
    tensor.register_hook(hook)
    return tensor


def register(tx: Frame, method: str, tensor: TensorVariable, hook: VariableTracker) -> object:
    """tensor.register_hook(hook) and its kin."""
    if tensor.source is not None and tensor.node.op == "placeholder":
        if not tensor.fake.requires_grad and method == "register_hook":
            unimplemented(
                f"Tensor.{method}", repr(tensor), "the tensor requires no gradient: an error"
            )
        handle = RemovableHandleVariable(tensor, method, hook)
        tx.out.side_effects.add_hook(handle)
        return handle
    if method != "register_hook" or not _autograd_is_compiled():
        unimplemented(
            f"Tensor.{method}",
            f"{tensor!r}.{method}()",
            "a hook on a tensor that the graph computes needs compiled autograd",
        )
    tx.out.side_effects.changes += 1
    node = tx.out.graph.create_node(
        "call_function", register_in_graph, (tensor.node, tx.out.made_input(hook)), {}
    )
    node.meta["example_value"] = tensor.fake
    tensor.node = node
    handle = RemovableHandleVariable(tensor, method, hook)
    handle.removed = True
    return handle


def _autograd_is_compiled() -> bool:
    module = sys.modules.get("torch._dynamo.compiled_autograd")
    return module is not None and module.enabled()
