"""The backend that hands captured graphs to ONNX Runtime. It is known where the packages onnx,
onnxscript and onnxruntime are installed. A graph becomes a model for the sizes that it is called
with; other sizes get a model of their own. The derivative is a graph like the forward pass."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import fx
from torch._dynamo.backends.common import aot_autograd
from torch._dynamo.backends.registry import register_backend


class _Models:
    """A graph as a function that ONNX Runtime computes."""

    def __init__(self, gm: fx.GraphModule) -> None:
        self.gm = gm
        self.outputs = gm.graph.output_node().args[0]
        self.programs: dict[tuple, torch.onnx.ONNXProgram] = {}

    def __call__(self, *args: object) -> tuple[object, ...]:
        with torch.no_grad():
            key = tuple(_described(a) for a in args)
            program = self.programs.get(key)
            if program is None:
                program = self.programs[key] = self._translated(args)
            found = iter(program(*args))
        return tuple(self._result(wanted, found) for wanted in self.outputs)

    def _translated(self, args: tuple[object, ...]) -> torch.onnx.ONNXProgram:
        exported = torch.export.export(self.gm, args)
        return torch.onnx.export(exported, verbose=False)

    def _result(self, wanted: object, found: object) -> object:
        """An output in the place of one of the graph: models leave out those that are None, and
        give tensors for numbers."""
        if wanted is None:
            return None
        value = next(found)
        if not isinstance(wanted, fx.Node):
            return wanted
        example = wanted.meta.get("val")
        return value if isinstance(example, torch.Tensor) else value.item()


def _described(value: object) -> object:
    """What a model depends on: sizes and types of tensors, other values themselves."""
    if isinstance(value, torch.Tensor):
        return tuple(value.shape), value.dtype
    return type(value), value


def _compiled(gm: fx.GraphModule, example_inputs: list[object]) -> Callable:
    return _Models(gm)


@register_backend
def onnxrt(gm: fx.GraphModule, example_inputs: list[object]) -> Callable:
    """Runs the captured graph and its derivative by ONNX Runtime on the CPU."""
    return aot_autograd(fw_compiler=_compiled)(gm, example_inputs)
