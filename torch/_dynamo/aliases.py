"""Names that compiled code needs in the globals of a module, such as a tensor that the trace found
where no name leads. They are there as long as a compiled form reads them."""

from __future__ import annotations

import collections
from collections.abc import Iterable

# How many compiled forms read an alias, by the identity of the module's names.
_readers: collections.Counter[tuple[int, str]] = collections.Counter()


class Aliases:
    """The aliases of one compiled form, which holds this object: they go with it."""

    def __init__(self, names: dict[str, object], aliases: Iterable[str]) -> None:
        self.names = names
        self.aliases = frozenset(aliases)
        _readers.update((id(names), alias) for alias in self.aliases)

    def __del__(self) -> None:
        for alias in self.aliases:
            _readers[id(self.names), alias] -= 1
        drop_unread(self.names, self.aliases)


def drop_unread(names: dict[str, object], aliases: Iterable[str]) -> None:
    """Removes the aliases that no compiled form reads."""
    for alias in aliases:
        key = (id(names), alias)
        if _readers[key] <= 0:
            _readers.pop(key, None)
            names.pop(alias, None)
