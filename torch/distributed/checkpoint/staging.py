"""Stagers: they copy a state dict away, so that training may go on while the copy is saved."""

from __future__ import annotations

import concurrent.futures
import copy
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import torch
from torch.distributed.checkpoint.metadata import STATE_DICT_TYPE

__all__ = ["AsyncStager", "BlockingAsyncStager", "DefaultStager", "StagingOptions"]


@runtime_checkable
class AsyncStager(Protocol):
    """What async_save needs: a copy of the state, now or later."""

    _synchronize_after_execute: bool = True

    @property
    def should_synchronize_after_execute(self) -> bool:
        """Whether async_save waits for the copy before it returns."""
        return self._synchronize_after_execute

    def stage(self, state_dict: STATE_DICT_TYPE) -> Any:
        """The copy, or a future of it."""
        raise NotImplementedError(f"{type(self).__name__} must implement stage method")

    def synchronize_staging(self) -> None:
        """Waits for the copy."""

    def close(self) -> None:
        """Gives back what the stager holds."""


def _copy_into(value: Any, kept: Any, pinned: bool, shared: bool) -> Any:
    """A copy of a value on the CPU, in the memory of `kept` where that fits."""
    if isinstance(value, torch.Tensor):
        source = value.detach()
        fits = (
            type(kept) is type(source) is torch.Tensor
            and kept.shape == source.shape
            and kept.dtype == source.dtype
        )
        if fits:
            kept.copy_(source)
            return kept
        made = source.cpu()
        # On the CPU already: then it is the same memory.
        made = made.clone() if made is source or source.device.type == "cpu" else made
        if type(made) is torch.Tensor:
            if shared:
                made.share_memory_()
            elif pinned and torch.cuda.is_available():
                made = made.pin_memory()
        return made
    if isinstance(value, dict):
        before = kept if isinstance(kept, dict) else {}
        return {k: _copy_into(v, before.get(k), pinned, shared) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        same = isinstance(kept, (list, tuple)) and len(kept) == len(value)
        before = kept if same else [None] * len(value)
        parts = [_copy_into(v, k, pinned, shared) for v, k in zip(value, before, strict=True)]
        return type(value)(*parts) if hasattr(value, "_fields") else type(value)(parts)
    return copy.deepcopy(value)


@dataclass
class StagingOptions:
    """How a state dict is copied."""

    use_pinned_memory: bool = True
    use_shared_memory: bool = True
    use_async_staging: bool = True
    use_non_blocking_copy: bool = True


class DefaultStager(AsyncStager):
    """Copies into memory that is used again the next time; with `use_async_staging`, in a thread.
    The next copy waits for the one before."""

    _synchronize_after_execute = False

    def __init__(self, config: StagingOptions = StagingOptions()) -> None:  # noqa: B008
        self._config = config
        self._kept: Any = None
        self._pool = (
            concurrent.futures.ThreadPoolExecutor(1, thread_name_prefix="staging")
            if config.use_async_staging
            else None
        )
        self._last: concurrent.futures.Future | None = None

    def _copy(self, state_dict: STATE_DICT_TYPE) -> STATE_DICT_TYPE:
        config = self._config
        self._kept = _copy_into(
            state_dict, self._kept, config.use_pinned_memory, config.use_shared_memory
        )
        return self._kept

    def stage(self, state_dict: STATE_DICT_TYPE, **kwargs: Any) -> Any:
        """The copy; a future of it with `use_async_staging`."""
        if self._pool is None:
            return self._copy(state_dict)
        self._last = self._pool.submit(self._copy, state_dict)
        return self._last

    def synchronize_staging(self) -> None:
        """Waits for the copy."""
        if self._last is not None:
            self._last.result()

    def close(self) -> None:
        """Ends the thread and frees the memory."""
        if self._pool is not None:
            self._pool.shutdown()
        self._kept = self._last = None


class BlockingAsyncStager(AsyncStager):
    """Copies before it returns; with `cache_staged_state_dict` into the memory of the last copy."""

    _synchronize_after_execute = False

    def __init__(self, cache_staged_state_dict: bool = False, type_check: bool = False) -> None:
        self.cache_staged_state_dict, self.type_check = cache_staged_state_dict, type_check
        self.state_dict_cache: STATE_DICT_TYPE | None = None

    def stage(self, state_dict: STATE_DICT_TYPE) -> STATE_DICT_TYPE:
        """The copy."""
        made = _copy_into(state_dict, self.state_dict_cache, pinned=False, shared=False)
        if self.cache_staged_state_dict:
            self.state_dict_cache = made
        return made
