"""Minimizers: which nodes of a module give other results on a backend than on the host. A
minimizer splits the module so that only the nodes in question run on the backend, compares, and
narrows the search by halving, by accumulating, or node by node."""

import logging
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.fx._compatibility import compatibility
from torch.fx.graph_module import GraphModule
from torch.fx.passes.shape_prop import ShapeProp
from torch.fx.passes.split_utils import split_by_tags
from torch.fx.passes.tools_common import (
    CALLABLE_NODE_OPS,
    FxNetAccFusionsFinder,
    NodeList,
    NodeSet,
    TensorOrTensors,
    Tensors,
)

__all__ = [
    "FxNetMinimizerBadModuleError",
    "FxNetMinimizerResultMismatchError",
    "FxNetMinimizerRunFuncError",
]

_LOGGER = logging.getLogger(__name__)


@compatibility(is_backward_compatible=False)
class FxNetMinimizerBadModuleError(Exception):
    """The module cannot be split at these nodes."""


@compatibility(is_backward_compatible=False)
class FxNetMinimizerRunFuncError(Exception):
    """A part did not run."""


@compatibility(is_backward_compatible=False)
class FxNetMinimizerResultMismatchError(Exception):
    """The results differ."""


class _MinimizerSettingBase:
    """How a search is done: `traverse_method` is sequential, binary, accumulate, skip or
    defined."""

    def __init__(
        self,
        accumulate_error: bool = True,
        traverse_method: str = "sequential",
        find_all: bool = False,
        return_intermediate: bool = False,
        all_outputs: bool = False,
    ) -> None:
        self.accumulate_error = accumulate_error
        self.traverse_method = traverse_method
        self.find_all = find_all
        self.return_intermediate = return_intermediate
        self.all_outputs = all_outputs

    def __str__(self) -> str:
        rows = (f"{name}: {value}" for name, value in vars(self).items())
        return "FX Minimizer Settings:\n" + "\n".join(rows)


class _MinimizerBase:
    """The search. Derive from it: `run_a` is the reference, `run_b` the backend; `compare_fn(a, b,
    names)` returns a measure and whether it is small enough."""

    def __init__(
        self,
        module: GraphModule,
        sample_input: Tensors,
        compare_fn: Callable[[TensorOrTensors, TensorOrTensors, list[str]], tuple[float, bool]],
        settings: _MinimizerSettingBase,
        module_exporter: Callable[[Tensors, GraphModule, str], None] | None = None,
        exclusion_fn: Callable[[NodeList, int, int], None] | None = None,
    ) -> None:
        if not isinstance(module, GraphModule):
            raise AssertionError("a minimizer works on a GraphModule")
        self.module = module
        self.sample_input = sample_input
        self.compare_fn = compare_fn
        self.settings = settings
        self.module_exporter = module_exporter
        self.exclusion_fn = exclusion_fn
        self.results: dict[Any, Any] = {}
        self.reports: list[list[str]] = []
        self.iteration = 0
        ShapeProp(module).propagate(*sample_input)
        callable_nodes = {n for n in module.graph.nodes if n.op in CALLABLE_NODE_OPS}
        self.fusions = FxNetAccFusionsFinder(module, callable_nodes)()

    # ---- what a backend writes
    def run_a(self, mod: GraphModule, inputs: Tensors, report_idx: int = -1) -> TensorOrTensors:
        """The result of a part on the reference."""
        raise RuntimeError("run_a() is not implemented.")

    def run_b(self, mod: GraphModule, inputs: Tensors, report_idx: int = -1) -> TensorOrTensors:
        """The result of a part on the backend."""
        raise RuntimeError("run_b() is not implemented.")

    # ---- running some nodes on the backend
    def _collect_nodes(self, start: str | None, end: str | None) -> NodeList:
        """The calls from one name to another; either may be None."""
        nodes = [n for n in self.module.graph.nodes if n.op in CALLABLE_NODE_OPS]
        names = [n.name for n in nodes]
        first = names.index(start) if start is not None else 0
        last = names.index(end) + 1 if end is not None else len(nodes)
        return nodes[first:last]

    def _build_submodule(self, nodes: NodeSet) -> tuple[GraphModule, str]:
        """The module split in three: before, the nodes, and after; with the name of the part."""
        order = [n for n in self.module.graph.nodes if n.op in CALLABLE_NODE_OPS]
        tied = set(nodes)
        for node in nodes:
            tied |= self.fusions.get(node, set())
        below: NodeSet = set()
        for node in order:
            if node not in tied and any(i in tied or i in below for i in node.all_input_nodes):
                below.add(node)
        if any(i in below for node in tied for i in node.all_input_nodes):
            raise FxNetMinimizerBadModuleError(
                "a path leaves the nodes and comes back, so that they cannot run as one"
            )
        for node in order:
            node.tag = "minimize" if node in tied else "main_1" if node in below else "main_0"
        used = [t for t in ("main_0", "minimize", "main_1") if any(n.tag == t for n in order)]
        return split_by_tags(self.module, used), "minimize"

    def _inputs_of(self, split: GraphModule, name: str) -> Tensors:
        seen: list[Any] = []
        handle = split.get_submodule(name).register_forward_pre_hook(
            lambda module, args: seen.append(args)
        )
        try:
            with torch.no_grad():
                split(*self.sample_input)
        finally:
            handle.remove()
        return seen[0]

    def _run_and_compare(
        self, split: GraphModule, name: str, output_names: list[str], report_idx: int = -1
    ) -> None:
        """Runs a part on both and raises if the results differ."""
        part = split.get_submodule(name)
        inputs = self._inputs_of(split, name)
        if self.module_exporter is not None:
            self.module_exporter(inputs, part, f"{name}_{self.iteration}")
        try:
            expected = self.run_a(part, inputs, report_idx)
            got = self.run_b(part, inputs, report_idx)
        except Exception as error:
            raise FxNetMinimizerRunFuncError(
                f"Exception raised when running {name}: {error}"
            ) from error
        measure, close = self.compare_fn(expected, got, output_names)
        self.results[tuple(output_names)] = measure
        if not close:
            raise FxNetMinimizerResultMismatchError(
                f"Result mismatch for {output_names}: {measure}"
            )

    def _is_bad(self, nodes: NodeList) -> bool:
        """Whether the results differ when these nodes run on the backend."""
        self.iteration += 1
        names = [n.name for n in nodes if any(u not in nodes for u in n.users)] or [nodes[-1].name]
        report = [f"Iteration {self.iteration}: {[n.name for n in nodes]}"]
        self.reports.append(report)
        try:
            split, name = self._build_submodule(set(nodes))
            self._run_and_compare(split, name, names)
        except (FxNetMinimizerRunFuncError, FxNetMinimizerResultMismatchError) as error:
            report.append(str(error))
            return True
        report.append("passes")
        return False

    # ---- searches
    def _sequential_traverse(self, nodes: NodeList) -> NodeSet:
        """Every node alone; the first bad one, or all."""
        culprits: NodeSet = set()
        for node in nodes:
            if self._is_bad([node]):
                culprits.add(node)
                if not self.settings.find_all:
                    break
        return culprits

    def _binary_traverse(self, nodes: NodeList) -> NodeSet:
        """Halves as long as a half is bad. Where only the whole is, all of it is returned."""
        if not self._is_bad(nodes):
            return set()
        if len(nodes) == 1:
            return set(nodes)
        middle = len(nodes) // 2
        left = self._binary_traverse(nodes[:middle])
        if left and not self.settings.find_all:
            return left
        found = left | self._binary_traverse(nodes[middle:])
        return found or set(nodes)

    def _accumulate_traverse(self, nodes: NodeList) -> NodeSet:
        """Longer and longer beginnings; the node with which one becomes bad."""
        culprits: NodeSet = set()
        taken: NodeList = []
        for node in nodes:
            if self._is_bad([*taken, node]):
                culprits.add(node)
                if not self.settings.find_all:
                    break
            else:
                taken.append(node)
        return culprits

    def _skip_traverse(self, nodes: NodeList, skip_nodes: Sequence[str]) -> NodeSet:
        """The runs between nodes that are left out."""
        culprits: NodeSet = set()
        run: NodeList = []
        for node in [*nodes, None]:
            if node is not None and node.name not in skip_nodes:
                run.append(node)
                continue
            if run and self._is_bad(run):
                culprits.update(run)
            run = []
        return culprits

    def minimize(
        self,
        start: str | None = None,
        end: str | None = None,
        skip_nodes: Sequence[str] | None = None,
        find_last_node: bool | None = None,
    ) -> NodeSet:
        """The nodes whose results differ, between two names."""
        nodes = self._collect_nodes(start, end)
        method = self.settings.traverse_method
        searches: dict[str, Callable[[], NodeSet]] = {
            "sequential": lambda: self._sequential_traverse(nodes),
            "binary": lambda: self._binary_traverse(nodes),
            "accumulate": lambda: self._accumulate_traverse(nodes),
            "skip": lambda: self._skip_traverse(nodes, skip_nodes or ()),
            "defined": lambda: set(nodes) if self._is_bad(nodes) else set(),
        }
        if method not in searches:
            raise RuntimeError(f"Unknown traverse method {method}!")
        return searches[method]()

    def run_nodes(self, start: str | None = None, end: str | None = None) -> None:
        """Runs the nodes between two names on both and compares; raises where they differ."""
        nodes = self._collect_nodes(start, end)
        split, name = self._build_submodule(set(nodes))
        self._run_and_compare(split, name, [nodes[-1].name])

    def print_report(self, report: list[str]) -> None:
        """Prints what one run did."""
        for i, line in enumerate(report):
            print(line if i == 0 else f"  . {line}")

    def print_reports(self) -> None:
        """Prints what all runs did."""
        for report in self.reports:
            self.print_report(report)
