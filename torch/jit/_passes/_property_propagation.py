"""Properties of example inputs (shape, dtype, device) as types of a graph's inputs."""

from __future__ import annotations

import torch
from torch.jit._ir import Graph


def apply_input_props_using_example(graph: Graph, example_input: list[object]) -> None:
    """Gives the inputs of `graph`, beside a module's self, the types of the examples."""
    inputs = list(graph.inputs())
    if inputs and getattr(inputs[0].type(), "is_module", False):
        inputs = inputs[1:]
    if len(inputs) != len(example_input):
        raise RuntimeError(
            f"the graph has {len(inputs)} inputs but {len(example_input)} examples were given"
        )
    for value, example in zip(inputs, example_input, strict=True):
        if isinstance(example, torch.Tensor):
            value.setType(torch._C.TensorType.create_from_tensor(example))
