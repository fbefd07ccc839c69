"""Collectives of small values over a store, for processes that have no group yet. Each call has a
key of its own; a call that times out names the ranks that did not come."""

from __future__ import annotations

from abc import ABC, abstractmethod
from datetime import timedelta

from torch._c10d import DistStoreError, Store

_TIMEOUT = timedelta(minutes=5)


class ControlCollectives(ABC):
    """What such collectives can do."""

    @abstractmethod
    def barrier(self, key: str, timeout: timedelta = _TIMEOUT, blocking: bool = True) -> None:
        """Returns when all have called."""

    @abstractmethod
    def all_sum(self, key: str, data: int, timeout: timedelta = _TIMEOUT) -> int:
        """The sum of all numbers."""


class StoreCollectives(ControlCollectives):
    """Collectives of `world_size` ranks over a store."""

    def __init__(self, store: Store, rank: int, world_size: int) -> None:
        self._store, self._rank, self._world_size = store, rank, world_size
        self._used: set[str] = set()

    def _once(self, key: str) -> None:
        if key in self._used:
            raise ValueError(f"Key {key} has already been used.")
        self._used.add(key)

    def _await_all(self, what: str, key: str, timeout: timedelta) -> list[str]:
        """The keys of all ranks, when all are there."""
        keys = [f"{key}/{rank}" for rank in range(self._world_size)]
        try:
            self._store.wait(keys, timeout)
        except DistStoreError as error:
            missing = [str(i) for i, one in enumerate(keys) if not self._store.check([one])]
            raise RuntimeError(
                f"{what} failed -- missing ranks: {', '.join(missing)}: {error}"
            ) from error
        return keys

    def _put(self, key: str, value: str | bytes) -> None:
        self._store.set(f"{key}/{self._rank}", value)

    def _gathered(self, what: str, key: str, timeout: timedelta) -> list[bytes]:
        return self._store.multi_get(self._await_all(what, key, timeout))

    def _fetch(self, key: str, timeout: timedelta) -> bytes:
        self._store.wait([key], timeout)
        return self._store.get(key)

    def barrier(self, key: str, timeout: timedelta = _TIMEOUT, blocking: bool = True) -> None:
        """Returns when all have called; at once without blocking."""
        self._once(key)
        self._put(key, "1")
        if blocking:
            self._await_all("barrier", key, timeout)

    def broadcast_send(self, key: str, data: str | bytes, timeout: timedelta = _TIMEOUT) -> None:
        """Gives a value to all."""
        self._once(key)
        self._store.set(key, data)

    def broadcast_recv(self, key: str, timeout: timedelta = _TIMEOUT) -> bytes:
        """Takes the value that one rank gives."""
        self._once(key)
        return self._fetch(key, timeout)

    def gather_send(self, key: str, data: str | bytes, timeout: timedelta = _TIMEOUT) -> None:
        """Gives a value to the rank that gathers."""
        self._once(key)
        self._put(key, data)

    def gather_recv(
        self, key: str, data: str | bytes, timeout: timedelta = _TIMEOUT
    ) -> list[bytes]:
        """Takes the values of all."""
        self._once(key)
        self._put(key, data)
        return self._gathered("gather", key, timeout)

    def scatter_send(
        self, key: str, data: list[str | bytes], timeout: timedelta = _TIMEOUT
    ) -> bytes:
        """Gives each rank its value; returns this one's."""
        self._once(key)
        if len(data) != self._world_size:
            raise ValueError(f"scatter_send: {len(data)} values for {self._world_size} ranks")
        for rank, value in enumerate(data):
            self._store.set(f"{key}/{rank}", value)
        own = data[self._rank]
        return own.encode() if isinstance(own, str) else own

    def scatter_recv(self, key: str, timeout: timedelta = _TIMEOUT) -> bytes:
        """Takes this rank's value."""
        self._once(key)
        return self._fetch(f"{key}/{self._rank}", timeout)

    def all_gather(self, key: str, data: str | bytes, timeout: timedelta = _TIMEOUT) -> list[bytes]:
        """The values of all, on all."""
        self._once(key)
        self._put(key, data)
        return self._gathered("all_gather", key, timeout)

    def all_sum(self, key: str, data: int, timeout: timedelta = _TIMEOUT) -> int:
        """The sum of all numbers."""
        self._once(key)
        self._store.add(f"{key}/sum", data)
        self.barrier(f"{key}/barrier", timeout)
        return self._store.add(f"{key}/sum", 0)
