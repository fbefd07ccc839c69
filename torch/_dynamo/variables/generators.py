"""Generators: a frame that is left at each yield and entered again by next, send and throw."""

from __future__ import annotations

import builtins
import types
from collections.abc import Iterator
from typing import TYPE_CHECKING

from torch._dynamo.exc import ObservedException, raise_error, unimplemented
from torch._dynamo.variables.base import Args, Kwargs, VariableTracker
from torch._dynamo.variables.constant import NONE, TRUE, ConstantVariable
from torch._dynamo.variables.exceptions import exception_from_value
from torch._dynamo.variables.keys import IdentityKey
from torch._dynamo.variables.lists import TupleVariable

if TYPE_CHECKING:
    from torch._dynamo.codegen import Codegen
    from torch._dynamo.opcodes import Instruction
    from torch._dynamo.symbolic_convert import Frame

# What stands around the clauses of a handler.
_KEEPS_EXCEPTION = ("PUSH_EXC_INFO", "POP_EXCEPT", "COPY", "NOP", "JUMP")


def _passes_exit(frame: Frame, handler: Instruction) -> bool:
    """Whether a handler lets GeneratorExit through and does nothing else: its clauses name classes
    that are not raised to free a generator, as the `except IndexError` of a sequence's iterator."""
    program, values = frame.program, []
    ip = program.index[id(handler)]
    while True:
        ins = program.instructions[ip]
        ip += 1
        if ins.opname == "LOAD_GLOBAL":
            known = frame.globals.get(ins.argval, vars(builtins).get(ins.argval))
            values.append(known)
        elif ins.opname == "LOAD_ATTR" and values:
            module = values.pop()
            if not isinstance(module, types.ModuleType):
                return False
            values.append(vars(module).get(ins.argval))
        elif ins.opname == "BUILD_TUPLE" and len(values) == ins.arg:
            values = [tuple(values)]
        elif ins.opname == "CHECK_EXC_MATCH" and len(values) == 1:
            if not _misses_exit(values.pop()):
                return False
        elif ins.opname == "POP_JUMP_IF_FALSE":
            ip = program.index[id(ins.target)]
        elif ins.opname in ("RERAISE", "STOPITERATION_ERROR", "CLEANUP_THROW"):
            if ins.handler is None:
                return True
            ip = program.index[id(ins.handler)]
        elif ins.opname not in _KEEPS_EXCEPTION:
            return False


def _misses_exit(kinds: object) -> bool:
    """Whether `except kinds` leaves GeneratorExit alone."""
    return all(
        isinstance(kind, type) and not issubclass(GeneratorExit, kind)
        for kind in (kinds if isinstance(kinds, tuple) else (kinds,))
    )


class GeneratorVariable(VariableTracker):
    """A generator that the traced program made."""

    __slots__ = ("finished", "frame", "running", "started")

    def __init__(self, frame: Frame) -> None:
        super().__init__(None)
        self.frame = frame
        self.started = False
        self.finished = False
        self.running = False

    def describe(self) -> str:
        return self.frame.code.co_name

    def python_type(self) -> type:
        return types.GeneratorType

    def truth(self, tx: Frame) -> bool:
        return True

    def hash_key(self, tx: Frame) -> object:
        return IdentityKey(self)

    def send(
        self, tx: Frame, value: VariableTracker, thrown: VariableTracker | None = None
    ) -> VariableTracker:
        """Runs to the next yield; StopIteration with the value of a return."""
        if self.running:
            raise_error(tx, ValueError, "generator already executing")
        if self.finished:
            if thrown is not None:
                raise ObservedException(thrown)
            raise_error(tx, StopIteration)
        frame = self.frame
        if not self.started:
            if thrown is not None:
                self.finished = True
                raise ObservedException(thrown)
            if not value.is_same(NONE):
                raise_error(tx, TypeError, "can't send non-None value to a just-started generator")
        elif thrown is None:
            frame.stack.append(value)
        if thrown is not None:
            # Its context is what the generator handles, not what handles the generator.
            frame.parent = None
            frame.chain_context(thrown)
        frame.parent, frame.depth = tx, tx.depth + 1
        self.started = self.running = True
        frame.yielded = False
        try:
            if thrown is not None:
                self._throw_into(frame, thrown)
            result = frame.run()
        except ObservedException as error:
            self.finished = True
            if issubclass(error.value.python_type(), StopIteration):
                made = exception_from_value(tx, RuntimeError("generator raised StopIteration"))
                made.attrs.update(
                    __cause__=error.value, __context__=error.value, __suppress_context__=TRUE
                )
                raise ObservedException(made) from None
            raise
        finally:
            self.running = False
            frame.parent = None
        if frame.yielded:
            return result
        self.finished = True
        stop = exception_from_value(tx, StopIteration())
        if not result.is_same(NONE):
            stop.args = [result]
        raise ObservedException(stop)

    def _throw_into(self, frame: Frame, thrown: VariableTracker) -> None:
        ins = frame.program.steps[frame.ip - 1][1]
        frame.stack.append(NONE)
        frame.unwind(ins, ObservedException(thrown))

    def is_left_inside(self) -> bool:
        """Whether it waits inside of a `try` or `with` that does something when the generator is
        freed, which a trace does not see."""
        if not self.started or self.finished:
            return False
        handler = self.frame.program.steps[self.frame.ip - 1][1].handler
        return handler is not None and not _passes_exit(self.frame, handler)

    def iterate(self, tx: Frame) -> Iterator[VariableTracker]:
        while True:
            try:
                value = self.send(tx, NONE)
            except ObservedException as error:
                if issubclass(error.value.python_type(), StopIteration):
                    return
                raise
            yield value

    def getattr(self, tx: Frame, name: str) -> VariableTracker:
        if name == "gi_frame" and self.finished:
            return NONE
        if name == "gi_running":
            return ConstantVariable(self.running)
        if name in ("__name__", "__qualname__"):
            return ConstantVariable(getattr(self.frame.code, f"co_{name.strip('_')}"))
        if name.startswith("gi_"):
            unimplemented("generator", f"{self!r}.{name}", "the insides of a generator")
        return tx.attribute_of_builtin(self, name)

    def call_method(self, tx: Frame, name: str, args: Args, kwargs: Kwargs) -> VariableTracker:
        if name == "__next__":
            return self.send(tx, NONE)
        if name == "__iter__":
            return self
        if name == "send" and len(args) == 1:
            return self.send(tx, args[0])
        if name == "throw":
            from torch._dynamo.symbolic_convert import as_exception

            value = args[0]
            if len(args) > 1 and not args[1].is_same(NONE):
                value = args[1]
                if not issubclass(value.python_type(), BaseException):
                    parts = value.unpack(tx) if isinstance(value, TupleVariable) else [value]
                    value = args[0].call_function(tx, parts, {})
            return self.send(tx, NONE, as_exception(tx, value))
        if name == "close":
            return self._close(tx)
        return super().call_method(tx, name, args, kwargs)

    def _close(self, tx: Frame) -> VariableTracker:
        if not self.started or self.finished:
            self.finished = True
            return NONE
        try:
            self.send(tx, NONE, exception_from_value(tx, GeneratorExit()))
        except ObservedException as error:
            if issubclass(error.value.python_type(), GeneratorExit | StopIteration):
                return NONE
            raise
        raise_error(tx, RuntimeError, "generator ignored GeneratorExit")

    def reconstruct(self, cg: Codegen) -> str:
        if self.finished:
            from torch._dynamo import polyfills

            return f"{cg.const(polyfills.finished_generator)}()"
        if self.started:
            unimplemented(
                "generator after the graph",
                repr(self),
                "a generator that has begun cannot go on after a graph break",
            )
        frame = self.frame
        if frame.fn is None:
            unimplemented("generator after the graph", repr(self), "its function is not known")
        code = frame.code
        count = code.co_argcount + code.co_kwonlyargcount
        count += bool(code.co_flags & 4) + bool(code.co_flags & 8)
        values = []
        for name in code.co_varnames[:count]:
            vt = frame.locals.get(name) or frame.cells[name].contents
            values.append(cg.expr(vt))
        plain = code.replace(
            co_argcount=count,
            co_posonlyargcount=0,
            co_kwonlyargcount=0,
            co_flags=code.co_flags & ~12,
        )
        cells = "".join(f"{cg.expr(frame.cells[name])}, " for name in code.co_freevars)
        make = (
            f"{cg.const(types.FunctionType)}({cg.const(plain)}, {cg.const(frame.globals)}, "
            f"{code.co_name!r}, None, ({cells}) or None)"
        )
        return f"{make}({', '.join(values)})"

    def children(self) -> Iterator[VariableTracker]:
        yield from self.frame.locals.values()
        yield from self.frame.cells.values()
