"""Counts what goes into the store and comes out of it, for tests of caches."""

from __future__ import annotations

import dataclasses
from unittest import mock

from torch._inductor.cache_store import Store

__all__ = ["PatchCaches", "Stats", "global_stats"]


@dataclasses.dataclass
class Stats:
    """Accesses to one kind of entry."""

    num_put: int = 0
    num_get_hit: int = 0
    num_get_miss: int = 0


class _GlobalStats:
    """Accesses by kind of entry."""

    def __init__(self) -> None:
        self.by_kind: dict[str, Stats] = {}

    def reset(self) -> None:
        """Counts from 0 again."""
        self.by_kind.clear()

    def of(self, kind: str) -> Stats:
        """The accesses to a kind."""
        return self.by_kind.setdefault(kind, Stats())

    @property
    def fx_graph(self) -> Stats:
        """Graphs after their passes."""
        return self.of("fxgraph")

    @property
    def aot_autograd(self) -> Stats:
        """Functions traced with their derivatives."""
        return self.of("aot_autograd")


global_stats = _GlobalStats()


class PatchCaches:
    """Counts between setUp and tearDown, or inside of the context."""

    _patches: list[object] = []

    @classmethod
    def setUp(cls) -> None:
        """Begins to count."""
        get, put = Store.get, Store.put

        def counted_get(self: Store, kind: str, key: str) -> bytes | None:
            found = get(self, kind, key)
            stats = global_stats.of(kind)
            if found is None:
                stats.num_get_miss += 1
            else:
                stats.num_get_hit += 1
            return found

        def counted_put(self: Store, kind: str, key: str, content: bytes) -> bool:
            global_stats.of(kind).num_put += 1
            return put(self, kind, key, content)

        cls._patches = [
            mock.patch.object(Store, "get", counted_get),
            mock.patch.object(Store, "put", counted_put),
        ]
        for patch in cls._patches:
            patch.start()
        global_stats.reset()

    @classmethod
    def tearDown(cls) -> None:
        """Counts no more."""
        while cls._patches:
            cls._patches.pop().stop()

    def __enter__(self) -> _GlobalStats:
        self.setUp()
        return global_stats

    def __exit__(self, *error: object) -> None:
        self.tearDown()
