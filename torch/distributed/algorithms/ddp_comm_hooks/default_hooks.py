"""Hooks on the exchange of gradients: the plain average, and halves on the wire."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.distributed as dist
from torch.futures import Future

__all__ = [
    "allreduce_hook",
    "bf16_compress_hook",
    "bf16_compress_wrapper",
    "fp16_compress_hook",
    "fp16_compress_wrapper",
]


def _group(process_group: Any) -> dist.ProcessGroup:
    return dist.group.WORLD if process_group is None else process_group


def _summed(group: dist.ProcessGroup, tensor: torch.Tensor) -> Future:
    future = group.allreduce([tensor]).get_future()
    return future.then(lambda done: done.value()[0])


def allreduce_hook(process_group: Any, bucket: Any) -> Future:
    """The average of the gradients."""
    group = _group(process_group)
    return _summed(group, bucket.buffer().div_(group.size()))


def _compressed(process_group: Any, bucket: Any, dtype: torch.dtype) -> Future:
    group = _group(process_group)
    whole = bucket.buffer()
    small = whole.to(dtype).div_(group.size())
    return _summed(group, small).then(lambda done: whole.copy_(done.value()))


def fp16_compress_hook(process_group: Any, bucket: Any) -> Future:
    """The average of the gradients, sent as float16."""
    return _compressed(process_group, bucket, torch.float16)


def bf16_compress_hook(process_group: Any, bucket: Any) -> Future:
    """The average of the gradients, sent as bfloat16."""
    return _compressed(process_group, bucket, torch.bfloat16)


Hook = Callable[[Any, Any], Future]


def _wrapper(hook: Hook, dtype: torch.dtype) -> Hook:
    def compressed(state: Any, bucket: Any) -> Future:
        whole = bucket.buffer()
        bucket._buffer = whole.to(dtype)

        def widened(done: Future) -> torch.Tensor:
            value = done.value()
            return whole.copy_(value[0] if isinstance(value, (list, tuple)) else value)

        return hook(state, bucket).then(widened)

    return compressed


def fp16_compress_wrapper(hook: Hook) -> Hook:
    """Another hook, on gradients as float16."""
    return _wrapper(hook, torch.float16)


def bf16_compress_wrapper(hook: Hook) -> Hook:
    """Another hook, on gradients as bfloat16."""
    return _wrapper(hook, torch.bfloat16)
