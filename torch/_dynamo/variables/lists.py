"""Lists, tuples and what is made like them: torch.Size, deque, named tuples, ranges and slices.
The items stand in a Python list of trackers; methods that only move items are run on that list
by Python itself, and those that compare ask the items."""

from __future__ import annotations

import collections
import operator
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import torch
from torch._dynamo.exc import raise_error, raise_observed, unimplemented
from torch._dynamo.variables.base import Args, Kwargs, LazyVariableTracker, VariableTracker, bodies
from torch._dynamo.variables.constant import FALSE, NONE, TRUE, ConstantVariable

if TYPE_CHECKING:
    from torch._dynamo.codegen import Codegen
    from torch._dynamo.symbolic_convert import Frame
    from torch._guards import Source

# Methods that move items and look at none, by class. They change the container, or copy it.
_MOVING = {
    list: {"append", "insert", "pop", "reverse", "clear", "copy"},
    collections.deque: {
        *("append", "appendleft", "pop", "popleft", "insert", "reverse", "clear", "copy"),
        *("rotate", "__reversed__"),
    },
    tuple: set(),
}
_PURE = {"copy", "__reversed__"}


class BaseListVariable(VariableTracker):
    """A sequence of values. `cls` is its class."""

    __slots__ = ("items",)
    cls: type = list

    def __init__(self, items: Args, source: object = None) -> None:
        self.source = source
        self.changed = False
        self.born = bodies[0]
        self.items = items

    def describe(self) -> str:
        return f"length={len(self.items)}"

    def python_type(self) -> type:
        return self.cls

    def is_python_constant(self) -> bool:
        return all(_constant(item) for item in self.items)

    def as_python_constant(self) -> object:
        return self.python_type()([item.realize().as_python_constant() for item in self.items])

    def children(self) -> Iterator[VariableTracker]:
        return iter(self.items)

    def item(self, index: int) -> VariableTracker:
        """One of the items."""
        found = self.items[index]
        if type(found) is LazyVariableTracker:
            found = self.items[index] = found.realize()
        return found

    def unpack(self, tx: Frame) -> Args:
        return [self.item(i) for i in range(len(self.items))]

    def iterate(self, tx: Frame) -> Iterator[VariableTracker]:
        index = 0
        while index < len(self.items):
            yield self.item(index)
            index += 1

    def truth(self, tx: Frame) -> bool:
        return bool(self.items)

    def as_proxy(self) -> object:
        values = [item.realize().as_proxy() for item in self.items]
        return values if self.cls is list else tuple(values)

    def length(self, tx: Frame) -> VariableTracker:
        """len(obj)"""
        return ConstantVariable(len(self.items))

    def like(self, items: Args) -> BaseListVariable:
        """A new sequence of the same class."""
        return type(self)(items)

    def getitem(self, tx: Frame, key: VariableTracker) -> VariableTracker:
        index = tx.as_index(key)
        try:
            found = self.items[index]
        except (IndexError, TypeError) as error:
            raise_observed(tx, type(error)(str(error).replace("list", self.python_type().__name__)))
        if isinstance(index, slice):
            return self.sliced(found)
        return self.item(index)

    def sliced(self, items: Args) -> VariableTracker:
        """What a slice of it is."""
        return self.like(items)

    def getattr(self, tx: Frame, name: str) -> VariableTracker:
        return tx.attribute_of_builtin(self, name)

    def call_method(self, tx: Frame, name: str, args: Args, kwargs: Kwargs) -> VariableTracker:
        if name == "__getitem__" and len(args) == 1:
            return self.getitem(tx, args[0])
        if name == "__len__":
            return self.length(tx)
        if name == "__iter__":
            return tx.make_iterator(self)
        if name == "__contains__" and len(args) == 1:
            return ConstantVariable(self.find(tx, args[0]) is not None)
        if name == "index":
            return self._index(tx, args)
        if name == "count" and len(args) == 1:
            hits = [tx.equal(item.realize(), args[0]) for item in self.items]
            return ConstantVariable(sum(hits))
        if name == "__hash__" and not args:
            return ConstantVariable(hash(self.hash_key(tx)))
        if name in _OPERATORS and len(args) == 1:
            return tx.binary(_OPERATORS[name], self, args[0])
        if name == "__init__" and self.cls is tuple:
            return NONE
        return self.missing_method(tx, name, args, kwargs)

    def missing_method(self, tx: Frame, name: str, args: Args, kwargs: Kwargs) -> VariableTracker:
        """A method that was not found."""
        if not hasattr(self.python_type(), name):
            kind = self.python_type().__name__
            raise_error(tx, AttributeError, f"{kind!r} object has no attribute {name!r}")
        if not kwargs and self.is_python_constant() and all(a.is_python_constant() for a in args):
            if name in ("__str__", "__repr__", "__sizeof__"):
                return ConstantVariable(getattr(self.as_python_constant(), name)())
        unimplemented(
            "method of a sequence",
            f"{self!r}.{name}({args}, {kwargs})",
            f"Dynamo does not know the method `{name}` of {self.python_type().__name__}",
        )

    def find(self, tx: Frame, value: VariableTracker, start: int = 0) -> int | None:
        """The place of the first item that is equal to value."""
        for index in range(start, len(self.items)):
            if tx.same_or_equal(self.item(index), value):
                return index
        return None

    def _index(self, tx: Frame, args: Args) -> VariableTracker:
        first, last = 0, len(self.items)
        if len(args) > 1:
            first, last, _ = slice(tx.as_index(args[1]), None).indices(last)
        if len(args) > 2:
            _, last, _ = slice(None, tx.as_index(args[2])).indices(last)
        found = self.find(tx, args[0], first)
        if found is None or found >= last:
            if issubclass(self.python_type(), tuple):
                raise_error(tx, ValueError, "tuple.index(x): x not in tuple")
            shown = tx.text(args[0], "__repr__").as_python_constant()
            raise_error(tx, ValueError, f"{shown} is not in {self.python_type().__name__}")
        return ConstantVariable(found)

    def reconstruct(self, cg: Codegen) -> str:
        return f"[{', '.join(cg.expr(item) for item in self.items)}]"


_OPERATORS = {
    "__add__": operator.add,
    "__iadd__": operator.iadd,
    "__mul__": operator.mul,
    "__rmul__": operator.mul,
    "__imul__": operator.imul,
    "__eq__": operator.eq,
    "__ne__": operator.ne,
    "__lt__": operator.lt,
    "__le__": operator.le,
    "__gt__": operator.gt,
    "__ge__": operator.ge,
}


def _constant(item: VariableTracker) -> bool:
    if type(item) is LazyVariableTracker:
        if not item.is_realized() and not _may_be_constant(item.peek_type()):
            return False
        item = item.realize()
    return item.is_python_constant()


def _may_be_constant(cls: type) -> bool:
    return not issubclass(cls, torch.Tensor | torch.nn.Module)


class MutableSequence(BaseListVariable):
    """A list or deque."""

    __slots__ = ()

    def call_method(self, tx: Frame, name: str, args: Args, kwargs: Kwargs) -> VariableTracker:
        if name in _MOVING.get(self.cls, ()) and not kwargs:
            return self._move(tx, name, args)
        if name == "__reversed__" and not args:
            return tx.make_reversed(self)
        if name in ("extend", "__iadd__") and len(args) == 1:
            tx.mutate(self)
            new = args[0].unpack(tx)
            self.items.extend(new)
            return self if name == "__iadd__" else NONE
        if name == "remove" and len(args) == 1:
            found = self.find(tx, args[0])
            if found is None:
                kind = self.cls.__name__
                raise_error(tx, ValueError, f"{kind}.remove(x): x not in {kind}")
            tx.mutate(self)
            del self.items[found]
            return NONE
        if name == "__setitem__" and len(args) == 2:
            self.setitem(tx, *args)
            return NONE
        if name == "__delitem__" and len(args) == 1:
            return self._delete(tx, args[0])
        if name == "__init__":
            new = args[0].unpack(tx) if args else []
            tx.mutate(self)
            self.items[:] = new
            return NONE
        return super().call_method(tx, name, args, kwargs)

    def _move(self, tx: Frame, name: str, args: Args) -> VariableTracker:
        native = getattr(self.items, name)
        values: list = list(args)
        if name in ("pop", "rotate"):
            values = [tx.as_index(a) for a in args]
        elif name == "insert" and len(args) == 2:
            values = [tx.as_index(args[0]), args[1]]
        if name not in _PURE:
            tx.mutate(self)
        try:
            result = native(*values)
        except (IndexError, TypeError) as error:
            raise_observed(tx, error)
        if result is None:
            return NONE
        if name == "copy":
            return self.like(result)
        if name == "__reversed__":
            return tx.make_iterator(self.like(list(result)))
        return result.realize()

    def setitem(self, tx: Frame, key: VariableTracker, value: VariableTracker) -> None:
        index = tx.as_index(key)
        tx.mutate(self)
        try:
            self.items[index] = value.unpack(tx) if isinstance(index, slice) else value
        except (IndexError, ValueError, TypeError) as error:
            raise_observed(tx, error)

    def _delete(self, tx: Frame, key: VariableTracker) -> VariableTracker:
        index = tx.as_index(key)
        tx.mutate(self)
        try:
            del self.items[index]
        except (IndexError, TypeError) as error:
            raise_observed(tx, error)
        return NONE


class ListVariable(MutableSequence):
    """A list."""

    __slots__ = ()

    def call_method(self, tx: Frame, name: str, args: Args, kwargs: Kwargs) -> VariableTracker:
        if name == "sort" and not args:
            items = tx.sort(self.unpack(tx), kwargs)
            tx.mutate(self)
            self.items[:] = items
            return NONE
        return super().call_method(tx, name, args, kwargs)

    def hash_key(self, tx: Frame) -> object:
        raise_error(tx, TypeError, "unhashable type: 'list'")

    def write_back(self, cg: Codegen, target: str) -> None:
        """Gives the running program's list these items."""
        cg.effect(f"{cg.const(list)}.__init__({target}, {self.reconstruct(cg)})")


class ExistingListVariable(ListVariable):
    """A list of the running program. Its items are read, and guarded, when the trace looks at them:
    a list that the program only appends to may have any length."""

    __slots__ = ("_items", "_read", "_tail")

    def __init__(self, read: Callable[[], Args], source: Source) -> None:
        self.source = source
        self.changed = False
        self.born = bodies[0]
        self._read = read
        self._items: Args | None = None
        self._tail: Args = []

    @property
    def items(self) -> Args:
        if self._items is None:
            # The list may hold itself.
            found = self._items = []
            found.extend(self._read())
            found.extend(self._tail)
        return self._items

    @items.setter
    def items(self, value: Args) -> None:
        self._items = value

    def describe(self) -> str:
        return self.source.name() if self._items is None else f"length={len(self._items)}"

    def like(self, items: Args) -> BaseListVariable:
        return ListVariable(items)

    def call_method(self, tx: Frame, name: str, args: Args, kwargs: Kwargs) -> VariableTracker:
        if self._items is None and name == "append" and len(args) == 1 and not kwargs:
            tx.mutate(self)
            self._tail.append(args[0])
            return NONE
        return super().call_method(tx, name, args, kwargs)

    def write_back(self, cg: Codegen, target: str) -> None:
        """Appends what came behind items that nobody looked at."""
        if self._items is not None:
            super().write_back(cg, target)
            return
        append = cg.const(list.append)
        for value in self._tail:
            cg.effect(f"{append}({target}, {cg.expr(value)})")


class DequeVariable(MutableSequence):
    """A collections.deque."""

    __slots__ = ("maxlen",)
    cls = collections.deque

    def __init__(self, items: Args, source: object = None, maxlen: int | None = None) -> None:
        super().__init__(collections.deque(items, maxlen), source)
        self.maxlen = maxlen

    def like(self, items: Args) -> BaseListVariable:
        return DequeVariable(items, maxlen=self.maxlen)

    def as_python_constant(self) -> object:
        return collections.deque(
            [item.realize().as_python_constant() for item in self.items], self.maxlen
        )

    def getattr(self, tx: Frame, name: str) -> VariableTracker:
        if name == "maxlen":
            return ConstantVariable(self.maxlen)
        return super().getattr(tx, name)

    def call_method(self, tx: Frame, name: str, args: Args, kwargs: Kwargs) -> VariableTracker:
        if name == "extendleft" and len(args) == 1:
            tx.mutate(self)
            self.items.extendleft(args[0].unpack(tx))
            return NONE
        if name == "__init__":
            limit = args[1] if len(args) > 1 else kwargs.get("maxlen", NONE)
            self.maxlen = limit.as_python_constant()
            new = args[0].unpack(tx) if args else []
            tx.mutate(self)
            self.items = collections.deque(new, self.maxlen)
            return NONE
        return super().call_method(tx, name, args, kwargs)

    def reconstruct(self, cg: Codegen) -> str:
        more = f", {self.maxlen}" if self.maxlen is not None else ""
        return f"{cg.const(collections.deque)}({super().reconstruct(cg)}{more})"

    def write_back(self, cg: Codegen, target: str) -> None:
        """Gives the running program's deque these items."""
        new = BaseListVariable.reconstruct(self, cg)
        cg.effect(f"{cg.const(collections.deque)}.__init__({target}, {new}, {self.maxlen})")


class TupleVariable(BaseListVariable):
    """A tuple."""

    __slots__ = ()
    cls = tuple

    def is_mutable(self) -> bool:
        return False

    def is_same(self, other: VariableTracker) -> bool | None:
        if self is other:
            return True
        return None if not self.items and isinstance(other, TupleVariable) else False

    def hash_key(self, tx: Frame) -> object:
        return tuple(item.realize().hash_key(tx) for item in self.items)

    def reconstruct(self, cg: Codegen) -> str:
        inner = "".join(f"{cg.expr(item)}, " for item in self.items)
        return f"({inner})"


class SizeVariable(TupleVariable):
    """A torch.Size."""

    __slots__ = ()
    cls = torch.Size

    def sliced(self, items: Args) -> VariableTracker:
        return SizeVariable(items)

    def call_method(self, tx: Frame, name: str, args: Args, kwargs: Kwargs) -> VariableTracker:
        if name == "numel" and not args:
            total: VariableTracker = ConstantVariable(1)
            for item in self.items:
                total = tx.binary(operator.mul, total, item.realize())
            return total
        return super().call_method(tx, name, args, kwargs)

    def reconstruct(self, cg: Codegen) -> str:
        return f"{cg.const(torch.Size)}({super().reconstruct(cg)})"


class NamedTupleVariable(TupleVariable):
    """A named tuple, or a result of an operator with several named values."""

    __slots__ = ("tuple_cls",)

    def __init__(self, items: Args, tuple_cls: type, source: object = None) -> None:
        super().__init__(items, source)
        self.tuple_cls = tuple_cls

    def python_type(self) -> type:
        return self.tuple_cls

    def fields(self) -> tuple[str, ...]:
        """Names of the items."""
        from torch._dynamo.utils import namedtuple_fields

        return namedtuple_fields(self.tuple_cls)

    def like(self, items: Args) -> BaseListVariable:
        return TupleVariable(items)

    def as_python_constant(self) -> object:
        values = [item.realize().as_python_constant() for item in self.items]
        if hasattr(self.tuple_cls, "_make"):
            return self.tuple_cls._make(values)
        return self.tuple_cls(values)

    def as_proxy(self) -> object:
        values = [item.realize().as_proxy() for item in self.items]
        if hasattr(self.tuple_cls, "_make"):
            return self.tuple_cls._make(values)
        return self.tuple_cls(values)

    def getattr(self, tx: Frame, name: str) -> VariableTracker:
        fields = self.fields()
        if name in fields:
            return self.item(fields.index(name))
        if name in ("_fields", "__match_args__"):
            return TupleVariable([ConstantVariable(f) for f in fields])
        found = tx.class_attribute(self.tuple_cls, name)
        if found is not None and name not in ("_replace", "_asdict"):
            return tx.bind_class_attribute(self, self.tuple_cls, name, found)
        return super().getattr(tx, name)

    def call_method(self, tx: Frame, name: str, args: Args, kwargs: Kwargs) -> VariableTracker:
        if name == "_replace" and not args:
            values = dict(zip(self.fields(), self.unpack(tx), strict=True)) | kwargs
            return NamedTupleVariable(list(values.values()), self.tuple_cls)
        if name == "_asdict" and not args:
            from torch._dynamo.variables.dicts import ConstDictVariable

            pairs = zip(self.fields(), self.unpack(tx), strict=True)
            return ConstDictVariable.of(tx, [(ConstantVariable(k), v) for k, v in pairs])
        return super().call_method(tx, name, args, kwargs)

    def reconstruct(self, cg: Codegen) -> str:
        inner = ", ".join(cg.expr(item) for item in self.items)
        if hasattr(self.tuple_cls, "_make"):
            return f"{cg.const(self.tuple_cls)}._make([{inner}])"
        return f"{cg.const(self.tuple_cls)}([{inner}])"


class RangeVariable(BaseListVariable):
    """A range; its bounds are constants."""

    __slots__ = ("value",)
    cls = range

    def __init__(self, value: range, source: object = None) -> None:
        self.source = source
        self.changed = False
        self.born = bodies[0]
        self.value = value

    @property
    def items(self) -> Args:
        return [ConstantVariable(i) for i in self.value]

    @items.setter
    def items(self, value: Args) -> None:
        raise AssertionError("a range has no items of its own")

    def describe(self) -> str:
        return repr(self.value)

    def is_mutable(self) -> bool:
        return False

    def is_python_constant(self) -> bool:
        return True

    def as_python_constant(self) -> object:
        return self.value

    def item(self, index: int) -> VariableTracker:
        return ConstantVariable(self.value[index])

    def iterate(self, tx: Frame) -> Iterator[VariableTracker]:
        return (ConstantVariable(i) for i in self.value)

    def unpack(self, tx: Frame) -> Args:
        return [ConstantVariable(i) for i in self.value]

    def getitem(self, tx: Frame, key: VariableTracker) -> VariableTracker:
        try:
            found = self.value[tx.as_index(key)]
        except IndexError as error:
            raise_observed(tx, error)
        return RangeVariable(found) if isinstance(found, range) else ConstantVariable(found)

    def getattr(self, tx: Frame, name: str) -> VariableTracker:
        if name in ("start", "stop", "step"):
            return ConstantVariable(getattr(self.value, name))
        return super().getattr(tx, name)

    def truth(self, tx: Frame) -> bool:
        return bool(self.value)

    def hash_key(self, tx: Frame) -> object:
        return self.value

    def length(self, tx: Frame) -> VariableTracker:
        return ConstantVariable(len(self.value))

    def as_proxy(self) -> object:
        return self.value

    def reconstruct(self, cg: Codegen) -> str:
        r = self.value
        return f"{cg.const(range)}({r.start}, {r.stop}, {r.step})"


class SliceVariable(VariableTracker):
    """A slice; its bounds may be symbols."""

    __slots__ = ("items",)

    def __init__(self, items: Args, source: object = None) -> None:
        super().__init__(source)
        if len(items) == 1:
            items = [NONE, items[0], NONE]
        elif len(items) == 2:
            items = [*items, NONE]
        self.items = items

    def python_type(self) -> type:
        return slice

    def is_mutable(self) -> bool:
        return False

    def is_python_constant(self) -> bool:
        return all(item.is_python_constant() for item in self.items)

    def as_python_constant(self) -> object:
        return slice(*[item.as_python_constant() for item in self.items])

    def as_proxy(self) -> object:
        return slice(*[item.as_proxy() for item in self.items])

    def children(self) -> Iterator[VariableTracker]:
        return iter(self.items)

    def getattr(self, tx: Frame, name: str) -> VariableTracker:
        if name in ("start", "stop", "step"):
            return self.items[("start", "stop", "step").index(name)]
        return tx.attribute_of_builtin(self, name)

    def call_method(self, tx: Frame, name: str, args: Args, kwargs: Kwargs) -> VariableTracker:
        if name == "indices" and len(args) == 1:
            found = self.as_python_constant().indices(tx.as_index(args[0]))
            return TupleVariable([ConstantVariable(i) for i in found])
        return super().call_method(tx, name, args, kwargs)

    def truth(self, tx: Frame) -> bool:
        return True

    def reconstruct(self, cg: Codegen) -> str:
        return f"{cg.const(slice)}({', '.join(cg.expr(item) for item in self.items)})"


TRUTH = {True: TRUE, False: FALSE}
