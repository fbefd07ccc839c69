"""A stage's backward pass, whole or in two parts: gradients of the inputs, which the stage before
waits for, and gradients of the weights, which nobody waits for.

The graph of a stage divides into nodes that lead to an input and nodes that lead to weights only.
The first part runs the former and keeps what arrives at those that have a successor of the other
kind; the second part goes on from there, so that hardly anything is computed twice."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import torch
from torch.autograd.graph import GradientEdge, Node, get_gradient_edge

Tensor = torch.Tensor


def _tensors(value: Any) -> list[Tensor]:
    if isinstance(value, Tensor):
        return [value]
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, (tuple, list)):
        return [t for one in value for t in _tensors(one)]
    return []


def _with_gradients(outputs: Any, grads: Any) -> tuple[list[Tensor], list[Tensor | None]]:
    """The outputs that can be differentiated, with their gradients."""
    found = _tensors(outputs)
    given: Sequence[Tensor | None] = [None] * len(found) if grads is None else list(grads)
    if len(given) != len(found):
        raise ValueError(f"{len(given)} gradients were given for {len(found)} outputs")
    pairs = [(t, g) for t, g in zip(found, given, strict=True) if t.requires_grad]
    return [t for t, _ in pairs], [g for _, g in pairs]


def stage_backward(
    stage_output: Any,
    output_grads: Any,
    input_values: Any,
    outputs_with_grads_idxs: list[int] | None = None,
) -> tuple[Tensor | None, ...]:
    """Runs the whole pass: weights get their gradients, those of the inputs are returned."""
    outputs, grads = _with_gradients(stage_output, output_grads)
    if outputs:
        torch.autograd.backward(outputs, grads)
    return tuple(t.grad if isinstance(t, Tensor) else None for t in input_values)


def _walk(roots: Iterable[Node]) -> Iterator[Node]:
    """The nodes of a graph, each after all that it leads to."""
    seen: set[Node] = set()
    stack = [(root, False) for root in roots]
    while stack:
        node, is_left = stack.pop()
        if is_left:
            yield node
        elif node not in seen:
            seen.add(node)
            stack.append((node, True))
            stack.extend((below, False) for below, _ in node.next_functions if below is not None)


class _Parted:
    """What is left to do for the weights: entries into the part of the graph that leads to weights
    only, each with one node above it, at which what arrived is kept. Weights that are reached in
    other ways too, because they are shared, start at the outputs again."""

    def __init__(self, outputs: list[Tensor], grads: list[Tensor | None]) -> None:
        self.outputs, self.grads = outputs, grads
        self.above: list[tuple[Node, list[GradientEdge]]] = []
        self.shared: set[Node] = set()
        self._arrived: dict[Node, tuple[Tensor | None, ...]] = {}

    def find(self, inputs: set[Node], weights: set[Node]) -> None:
        """Finds the entries, and has what arrives above them kept."""
        to_input: set[Node] = set()
        to_weight: set[Node] = set()
        parents: dict[Node, int] = {}
        roots = {get_gradient_edge(t).node for t in self.outputs}
        nodes = list(_walk(roots))
        for node in nodes:
            below = [n for n, _ in node.next_functions if n is not None]
            for n in below:
                parents[n] = parents.get(n, 0) + 1
            if node in inputs or any(n in to_input for n in below):
                to_input.add(node)
            if node in weights or any(n in to_weight for n in below):
                to_weight.add(node)
        only = to_weight - to_input
        shared = {root for root in roots if root in only}
        for node in nodes:
            if node in only:
                continue
            own = []
            for n, index in node.next_functions:
                if n in only:
                    if parents[n] == 1:
                        own.append(GradientEdge(n, index))
                    else:
                        shared.add(n)
            if own:
                self.above.append((node, own))
                self._keep(node)
        self.shared = {node for node in _walk(shared) if node in weights}

    def _keep(self, node: Node) -> None:
        def keep(grads: tuple[Tensor | None, ...]) -> None:
            self._arrived[node] = grads
            handle.remove()

        handle = node.register_prehook(keep)

    def arrivals(self) -> Iterator[tuple[GradientEdge, Tensor]]:
        """What arrives at each entry."""
        for node, edges in self.above:
            pairs = [(i, g) for i, g in enumerate(self._arrived.get(node, ())) if g is not None]
            if pairs:
                starts, grads = [GradientEdge(node, i) for i, _ in pairs], [g for _, g in pairs]
                found = torch.autograd.grad(
                    starts, edges, grads, retain_graph=True, allow_unused=True
                )
                yield from ((e, g) for e, g in zip(edges, found, strict=True) if g is not None)


def stage_backward_input(
    stage_outputs_or_loss: Any,
    output_grads: Any,
    input_values: Any,
    weights: Iterable[Tensor],
) -> tuple[tuple[Tensor | None, ...], list[dict[str, Any]]]:
    """The gradients of the inputs, which also are added to theirs; and what
    stage_backward_weight() needs to go on."""
    outputs, grads = _with_gradients(stage_outputs_or_loss, output_grads)
    inputs = [t for t in _tensors(input_values) if t.requires_grad]
    ends = {get_gradient_edge(w).node for w in weights if w.requires_grad}
    parted = _Parted(outputs, grads)
    parted.find({get_gradient_edge(t).node for t in inputs}, ends)
    found: tuple[Tensor | None, ...] = ()
    if inputs:
        found = torch.autograd.grad(outputs, inputs, grads, retain_graph=True, allow_unused=True)
    for tensor, grad in zip(inputs, found, strict=True):
        if grad is not None:
            tensor.grad = grad if tensor.grad is None else tensor.grad + grad
    return found, [{"parted": parted}]


def stage_backward_weight(
    weights: Iterable[Tensor], param_groups: list[dict[str, Any]], retain_graph: bool = False
) -> tuple[Tensor | None, ...]:
    """Adds the gradients of the weights, which are returned, after stage_backward_input()."""
    wanted = [w for w in weights if w.requires_grad]
    ends = {get_gradient_edge(w).node: w for w in wanted}
    for group in param_groups:
        parted: _Parted = group["parted"]
        inner: list[tuple[GradientEdge, Tensor]] = []
        for edge, grad in parted.arrivals():
            weight = ends.get(edge.node)
            if weight is None:
                inner.append((edge, grad))
            else:
                weight.grad = grad if weight.grad is None else weight.grad + grad
        own = [w for node, w in ends.items() if node not in parted.shared]
        if inner and own:
            starts, grads = [e for e, _ in inner], [g for _, g in inner]
            torch.autograd.backward(starts, grads, retain_graph=True, inputs=own)
        shared = [w for node, w in ends.items() if node in parted.shared]
        if shared:
            outputs, given = parted.outputs, parted.grads
            torch.autograd.backward(outputs, given, retain_graph=True, inputs=shared)
    if not retain_graph:
        param_groups.clear()
    return tuple(w.grad for w in wanted)
