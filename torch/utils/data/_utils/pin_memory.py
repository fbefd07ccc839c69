"""Batches in page-locked memory, from which copies to a GPU need not wait."""

import collections.abc
import queue

import torch
from torch.utils.data._utils.collate import _with_items, _with_values

__all__ = ["pin_memory"]


def _pin_memory_loop(in_queue, out_queue, device_id, done_event, device) -> None:
    """The loop of a thread that takes (index, batch) from one queue and puts it, pinned, into
    another, until done_event is set; for loaders that run workers of their own."""
    from torch._utils import ExceptionWrapper
    from torch.utils.data._utils import MP_STATUS_CHECK_INTERVAL

    while not done_event.is_set():
        try:
            answer = in_queue.get(timeout=MP_STATUS_CHECK_INTERVAL)
        except queue.Empty:
            continue
        index, data = answer[0], answer[1]
        if not isinstance(data, ExceptionWrapper):
            try:
                data = pin_memory(data, device)
            except Exception:
                data = ExceptionWrapper(where=f"in pin memory thread for device {device_id}")
        pinned = (index, data, *answer[2:])
        while not done_event.is_set():
            try:
                out_queue.put(pinned, timeout=MP_STATUS_CHECK_INTERVAL)
                break
            except queue.Full:
                continue


def pin_memory(data, device=None):
    """The tensors of a batch in page-locked memory, in any nesting of mappings and sequences;
    objects with a method pin_memory() do it themselves."""
    if isinstance(data, torch.Tensor):
        return data.pin_memory()
    if isinstance(data, str | bytes):
        return data
    if hasattr(data, "pin_memory"):
        return data.pin_memory()
    if isinstance(data, collections.abc.Mapping):
        return _with_values(data, {key: pin_memory(data[key]) for key in data})
    if isinstance(data, tuple) and hasattr(data, "_fields"):
        return type(data)(*(pin_memory(item) for item in data))
    if isinstance(data, tuple):
        return [pin_memory(item) for item in data]
    if isinstance(data, collections.abc.Sequence):
        return _with_items(data, [pin_memory(item) for item in data])
    return data
