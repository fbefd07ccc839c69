"""Partitioner places the nodes of a model on devices with little memory: in order of the graph,
apart for embeddings, by estimated time, or as told."""

import itertools
import operator
from collections.abc import Iterator
from typing import NamedTuple

import torch
from torch.fx.experimental.partitioner_utils import (
    Device,
    NodeLatency,
    Partition,
    PartitionerConfig,
    PartitionMode,
    get_extra_size_of,
    get_latency_of_partitioned_graph,
    get_partition_to_latency_mapping,
)
from torch.fx.graph_module import GraphModule
from torch.fx.node import Node
from torch.fx.passes.graph_manipulation import get_size_of_all_nodes
from torch.fx.passes.split_module import split_module

__all__ = ["DAG", "DAGNode", "PartitionResult", "Partitioner"]

_PASSIVE = ("placeholder", "get_attr", "output")


class DAGNode:
    """A part of the model: its call, what it takes and gives, where it runs."""

    def __init__(
        self,
        submodule_node: Node,
        input_nodes: list[Node],
        output_nodes: list[Node],
        logical_device_ids: list[int],
        size_bytes: int,
    ) -> None:
        self.submodule_node = submodule_node
        self.input_nodes = input_nodes
        self.output_nodes = output_nodes
        self.logical_device_ids = logical_device_ids
        self.size_bytes = size_bytes

    def __str__(self) -> str:
        return str(self.submodule_node)


class DAG:
    """The parts in the order they run."""

    def __init__(self) -> None:
        self.nodes: list[DAGNode] = []

    def create_node(
        self,
        submodule_node: Node,
        input_nodes: list[Node],
        output_nodes: list[Node],
        logical_devices: list[int],
        size_bytes: int,
    ) -> None:
        """Adds a part."""
        self.nodes.append(
            DAGNode(submodule_node, input_nodes, output_nodes, logical_devices, size_bytes)
        )


class PartitionResult(NamedTuple):
    """The parts, and the module that calls them."""

    dag: DAG
    module_with_submodules: GraphModule


def _link(partitions: list[Partition]) -> None:
    """Notes which partition uses values of which."""
    home = {n: p for p in partitions for n in p.nodes if n.op not in _PASSIVE}
    for partition in partitions:
        partition.parents, partition.children = set(), set()
    for node, partition in home.items():
        for user in node.users:
            other = home.get(user)
            if other is not None and other is not partition:
                partition.add_child(other)
                other.add_parent(partition)


def _is_acyclic(partitions: list[Partition]) -> bool:
    missing = {p: len(p.parents) for p in partitions}
    ready = [p for p, count in missing.items() if count == 0]
    for partition in ready:
        for child in partition.children:
            missing[child] -= 1
            if missing[child] == 0:
                ready.append(child)
    return len(ready) == len(partitions)


def _place(partitions: list[Partition], devices: list[Device]) -> dict[Partition, Device] | None:
    """A device for each partition, largest first, several on one where they fit; None where they do
    not."""
    left = {device: device.available_mem_bytes for device in devices}
    out: dict[Partition, Device] = {}
    for partition in sorted(partitions, key=lambda p: -p.used_mem_bytes):
        fits = [d for d in devices if left[d] >= partition.used_mem_bytes]
        if not fits:
            return None
        empty = [d for d in fits if left[d] == d.available_mem_bytes]
        device = min(empty or fits, key=lambda d: left[d])
        left[device] -= partition.used_mem_bytes
        out[partition] = device
    return out


class Partitioner:
    """Partitions a graph whose nodes have size_bytes."""

    def __init__(self) -> None:
        self.partitions: list[Partition] = []
        self.node_to_partition: dict[Node, int] = {}
        self.devices: list[Device] = []

    def partition_graph(
        self,
        fx_module: GraphModule,
        torch_module: torch.nn.Module,
        partitioner_config: PartitionerConfig,
    ) -> PartitionResult:
        """Places the nodes of the traced module; returns the parts and a module that calls them."""
        self.graph_module = fx_module
        self.torch_module = torch_module
        self.devices = partitioner_config.devices
        if not self.devices:
            raise RuntimeError("No devices")
        self.partitions = []
        if not all(hasattr(n, "size_bytes") for n in fx_module.graph.nodes if n.op != "output"):
            get_size_of_all_nodes(fx_module)
        nodes = [n for n in fx_module.graph.nodes if n.op not in _PASSIVE]
        if not nodes:
            raise RuntimeError("No node in the graph")
        if partitioner_config.mode == PartitionMode.aot_based:
            self._as_told(nodes, partitioner_config)
        elif not self._fits_one_device(nodes):
            self._by_mode(nodes, partitioner_config)
        _link(self.partitions)
        if partitioner_config.saturate_host:
            self._saturate_host()
        for partition in self.partitions:
            for node in partition.nodes:
                self.node_to_partition[node] = partition.partition_id
        module = split_module(fx_module, torch_module, lambda node: self.node_to_partition[node])
        return PartitionResult(self._dag(module), module)

    # ---- modes
    def _by_mode(self, nodes: list[Node], config: PartitionerConfig) -> None:
        match config.mode:
            case PartitionMode.size_based:
                self._by_size(nodes)
            case PartitionMode.sparse_nn:
                self._by_embedding(nodes)
            case PartitionMode.cost_aware:
                self._by_cost(nodes, config)
            case PartitionMode.kl_based:
                self._by_size(nodes)
                self._improve_by_moves(config)

    def _new(self, nodes: Iterator[Node] | list[Node] = ()) -> Partition:
        partition = Partition(len(self.partitions))
        self.partitions.append(partition)
        for node in nodes:
            partition.add_node(node)
        return partition

    def _fits_one_device(self, nodes: list[Node]) -> bool:
        largest = max(self.devices, key=lambda d: d.available_mem_bytes)
        whole = Partition(0)
        for node in nodes:
            whole.add_node(node)
        if whole.used_mem_bytes > largest.available_mem_bytes:
            return False
        whole.logical_device_ids = [largest.logical_id]
        self.partitions = [whole]
        return True

    def _as_told(self, nodes: list[Node], config: PartitionerConfig) -> None:
        made: dict[int, Partition] = {}
        for node in nodes:
            number = config.node_to_partition_mapping[node]
            if number not in made:
                made[number] = Partition(number)
            made[number].add_node(node)
        for number, partition in made.items():
            devices = config.partition_to_logical_device_mapping[number]
            partition.logical_device_ids = list(devices)
        self.partitions = list(made.values())

    def _by_size(self, nodes: list[Node]) -> None:
        """Fills device after device in the order of the graph; then what is left of any."""
        left = {device: device.available_mem_bytes for device in self.devices}
        unused = iter(self.devices)
        device = next(unused)
        partition = self._new()
        for node in nodes:
            extra = get_extra_size_of(node, partition.nodes)
            if partition.nodes and extra > left[device]:
                device = next(unused, None) or max(left, key=lambda d: left[d])
                partition = self._new()
                extra = get_extra_size_of(node, partition.nodes)
            while extra > left[device]:
                following = next(unused, None)
                if following is None:
                    raise RuntimeError(f"{node} is too large to fit any device")
                device = following
            partition.add_node(node)
            partition.logical_device_ids = [device.logical_id]
            left[device] -= extra

    def _by_embedding(self, nodes: list[Node]) -> None:
        """Embeddings and what is computed before and after them go to partitions of their own."""
        limit = max(d.available_mem_bytes for d in self.devices)
        for _, run in itertools.groupby(nodes, key=self._is_embedding):
            partition = self._new()
            for node in run:
                if partition.nodes:
                    needed = partition.used_mem_bytes + get_extra_size_of(node, partition.nodes)
                    if needed > limit:
                        partition = self._new()
                if get_extra_size_of(node, partition.nodes) > limit:
                    raise RuntimeError(f"{node.target} is too large to fit into a device")
                partition.add_node(node)
        self._assign_devices()

    def _is_embedding(self, node: Node) -> bool:
        if node.op != "call_module":
            return False
        module = self.graph_module.get_submodule(node.target)
        return "Embedding" in type(module).__name__

    def _assign_devices(self) -> None:
        places = _place(self.partitions, self.devices)
        if places is None:
            raise RuntimeError("Cannot Get a Valid Partition to Logical Device Mapping")
        for partition, device in places.items():
            partition.logical_device_ids = [device.logical_id]

    def _by_cost(self, nodes: list[Node], config: PartitionerConfig) -> None:
        """Starts with a partition per node and merges the pair that saves most, as long as one
        does."""
        for node in nodes:
            self._new([node])
        _link(self.partitions)
        latencies = config.node_to_latency_mapping
        rate = config.transfer_rate_bytes_per_sec
        best = self._latency(self.partitions, latencies, rate)
        while True:
            options = [
                (cost, merged)
                for merged in self._merges()
                if (cost := self._latency(merged, latencies, rate)) <= best
            ]
            if not options:
                break
            best, chosen = min(options, key=operator.itemgetter(0))
            self.partitions = chosen
            for i, partition in enumerate(chosen):
                partition.partition_id = i
            _link(chosen)
        self._assign_devices()

    def _merges(self) -> Iterator[list[Partition]]:
        """Every list of partitions with two merged that is free of cycles and fits the devices."""
        for a, b in itertools.combinations(self.partitions, 2):
            merged = Partition(a.partition_id)
            for node in sorted(n for n in a.nodes | b.nodes if n.op not in _PASSIVE):
                merged.add_node(node)
            rest = [p for p in self.partitions if p not in (a, b)]
            trial = [merged, *rest]
            _link(trial)
            if _is_acyclic(trial) and _place(trial, self.devices) is not None:
                yield trial
        _link(self.partitions)

    def _latency(
        self, partitions: list[Partition], latencies: dict[Node, NodeLatency], rate: float
    ) -> float:
        _link(partitions)
        mapping = get_partition_to_latency_mapping(partitions, latencies)
        return get_latency_of_partitioned_graph(partitions, mapping, rate)

    def _improve_by_moves(self, config: PartitionerConfig) -> None:
        """Moves single nodes between partitions as long as that saves time."""
        latencies = config.node_to_latency_mapping
        rate = config.transfer_rate_bytes_per_sec
        best = self._latency(self.partitions, latencies, rate)
        improved = True
        while improved:
            improved = False
            for source, target in itertools.permutations(self.partitions, 2):
                for node in sorted(n for n in source.nodes if n.op not in _PASSIVE):
                    source.remove_node(node)
                    target.add_node(node)
                    cost = self._latency(self.partitions, latencies, rate)
                    valid = _is_acyclic(self.partitions) and source.nodes
                    if valid and cost < best and _place(self.partitions, self.devices):
                        best, improved = cost, True
                    else:
                        target.remove_node(node)
                        source.add_node(node)
        self._assign_devices()

    # ---- results
    def _saturate_host(self) -> None:
        """Puts copies of all partitions on devices that are left, as often as they fit."""
        used = {i for p in self.partitions for i in p.logical_device_ids}
        while True:
            spare = [d for d in self.devices if d.logical_id not in used]
            places = _place(self.partitions, spare) if spare else None
            if places is None:
                return
            for partition, device in places.items():
                partition.logical_device_ids.append(device.logical_id)
                used.add(device.logical_id)

    def _dag(self, module: GraphModule) -> DAG:
        dag = DAG()
        by_name = {f"submod_{p.partition_id}": p for p in self.partitions}
        for node in module.graph.find_nodes(op="call_module"):
            partition = by_name[node.target]
            reads = [u for u in node.users if u.target is operator.getitem]
            dag.create_node(
                node,
                node.all_input_nodes,
                reads or [node],
                partition.logical_device_ids,
                partition.used_mem_bytes,
            )
        return dag
