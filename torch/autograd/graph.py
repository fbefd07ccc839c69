"""The graph of a backward pass: its nodes and edges, hooks on several gradients at once, and hooks
on the tensors that are saved for it.
"""

from __future__ import annotations

import abc
import contextlib
import functools
import threading
import weakref
from collections import defaultdict
from collections.abc import Iterator
from typing import Any, NamedTuple

import torch
from torch import _C
from torch.utils.hooks import RemovableHandle

__all__ = [
    "GradientEdge",
    "Node",
    "allow_mutation_on_saved_tensors",
    "disable_saved_tensors_hooks",
    "get_gradient_edge",
    "increment_version",
    "register_multi_grad_hook",
    "save_on_cpu",
    "saved_tensors_hooks",
    "set_warn_on_accumulate_grad_stream_mismatch",
]


class Node(abc.ABC):
    """What grad_fn objects are: one step of the backward pass."""

    @abc.abstractmethod
    def name(self) -> None:
        """The name, such as 'MulBackward0'."""

    @property
    @abc.abstractmethod
    def next_functions(self) -> None:
        """Pairs (node, input number) to which this node hands its gradients."""

    @abc.abstractmethod
    def metadata(self) -> None:
        """A dictionary for the user; anomaly mode keeps the forward stack in it."""

    @abc.abstractmethod
    def register_hook(self, fn) -> None:
        """Calls fn(grad_inputs, grad_outputs) after each run; it may give other grad_inputs."""

    @abc.abstractmethod
    def register_prehook(self, fn) -> None:
        """Calls fn(grad_outputs) before each run; it may give others."""

    @classmethod
    def __subclasshook__(cls, subclass) -> bool:
        return _C._is_node_type(subclass) if cls is Node else NotImplemented


class GradientEdge(NamedTuple):
    """Where the gradient of a tensor goes: usable in place of the tensor as input or output of
    torch.autograd.grad, without keeping the tensor alive."""

    node: object
    output_nr: int
    # A node of a custom Function does not live through its Python object; this keeps it.
    ownership_token: object = None


def get_gradient_edge(tensor) -> GradientEdge:
    """The GradientEdge of a tensor."""
    return GradientEdge(*_C._gradient_edge(tensor))


def _get_grad_fn_or_grad_acc(tensor) -> Any:
    """The node that receives a tensor's gradient."""
    if not tensor.requires_grad:
        raise AssertionError("Expected gradient function to be set")
    return get_gradient_edge(tensor).node


def increment_version(tensor) -> None:
    """Marks one or several tensors as written, for code that writes behind autograd's back."""
    _C._increment_version(tensor)


_warn_on_stream_mismatch = True


def set_warn_on_accumulate_grad_stream_mismatch(enabled) -> None:
    """Whether to warn when a gradient reaches its leaf on another stream. Gradients are
    accumulated on the leaf's stream, so that the case for a warning does not come up."""
    global _warn_on_stream_mismatch
    _warn_on_stream_mismatch = bool(enabled)


# ---- saved tensors ----------------------------------------------------------------------


class saved_tensors_hooks:
    """Inside the with statement each tensor saved for backward is replaced by pack_hook(tensor);
    unpack_hook gives it back when backward needs it."""

    def __init__(self, pack_hook, unpack_hook) -> None:
        self.pack_hook = pack_hook
        self.unpack_hook = unpack_hook

    def __enter__(self) -> None:
        _C._autograd._push_saved_tensors_default_hooks(self.pack_hook, self.unpack_hook)

    def __exit__(self, *exc_info) -> None:
        _C._autograd._pop_saved_tensors_default_hooks()


class save_on_cpu(saved_tensors_hooks):
    """Keeps tensors saved for backward in main memory and moves them back when they are needed."""

    def __init__(self, pin_memory=False, device_type="cuda") -> None:
        self._pins, self._device_type = pin_memory, device_type
        super().__init__(self._pack, self._unpack)

    def _pack(self, tensor):
        if not self._pins:
            return tensor.device, tensor.cpu()
        pinned = not tensor.is_sparse and getattr(torch, self._device_type).is_available()
        kind = {"dtype": tensor.dtype, "layout": tensor.layout, "pin_memory": pinned}
        return tensor.device, torch.empty(tensor.size(), **kind).copy_(tensor)

    def _unpack(self, packed) -> torch.Tensor:
        device, tensor = packed
        return tensor.to(device, non_blocking=self._pins)


@contextlib.contextmanager
def disable_saved_tensors_hooks(error_message) -> Iterator[None]:
    """Inside, using hooks on saved tensors raises with this message."""
    before = _C._autograd._saved_tensors_hooks_get_disabled_error_message()
    _C._autograd._saved_tensors_hooks_disable(error_message)
    try:
        yield
    finally:
        if before is None:
            _C._autograd._saved_tensors_hooks_enable()
        else:
            _C._autograd._saved_tensors_hooks_disable(before)


# ---- writes to saved tensors ------------------------------------------------------------


class _Handle:
    """Stands for a saved tensor; weakly referenced by the bookkeeping below."""


class _MutationContext:
    """The copies of saved tensors that were written to since."""

    def __init__(self) -> None:
        self.cloned = weakref.WeakKeyDictionary()  # handle -> the copy
        self.original = weakref.WeakKeyDictionary()  # handle -> the tensor saved
        self.handles = weakref.WeakValueDictionary()  # (id, data, version) -> handle
        self.saved = defaultdict(set)  # storage -> keys that were saved

    def clear(self) -> None:
        self.cloned.clear()
        self.original.clear()
        self.handles.clear()
        self.saved.clear()


def _key(tensor) -> tuple[int, int, int]:
    return (id(tensor), tensor.data_ptr(), tensor._version)


def _storage_key(tensor) -> int:
    return tensor.untyped_storage().data_ptr()


class _SwapWithCloned(saved_tensors_hooks):
    def __init__(self, context) -> None:
        def pack(tensor) -> _Handle:
            key = _key(tensor)
            if key in context.handles:
                return context.handles[key]
            handle = _Handle()
            handle.key = key
            context.handles[key] = handle
            context.original[handle] = tensor
            context.saved[_storage_key(tensor)].add(key)
            return handle

        def unpack(handle):
            if handle in context.cloned:
                return context.cloned[handle]
            if handle not in context.original:
                raise RuntimeError(
                    "Trying to backward outside of the 'allow_mutation_on_saved_tensors' context "
                    "in which the graph was originally recorded."
                )
            return context.original[handle]

        super().__init__(pack, unpack)


def _written(func, args, kwargs):
    """The tensors that an operator writes to."""
    for argument, value in zip(func._schema.arguments, args, strict=False):
        if argument.alias_info is not None and argument.alias_info.is_write:
            yield from value if isinstance(value, (list, tuple)) else (value,)
    for argument in func._schema.arguments:
        if argument.alias_info is not None and argument.alias_info.is_write:
            if argument.name in kwargs:
                value = kwargs[argument.name]
                yield from value if isinstance(value, (list, tuple)) else (value,)


def _clone_before_write_mode(context):
    from torch.utils._python_dispatch import TorchDispatchMode

    class CloneBeforeWrite(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            kwargs = kwargs or {}
            for tensor in _written(func, args, kwargs):
                if not isinstance(tensor, torch.Tensor):
                    continue
                for key in context.saved.pop(_storage_key(tensor), ()):
                    handle = context.handles.get(key)
                    if handle is None or handle in context.cloned:
                        continue
                    context.cloned[handle] = context.original.pop(handle).clone()
            return func(*args, **kwargs)

    return CloneBeforeWrite()


_mutation = threading.local()


@contextlib.contextmanager
def allow_mutation_on_saved_tensors() -> Any:
    """Inside, tensors saved for backward may be written in place: the values that backward needs
    are cloned before the write. Backward must run inside too."""
    if getattr(_mutation, "active", False):
        raise RuntimeError("allow_mutation_on_saved_tensors contexts cannot be nested")
    context = _MutationContext()
    with _SwapWithCloned(context), _clone_before_write_mode(context):
        _mutation.active = True
        try:
            yield context
        finally:
            context.clear()
            _mutation.active = False


# ---- hooks on several gradients ---------------------------------------------------------


class _MultiHandle(RemovableHandle):
    """Removes the hooks of all tensors."""

    def __init__(self, handles) -> None:
        self.handles = tuple(handles)

    def remove(self) -> None:
        for handle in self.handles:
            handle.remove()

    def __getstate__(self) -> Any:
        return self.handles

    def __setstate__(self, state) -> None:
        self.handles = state


def _will_run(tensors) -> int:
    """How many of the tensors' gradients this backward pass will compute."""
    return sum(1 for t in tensors if _C._will_engine_execute_node(get_gradient_edge(t)))


class _AllState:
    """What one backward pass has brought so far."""

    def __init__(self, count) -> None:
        self.grads = [None] * count
        self.left = None


def _multi_hook_all(tensors, fn) -> _MultiHandle:
    passes = {}
    lock = threading.Lock()
    count = len(tensors)

    def make(index):
        def hook(grad) -> None:
            task = _C._current_graph_task_id()
            if task == -1:
                raise RuntimeError("expected this hook to be called inside a backward call")
            with lock:
                if task not in passes:
                    passes.clear()
                    passes[task] = _AllState(count)
                    passes[task].left = _will_run(tensors)
                state = passes[task]
                state.grads[index] = grad
                state.left -= 1
                done = state.left == 0
            if done:
                del passes[task]
                fn(state.grads)

        return hook

    return _MultiHandle(t.register_hook(make(i)) for i, t in enumerate(tensors))


def _multi_hook_any(tensors, fn) -> _MultiHandle:
    seen = set()
    lock = threading.Lock()

    @functools.wraps(fn)
    def hook(grad) -> None:
        task = _C._current_graph_task_id()
        with lock:
            if task in seen:
                return
            seen.clear()
            seen.add(task)
        fn(grad)

    return _MultiHandle(t.register_hook(hook) for t in tensors)


def register_multi_grad_hook(tensors, fn, *, mode="all") -> _MultiHandle:
    """Calls fn once in each backward pass: with the gradients of all tensors (None for those the
    pass does not reach) when the last has arrived, or with the first that arrives where mode is
    "any"."""
    if mode not in ("all", "any"):
        raise ValueError(f"Expects mode to be one of ('all', 'any') but got {mode}")
    tensors = tuple(tensors)
    return _multi_hook_all(tensors, fn) if mode == "all" else _multi_hook_any(tensors, fn)
