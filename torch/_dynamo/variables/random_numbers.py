"""Generators of Python's module random. What they draw differs from run to run, so a drawn number
is an unbacked symbol of the graph, and the call is made by the code before the graph, on the
program's own generator and in the program's order: its state afterwards is that of the program as
it is. While tracing, calls go to a copy of the generator, which gives the backend an example."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import TYPE_CHECKING

from torch._dynamo import trace_rules
from torch._dynamo.exc import raise_observed, unimplemented
from torch._dynamo.variables.base import Args, Kwargs, VariableTracker
from torch._dynamo.variables.constant import NONE, ConstantVariable
from torch._dynamo.variables.keys import IdentityKey
from torch._dynamo.variables.tensor import SymNodeVariable

if TYPE_CHECKING:
    from torch._dynamo.codegen import Codegen
    from torch._dynamo.symbolic_convert import Frame
    from torch._guards import Source

# Methods that draw one number of a known type, and those that read or write the state.
_INTEGERS = frozenset({"randint", "randrange", "getrandbits"})
_FLOATS = frozenset(
    """random uniform triangular normalvariate gauss lognormvariate expovariate vonmisesvariate
    gammavariate betavariate paretovariate weibullvariate""".split()
)
_STATE = frozenset({"seed", "getstate", "setstate"})
METHODS = _INTEGERS | _FLOATS | _STATE


class EarlyValueVariable(VariableTracker):
    """The result of a call that the code makes before the graph. `value` is the copy's result."""

    __slots__ = ("args", "kwargs", "method", "receiver", "value")

    def __init__(
        self, receiver: VariableTracker, method: str, args: Args, kwargs: Kwargs, value: object
    ) -> None:
        super().__init__(None)
        self.receiver = receiver
        self.method = method
        self.args = args
        self.kwargs = kwargs
        self.value = value

    def python_type(self) -> type:
        return type(self.value)

    def children(self) -> Iterator[VariableTracker]:
        yield self.receiver
        yield from self.args
        yield from self.kwargs.values()

    def write(self, cg: Codegen) -> None:
        """Emits the call."""
        given = [cg.expr(a) for a in self.args]
        given += [f"{k}={cg.expr(v)}" for k, v in self.kwargs.items()]
        call = f"{cg.expr(self.receiver)}.{self.method}({', '.join(given)})"
        cg.made(self, cg.name_for(call))

    def reconstruct(self, cg: Codegen) -> str:
        raise AssertionError("the call is made before the graph")


class RandomVariable(VariableTracker):
    """A random.Random: one of the running program, or one that the trace makes (`init`)."""

    __slots__ = ("copy", "init", "value")

    def __init__(
        self, value: random.Random | None, source: Source | None = None, init: Args | None = None
    ) -> None:
        super().__init__(source)
        self.value = value
        self.init = init or []
        if value is None:
            self.copy = random.Random(*[a.as_python_constant() for a in self.init])
        else:
            self.copy = random.Random()
            self.copy.setstate(value.getstate())

    def describe(self) -> str:
        return "random" if self.value is random._inst else "random.Random"

    def python_type(self) -> type:
        return random.Random

    def truth(self, tx: Frame) -> bool:
        return True

    def hash_key(self, tx: Frame) -> object:
        return IdentityKey(self)

    def getattr(self, tx: Frame, name: str) -> VariableTracker:
        from torch._dynamo.variables.misc import GetAttrVariable

        return GetAttrVariable(self, name) if name in METHODS else super().getattr(tx, name)

    def call_method(self, tx: Frame, name: str, args: Args, kwargs: Kwargs) -> VariableTracker:
        if name not in METHODS:
            unimplemented(
                "random.Random", name, f"`random.{name}` gives values that the trace needs to know"
            )
        given = [a.realize() for a in args]
        named = {k: v.realize() for k, v in kwargs.items()}
        for vt in (*given, *named.values()):
            if not (vt.is_python_constant() or isinstance(vt, EarlyValueVariable)):
                unimplemented(
                    "random.Random", f"{name}({vt!r})", "an argument is not known before the graph"
                )
        tx.check_inside(self)
        try:
            value = getattr(self.copy, name)(*map(_known, given), **_known_all(named))
        except Exception as error:
            raise_observed(tx, error)
        made = EarlyValueVariable(self, name, given, named, value)
        tx.out.side_effects.changes += 1
        tx.out.early_calls.append(made)
        if name in _STATE:
            return made if name == "getstate" else NONE
        return _number(tx, made, value)

    def children(self) -> Iterator[VariableTracker]:
        yield from self.init

    def reconstruct(self, cg: Codegen) -> str:
        if self.value is not None:
            return cg.const(self.value)
        return f"{cg.const(random.Random)}({', '.join(cg.expr(a) for a in self.init)})"


def _known(vt: VariableTracker) -> object:
    return vt.value if isinstance(vt, EarlyValueVariable) else vt.as_python_constant()


def _known_all(named: Kwargs) -> dict[str, object]:
    return {k: _known(v) for k, v in named.items()}


def _number(tx: Frame, made: EarlyValueVariable, value: int | float) -> VariableTracker:
    env = tx.out.shape_env
    with env.ignore_fresh_unbacked_symbols():
        symbol = (
            env.create_unbacked_symfloat()
            if isinstance(value, float)
            else env.create_unbacked_symint()
        )
    node = tx.out.made_input(made, value, symbol)
    tx.out.symbol_nodes[str(symbol)] = node
    return SymNodeVariable(node, symbol)


def wrap(tx: Frame, value: random.Random, source: Source | None) -> VariableTracker:
    """The tracker of a generator of the running program."""
    if source is not None:
        tx.out.guard(source, "TYPE_MATCH", random.Random)
    made = RandomVariable(value, source)
    tx.out.known[id(value)] = made
    tx.out.keep.append(value)
    return made


def construct(tx: Frame, args: Args, kwargs: Kwargs) -> VariableTracker:
    """random.Random(...)"""
    given = [*args, *kwargs.values()]
    if len(given) != 1 or not given[0].is_python_constant() or given[0].is_same(NONE):
        unimplemented("random.Random", repr(given), "a generator without a known seed")
    return RandomVariable(None, None, [ConstantVariable(given[0].as_python_constant())])


def _method(name: str) -> object:
    def run(
        tx: Frame, obj: VariableTracker, *args: VariableTracker, **kwargs: VariableTracker
    ) -> VariableTracker:
        return obj.call_method(tx, name, list(args), kwargs)

    return run


for _name in METHODS:
    _found = getattr(random.Random, _name)
    if hasattr(_found, "__code__"):
        trace_rules.register(_found, _method(_name))
del _name, _found
