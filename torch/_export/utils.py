"""Questions about nodes of exported programs, and names that programs know from here."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import torch
from torch import Tensor, fx
from torch.export.exported_program import ExportedProgram
from torch.export.graph_signature import InputKind

__all__ = [
    "get_buffer",
    "get_lifted_tensor_constant",
    "get_param",
    "is_buffer",
    "is_lifted_tensor_constant",
    "is_param",
    "nodes_filter",
    "register_dataclass_as_pytree_node",
]


def _target(program: ExportedProgram, node: fx.Node, kind: InputKind) -> str | None:
    for spec in program.graph_signature.input_specs:
        if spec.kind is kind and spec.arg.name == node.name:
            return spec.target
    return None


def is_param(program: ExportedProgram, node: fx.Node) -> bool:
    """Whether a node stands for a parameter."""
    return _target(program, node, InputKind.PARAMETER) is not None


def get_param(program: ExportedProgram, node: fx.Node) -> torch.nn.Parameter | None:
    """The parameter that a node stands for."""
    name = _target(program, node, InputKind.PARAMETER)
    return None if name is None else program.state_dict[name]


def is_buffer(program: ExportedProgram, node: fx.Node) -> bool:
    """Whether a node stands for a buffer."""
    return _target(program, node, InputKind.BUFFER) is not None


def get_buffer(program: ExportedProgram, node: fx.Node) -> Tensor | None:
    """The buffer that a node stands for."""
    name = _target(program, node, InputKind.BUFFER)
    if name is None:
        return None
    return program.state_dict[name] if name in program.state_dict else program.constants[name]


def is_lifted_tensor_constant(program: ExportedProgram, node: fx.Node) -> bool:
    """Whether a node stands for a constant tensor."""
    return _target(program, node, InputKind.CONSTANT_TENSOR) is not None


def get_lifted_tensor_constant(program: ExportedProgram, node: fx.Node) -> Tensor | None:
    """The constant tensor that a node stands for."""
    name = _target(program, node, InputKind.CONSTANT_TENSOR)
    return None if name is None else program.constants[name]


def register_dataclass_as_pytree_node(
    cls: type, *, serialized_type_name: str | None = None
) -> None:
    """As torch.export.register_dataclass."""
    torch.export.register_dataclass(cls, serialized_type_name=serialized_type_name)


def nodes_filter(nodes: Iterable[fx.Node], node_call_back: Callable[[fx.Node], bool]) -> list:
    """The nodes of which the function says yes."""
    return [node for node in nodes if node_call_back(node)]
