"""Dividing a joint graph, which computes outputs and gradients, into a forward and a backward one.

What the backward graph needs of the forward one is saved, or computed again. `default_partition`
saves everything that crosses; `min_cut_rematerialization_partition` saves the set of values that
takes least memory, found as a minimum cut (torch/csrc/aot/min_cut.h)."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterable, Sequence

import torch
from torch import fx
from torch._functorch import _partition_rules as rules
from torch._functorch import config
from torch._functorch.compile_utils import fx_graph_cse, get_outputs
from torch.fx.passes.dialect.common.cse_pass import written_memory

__all__ = [
    "default_partition",
    "draw_graph",
    "draw_joint_graph",
    "get_default_op_list",
    "min_cut_rematerialization_partition",
]

Pair = tuple[fx.GraphModule, fx.GraphModule]


# ---- the parts of a joint graph -------------------------------------------------------------


def _is_primal(node: fx.Node) -> bool:
    return node.op == "placeholder" and not _is_tangent(node) and not _is_backward_seed(node)


def _is_tangent(node: fx.Node) -> bool:
    return node.op == "placeholder" and "tangents" in str(node.target)


def _is_backward_seed(node: fx.Node) -> bool:
    return node.op == "placeholder" and str(node.target).startswith("bwd_")


def _split_outputs(joint: fx.GraphModule, count: int) -> tuple[list[object], list[object]]:
    outputs = get_outputs(joint.graph)
    return outputs[:count], outputs[count:]


class _JointGraph:
    """The nodes of a joint graph, sorted into those that a forward pass can compute and those that
    need a tangent."""

    def __init__(
        self, joint: fx.GraphModule, num_fwd_outputs: int, late_tags: Sequence[str] = ()
    ) -> None:
        self.module = joint
        self.forward_outputs, self.gradients = _split_outputs(joint, num_fwd_outputs)
        nodes = list(joint.graph.nodes)
        self.place = {node: i for i, node in enumerate(nodes)}
        self.primals = [n for n in nodes if _is_primal(n)]
        self.tangents = [n for n in nodes if _is_tangent(n)]
        self.seeds = [n for n in nodes if _is_backward_seed(n)]
        late = {*self.tangents, *self.seeds}
        for node in nodes:
            if node.op == "output":
                continue
            if any(a in late for a in node.all_input_nodes) or (
                node.meta.get("partitioner_tag") in late_tags
            ):
                late.add(node)
        wanted = _ancestors(n for n in self.gradients if isinstance(n, fx.Node))
        self.backward = {n for n in late if n in wanted or n in self.tangents or n in self.seeds}
        self.forward = {n for n in nodes if n not in late and n.op != "output"}
        # Computed again, these would hold what was there before the write.
        self.written = written_memory(joint.graph)
        # Attributes of the module, graphs among them, are there in both parts.
        self.needed_late = {n for n in self.forward if n in wanted and n.op != "get_attr"}

    def crossing(self) -> list[fx.Node]:
        """Forward values that the backward part uses directly, in order."""
        direct = {a for n in self.backward for a in n.all_input_nodes if a in self.forward} | {
            n for n in self.gradients if isinstance(n, fx.Node) and n in self.forward
        }
        return self.in_order(_single_values(n for n in direct if n.op != "get_attr"))

    def in_order(self, nodes: Iterable[fx.Node]) -> list[fx.Node]:
        return sorted(nodes, key=self.place.__getitem__)


def _ancestors(nodes: Iterable[fx.Node]) -> set[fx.Node]:
    """The nodes with everything that they are computed from, generation by generation."""
    newest = set(nodes)
    known = set(newest)
    while newest:
        newest = {a for node in newest for a in node.all_input_nodes} - known
        known |= newest
    return known


def _is_tuple(node: fx.Node) -> bool:
    return isinstance(node.meta.get("val"), (tuple, list)) or (
        node.op == "call_function"
        and bool(node.users)
        and all(user.target is operator.getitem for user in node.users)
    )


def _single_values(nodes: Iterable[fx.Node]) -> set[fx.Node]:
    """The nodes with those that return several values replaced by their parts."""
    found: set[fx.Node] = set()
    for node in nodes:
        if _is_tuple(node):
            found.update(user for user in node.users if user.target is operator.getitem)
        else:
            found.add(node)
    return found


# ---- writing the two graphs -----------------------------------------------------------------


def _extract_graph_with_inputs_outputs(
    joint_graph: fx.Graph, inputs: Sequence[fx.Node], outputs: Sequence[object], subgraph: str = ""
) -> fx.Graph:
    """The graph that computes the outputs from the inputs. A value is computed where it is first
    needed, so that what is computed again does not wait in memory."""
    graph = fx.Graph()
    copies: dict[fx.Node, fx.Node] = {}
    for node in inputs:
        made = graph.placeholder(node.name)
        made.meta = node.meta
        copies[node] = made

    def need(root: fx.Node) -> None:
        waiting = [root]
        while waiting:
            node = waiting[-1]
            missing = [a for a in node.all_input_nodes if a not in copies]
            if node in copies:
                waiting.pop()
            elif missing:
                waiting.extend(reversed(missing))
            else:
                if node.op == "placeholder":
                    raise RuntimeError(
                        f"Node {node} was invalid, but is output: the {subgraph or 'graph'} needs "
                        "an input that it is not given"
                    )
                copies[node] = graph.node_copy(node, copies.__getitem__)
                waiting.pop()

    wanted = _ancestors(n for n in outputs if isinstance(n, fx.Node))
    for node in joint_graph.nodes:
        if node in wanted and node not in copies and _belongs(node, subgraph):
            need(node)
    returned = []
    for value in outputs:
        if isinstance(value, fx.Node):
            need(value)
            returned.append(copies[value])
        else:
            returned.append(value)
    graph.output(tuple(returned))
    graph.eliminate_dead_code()
    graph.lint()
    return graph


def _belongs(node: fx.Node, subgraph: str) -> bool:
    """In a backward graph forward values wait until something needs them."""
    return subgraph != "backward" or node.meta.get("_late", False)


def _modules(parts: _JointGraph, saved: Sequence[fx.Node], saved_syms: Sequence[fx.Node]) -> Pair:
    for node in parts.module.graph.nodes:
        node.meta["_late"] = node in parts.backward
    forward = _extract_graph_with_inputs_outputs(
        parts.module.graph,
        parts.primals,
        [*parts.forward_outputs, *saved, *saved_syms],
        "forward",
    )
    backward = _extract_graph_with_inputs_outputs(
        parts.module.graph,
        [*saved_syms, *saved, *parts.tangents, *parts.seeds],
        parts.gradients,
        "backward",
    )
    for graph in (parts.module.graph, forward, backward):
        for node in graph.nodes:
            node.meta.pop("_late", None)
    root = parts.module
    made = fx.GraphModule(root, forward), fx.GraphModule(root, backward)
    return _replay_random(*made, saved)


def _by_kind(nodes: Sequence[fx.Node]) -> tuple[list[fx.Node], list[fx.Node]]:
    """Tensors, and symbolic numbers."""
    return [n for n in nodes if not rules.is_sym(n)], [n for n in nodes if rules.is_sym(n)]


def _replay_random(forward: fx.GraphModule, backward: fx.GraphModule, saved: Sequence) -> Pair:
    """Random operators that both graphs compute draw the same numbers: the forward graph returns
    the state that the generator had, and the backward graph begins with it."""
    in_forward = {n.name: n for n in forward.graph.nodes if rules.is_random(n)}
    shared = [n for n in backward.graph.nodes if rules.is_random(n) and n.name in in_forward]
    if not shared:
        return forward, backward
    from torch._higher_order_ops.rng import run_and_save_rng_state, run_with_rng_state

    states, inputs = [], []
    tangents = [n for n in backward.graph.nodes if _is_tangent(n)]
    first = tangents[0] if tangents else next(iter(backward.graph.nodes))
    for node in shared:
        twin = in_forward[node.name]
        with forward.graph.inserting_before(twin):
            pair = forward.graph.call_function(
                run_and_save_rng_state, (twin.target, *twin.args), twin.kwargs
            )
            state = forward.graph.call_function(operator.getitem, (pair, 0))
            value = forward.graph.call_function(operator.getitem, (pair, 1))
        value.meta = dict(twin.meta)
        state.meta["val"] = torch.get_rng_state()
        twin.replace_all_uses_with(value)
        forward.graph.erase_node(twin)
        states.append(state)
        with backward.graph.inserting_before(first):
            given = backward.graph.placeholder(f"rng_state_{len(inputs)}")
        given.meta["val"] = state.meta["val"]
        inputs.append(given)
        with backward.graph.inserting_before(node):
            again = backward.graph.call_function(
                run_with_rng_state, (given, node.target, *node.args), node.kwargs
            )
        again.meta = dict(node.meta)
        node.replace_all_uses_with(again)
        backward.graph.erase_node(node)
    _append_saved(forward, states)
    forward.recompile()
    backward.recompile()
    return forward, backward


def _append_saved(forward: fx.GraphModule, states: list[fx.Node]) -> None:
    """States are returned behind the saved tensors and before the saved numbers."""
    output = forward.graph.output_node()
    values = list(output.args[0])
    end = len(values)
    while end and isinstance(values[end - 1], fx.Node) and rules.is_sym(values[end - 1]):
        end -= 1
    output.args = ((*values[:end], *states, *values[end:]),)


# ---- default --------------------------------------------------------------------------------


def default_partition(
    joint_module: fx.GraphModule,
    _joint_inputs: Sequence[object],
    *,
    num_fwd_outputs: int,
    static_lifetime_input_indices: Sequence[int] | None = None,
    static_lifetime_input_nodes: object = None,
) -> Pair:
    """Everything that can be computed without a tangent is forward; what backward uses of it is
    saved. Values tagged by checkpoints are handled by the min-cut partitioner."""
    if any(rules.must_recompute(n) for n in joint_module.graph.nodes):
        return min_cut_rematerialization_partition(
            joint_module, _joint_inputs, num_fwd_outputs=num_fwd_outputs
        )
    tags = ("is_backward", "must_be_in_backward")
    parts = _JointGraph(joint_module, num_fwd_outputs, tags)
    saved, saved_syms = _by_kind(_without_size_reads(parts))
    return _modules(parts, saved, saved_syms)


def _without_size_reads(parts: _JointGraph) -> list[fx.Node]:
    """The crossing values, where a tensor of which only sizes are read is replaced by those."""
    found: set[fx.Node] = set()
    for node in parts.crossing():
        late = [u for u in node.users if u in parts.backward]
        if rules.is_sym(node) or not late or not all(rules.is_sym(u) for u in late):
            found.add(node)
        else:
            found.update(late)
            parts.backward.difference_update(late)
            parts.forward.update(late)
    return parts.in_order(found)


# ---- min-cut --------------------------------------------------------------------------------


def get_default_op_list() -> Callable[[fx.Node], bool]:
    """The rule by which operators may be computed again."""
    return rules.is_cheap


class _Network:
    """The flow network of a joint graph: every forward value is two nodes joined by an edge whose
    capacity is the price of saving it; a cut says what is saved.

    Flow starts at the primals and at values that may not be computed again, and ends where the
    backward part begins."""

    SOURCE, SINK = 0, 1

    def __init__(
        self, parts: _JointGraph, recomputable: Callable[[fx.Node], bool], kept: set[fx.Node]
    ) -> None:
        self.parts = parts
        self.nodes = parts.in_order(parts.needed_late)
        self.number = {node: 2 + 2 * i for i, node in enumerate(self.nodes)}
        self.edges: list[tuple[int, int, float]] = []
        for node in self.nodes:
            self._add(node, recomputable, kept)

    def _add(
        self, node: fx.Node, recomputable: Callable[[fx.Node], bool], kept: set[fx.Node]
    ) -> None:
        into = self.number[node]
        out = into + 1
        self.edges.append((into, out, self._price(node)))
        if node in self.parts.primals or node in kept or not recomputable(node):
            self.edges.append((self.SOURCE, into, math.inf))
        used_late = any(u in self.parts.backward for u in node.users)
        if used_late or node in self.parts.gradients:
            self.edges.append((out, self.SINK, math.inf))
        for user in node.users:
            if user in self.number:
                self.edges.append((out, self.number[user], math.inf))

    def _price(self, node: fx.Node) -> float:
        """What saving costs: reading the value, and writing it unless it is in memory anyway. Of
        equal prices the value nearer to its use is taken. A tuple has no price: its parts do."""
        if _is_tuple(node):
            return math.inf
        if rules.is_sym(node):
            return 1e-3
        written = node in self.parts.primals or node in self.parts.forward_outputs
        written = written or not rules.is_cheap(node) or _is_read_whole(self.parts, node)
        size = max(rules.bytes_of(node), 1)
        return size * (1.0 if written else 2.0) * (1 - 1e-6 * self.parts.place[node])

    def saved(self) -> list[fx.Node]:
        value, with_source = torch._C._aot.min_cut(
            2 + 2 * len(self.nodes), self.edges, self.SOURCE, self.SINK
        )
        if math.isinf(value):
            raise RuntimeError(
                "min_cut_rematerialization_partition: no set of values can be saved; a value that "
                "must be computed again depends on one that cannot be saved"
            )
        return [
            n
            for n in self.nodes
            if with_source[self.number[n]] and not with_source[self.number[n] + 1]
        ]


def _is_read_whole(parts: _JointGraph, node: fx.Node) -> bool:
    """Whether an operator of the forward part reads the value that no compiler fuses with it:
    then it is in memory."""
    for user in node.users:
        if user in parts.backward or user.op != "call_function":
            continue
        if not rules.is_cheap(user) or (rules.is_view(user) and _is_read_whole(parts, user)):
            return True
    return False


def _usual_rule(parts: _JointGraph) -> Callable[[fx.Node], bool]:
    def recomputable(node: fx.Node) -> bool:
        if rules.must_save(node) or node in parts.written:
            return False
        if rules.must_recompute(node):
            return True
        # Eager code keeps such a value too, and a CPU reads it faster than it computes it.
        if rules.is_heavy(node) and _is_read_whole(parts, node):
            return False
        return rules.is_cheap(node)

    return recomputable


def _any_rule(parts: _JointGraph) -> Callable[[fx.Node], bool]:
    """All but random operators without a tag, what must be saved, and what is written later."""

    def recomputable(node: fx.Node) -> bool:
        if rules.must_save(node) or node in parts.written:
            return False
        return rules.must_recompute(node) or not rules.is_random(node)

    return recomputable


def _forced(parts: _JointGraph) -> set[fx.Node]:
    """What a checkpoint wants saved at its edge: values that leave a part that is computed again
    into one that is not are kept as usual; nothing else is forced."""
    return {n for n in parts.needed_late if rules.must_save(n)}


def _within_budget(parts: _JointGraph, budget: float) -> list[fx.Node]:
    """The saved values for a share of the usual memory: of the values that the usual partition
    saves and the smallest one does not, those are kept that take longest to compute."""
    usual = _Network(parts, _usual_rule(parts), set()).saved()
    least = _Network(parts, _any_rule(parts), set()).saved()
    floor = sum(map(rules.bytes_of, least))
    room = budget * max(sum(map(rules.bytes_of, usual)) - floor, 0)
    items = [n for n in usual if n not in least and n not in parts.primals]
    weights = [float(rules.bytes_of(n)) for n in items]
    gains = [_time_to_compute(n, set(least)) for n in items]
    levels = config.activation_memory_budget_levels
    _, _, taken = torch._C._aot.knapsack(weights, gains, float(room), levels)
    kept = {n for n, take in zip(items, taken, strict=True) if take}
    return _Network(parts, _any_rule(parts), kept).saved()


def _time_to_compute(node: fx.Node, known: set[fx.Node]) -> float:
    """The time of everything between saved values and this one."""
    total, waiting, seen = 0.0, [node], set(known)
    while waiting:
        current = waiting.pop()
        if current in seen or current.op == "placeholder":
            continue
        seen.add(current)
        total += rules.runtime_of(current)
        waiting.extend(current.all_input_nodes)
    return total


def min_cut_rematerialization_partition(
    joint_module: fx.GraphModule,
    _joint_inputs: Sequence[object],
    compiler: str = "inductor",
    *,
    num_fwd_outputs: int,
    static_lifetime_input_indices: Sequence[int] | None = None,
) -> Pair:
    """Saves what takes least memory and computes the rest again. Products, reductions and random
    operators are never computed twice, unless a checkpoint asks for it; a memory budget below 1
    (`config.activation_memory_budget`) trades time for memory."""
    if config.cse:
        outputs, _ = _split_outputs(joint_module, num_fwd_outputs)
        joint_module.graph = fx_graph_cse(joint_module.graph, outputs)
    joint_module.graph.eliminate_dead_code()
    joint_module.recompile()
    parts = _JointGraph(joint_module, num_fwd_outputs, ("must_be_in_backward",))
    budget = config.activation_memory_budget
    if not 0 <= budget <= 1:
        raise RuntimeError(
            f"The valid ranges for memory budget are 0 <= m <= 1. The provided value is {budget}"
        )
    if budget < 1:
        saved_nodes = _within_budget(parts, budget)
    else:
        saved_nodes = _Network(parts, _usual_rule(parts), _forced(parts)).saved()
    saved, saved_syms = _by_kind(saved_nodes)
    if config.debug_partitioner:
        total = sum(map(rules.bytes_of, saved))
        print(f"partitioner: saves {len(saved)} tensors, {total} bytes: {saved}")
    return _modules(parts, saved, saved_syms)


# ---- pictures -------------------------------------------------------------------------------


def draw_graph(
    traced: fx.GraphModule,
    fname: str,
    figname: str = "fx_graph",
    clear_meta: bool = True,
    prog: str | list[str] | None = None,
    parse_stack_trace: bool = False,
    dot_graph_shape: str | None = None,
) -> None:
    """Writes a picture of a graph; a name without an ending gets ".svg"."""
    import os

    from torch.fx.passes.graph_drawer import FxGraphDrawer

    if clear_meta:
        traced = fx.GraphModule(traced, fx.Graph.__deepcopy__(traced.graph))
        for node in traced.graph.nodes:
            node.meta = {}
    base, ending = os.path.splitext(fname)
    drawn = FxGraphDrawer(traced, figname).get_main_dot_graph()
    kind = ending.lstrip(".") or "svg"
    getattr(drawn, f"write_{kind}")(f"{base}.{kind}", **({} if prog is None else {"prog": prog}))


def draw_joint_graph(
    graph: fx.GraphModule,
    joint_inputs: Sequence[object],
    file_name: str = "full_graph.png",
    dot_graph_shape: str | None = None,
) -> Pair:
    """A partition function that draws the joint graph before it divides it."""
    draw_graph(graph, file_name, dot_graph_shape=dot_graph_shape)
    return default_partition(graph, joint_inputs, num_fwd_outputs=1)
