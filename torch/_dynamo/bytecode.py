"""Programs: the normal form of a code object, prepared for the interpreter, with the analyses
that a graph break needs: which locals are still read, and whether a place lies in a loop."""

from __future__ import annotations

import types
import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch._dynamo.opcodes import Instruction

_READS = frozenset({"LOAD_FAST", "DELETE_FAST", "LOAD_FAST_AND_CLEAR"})
# Builtins that may read every local variable of the frame that calls them.
_FRAME_READERS = frozenset({"locals", "vars", "dir", "eval", "exec"})


class Program:
    """The instructions of a code object. `origin` is the code that the programmer wrote, and
    `places` gives for each instruction its number there; they differ for resume functions. Both
    codes are referred to weakly: programs are kept as long as their code lives."""

    __slots__ = (
        "_code",
        "_live",
        "_origin",
        "_successors",
        "index",
        "instructions",
        "places",
        "steps",
        "unsure",
    )

    def __init__(
        self,
        code: types.CodeType,
        instructions: list[Instruction],
        origin: types.CodeType | None = None,
        places: list[int] | None = None,
    ) -> None:
        from torch._dynamo.symbolic_convert import HANDLERS, unknown

        self._code = weakref.ref(code)
        self.instructions = instructions
        self.steps: list[tuple[Callable, Instruction]] = [
            (HANDLERS.get(ins.opname, unknown), ins) for ins in instructions
        ]
        self.index = {id(ins): i for i, ins in enumerate(instructions)}
        self._origin = weakref.ref(origin or code)
        self.places = places
        self._live: list[frozenset[str]] | None = None
        self._successors: list[list[int]] | None = None
        # Instructions that may read a shared variable without a value (resume_execution).
        self.unsure: frozenset[int] | None = None

    @property
    def code(self) -> types.CodeType:
        """The code object."""
        return self._code()

    @property
    def origin(self) -> types.CodeType:
        """The code that the programmer wrote."""
        return self._origin()

    def place(self, index: int) -> int:
        """The number of an instruction in the original code."""
        return index if self.places is None else self.places[index]

    def successors(self, index: int) -> list[int]:
        """Instructions that may run after one."""
        if self._successors is None:
            self._successors = self._find_successors()
        return self._successors[index]

    def _find_successors(self) -> list[list[int]]:
        from torch._dynamo.opcodes import TERMINATORS

        index = self.index
        found = []
        for i, ins in enumerate(self.instructions):
            after = [] if ins.opname in TERMINATORS else [i + 1]
            for other in (ins.target, ins.handler):
                if other is not None:
                    after.append(index[id(other)])
            found.append(after)
        return found

    def live(self, index: int) -> frozenset[str]:
        """Locals whose value may still be read when the instruction is about to run."""
        if self._live is None:
            self._live = self._find_live()
        return self._live[index]

    def _find_live(self) -> list[frozenset[str]]:
        # Sets of names as the bits of a number; what a place reads reaches those before it.
        all_read = {
            i
            for i, ins in enumerate(self.instructions)
            if ins.opname == "LOAD_GLOBAL" and ins.argval in _FRAME_READERS
        }
        naming = (*_READS, "STORE_FAST") if all_read else _READS
        found = {ins.argval for ins in self.instructions if ins.opname in naming}
        names = sorted(found.union(self.code.co_varnames) if all_read else found)
        bits = {name: 1 << i for i, name in enumerate(names)}
        count = len(self.instructions)
        read, kept = [0] * count, [-1] * count
        before: list[list[int]] = [[] for _ in range(count + 1)]
        for i, ins in enumerate(self.instructions):
            if ins.opname in _READS:
                read[i] = bits[ins.argval]
            elif i in all_read:
                read[i] = (1 << len(names)) - 1
            elif ins.opname == "STORE_FAST" and ins.handler is None:
                kept[i] = ~bits.get(ins.argval, 0)
            for follower in self.successors(i):
                before[follower].append(i)
        live = [0] * (count + 1)
        todo = [i for i in range(count) if read[i]]
        while todo:
            i = todo.pop()
            here = read[i]
            for follower in self.successors(i):
                here |= live[follower] & kept[i]
            if here != live[i]:
                live[i] = here
                todo += before[i]
        known: dict[int, frozenset[str]] = {}
        for mask in live:
            if mask not in known:
                known[mask] = frozenset(name for name in names if mask & bits[name])
        return [known[mask] for mask in live]

    def in_loop(self, index: int) -> bool:
        """Whether the instruction may run again after it ran."""
        todo, seen = self.successors(index)[:], set()
        while todo:
            place = todo.pop()
            if place == index:
                return True
            if place not in seen and place < len(self.instructions):
                seen.add(place)
                todo += self.successors(place)
        return False


# Code objects are equal when their text is; programs belong to one object.
_by_id: dict[int, tuple[weakref.ref, Program]] = {}


def program_of(code: types.CodeType) -> Program:
    """The program of a code object."""
    found = _by_id.get(id(code))
    if found is not None and found[0]() is code:
        return found[1]
    from torch._dynamo.opcodes import decode

    program = Program(code, decode(code))
    register_program(code, program)
    return program


def register_program(code: types.CodeType, program: Program) -> None:
    """Gives a code object its program."""
    key = id(code)
    _by_id[key] = (weakref.ref(code, lambda _, known=_by_id: known.pop(key, None)), program)
