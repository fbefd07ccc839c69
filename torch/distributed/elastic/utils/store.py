"""Meeting points on a store: all members leave a value or their name and wait for the last."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta

import torch

__all__ = ["barrier", "get_all", "store_timeout", "synchronize"]

_PRESENT = "<val_ignored>"


@contextmanager
def store_timeout(store: torch.distributed.Store, timeout: float) -> Iterator[None]:
    """Operations on the store wait at most so many seconds inside."""
    before = store.timeout
    store.set_timeout(timedelta(seconds=timeout))
    yield
    store.set_timeout(before)


def get_all(store: torch.distributed.Store, rank: int, prefix: str, world_size: int) -> list[bytes]:
    """What each rank left under the prefix. Rank 0, which may serve the store, waits until all
    have read."""
    keys = list(map(f"{prefix}{{}}".format, range(world_size)))
    found = store.multi_get(keys)
    gate = _arrive(store, world_size, f"{prefix}/finished")
    if not rank:
        store.wait([gate])
    return found


def synchronize(
    store: torch.distributed.Store,
    data: bytes,
    rank: int,
    world_size: int,
    key_prefix: str,
    timeout: float = 300,
) -> list[bytes]:
    """Leaves this rank's data and returns that of all."""
    with store_timeout(store, timeout):
        store.set(f"{key_prefix}{rank}", data)
        return get_all(store, rank, key_prefix, world_size)


def _arrive(store: torch.distributed.Store, world_size: int, key_prefix: str) -> str:
    """Counts this member in; the last sets the key that is returned."""
    last = f"{key_prefix}/last_member"
    if store.add(f"{key_prefix}/num_members", 1) == world_size:
        store.set(last, _PRESENT)
    return last


def _absent(
    store: torch.distributed.Store,
    rank: int,
    world_size: int,
    key_prefix: str,
    describe: Callable[[int], str],
    patience: float,
) -> str:
    """After a timeout: which ranks did not come. Rank 0 finds out and opens the gate for the
    others, who only point to it."""
    store.set(f"{key_prefix}{rank}/TRACE", _PRESENT)
    gate = f"{key_prefix}/TRACING_GATE"
    limit = timedelta(seconds=patience)
    if rank != 0:
        try:
            store.wait([gate], limit)
        except torch.distributed.DistStoreError:
            return ""
        return f"check rank 0 ({describe(0)}) for missing rank info"
    missing = []
    for other in range(1, world_size):
        try:
            store.wait([f"{key_prefix}{other}/TRACE"], limit)
        except torch.distributed.DistStoreError:
            missing.append(describe(other))
    store.set(gate, _PRESENT)
    return f"missing_ranks=[{', '.join(missing)}]"


def barrier(
    store: torch.distributed.Store,
    world_size: int,
    key_prefix: str,
    barrier_timeout: float = 300,
    rank: int | None = None,
    rank_tracing_decoder: Callable[[int], str] | None = None,
    trace_timeout: float = 10,
) -> None:
    """Returns when all members have called. With a rank, an error says who did not come."""
    with store_timeout(store, barrier_timeout):
        last = _arrive(store, world_size, key_prefix)
        try:
            store.wait([last])
        except torch.distributed.DistStoreError as error:
            if rank is None:
                raise
            told = _absent(
                store, rank, world_size, key_prefix, rank_tracing_decoder or str, trace_timeout
            )
            text = (
                f"Timed out waiting on barrier on rank {rank}, for key prefix: {key_prefix} "
                f"(world_size={world_size}, {told or 'no rank 0 to ask'}, "
                f"timeout={barrier_timeout})"
            )
            raise torch.distributed.DistStoreError(text) from error
