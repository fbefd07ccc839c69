"""Which device the tensors of a graph are on, as far as it follows from the inputs. Tensors without
dimensions on the CPU may be mixed with others, whose device wins."""

from __future__ import annotations

import torch
from torch.jit import _types as T
from torch.jit._constants import is_constant
from torch.jit._ir import Block, Graph, Node, Value

_CPU = torch.device("cpu")
_FACTORIES = frozenset(
    "aten::zeros aten::ones aten::empty aten::rand aten::randn aten::full aten::arange aten::eye "
    "aten::tensor aten::as_tensor aten::randint aten::linspace aten::scalar_tensor".split()
)


def propagate(graph: Graph) -> bool:
    """Sets devices until nothing changes; whether anything did."""
    changed = False
    while _block(graph.block):
        changed = True
    return changed


def _block(block: Block) -> bool:
    changed = False
    for node in block.nodes_list:
        if node.kind_name == "prim::If":
            for inner in node.blocks_list:
                changed |= _block(inner)
            for i, out in enumerate(node.outputs_list):
                sides = [_device(b.results[i]) for b in node.blocks_list]
                changed |= _set(out, sides[0] if sides[0] == sides[1] else None)
        elif node.kind_name == "prim::Loop":
            changed |= _loop(node)
        else:
            device = _result(node)
            for out in node.outputs_list:
                changed |= _set(out, device)
    return changed


def _loop(node: Node) -> bool:
    body = node.blocks_list[0]
    changed = False
    carried = zip(node.outputs_list, node.inputs_list[2:], body.params[1:], strict=True)
    for i, (out, first, param) in enumerate(carried):
        again = _device(body.results[i + 1])
        start = _device(first)
        same = start if again in (None, start) else None
        changed |= _set(param, same)
        if again is not None and again == start:
            changed |= _set(out, start)
    return _block(body) | changed


def _device(value: Value) -> torch.device | None:
    kind = value.type()
    return kind.device() if isinstance(kind, T.TensorType) else None


def _set(value: Value, device: torch.device | None) -> bool:
    kind = value.type()
    if device is None or not isinstance(kind, T.TensorType) or kind.device() == device:
        return False
    value.setType(kind.with_device(device))
    return True


def _given(node: Node) -> torch.device | None:
    """The device that an argument of the node names."""
    if node.schema_of is None:
        return None
    for formal, value in zip(node.schema_of.arguments, node.inputs_list, strict=False):
        if formal.name == "device" and is_constant(value) and value.toIValue() is not None:
            return torch.device(value.toIValue())
    return None


def _result(node: Node) -> torch.device | None:
    given = _given(node)
    if given is not None:
        return given
    if node.kind_name in _FACTORIES:
        return _CPU
    if node.kind_name == "aten::cpu":
        return _CPU
    if node.schema_of is None:
        return None
    if node.kind_name in ("aten::to",) and len(node.inputs_list) > 1:
        other = node.inputs_list[1]
        if isinstance(other.type(), T.TensorType):
            return _device(other)
    tensors = [v for v in node.inputs_list if isinstance(v.type(), T.TensorType)]
    if node.kind_name.endswith("_") and tensors:
        return _device(tensors[0])
    return _common(tensors)


def _common(tensors: list[Value]) -> torch.device | None:
    """The device of an operator's result: that of its inputs, where plain numbers do not count."""
    full = [v for v in tensors if v.type().dim() != 0]
    devices = {_device(v) for v in full or tensors}
    unsure = [v for v in tensors if v.type().dim() is None]
    if len(devices) == 1 and None not in devices:
        return devices.pop()
    if len(unsure) == len(tensors) or None in devices or len(devices) != 1:
        return None
    return devices.pop()
