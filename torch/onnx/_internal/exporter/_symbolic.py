"""Nodes that a program names itself, by torch.onnx.ops.symbolic."""

from __future__ import annotations

import json
from collections.abc import Sequence

import onnx_ir as ir

from torch.onnx._internal.exporter._building import OpRecorder

__all__ = ["symbolic_node"]


def symbolic_node(
    recorder: OpRecorder, args: Sequence[object], kwargs: dict[str, object]
) -> tuple[object, ...]:
    """The values of a node whose operator and attributes the program gave."""
    inputs, name, attributes, version, metadata = args
    domain, _, operator = name.rpartition("::")
    types = [ir.DataType(number) for number in kwargs["dtypes"]]
    made = recorder.node(
        "" if domain == "ai.onnx" else domain,
        operator,
        inputs,
        json.loads(attributes),
        types,
        int(version) if version else None,
    )
    recorder.nodes[-1].metadata_props.update(json.loads(metadata))
    return made if isinstance(made, tuple) else (made,)
