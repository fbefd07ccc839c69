"""The functional form of tensors, in which a trace runs: writes become new values. Names of the
functions of torch, one place for what a trace asks of them."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import torch
from torch import Tensor
from torch._functorch._aot_autograd.schemas import InputAliasInfo
from torch._functorch._aot_autograd.subclasses import parts_of, wrapper_of

__all__ = ["enabled", "fresh", "memory_of", "note_writes", "one_of_many", "unwrap", "wrap"]


def wrap(value: Tensor) -> Tensor:
    """The functional tensor of a value; a wrapper of functional tensors for a wrapper."""
    outer = wrapper_of(value)
    if outer is None:
        return torch._to_functional_tensor(value)
    return outer.build(iter([torch._to_functional_tensor(part) for part in parts_of(value)]))


def unwrap(value: object) -> object:
    """The present value of a functional tensor; anything else as it is."""
    if not isinstance(value, Tensor):
        return value
    outer = wrapper_of(value)
    if outer is not None:
        return outer.build(iter([unwrap(part) for part in parts_of(value)]))
    if torch._is_functional_tensor(value):
        torch._sync(value)
        return torch._from_functional_tensor(value)
    return value


@contextlib.contextmanager
def enabled() -> Iterator[None]:
    """Inside, factories make functional tensors, and views are recorded as views."""
    torch._enable_functionalization(reapply_views=True)
    try:
        yield
    finally:
        torch._disable_functionalization()


def memory_of(value: Tensor) -> object:
    """What tells whether two tensors share memory; None for layouts without a storage."""
    parts = parts_of(value)
    if parts[0] is not value:
        return tuple(map(memory_of, parts))
    try:
        return value.untyped_storage()._cdata
    except (NotImplementedError, RuntimeError):
        return None


class _Fresh(torch.autograd.Function):
    """A tensor of the same value with memory of its own, so that a write to it is no write to a
    leaf. The gradient passes through, and nothing is recorded."""

    @staticmethod
    def forward(ctx: object, value: Tensor) -> Tensor:
        return wrap(unwrap(value))

    @staticmethod
    def backward(ctx: object, grad: Tensor) -> Tensor:
        return grad


def fresh(value: Tensor) -> Tensor:
    """The same value as the result of an operator."""
    with torch.enable_grad():
        return _Fresh.apply(value)


def one_of_many(value: Tensor) -> bool:
    """Whether a view operator with several results made it."""
    return torch._is_functional_tensor(value) and torch._functionalize_is_multi_output_view(value)


def note_writes(value: Tensor, info: InputAliasInfo) -> None:
    """Reads off a functional tensor what was done to it since it was made."""
    parts = parts_of(value)
    info.mutates_data = any(map(torch._functionalize_has_data_mutation, parts))
    info.mutates_metadata = any(map(torch._functionalize_has_metadata_mutation, parts))
    info.mutates_storage_metadata = any(map(torch._functionalize_was_storage_changed, parts))
    info.mutation_inductor_storage_resize = any(
        map(torch._functionalize_was_inductor_storage_resized, parts)
    )
    if parts[0] is not value:
        if info.mutates_metadata:
            raise RuntimeError("Metadata mutations are currently not allowed on tensor subclasses")
        return
    info.mutations_under_no_grad_or_inference_mode = (
        torch._functionalize_are_all_mutations_under_no_grad_or_inference_mode(value)
    )
