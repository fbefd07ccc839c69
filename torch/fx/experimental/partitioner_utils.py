"""Parts of a model placed on devices: how much memory each needs and how long a run takes."""

from enum import Enum
from typing import NamedTuple

from torch.fx.node import Node

__all__ = [
    "Device",
    "NodeLatency",
    "Partition",
    "PartitionLatency",
    "PartitionMode",
    "PartitionerConfig",
    "get_comm_latency_between",
    "get_extra_size_of",
    "get_latency_of_one_partition",
    "get_latency_of_partitioned_graph",
    "get_partition_to_latency_mapping",
]


class Partition:
    """Nodes that run on one device. The values of inputs and attributes they use count too."""

    def __init__(self, partition_id: int) -> None:
        self.nodes: set[Node] = set()
        self.partition_id = partition_id
        self.parents: set[Partition] = set()
        self.children: set[Partition] = set()
        self.bfs_level = -1
        self.used_mem_bytes = 0
        self.logical_device_ids: list[int] = []

    def __str__(self) -> str:
        return str(self.partition_id)

    def recalculate_mem_size(self) -> None:
        """Sums up the memory anew."""
        self.used_mem_bytes = sum(get_extra_size_of(node, self.nodes) for node in self.nodes)

    def add_parent(self, partition: "Partition") -> None:
        """Notes a partition whose values this one uses."""
        self.parents.add(partition)

    def add_child(self, partition: "Partition") -> None:
        """Notes a partition that uses this one's values."""
        self.children.add(partition)

    def add_node(self, node: Node) -> None:
        """Adds a node, with the inputs and attributes it uses."""
        self.nodes.update(n for n in node.all_input_nodes if n.op in ("placeholder", "get_attr"))
        self.nodes.add(node)
        self.recalculate_mem_size()

    def remove_node(self, node: Node) -> None:
        """Takes a node out, with inputs and attributes that nobody else here uses."""
        if node not in self.nodes:
            return
        self.nodes.remove(node)
        for used in node.all_input_nodes:
            needed = any(user in self.nodes for user in used.users)
            if used.op in ("placeholder", "get_attr") and not needed:
                self.nodes.discard(used)
        self.recalculate_mem_size()


class Device(NamedTuple):
    """A device with its memory."""

    name: str
    available_mem_bytes: int
    logical_id: int


class NodeLatency(NamedTuple):
    """Seconds a node needs for its memory traffic and for its arithmetic."""

    mem_latency_sec: float
    computer_latency_sec: float


class PartitionLatency(NamedTuple):
    """Seconds along the slowest path of a partition; a node takes the longer of its two times."""

    mem_latency_sec: float
    computer_latency_sec: float
    overall_latency_sec: float


class PartitionMode(Enum):
    """How partitions are found."""

    size_based = 0
    sparse_nn = 1
    cost_aware = 2
    kl_based = 3
    aot_based = 4


class PartitionerConfig(NamedTuple):
    """What a partitioner is asked for."""

    devices: list[Device]
    mode: PartitionMode = PartitionMode.size_based
    transfer_rate_bytes_per_sec: float = 0.0
    node_to_latency_mapping: dict[Node, NodeLatency] = {}
    node_to_partition_mapping: dict[Node, int] = {}
    partition_to_logical_device_mapping: dict[int, list[int]] = {}
    # Whether devices that are left get copies of the partitions.
    saturate_host: bool = False


def _size(node: Node, attribute: str) -> int:
    size = getattr(node, "size_bytes", None)
    if size is None:
        raise RuntimeError("node has no size_bytes attr")
    return getattr(size, attribute)


def get_extra_size_of(node: Node, nodes: set[Node]) -> int:
    """The memory that a node adds to a set of nodes: its own, and that of its inputs outside."""
    outside = [n for n in node.all_input_nodes if n not in nodes]
    return _size(node, "total_size") + sum(_size(n, "output_size") for n in outside)


def get_latency_of_one_partition(
    partition: Partition, node_to_latency_mapping: dict[Node, NodeLatency]
) -> PartitionLatency:
    """The slowest path through a partition."""
    best = PartitionLatency(0.0, 0.0, 0.0)
    ending: dict[Node, PartitionLatency] = {}
    for node in sorted(n for n in partition.nodes if n.op not in ("placeholder", "get_attr")):
        before = [ending[i] for i in node.all_input_nodes if i in ending]
        start = max(before, key=lambda p: p.overall_latency_sec, default=PartitionLatency(0, 0, 0))
        own = node_to_latency_mapping[node]
        ending[node] = PartitionLatency(
            start.mem_latency_sec + own.mem_latency_sec,
            start.computer_latency_sec + own.computer_latency_sec,
            start.overall_latency_sec + max(own),
        )
        best = max(best, ending[node], key=lambda p: p.overall_latency_sec)
    return best


def get_partition_to_latency_mapping(
    partitions: list[Partition], node_to_latency_mapping: dict[Node, NodeLatency]
) -> dict[Partition, PartitionLatency]:
    """The slowest path of each partition."""
    return {p: get_latency_of_one_partition(p, node_to_latency_mapping) for p in partitions}


def get_comm_latency_between(
    parent_partition: Partition, child_partition: Partition, transfer_rate_bytes_per_sec: float
) -> float:
    """Seconds for the values that flow from one partition to another; none on one device."""
    mine, theirs = parent_partition.logical_device_ids, child_partition.logical_device_ids
    if mine and mine == theirs:
        return 0.0
    sent = {
        used
        for node in child_partition.nodes
        for used in node.all_input_nodes
        if used in parent_partition.nodes and used not in child_partition.nodes
    }
    return sum(_size(node, "output_size") for node in sent) / transfer_rate_bytes_per_sec


def get_latency_of_partitioned_graph(
    partitions: list[Partition],
    partition_to_latency_mapping: dict[Partition, PartitionLatency],
    transfer_rate_bytes_per_sec: float,
) -> float:
    """Seconds from the first partition to the last along the slowest path, transfers included."""
    known: dict[Partition, float] = {}

    def until_end(partition: Partition) -> float:
        if partition not in known:
            rest = (
                get_comm_latency_between(partition, child, transfer_rate_bytes_per_sec)
                + until_end(child)
                for child in partition.children
            )
            own = partition_to_latency_mapping[partition].overall_latency_sec
            known[partition] = own + max(rest, default=0.0)
        return known[partition]

    return max((until_end(p) for p in partitions if not p.parents), default=0.0)
