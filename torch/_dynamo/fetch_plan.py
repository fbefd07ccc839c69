"""Which parts of the running program's objects a graph takes. The parameters of a model lie deep in
its modules; instead of one instruction for each step to them, the code of an entry calls the graph
through a GraphCall (torch/csrc/dynamo/graph_call.cpp), which reads them all at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torch._dynamo.source import AttrSource, GetItemSource

if TYPE_CHECKING:
    from torch._guards import Source

# With fewer steps plain instructions are as fast.
FEW_STEPS = 4
_SPECIAL = {"__closure__": "closure", "cell_contents": "cell"}
# Read by code in C that may make the value.
_COMPUTED = frozenset({"grad", "shape", "T", "H", "mT", "mH", "real", "imag", "data"})


def is_read(source: Source) -> bool:
    """Whether a source is a part that a step can read."""
    if type(source) is AttrSource:
        return not any(part in _COMPUTED for part in source.member.split("."))
    return type(source) is GetItemSource and type(source.index) in (str, int)


class FetchPlan:
    """The steps from `roots`, values the code has at hand, to the arguments of the graph."""

    def __init__(self) -> None:
        self.roots: list[Source | str] = []
        self._steps: list[tuple[int, str, object]] = []
        self._outputs: list[int] = []
        # Place of what was met: a root by its number, a step by -1 minus its number.
        self._places: dict[object, int] = {}

    def __len__(self) -> int:
        return len(self._steps)

    def add(self, argument: Source | str) -> None:
        """One more argument: where it is found, or an expression for it."""
        self._outputs.append(self._place(argument))

    def _place(self, argument: Source | str) -> int:
        found = self._places.get(argument)
        if found is not None:
            return found
        if isinstance(argument, str) or not is_read(argument):
            found = len(self.roots)
            self.roots.append(argument)
        elif type(argument) is GetItemSource:
            found = self._step(self._place(argument.base), "item", argument.index)
        else:
            found = self._place(argument.base)
            for name in argument.member.split("."):
                found = self._step(found, _SPECIAL.get(name, "attr"), name)
        self._places[argument] = found
        return found

    def _step(self, base: int, kind: str, key: object) -> int:
        known = (base, kind, key)
        found = self._places.get(known)
        if found is None:
            self._steps.append(known)
            found = self._places[known] = -len(self._steps)
        return found

    def _number(self, place: int) -> int:
        return place if place >= 0 else len(self.roots) - 1 - place

    def steps(self) -> list[tuple[int, str, object]]:
        """The steps as GraphCall takes them: roots are numbered first."""
        return [(self._number(base), kind, key) for base, kind, key in self._steps]

    def outputs(self) -> list[int]:
        """The arguments of the graph, in order."""
        return [self._number(place) for place in self._outputs]
