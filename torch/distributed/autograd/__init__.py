"""Gradients that are collected in a context instead of in tensors: several threads or requests can
run backward passes over the same parameters and keep apart what they find. Graphs that lead through
calls of other processes are not followed: such a call inside of a context raises
NotImplementedError, rather than losing its part of the gradient."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Sequence

import torch
from torch.utils._pytree import tree_leaves

__all__ = ["DistAutogradContext", "backward", "context", "get_gradients", "is_available"]

Tensor = torch.Tensor


def is_available() -> bool:
    """Whether gradients can flow between processes: not in this version."""
    return False


class DistAutogradContext:
    """What backward passes have found."""

    def __init__(self, number: int) -> None:
        self._number = number
        self._gradients: dict[Tensor, Tensor] = {}
        self._lock = threading.Lock()

    def _context_id(self) -> int:
        return self._number

    def _known_worker_ids(self) -> set[int]:
        return set()

    def _add(self, tensor: Tensor, gradient: Tensor) -> None:
        with self._lock:
            before = self._gradients.get(tensor)
            self._gradients[tensor] = gradient if before is None else before + gradient


_numbers = itertools.count(1)
_open: dict[int, DistAutogradContext] = {}


class _Current(threading.local):
    """The contexts that this thread is in."""

    def __init__(self) -> None:
        self.stack: list[int] = []


_current = _Current()


class context:
    """A context, of which `with` gives the number."""

    def __enter__(self) -> int:
        if _current.stack:
            raise RuntimeError(
                "Already have an autograd context id for this thread: nested contexts are not "
                "possible"
            )
        number = next(_numbers)
        _open[number] = DistAutogradContext(number)
        _current.stack.append(number)
        return number

    def __exit__(self, *error: object) -> None:
        _open.pop(_current.stack.pop(), None)


def _retrieve_context(context_id: int) -> DistAutogradContext:
    found = _open.get(context_id)
    if found is None:
        raise RuntimeError(f"Could not find autograd context with id: {context_id}")
    return found


def _leaves(roots: Sequence[Tensor]) -> list[Tensor]:
    """The tensors that gradients of the roots end in."""
    found: dict[int, Tensor] = {id(root): root for root in roots if root.is_leaf}
    seen: set[int] = set()
    waiting = [root.grad_fn for root in roots if root.grad_fn is not None]
    kept = []
    while waiting:
        node = waiting.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        kept.append(node)  # so that no other gets its address
        variable = getattr(node, "variable", None)
        if variable is not None:
            found[id(variable)] = variable
        waiting.extend(one for one, _ in node.next_functions if one is not None)
    return list(found.values())


def backward(context_id: int, roots: list[Tensor], retain_graph: bool = False) -> None:
    """Adds the gradients of the sum of the roots to a context; `grad` of tensors stays as it is."""
    held = _retrieve_context(context_id)
    if not roots:
        raise RuntimeError("No tensors provided for gradient computation.")
    for root in roots:
        if not root.requires_grad:
            raise RuntimeError("requires_grad not set on root")
        if root.numel() != 1:
            raise RuntimeError(
                f"root tensor has {root.numel()} elements; grad can be implicitly created only "
                "for scalar outputs"
            )
    leaves = _leaves(roots)
    found = torch.autograd.grad(roots, leaves, retain_graph=retain_graph, allow_unused=True)
    for leaf, gradient in zip(leaves, found, strict=True):
        if gradient is not None:
            held._add(leaf, gradient)


def get_gradients(context_id: int) -> dict[Tensor, Tensor]:
    """The gradients that a context holds, by tensor."""
    return dict(_retrieve_context(context_id)._gradients)


def _check_call(arguments: object) -> None:
    """Called before another process is: its part of a gradient would be lost."""
    if _current.stack and any(
        isinstance(one, Tensor) and one.requires_grad for one in tree_leaves(arguments)
    ):
        raise NotImplementedError(
            "torch.distributed.autograd does not follow tensors that require gradients into calls "
            "of other processes"
        )
