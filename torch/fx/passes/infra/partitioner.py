"""Grouping nodes that a backend supports into partitions that can be run as one.

Nodes are visited from the end of the graph. A supported node joins the first partition that it may
join without a cycle, whether a value flows between them or not; since partitions are tried in the
order they were begun, those near the end of the graph grow first. Reachability is kept as one bit
set per unit (a partition, or a node of its own), so that the question "does a path leave this
partition and come back" is one test of a bit per user."""

import logging
from collections.abc import Iterable, Mapping, Sequence

import torch
from torch.fx._compatibility import compatibility
from torch.fx.graph_module import GraphModule
from torch.fx.node import Node, _get_qualified_name
from torch.fx.passes.operator_support import OperatorSupportBase
from torch.fx.passes.utils.fuser_utils import fuse_by_partitions

__all__ = ["CapabilityBasedPartitioner", "Partition"]

logger = logging.getLogger(__name__)


@compatibility(is_backward_compatible=False)
class Partition:
    """Nodes that run together."""

    def __init__(
        self,
        id: int | None = None,
        nodes: Iterable[Node] | None = None,
        node_orders: Iterable[int] | None = None,
    ) -> None:
        self.id = id
        self.nodes: dict[Node, int | None] = {}
        if nodes is not None:
            nodes = list(nodes)
            orders = [None] * len(nodes) if node_orders is None else list(node_orders)
            self.nodes = dict(zip(nodes, orders, strict=True))

    def __repr__(self) -> str:
        return str(self.nodes)

    def add_node(self, node: Node, node_order: int | None = None) -> None:
        """Adds a node."""
        self.nodes[node] = node_order

    def remove_node(self, node: Node) -> None:
        """Takes a node out."""
        del self.nodes[node]

    def size(self) -> int:
        """The number of nodes."""
        return len(self.nodes)


class _Units:
    """Partitions and single nodes with what each reaches."""

    def __init__(self) -> None:
        self.unit_of: dict[Node, int] = {}
        self.reach: list[int] = []  # per unit: the units behind it, as bits

    def _below(self, node: Node) -> int:
        """The units that the node's users are in, and all behind them."""
        bits = 0
        for user in node.users:
            unit = self.unit_of[user]
            bits |= 1 << unit | self.reach[unit]
        return bits

    def add_alone(self, node: Node) -> int:
        """A new unit for a node whose users are known."""
        unit = len(self.reach)
        self.reach.append(self._below(node))
        self.unit_of[node] = unit
        return unit

    def may_join(self, node: Node, unit: int) -> bool:
        """Whether no path goes from the node through another unit into this one."""
        others = (self.unit_of[user] for user in node.users)
        return not any(other != unit and self.reach[other] >> unit & 1 for other in others)

    def join(self, node: Node, unit: int) -> None:
        """Makes the node part of the unit."""
        self.unit_of[node] = unit
        grown = (self.reach[unit] | self._below(node)) & ~(1 << unit)
        if grown != self.reach[unit]:
            self.reach[unit] = grown
            for other, bits in enumerate(self.reach):
                if bits >> unit & 1:
                    self.reach[other] = bits | grown


@compatibility(is_backward_compatible=False)
class CapabilityBasedPartitioner:
    """Proposes partitions of the nodes that `operator_support` supports, and fuses them."""

    def __init__(
        self,
        graph_module: GraphModule,
        operator_support: OperatorSupportBase,
        allows_single_node_partition: bool = False,
        non_compute_ops: Sequence[str] | None = None,
        allowed_single_node_partition_ops: Sequence[str] | None = None,
        skip_horizontal_fusion: bool = False,
    ) -> None:
        self.graph_module = graph_module
        self.operator_support = operator_support
        self.allows_single_node_partition = allows_single_node_partition
        self.non_compute_ops = non_compute_ops or []
        self.allowed_single_node_partition_ops = allowed_single_node_partition_ops or []
        self.skip_horizontal_fusion = skip_horizontal_fusion

    def _submodules(self) -> Mapping[str, torch.nn.Module]:
        return dict(self.graph_module.named_modules())

    def propose_partitions(self) -> list[Partition]:
        """The partitions, those of the end of the graph first."""
        submodules = self._submodules()
        units = _Units()
        partitions: dict[int, Partition] = {}
        order = {node: i for i, node in enumerate(self.graph_module.graph.nodes)}
        for node in reversed(self.graph_module.graph.nodes):
            supported = node.op not in ("placeholder", "output")
            supported = supported and self.operator_support.is_node_supported(submodules, node)
            unit = self._partition_for(node, units, partitions) if supported else None
            if unit is not None:
                units.join(node, unit)
            else:
                unit = units.add_alone(node)
                if supported:
                    partitions[unit] = Partition(id=len(partitions))
            if supported:
                partitions[unit].add_node(node, order[node])
        found = list(partitions.values())
        self._place_getitems(found, order)
        return [p for p in found if p.nodes and self._is_worth_it(p)]

    def _partition_for(
        self, node: Node, units: _Units, partitions: dict[int, Partition]
    ) -> int | None:
        for unit, partition in partitions.items():
            if self.skip_horizontal_fusion and not any(u in partition.nodes for u in node.users):
                continue
            if units.may_join(node, unit):
                return unit
        return None

    def _place_getitems(self, partitions: list[Partition], order: dict[Node, int]) -> None:
        """Reads of a result with several parts go where the result is made: otherwise a tuple would
        be the input or output of a partition."""
        home = {node: p for p in partitions for node in p.nodes}
        for node in order:
            if (
                node.op != "call_function"
                or _get_qualified_name(node.target) != "_operator.getitem"
            ):
                continue
            maker = node.args[0]
            target = home.get(maker) if isinstance(maker, Node) else None
            if home.get(node) is target:
                continue
            if node in home:
                home.pop(node).remove_node(node)
            if target is not None:
                target.add_node(node, order[node])
                home[node] = target

    def _is_worth_it(self, partition: Partition) -> bool:
        if self.allows_single_node_partition:
            return True
        names = [
            _get_qualified_name(node.target) if callable(node.target) else str(node.target)
            for node in partition.nodes
            if node.op in ("call_function", "call_module", "call_method")
        ]
        passive = {"_operator.getitem", *self.non_compute_ops}
        if any(name in self.allowed_single_node_partition_ops for name in names):
            return True
        return sum(name not in passive for name in names) > 1

    def fuse_partitions(self, partitions: list[Partition], prefix: str = "fused_") -> GraphModule:
        """Makes a submodule of each partition, and a call of it in its place."""
        return fuse_by_partitions(
            self.graph_module, [list(p.nodes) for p in partitions], prefix=prefix
        )

    def remove_bookend_non_compute_ops(self, partitions: list[Partition]) -> None:
        """Takes operators that compute nothing away from the edges of partitions."""
        for partition in partitions:
            while edge := [node for node in partition.nodes if self._is_edge(node, partition)]:
                for node in edge:
                    partition.remove_node(node)

    def _is_edge(self, node: Node, partition: Partition) -> bool:
        if node.op != "call_function":
            return False
        if _get_qualified_name(node.target) not in self.non_compute_ops:
            return False
        inside = partition.nodes
        return not any(n in inside for n in node.all_input_nodes) or not any(
            n in inside for n in node.users
        )

    def partition_and_fuse(self, prefix: str = "fused_") -> GraphModule:
        """Proposes and fuses."""
        return self.fuse_partitions(self.propose_partitions(), prefix=prefix)
