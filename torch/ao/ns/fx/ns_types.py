"""Names of what the numeric suite compares, and the shape of its results."""

from __future__ import annotations

import enum
from collections.abc import Callable
from typing import Any, NamedTuple

from torch.fx import Node


class NSSingleResultValuesType(str, enum.Enum):
    """What the values of a result are."""

    WEIGHT = "weight"
    NODE_OUTPUT = "node_output"
    NODE_INPUT = "node_input"


class NSSubgraph(NamedTuple):
    """Nodes that count as one operator: the first, the last, and the one that names it."""

    start_node: Node
    end_node: Node
    base_op_node: Node


NSNodeTargetType = Callable | str
# One record of a model: type, values, names of nodes, places of arguments.
NSSingleResultType = dict[str, Any]
# Layer, kind of result, model, records.
NSResultsType = dict[str, dict[str, dict[str, list[NSSingleResultType]]]]
