"""The smallest graph that still fails: nodes are turned into inputs, cut off and left out as long
as a check says that the failure stays."""

from __future__ import annotations

import copy
import sys
from collections.abc import Callable, Iterator, Sequence

import torch
from torch import fx
from torch._functorch.compile_utils import get_outputs, get_placeholders
from torch.fx.interpreter import Interpreter

__all__ = ["minifier"]

Check = Callable[[fx.GraphModule, Sequence[torch.Tensor]], bool]
State = tuple[fx.Graph, list[torch.Tensor]]


class _Values(Interpreter):
    """Runs a graph and keeps the value of every node."""

    def run_with(self, inputs: Sequence[torch.Tensor]) -> dict[str, object]:
        self.values: dict[str, object] = {}
        self.run(*[i.clone() if isinstance(i, torch.Tensor) else i for i in inputs])
        return self.values

    def run_node(self, n: fx.Node) -> object:
        found = super().run_node(n)
        kept = found.clone() if isinstance(found, torch.Tensor) else found
        self.values[n.name] = kept
        return found


def dump_state(fx_g: fx.GraphModule, inps: Sequence[torch.Tensor]) -> None:
    """Writes the graph and the shapes of its inputs to standard error."""
    shapes = [(tuple(i.shape), i.dtype, i.device.type) for i in inps]
    sys.stderr.write(f"# {len(fx_g.graph.nodes)} nodes, inputs {shapes}\n{fx_g.code}\n")


class _Search:
    """One reduction: the state that fails, and the ways to make it smaller."""

    def __init__(self, module: fx.GraphModule, check: Check) -> None:
        self.module = module
        self.check = check

    def build(self, graph: fx.Graph) -> fx.GraphModule:
        return fx.GraphModule(self.module, graph)

    def fails(self, graph: fx.Graph, inputs: list[torch.Tensor]) -> bool:
        try:
            graph.lint()
            given = [i.clone() if isinstance(i, torch.Tensor) else i for i in inputs]
            return bool(self.check(self.build(copy.deepcopy(graph)), given))
        except Exception:
            return False  # a graph that does not run at all is another failure

    def cut_end(self, state: State) -> Iterator[State]:
        """Returns an early value; later ones are dropped. Halves first."""
        graph, inputs = state
        calls = [n for n in graph.nodes if n.op not in ("placeholder", "output")]
        step = max(len(calls) // 2, 1)
        while calls:
            for at in range(step - 1, len(calls) - 1, step):
                shorter = fx.Graph()
                copies: dict[fx.Node, fx.Node] = {}
                for node in graph.nodes:
                    copies[node] = shorter.node_copy(node, copies.__getitem__)
                    if node is calls[at]:
                        shorter.output((copies[node],))
                        break
                if len([n for n in shorter.nodes if n.op == "placeholder"]) == len(inputs):
                    shorter.eliminate_dead_code()
                    yield shorter, inputs
            if step == 1:
                return
            step //= 2

    def drop_outputs(self, state: State) -> Iterator[State]:
        """Returns a part of the outputs."""
        graph, inputs = state
        outputs = get_outputs(graph)
        for count in _halvings(len(outputs)):
            for start in range(0, len(outputs), count):
                kept = outputs[:start] + outputs[start + count :]
                if not kept:
                    continue
                smaller = copy.deepcopy(graph)
                by_name = {n.name: n for n in smaller.nodes}
                values = [by_name[o.name] if isinstance(o, fx.Node) else o for o in kept]
                smaller.output_node().args = (tuple(values),)
                smaller.eliminate_dead_code()
                yield smaller, inputs

    def drop_inputs(self, state: State) -> Iterator[State]:
        """Without inputs that nothing uses."""
        graph, inputs = state
        smaller = copy.deepcopy(graph)
        kept = []
        for node, value in zip(get_placeholders(smaller), inputs, strict=True):
            if node.users:
                kept.append(value)
            else:
                smaller.erase_node(node)
        if len(kept) < len(inputs):
            yield smaller, kept

    def turn_into_inputs(self, state: State) -> Iterator[State]:
        """Values of nodes are given instead of computed, in runs of falling length."""
        graph, inputs = state
        try:
            values = _Values(self.build(copy.deepcopy(graph))).run_with(inputs)
        except Exception:
            return  # it fails while it runs: there is no value to give
        calls = [n.name for n in graph.nodes if n.op not in ("placeholder", "output")]
        calls = [name for name in calls if isinstance(values.get(name), torch.Tensor)]
        for count in _halvings(len(calls)):
            for start in range(0, len(calls), count):
                yield self._given(graph, inputs, set(calls[start : start + count]), values)

    def _given(
        self,
        graph: fx.Graph,
        inputs: list[torch.Tensor],
        names: set[str],
        values: dict[str, object],
    ) -> State:
        smaller = copy.deepcopy(graph)
        made_values: dict[fx.Node, object] = {}
        for node in list(smaller.nodes):
            if node.name in names:
                with smaller.inserting_before(node):
                    made = smaller.placeholder(node.name)
                made_values[made] = values[node.name]
                node.replace_all_uses_with(made)
                smaller.erase_node(node)
        smaller.eliminate_dead_code()
        ordered = fx.Graph()
        copies: dict[fx.Node, fx.Node] = {}
        placeholders = get_placeholders(smaller)
        given = iter(inputs)
        kept = []
        for node in placeholders:
            value = made_values[node] if node in made_values else next(given)
            if node.users:
                copies[node] = ordered.placeholder(node.target)
                copies[node].meta.update(node.meta)
                kept.append(value)
        for node in smaller.nodes:
            if node.op != "placeholder":
                copies[node] = ordered.node_copy(node, copies.__getitem__)
        return ordered, kept


def _halvings(count: int) -> Iterator[int]:
    """count/2, count/4, ..., 1."""
    size = max(count // 2, 1)
    while count:
        yield size
        if size == 1:
            return
        size //= 2


def minifier(
    fail_f: fx.GraphModule,
    inps: Sequence[torch.Tensor],
    module_fails: Check,
    dump_state: Callable[[fx.GraphModule, Sequence[torch.Tensor]], None] = dump_state,
    *,
    save_dir: str | None = None,
    offload_to_disk: bool = False,
    skip_offload: bool = False,
    skip_sanity: bool = False,
    max_granularity: int | None = None,
) -> tuple[fx.GraphModule, list[torch.Tensor]]:
    """A graph and inputs for which module_fails(graph, inputs) still holds and from which nothing
    more can be taken away. Raises RuntimeError if it does not hold at the beginning."""
    search = _Search(fail_f, module_fails)
    state: State = (copy.deepcopy(fail_f.graph), list(inps))
    if not skip_sanity and not search.fails(*state):
        raise RuntimeError("Input graph did not fail the tester")
    steps = (search.cut_end, search.drop_outputs, search.turn_into_inputs, search.drop_inputs)
    smaller_found = True
    while smaller_found:
        smaller_found = False
        for step in steps:
            for candidate in step(state):
                if _size(candidate) < _size(state) and search.fails(*candidate):
                    state, smaller_found = candidate, True
                    break
    graph, inputs = state
    found = search.build(graph)
    dump_state(found, inputs)
    return found, inputs


def _size(state: State) -> tuple[int, int]:
    """What is to become small: computed nodes first, then everything."""
    graph = state[0]
    calls = sum(n.op not in ("placeholder", "output") for n in graph.nodes)
    return calls, len(graph.nodes) + len(get_outputs(graph))
