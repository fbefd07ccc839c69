"""Running a function on one rank, or on all, and handing results around; what it raises on one rank
is raised on all."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from torch.distributed import distributed_c10d as _core

__all__ = ["SyncPayload", "all_gather", "all_gather_object_enforce_type", "broadcast"]

T = TypeVar("T")


@dataclass
class SyncPayload(Generic[T]):
    """What a rank tells the others: a value, or what went wrong."""

    stage_name: str | None
    success: bool
    payload: T
    exception: Exception | None = None


def _attempt(data_or_fn: T | Callable[[], T], stage_name: str | None) -> SyncPayload[T]:
    if not callable(data_or_fn):
        return SyncPayload(stage_name, True, data_or_fn)
    try:
        return SyncPayload(stage_name, True, data_or_fn())
    except Exception as error:
        return SyncPayload(stage_name, False, None, error)


def _checked(payload: SyncPayload[T], rank: int) -> T:
    if payload.success:
        return payload.payload
    stage = f" in stage {payload.stage_name}" if payload.stage_name else ""
    raise RuntimeError(f"rank {rank} failed{stage}: {payload.exception}") from payload.exception


def broadcast(
    data_or_fn: T | Callable[[], T],
    *,
    success: bool = True,
    stage_name: str | None = None,
    rank: int = 0,
    pg: _core.ProcessGroup | None = None,
) -> T:
    """The value of one rank on all. A function is called on that rank only."""
    payload: SyncPayload | None = None
    if not success and data_or_fn is not None:
        raise AssertionError("Data or Function is expected to be None if not successful")
    if pg is None or pg.rank() == rank:
        payload = _attempt(data_or_fn, stage_name)
        payload.success = payload.success and success
    if pg is not None:
        box = [payload]
        _core.broadcast_object_list(box, _core.get_global_rank(pg, rank), group=pg)
        payload = box[0]
    return _checked(payload, rank)


def all_gather(
    data_or_fn: T | Callable[[], T],
    stage_name: str | None = None,
    pg: _core.ProcessGroup | None = None,
) -> list[T]:
    """The values of all ranks. A function is called on each."""
    own = _attempt(data_or_fn, stage_name)
    every: list[SyncPayload] = [own]
    if pg is not None:
        every = [None] * pg.size()
        all_gather_object_enforce_type(pg, every, own)
    return [_checked(payload, rank) for rank, payload in enumerate(every)]


def all_gather_object_enforce_type(
    pg: _core.ProcessGroup,
    object_list: list[Any],
    obj: Any,
    type_checker: Callable[[Any, Any], bool] = lambda x, y: type(x) is type(y),
) -> None:
    """all_gather_object where all ranks must have objects of one type."""
    _core.all_gather_object(object_list, obj, group=pg)
    for rank, other in enumerate(object_list):
        if not type_checker(other, obj):
            raise TypeError(
                f"rank {rank} has {type(other)} where this rank has {type(obj)} in all_gather"
            )
