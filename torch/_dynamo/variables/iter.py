"""Iterators. Each holds a Python iterator over trackers, so that what is lazy in the program is
lazy in the trace. Where one has to live on after the graph, its remaining values are written
out."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from torch._dynamo.exc import (
    ObservedException,
    raise_error,
    raise_observed,
    unimplemented,
)
from torch._dynamo.variables.base import Args, Kwargs, VariableTracker
from torch._dynamo.variables.constant import ConstantVariable
from torch._dynamo.variables.keys import IdentityKey
from torch._dynamo.variables.lists import BaseListVariable, DequeVariable, TupleVariable
from torch._dynamo.variables.sets import SetVariable, TableWalk

if TYPE_CHECKING:
    from torch._dynamo.codegen import Codegen
    from torch._dynamo.symbolic_convert import Frame
    from torch._guards import Source

_LIST_ITERATOR = type(iter([]))
_TUPLE_ITERATOR = type(iter(()))
_LONGEST = 100_000  # more values than that are not written out


class IteratorVariable(VariableTracker):
    """An iterator. `pure` says that its remaining values can be taken in advance without any other
    effect, so that they may be written out after a graph break."""

    __slots__ = ("cls", "it", "pure")

    def __init__(
        self, it: Iterator[VariableTracker], cls: type = _LIST_ITERATOR, pure: bool = True
    ) -> None:
        super().__init__(None)
        self.it = it
        self.cls = cls
        self.pure = pure

    def python_type(self) -> type:
        return self.cls

    def next(self, tx: Frame) -> VariableTracker:
        """next(obj)"""
        for value in self.it:
            return value.realize()
        raise_error(tx, StopIteration)

    def iterate(self, tx: Frame) -> Iterator[VariableTracker]:
        return self.it

    def truth(self, tx: Frame) -> bool:
        return True

    def hash_key(self, tx: Frame) -> object:
        return IdentityKey(self)

    def getattr(self, tx: Frame, name: str) -> VariableTracker:
        return tx.attribute_of_builtin(self, name)

    def call_method(self, tx: Frame, name: str, args: Args, kwargs: Kwargs) -> VariableTracker:
        if name == "__next__":
            return self.next(tx)
        if name == "__iter__":
            return self
        return super().call_method(tx, name, args, kwargs)

    def reconstruct(self, cg: Codegen) -> str:
        if not self.pure:
            unimplemented(
                "iterator after the graph",
                repr(self),
                f"an iterator of the class {self.cls.__name__} cannot be written out after a "
                "graph break",
            )
        rest = list(itertools.islice(self.it, _LONGEST))
        self.it = iter(rest)
        return f"{cg.const(iter)}([{', '.join(cg.expr(item) for item in rest)}])"


class SequenceIteratorVariable(IteratorVariable):
    """An iterator over a list or tuple: later changes of the list show until it has ended."""

    __slots__ = ("ended", "index", "sequence")

    def __init__(self, sequence: BaseListVariable) -> None:
        kind = type(iter(())) if issubclass(sequence.python_type(), tuple) else _LIST_ITERATOR
        super().__init__(self._run(), kind)
        self.sequence = sequence
        self.index = 0
        self.ended = False

    def _run(self) -> Iterator[VariableTracker]:
        while self.index < len(self.sequence.items):
            self.index += 1
            yield self.sequence.item(self.index - 1)
        self.ended = True

    def reconstruct(self, cg: Codegen) -> str:
        from torch._dynamo import polyfills

        if self.ended:
            return f"{cg.const(polyfills.ended)}({cg.const(self.cls)})"
        iterator = cg.builtin_call(self.sequence, "__iter__")
        return f"{cg.const(polyfills.iterator_at)}({iterator}, {self.index})"


class BackwardIteratorVariable(IteratorVariable):
    """reversed(a list or tuple)"""

    __slots__ = ("index", "sequence")

    def __init__(self, sequence: BaseListVariable) -> None:
        super().__init__(self._run(), type(reversed(sequence.python_type()())))
        self.sequence = sequence
        self.index = len(sequence.items) - 1

    def _run(self) -> Iterator[VariableTracker]:
        while 0 <= self.index < len(self.sequence.items):
            self.index -= 1
            yield self.sequence.item(self.index + 1)
        self.index = -1

    def reconstruct(self, cg: Codegen) -> str:
        from torch._dynamo import polyfills

        iterator = f"{cg.const(reversed)}({cg.expr(self.sequence)})"
        if issubclass(self.sequence.python_type(), list):
            iterator = cg.builtin_call(self.sequence, "__reversed__")
        return f"{cg.const(polyfills.iterator_at)}({iterator}, {self.index})"


class DequeIteratorVariable(IteratorVariable):
    """An iterator over a deque, which may not change meanwhile nor after the end."""

    __slots__ = ("index", "length", "sequence")

    def __init__(self, tx: Frame, sequence: DequeVariable) -> None:
        super().__init__(_DequeWalk(self, tx, iter(sequence.items)), type(iter(sequence.items)))
        self.sequence = sequence
        self.index = 0
        self.length = len(sequence.items)

    def reconstruct(self, cg: Codegen) -> str:
        from torch._dynamo import polyfills

        if len(self.sequence.items) != self.length or self.sequence.changed:
            unimplemented("iterator after the graph", repr(self), "its deque has changed")
        iterator = cg.builtin_call(self.sequence, "__iter__")
        return f"{cg.const(polyfills.advanced)}({iterator}, {self.index})"


class _DequeWalk:
    """A walk by Python's own iterator, which looks for changes at every step."""

    __slots__ = ("_owner", "_tx", "_values")

    def __init__(
        self, owner: DequeIteratorVariable, tx: Frame, values: Iterator[VariableTracker]
    ) -> None:
        self._owner, self._tx, self._values = owner, tx, values

    def __iter__(self) -> _DequeWalk:
        return self

    def __next__(self) -> VariableTracker:
        try:
            value = next(self._values)
        except RuntimeError as error:
            raise_observed(self._tx, error)
        self._owner.index += 1
        return value.realize()


class TableIteratorVariable(IteratorVariable):
    """An iterator over a dictionary, a view of one, or a set."""

    __slots__ = ("before", "owner", "table")

    def __init__(self, walk: TableWalk, cls: type, owner: VariableTracker) -> None:
        super().__init__(walk, cls)
        self.owner = owner
        self.table = getattr(owner, "base", owner)
        self.before = list(self.table.items)

    def reconstruct(self, cg: Codegen) -> str:
        from torch._dynamo import polyfills

        if self.it.ended:
            return f"{cg.const(polyfills.ended)}({cg.const(self.cls)})"
        holder = cg.out.holders.get(id(self.table), self.table)
        known = holder.source is not None and not self.table.changed
        if not known and (
            list(self.table.items) != self.before
            or holder.source is not None
            or isinstance(self.table, SetVariable)
        ):
            unimplemented("iterator after the graph", repr(self), "what it walks has changed")
        iterator = cg.builtin_call(self.owner, "__iter__")
        return f"{cg.const(polyfills.advanced)}({iterator}, {self.it.taken})"


class ExistingIteratorVariable(IteratorVariable):
    """An iterator over a tuple or a range that the running program has; what the trace takes from
    it is taken from the real one after the graph."""

    __slots__ = ("taken",)

    def __init__(self, items: Args, source: Source, cls: type = _TUPLE_ITERATOR) -> None:
        super().__init__(iter(items), cls)
        self.source = source
        self.taken = 0

    def next(self, tx: Frame) -> VariableTracker:
        value = super().next(tx)
        tx.mutate(self)
        self.taken += 1
        return value

    def iterate(self, tx: Frame) -> Iterator[VariableTracker]:
        for value in self.it:
            tx.mutate(self)
            self.taken += 1
            yield value

    def write_back(self, cg: Codegen, target: str) -> None:
        """Emits code that brings the real iterator to the same place."""
        from torch._dynamo import polyfills

        cg.effect(f"{cg.const(polyfills.advance)}({target}, {self.taken})")


class CallIteratorVariable(IteratorVariable):
    """map, filter, zip, enumerate and the like over other iterators, kept by its parts."""

    __slots__ = ("keywords", "parts")

    def __init__(
        self,
        it: Iterator[VariableTracker],
        cls: type,
        parts: Args,
        keywords: dict[str, object] | None = None,
    ) -> None:
        super().__init__(it, cls, False)
        self.parts = parts
        self.keywords = keywords or {}

    def reconstruct(self, cg: Codegen) -> str:
        args = [cg.expr(part) for part in self.parts]
        args += [f"{k}={v!r}" for k, v in self.keywords.items()]
        return f"{cg.const(self.cls)}({', '.join(args)})"


class EnumerateVariable(IteratorVariable):
    """enumerate"""

    __slots__ = ("inner", "place")

    def __init__(self, inner: VariableTracker, values: Iterator, start: int) -> None:
        super().__init__(self._run(values), enumerate, False)
        self.inner = inner
        self.place = start

    def _run(self, values: Iterator) -> Iterator[VariableTracker]:
        for item in values:
            self.place += 1
            yield TupleVariable([ConstantVariable(self.place - 1), item.realize()])

    def reconstruct(self, cg: Codegen) -> str:
        return f"{cg.const(enumerate)}({cg.expr(self.inner)}, {self.place})"


class CountIteratorVariable(IteratorVariable):
    """itertools.count"""

    __slots__ = ("current", "step")

    def __init__(self, start: VariableTracker, step: VariableTracker) -> None:
        super().__init__(iter(()), itertools.count, False)
        self.current = start
        self.step = step

    def next(self, tx: Frame) -> VariableTracker:
        import operator

        value = self.current
        self.current = tx.binary(operator.add, value, self.step)
        return value

    def iterate(self, tx: Frame) -> Iterator[VariableTracker]:
        while True:
            yield self.next(tx)

    def reconstruct(self, cg: Codegen) -> str:
        return f"{cg.const(itertools.count)}({cg.expr(self.current)}, {cg.expr(self.step)})"


class RepeatIteratorVariable(IteratorVariable):
    """itertools.repeat without a count"""

    __slots__ = ("item",)

    def __init__(self, item: VariableTracker) -> None:
        super().__init__(itertools.repeat(item), itertools.repeat, False)
        self.item = item

    def reconstruct(self, cg: Codegen) -> str:
        return f"{cg.const(itertools.repeat)}({cg.expr(self.item)})"


class CallUntilVariable(IteratorVariable):
    """iter(function, sentinel)"""

    __slots__ = ("ended", "fn", "sentinel")

    def __init__(self, tx: Frame, fn: VariableTracker, sentinel: VariableTracker) -> None:
        super().__init__(_CallUntil(self, tx), type(iter(int, 0)), False)
        self.fn = fn
        self.sentinel = sentinel
        self.ended = False

    def children(self) -> Iterator[VariableTracker]:
        yield self.fn
        yield self.sentinel

    def reconstruct(self, cg: Codegen) -> str:
        from torch._dynamo import polyfills

        if self.ended:
            return f"{cg.const(polyfills.ended)}({cg.const(self.cls)})"
        return f"{cg.const(iter)}({cg.expr(self.fn)}, {cg.expr(self.sentinel)})"


class _CallUntil:
    """The calls, which go on after one that raised."""

    __slots__ = ("_owner", "_tx")

    def __init__(self, owner: CallUntilVariable, tx: Frame) -> None:
        self._owner, self._tx = owner, tx

    def __iter__(self) -> _CallUntil:
        return self

    def __next__(self) -> VariableTracker:
        owner = self._owner
        if owner.ended:
            raise StopIteration
        value = owner.fn.call_function(self._tx, [], {})
        if self._tx.same_or_equal(value, owner.sentinel):
            owner.ended = True
            raise StopIteration
        return value


# ---- builtins and itertools as Python iterators over trackers


def zip_values(tx: Frame, its: list[Iterator], strict: bool) -> Iterator[VariableTracker]:
    """zip"""
    if strict:
        try:
            for row in zip(*its, strict=True):
                yield TupleVariable([item.realize() for item in row])
        except ValueError as error:
            raise_error(tx, ValueError, *error.args)
        return
    for row in zip(*its, strict=False):
        yield TupleVariable([item.realize() for item in row])


def map_values(tx: Frame, fn: VariableTracker, its: list[Iterator]) -> Iterator[VariableTracker]:
    """map"""
    for row in zip(*its, strict=False):
        yield fn.call_function(tx, [item.realize() for item in row], {})


def filter_values(tx: Frame, fn: VariableTracker, it: Iterator) -> Iterator[VariableTracker]:
    """filter"""
    everything = fn.is_python_constant() and fn.as_python_constant() is None
    for item in it:
        item = item.realize()
        kept = item if everything else fn.call_function(tx, [item], {})
        if tx.truth(kept):
            yield item


def take_or_drop(
    tx: Frame, fn: VariableTracker, it: Iterator, take: bool
) -> Iterator[VariableTracker]:
    """itertools.takewhile and dropwhile"""
    dropping = True
    for item in it:
        item = item.realize()
        if take or dropping:
            holds = tx.truth(fn.call_function(tx, [item], {}))
            if take and not holds:
                return
            dropping = holds
            if not take and dropping:
                continue
        yield item


def accumulate_values(
    tx: Frame, it: Iterator, add: Callable[..., VariableTracker], initial: VariableTracker | None
) -> Iterator[VariableTracker]:
    """itertools.accumulate"""
    total = initial
    if total is not None:
        yield total
    for item in it:
        item = item.realize()
        total = item if total is None else add(total, item)
        yield total


class Groups:
    """itertools.groupby. The groups share its iterator: the next one begins where the last was left
    and ends it."""

    def __init__(self, tx: Frame, it: Iterator, key: VariableTracker | None) -> None:
        self._tx, self._it, self._key = tx, it, key
        # The value that was read last and its mark, and the mark of the group.
        self._value: VariableTracker | None = None
        self._mark: VariableTracker | None = None
        self._target: VariableTracker | None = None
        self._group = 0

    def __iter__(self) -> Groups:
        return self

    def __next__(self) -> VariableTracker:
        self._group += 1
        while self._mark is None or (
            self._target is not None and self._tx.same_or_equal(self._target, self._mark)
        ):
            self._step()
        self._target = self._mark
        members = IteratorVariable(self._members(self._group), itertools._grouper, False)
        return TupleVariable([self._target, members])

    def _step(self) -> None:
        value = next(self._it).realize()
        key = self._key
        self._mark = value if key is None else key.call_function(self._tx, [value], {}).realize()
        self._value = value

    def _members(self, group: int) -> Iterator[VariableTracker]:
        while self._group == group:
            if self._value is None:
                try:
                    self._step()
                except StopIteration:
                    return
            if not self._tx.same_or_equal(self._target, self._mark):
                return
            value, self._value = self._value, None
            yield value


def stops(error: ObservedException) -> bool:
    """Whether an exception of the program is StopIteration."""
    return issubclass(error.value.python_type(), StopIteration)
