"""functools.partial"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import TYPE_CHECKING

from torch._dynamo.source import AttrSource
from torch._dynamo.variables.base import Args, Kwargs, VariableTracker
from torch._dynamo.variables.dicts import PartDictVariable
from torch._dynamo.variables.lists import TupleVariable

if TYPE_CHECKING:
    from torch._dynamo.codegen import Codegen
    from torch._dynamo.symbolic_convert import Frame
    from torch._guards import Source


class FunctoolsPartialVariable(VariableTracker):
    """A partial call; `value` is the running program's object, None for one that the trace
    made."""

    __slots__ = ("args", "constant", "func", "keywords", "tables", "value")

    def __init__(
        self,
        func: VariableTracker,
        args: Args,
        keywords: Kwargs,
        source: Source | None = None,
        value: functools.partial | None = None,
    ) -> None:
        super().__init__(source)
        self.func, self.args, self.keywords = func, args, keywords
        self.value = self.constant = value
        # Its dictionaries, once somebody asked for them.
        self.tables: dict[str, PartDictVariable] = {}

    def python_type(self) -> type:
        return functools.partial

    def is_python_constant(self) -> bool:
        parts = (self.func, *self.args, *self.keywords.values())
        return all(part.realize().is_python_constant() for part in parts)

    def as_python_constant(self) -> object:
        # One object: partials are equal to themselves alone.
        if self.constant is None:
            self.constant = functools.partial(
                self.func.as_python_constant(),
                *[a.realize().as_python_constant() for a in self.args],
                **{k: v.realize().as_python_constant() for k, v in self.keywords.items()},
            )
        return self.constant

    def as_proxy(self) -> object:
        return functools.partial(
            self.func.as_proxy(),
            *[a.realize().as_proxy() for a in self.args],
            **{k: v.realize().as_proxy() for k, v in self.keywords.items()},
        )

    def children(self) -> Iterator[VariableTracker]:
        yield self.func
        yield from self.args
        yield from self.keywords.values()

    def truth(self, tx: Frame) -> bool:
        return True

    def hash_key(self, tx: Frame) -> object:
        return self

    def call_function(self, tx: Frame, args: Args, kwargs: Kwargs) -> VariableTracker:
        given = [a.realize() for a in self.args]
        named = {k: v.realize() for k, v in self.keywords.items()}
        return self.func.call_function(tx, [*given, *args], {**named, **kwargs})

    def getattr(self, tx: Frame, name: str) -> VariableTracker:
        if name == "func":
            return self.func
        if name == "args":
            return TupleVariable(list(self.args))
        if name in ("keywords", "__dict__"):
            if name not in self.tables:
                parts = self.keywords if name == "keywords" else self._attributes(tx)
                self.tables[name] = PartDictVariable(tx, self, name, parts)
            return self.tables[name]
        if self.value is not None and name in vars(self.value):
            return self._attribute(tx, name)
        if self.source is not None:
            tx.out.guard(self.source, "NOT_PRESENT_IN_GENERIC_DICT", name)
        return tx.attribute_of_builtin(self, name)

    def _attribute(self, tx: Frame, name: str) -> VariableTracker:
        source = None if self.source is None else AttrSource(self.source, name)
        return VariableTracker.build(tx, vars(self.value)[name], source)

    def _attributes(self, tx: Frame) -> Kwargs:
        if self.value is None:
            return {}
        if self.source is not None:
            tx.out.guard(AttrSource(self.source, "__dict__"), "DICT_KEYS", vars(self.value))
        return {name: self._attribute(tx, name) for name in vars(self.value)}

    def reconstruct(self, cg: Codegen) -> str:
        args = "".join(f", {cg.expr(a)}" for a in self.args)
        named = ", ".join(f"{k!r}: {cg.expr(v)}" for k, v in self.keywords.items())
        return f"{cg.const(functools.partial)}({cg.expr(self.func)}{args}, **{{{named}}})"
