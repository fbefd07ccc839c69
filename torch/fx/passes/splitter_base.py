"""Splitting a module between an accelerator and the host. Nodes that the accelerator supports
and those it does not alternate; each run of one kind becomes a submodule, `_run_on_acc_0`,
`_run_on_cpu_1`, and so on. Backends derive a splitter and say what they support and how parts
are lowered."""

import argparse
import logging
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import torch
from torch.fx._compatibility import compatibility
from torch.fx.graph_module import GraphModule
from torch.fx.node import Node
from torch.fx.passes.operator_support import OperatorSupportBase
from torch.fx.passes.shape_prop import ShapeProp
from torch.fx.passes.split_utils import move_non_tensor_nodes_on_boundary, split_by_tags
from torch.fx.passes.tools_common import (
    CALLABLE_NODE_OPS,
    FxNetAccFusionsFinder,
    NodeList,
    NodeSet,
    Tensors,
    get_node_target,
    is_node_output_tensor,
)

__all__ = [
    "FxNetAccNodesFinder",
    "FxNetSplitterInternalError",
    "SplitResult",
    "Subgraph",
    "generate_inputs_for_submodules",
]

_LOGGER = logging.getLogger(__name__)

DEFAULT_MIN_ACC_MODULE_SIZE = 1
DEFAULT_SKIP_FUSION = False
DEFAULT_ALLOW_NON_TENSOR = False


class _SplitterSettingBase:
    """What a splitter may be told, also from a command line."""

    def __init__(
        self,
        min_acc_module_size: int = DEFAULT_MIN_ACC_MODULE_SIZE,
        skip_fusion: bool = DEFAULT_SKIP_FUSION,
        allow_non_tensor: bool = DEFAULT_ALLOW_NON_TENSOR,
        max_acc_splits: int = -1,
    ) -> None:
        parser = argparse.ArgumentParser()
        parser.add_argument("--min-acc-module-size", "--min_acc_module_size", type=int)
        parser.add_argument("--max-acc-splits", "--max_acc_splits", type=int)
        parser.add_argument("--skip-fusion", "--skip_fusion", action="store_true", default=False)
        parser.add_argument(
            "--allow-non-tensor", "--allow_non_tensor", action="store_true", default=False
        )
        given, _ = parser.parse_known_args()
        least, most = given.min_acc_module_size, given.max_acc_splits
        self.min_acc_module_size = least if least is not None else min_acc_module_size
        self.max_acc_splits = most if most is not None else max_acc_splits
        self.skip_fusion = given.skip_fusion or skip_fusion
        self.allow_non_tensor = given.allow_non_tensor or allow_non_tensor


@compatibility(is_backward_compatible=False)
class FxNetSplitterInternalError(Exception):
    """The splitter made parts that cannot be put in an order."""


@compatibility(is_backward_compatible=False)
@dataclass
class Subgraph:
    """A run of nodes of one kind."""

    is_acc: bool
    nodes: NodeList
    device_ordinal: int | None = None


@compatibility(is_backward_compatible=False)
class SplitResult(NamedTuple):
    """A split module, the inputs of its parts, and what names of non-accelerator parts begin
    with."""

    split_module: GraphModule
    submodule_inputs: dict[str, Any]
    non_acc_submodule_prefix: str


@compatibility(is_backward_compatible=False)
def generate_inputs_for_submodules(
    model: torch.nn.Module,
    inputs: Sequence[Any],
    target_submodules: Iterable[str],
    deepcopy: bool = False,
) -> dict[str, Any]:
    """Runs a model and returns what each of the named submodules was called with."""
    import copy

    seen: dict[str, Any] = {}
    names = {model.get_submodule(name): name for name in target_submodules}

    def note(module: torch.nn.Module, args: tuple) -> None:
        seen[names[module]] = copy.deepcopy(args) if deepcopy else args

    handles = [module.register_forward_pre_hook(note) for module in names]
    try:
        with torch.no_grad():
            model(*inputs)
    finally:
        for handle in handles:
            handle.remove()
    return seen


@compatibility(is_backward_compatible=False)
class FxNetAccNodesFinder:
    """Finds the nodes for the accelerator. Unless allowed, a value that is no tensor must not cross
    to the host: the nodes that make such values there go back to the host."""

    def __init__(
        self,
        module: GraphModule,
        operator_support: OperatorSupportBase,
        allow_non_tensor: bool,
    ) -> None:
        self.module = module
        self.operator_support = operator_support
        self.allow_non_tensor = allow_non_tensor
        self.acc_nodes: NodeSet = set()

    def __call__(self) -> NodeSet:
        self.acc_nodes = set(self._supported())
        steps = (self.reduce_acc_nodes_non_tensor_input, self.reduce_acc_nodes_non_tensor_output)
        for reduce in () if self.allow_non_tensor else steps:
            reduce()
        return self.acc_nodes

    def _supported(self) -> NodeList:
        parts = dict(self.module.named_modules())
        calls = [node for node in self.module.graph.nodes if node.op in CALLABLE_NODE_OPS]
        return [node for node in calls if self.operator_support.is_node_supported(parts, node)]

    def reduce_acc_nodes_non_tensor_input(self) -> None:
        """Takes back nodes that get values other than tensors from the host."""
        for node in self.module.graph.nodes:
            if node.op not in CALLABLE_NODE_OPS or node in self.acc_nodes:
                continue
            if not is_node_output_tensor(node):
                self._back_to_host(list(node.users))

    def reduce_acc_nodes_non_tensor_output(self) -> None:
        """Takes back nodes that give values other than tensors to the host, until none does."""
        while True:
            leaking = [
                node
                for node in self.acc_nodes
                if not is_node_output_tensor(node)
                and any(user not in self.acc_nodes for user in node.users)
            ]
            if not leaking:
                return
            self._back_to_host(leaking)

    def _back_to_host(self, nodes: NodeList) -> None:
        """Takes nodes back, and those that get values other than tensors from them."""
        todo = [node for node in nodes if node in self.acc_nodes]
        while todo:
            node = todo.pop()
            if node not in self.acc_nodes:
                continue
            self.acc_nodes.remove(node)
            if not is_node_output_tensor(node):
                todo += [user for user in node.users if user in self.acc_nodes]


@dataclass
class _Layers:
    """Nodes that wait, by side."""

    acc: list[Node] = field(default_factory=list)
    cpu: list[Node] = field(default_factory=list)


class _SplitterBase:
    """Splits a traced module. Derive from it: `_lower_model_to_backend` and the sample inputs'
    device are the backend's business."""

    PCIe_BW = 100 * 2**30

    def __init__(
        self,
        module: GraphModule,
        sample_input: Sequence[Any],
        operator_support: OperatorSupportBase,
        settings: _SplitterSettingBase,
        non_acc_submodule_name: str = "_run_on_cpu_",
        return_tuple: bool = False,
        nodes_finder: FxNetAccNodesFinder | None = None,
    ) -> None:
        if not isinstance(module, GraphModule):
            raise AssertionError("a splitter splits a GraphModule")
        self.module = module
        ShapeProp(module).propagate(*sample_input)
        self.settings = settings
        self.operator_support = operator_support
        self.sample_input = sample_input
        finder = nodes_finder or FxNetAccNodesFinder(
            module, operator_support, settings.allow_non_tensor
        )
        self.acc_nodes = finder()
        self.fusions = {}
        if not settings.skip_fusion:
            self.fusions = FxNetAccFusionsFinder(module, self.acc_nodes)()
        self.deps = self.find_deps()
        self.update_deps_for_fusions()
        self.non_acc_submodule_name = non_acc_submodule_name
        self._return_tuple = return_tuple
        self.tags: list[str] = []
        self._node_submodule_map: dict[str, str] = {}

    def get_node_submodule_map(self) -> dict[str, str]:
        """{name of a node: name of its part}."""
        return self._node_submodule_map

    # ---- dependencies
    def find_deps(self) -> dict[Node, NodeSet]:
        """The calls that each node uses values of."""
        deps: dict[Node, NodeSet] = defaultdict(set)
        for node in self.module.graph.nodes:
            if node.op in CALLABLE_NODE_OPS:
                deps[node] = {n for n in node.all_input_nodes if n.op in CALLABLE_NODE_OPS}
        return deps

    def update_deps_for_fusions(self) -> None:
        """Makes a group that stays together wait for all its inputs: its members share them."""
        for node, group in self.fusions.items():
            outside = set().union(*(self.deps[member] for member in group)) - group
            self.deps[node] = self.deps[node] | outside

    # ---- parts
    def starter_nodes(self) -> tuple[NodeSet, NodeSet]:
        """Nodes that need no other: (of the host, of the accelerator)."""
        free = {
            node for node in self.module.graph.nodes if node in self.deps and not self.deps[node]
        }
        return free - self.acc_nodes, free & self.acc_nodes

    def put_nodes_into_subgraphs(self) -> list[Subgraph]:
        """Runs of nodes of one kind, as long as they can be made: all that is ready on one side is
        taken before the other side's turn."""
        nodes = [node for node in self.module.graph.nodes if node.op in CALLABLE_NODE_OPS]
        missing = {node: len(self.deps[node]) for node in nodes}
        users: dict[Node, NodeList] = defaultdict(list)
        for node in nodes:
            for used in self.deps[node]:
                users[used].append(node)
        waiting = _Layers()

        def ready(node: Node) -> None:
            (waiting.acc if node in self.acc_nodes else waiting.cpu).append(node)

        for node in nodes:
            if missing[node] == 0:
                ready(node)
        on_acc = not waiting.cpu
        subgraphs: list[Subgraph] = []
        while waiting.acc or waiting.cpu:
            side = waiting.acc if on_acc else waiting.cpu
            if not side:
                on_acc = not on_acc
                continue
            taken: NodeList = []
            while side:
                node = side.pop(0)
                taken.append(node)
                for user in users[node]:
                    missing[user] -= 1
                    if missing[user] == 0:
                        ready(user)
            subgraphs.append(Subgraph(on_acc, sorted(taken)))
            on_acc = not on_acc
        if sum(len(s.nodes) for s in subgraphs) != len(nodes):
            raise FxNetSplitterInternalError("the nodes depend on each other in a circle")
        return subgraphs

    def remove_small_acc_subgraphs(self, subgraphs: list[Subgraph]) -> list[Subgraph]:
        """Gives accelerator parts below the least size to the host; neighbours of one kind become
        one."""
        least = self.settings.min_acc_module_size
        for part in subgraphs:
            if part.is_acc and len(part.nodes) < least:
                part.is_acc = False
        merged: list[Subgraph] = []
        for part in subgraphs:
            if merged and merged[-1].is_acc == part.is_acc:
                merged[-1].nodes = sorted(merged[-1].nodes + part.nodes)
            else:
                merged.append(part)
        return merged

    def tag(self, subgraphs: list[Subgraph]) -> None:
        """Writes on each node which part it belongs to."""
        self.tags = []
        for number, part in enumerate(subgraphs):
            kind = "_run_on_acc_" if part.is_acc else self.non_acc_submodule_name
            name = f"{kind}{number}"
            self.tags.append(name)
            for node in part.nodes:
                if hasattr(node, "tag") and node.tag in self.tags:
                    raise FxNetSplitterInternalError(f"Node {node} was already tagged")
                node.tag = name
                self._node_submodule_map[node.name] = name

    def split(self, remove_tag: bool = False) -> GraphModule:
        """The module with a submodule per part."""
        try:
            return split_by_tags(self.module, self.tags, return_tuple=self._return_tuple)
        finally:
            for node in self.module.graph.nodes if remove_tag else ():
                node.__dict__.pop("tag", None)

    def __call__(self) -> GraphModule:
        parts = self.remove_small_acc_subgraphs(self.put_nodes_into_subgraphs())
        limit = self.settings.max_acc_splits
        count = sum(part.is_acc for part in parts)
        if 0 < limit < count:
            raise ValueError(f"Cannot split {count} accelerator parts into at most {limit}")
        if not self.settings.allow_non_tensor:
            move_non_tensor_nodes_on_boundary(parts)
        _LOGGER.info("Got %d parts, %d on the accelerator", len(parts), count)
        self.tag(parts)
        return self.split()

    def generate_split_results(self) -> SplitResult:
        """Splits and finds the inputs of each part."""
        module = self()
        names = [name for name, _ in module.named_children()]
        found = generate_inputs_for_submodules(module, self.sample_input, names)
        return SplitResult(module, found, self.non_acc_submodule_name)

    # ---- reports
    def node_support_preview(self, dump_graph: bool = False) -> str:
        """Which kinds of nodes are supported and which are not, with the dtypes of their inputs."""
        submodules = dict(self.module.named_modules())
        kinds: dict[bool, set[str]] = {True: set(), False: set()}
        for node in self.module.graph.nodes:
            if node.op not in CALLABLE_NODE_OPS:
                continue
            dtypes = [str(_dtype_of(n)) for n in node.all_input_nodes]
            text = f"{get_node_target(submodules, node)}: ({', '.join(dtypes)})"
            kinds[self.operator_support.is_node_supported(submodules, node)].add(text)
        lines = ["Supported node types in the model:", *sorted(kinds[True])]
        lines += ["", "Unsupported node types in the model:", *sorted(kinds[False])]
        report = "\n".join(lines)
        print(report)
        return report

    def split_preview(self, dump_graph: bool = False) -> str:
        """The parts that a split would make."""
        parts = self.remove_small_acc_subgraphs(self.put_nodes_into_subgraphs())
        lines = [f"Before removing small parts: {len(parts)} parts"]
        for i, part in enumerate(parts):
            kind = "_run_on_acc_" if part.is_acc else self.non_acc_submodule_name
            lines.append(f"{kind}{i}: {len(part.nodes)} nodes")
        report = "\n".join(lines)
        print(report)
        return report

    # ---- for backends
    def _lower_model_to_backend(self, mod: GraphModule, inputs: Tensors) -> torch.nn.Module:
        """Lowers a part; a backend without a lowering runs it as it is."""
        return mod

    def _find_culprit(self, mod: GraphModule, inputs: Tensors) -> str:
        """A report on what keeps a part from being lowered."""
        return "Unable to find a culprit because _find_culprit() function is not implemented."


def _dtype_of(node: Node) -> Any:
    meta = node.meta.get("tensor_meta")
    return getattr(meta, "dtype", None)
