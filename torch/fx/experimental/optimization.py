"""Inference: convolutions take batch normalisation in, dropout goes."""

import copy
import time
from collections.abc import Callable, Iterable
from typing import Any

import torch
import torch.fx as fx
from torch import nn
from torch.fx.passes.shape_prop import ShapeProp
from torch.nn.utils.fusion import fuse_conv_bn_eval

__all__ = [
    "MklSubgraph",
    "UnionFind",
    "extract_subgraph",
    "fuse",
    "gen_mkl_autotuner",
    "matches_module_pattern",
    "modules_to_mkldnn",
    "optimize_for_inference",
    "remove_dropout",
    "replace_node_module",
    "reset_modules",
    "use_mkl_length",
]


def matches_module_pattern(pattern: Iterable[type], node: fx.Node, modules: dict[str, Any]) -> bool:
    """Whether a node and its first argument call modules of the two types of a pattern."""
    if not node.args or not isinstance(node.args[0], fx.Node):
        return False
    for expected, current in zip(pattern, (node.args[0], node), strict=False):
        if current.op != "call_module" or type(modules.get(current.target)) is not expected:
            return False
    return True


def replace_node_module(node: fx.Node, modules: dict[str, Any], new_module: nn.Module) -> None:
    """Puts another module where the one that a node calls is."""
    parent, _, name = node.target.rpartition(".")
    modules[node.target] = new_module
    setattr(modules[parent], name, new_module)


_FOLDS = [
    (nn.Conv1d, nn.BatchNorm1d),
    (nn.Conv2d, nn.BatchNorm2d),
    (nn.Conv3d, nn.BatchNorm3d),
]


def fuse(model: nn.Module, inplace: bool = False, no_trace: bool = False) -> nn.Module:
    """Folds batch normalisation into the convolution before it, for inference. The result is a
    graph module; without `inplace` the model stays as it is."""
    if not inplace:
        model = copy.deepcopy(model)
    traced = model if no_trace and isinstance(model, fx.GraphModule) else fx.symbolic_trace(model)
    modules = dict(traced.named_modules())
    for node in list(traced.graph.find_nodes(op="call_module")):
        if not any(matches_module_pattern(pair, node, modules) for pair in _FOLDS):
            continue
        conv, bn = modules[node.args[0].target], modules[node.target]
        if len(node.args[0].users) > 1 or not bn.track_running_stats:
            continue
        replace_node_module(node.args[0], modules, fuse_conv_bn_eval(conv, bn))
        node.replace_all_uses_with(node.args[0])
        traced.graph.erase_node(node)
    return fx.GraphModule(traced, traced.graph)


def remove_dropout(model: nn.Module) -> nn.Module:
    """The model without its dropout layers, as a graph module."""
    traced = fx.symbolic_trace(model)
    for node in traced.graph.find_nodes(op="call_module"):
        if isinstance(traced.get_submodule(node.target), nn.Dropout):
            node.replace_all_uses_with(node.args[0])
            traced.graph.erase_node(node)
    traced.delete_all_unused_submodules()
    traced.recompile()
    return traced


def extract_subgraph(
    orig_module: nn.Module,
    nodes: list[fx.Node],
    inputs: list[fx.Node],
    outputs: list[fx.Node],
) -> fx.GraphModule:
    """A module of some nodes with the inputs and outputs given."""
    graph = fx.Graph()
    values = {node: graph.placeholder(node.name) for node in inputs}
    for node in nodes:
        values[node] = graph.node_copy(node, values.__getitem__)
    graph.output([values[node] for node in outputs])
    graph.lint()
    return fx.GraphModule(orig_module, graph)


# Modules and functions whose inputs may be in the layout of a vendor's library. Here that is the
# ordinary one, so grouping them decides nothing about values.
mkldnn_supported = [
    nn.Conv2d,
    nn.Linear,
    nn.BatchNorm2d,
    nn.ReLU,
    nn.MaxPool2d,
    nn.AvgPool2d,
    nn.AdaptiveAvgPool2d,
    torch.relu,
    torch.transpose,
    torch.sigmoid,
    nn.functional.relu,
    nn.functional.avg_pool2d,
    nn.functional.adaptive_avg_pool2d,
]
mkldnn_map: dict[type, Callable[[nn.Module], nn.Module]] = {}


def modules_to_mkldnn(
    nodes: list[fx.Node], modules: dict[str, nn.Module]
) -> dict[nn.Module, nn.Module]:
    """Replaces modules by their forms in the vendor's layout; returns {new: old}."""
    old: dict[nn.Module, nn.Module] = {}
    for node in nodes:
        if node.op == "call_module" and type(modules[node.target]) in mkldnn_map:
            current = modules[node.target]
            made = mkldnn_map[type(current)](current)
            old[made] = copy.deepcopy(current)
            replace_node_module(node, modules, made)
    return old


def reset_modules(
    nodes: list[fx.Node],
    modules: dict[str, nn.Module],
    old_modules: dict[nn.Module, nn.Module],
) -> None:
    """Takes modules_to_mkldnn back."""
    for node in nodes:
        if node.op == "call_module" and modules[node.target] in old_modules:
            replace_node_module(node, modules, old_modules[modules[node.target]])


class MklSubgraph:
    """Neighbouring nodes that the vendor's library could run."""

    def __init__(self, fx_graph: fx.Graph) -> None:
        self.fx_graph = fx_graph
        self.nodes: list[fx.Node] = []
        self.start_nodes: list[fx.Node] = []
        self.end_nodes: list[fx.Node] = []


def gen_mkl_autotuner(
    example_inputs: Any, iters: int = 10, warmup: int = 1
) -> Callable[[MklSubgraph], bool]:
    """A judge of subgraphs by time: whether one runs faster in the vendor's layout."""
    modules_inputs: dict[str, Any] = {}

    def measure(run: Callable[[], Any]) -> float:
        for _ in range(warmup):
            run()
        start = time.perf_counter()
        for _ in range(iters):
            run()
        return time.perf_counter() - start

    def faster(graph: MklSubgraph) -> bool:
        gm = graph.fx_graph.owning_module
        if not modules_inputs:
            ShapeProp(gm).propagate(*example_inputs)
            modules_inputs["done"] = True
        sample = [torch.randn(node.meta["tensor_meta"].shape) for node in graph.start_nodes]
        part = extract_subgraph(gm, graph.nodes, graph.start_nodes, graph.end_nodes)
        plain = measure(lambda: part(*sample))
        modules = dict(part.named_modules())
        old = modules_to_mkldnn(list(part.graph.nodes), modules)
        other = measure(lambda: part(*sample))
        reset_modules(list(part.graph.nodes), modules, old)
        return bool(old) and other < plain

    return faster


def use_mkl_length(graph: MklSubgraph) -> bool:
    """A judge of subgraphs by size."""
    return len(graph.nodes) > 2


class UnionFind:
    """Disjoint sets of numbers. Each number carries the name of its set, so that `find` is a
    look-up; joining renames the smaller set, which a number suffers at most log n times."""

    def __init__(self, n: int) -> None:
        self._set_of: list[int | None] = [None] * n
        self._members: dict[int, list[int]] = {}

    def make_set(self, v: int) -> None:
        """Makes a set of one number."""
        self._set_of[v] = v
        self._members[v] = [v]

    def find(self, v: int) -> int:
        """The representative of the set of a number."""
        name = self._set_of[v]
        if name is None:
            raise AssertionError(f"{v} is in no set")
        return name

    def join(self, a: int, b: int) -> int:
        """Makes two sets one; returns its representative."""
        names = {self.find(a), self.find(b)}
        kept = max(names, key=lambda name: len(self._members[name]))
        for name in names - {kept}:
            moved = self._members.pop(name)
            self._members[kept] += moved
            for v in moved:
                self._set_of[v] = kept
        return kept


def optimize_for_inference(
    model: nn.Module, pass_config: dict[str, Any] | None = None, tracer: type = fx.Tracer
) -> nn.Module:
    """A graph module for inference: normalisation folded in, dropout removed. pass_config switches
    `conv_bn_fuse` and `remove_dropout` off; `mkldnn_layout_optimize` is accepted and changes
    nothing, since there is one layout only."""
    config = {"conv_bn_fuse": True, "remove_dropout": True, **(pass_config or {})}
    if config["conv_bn_fuse"]:
        model = fuse(model)
    if config["remove_dropout"]:
        model = remove_dropout(model)
    own = tracer()
    graph = own.trace(copy.deepcopy(model))
    return fx.GraphModule(own.root, graph)
