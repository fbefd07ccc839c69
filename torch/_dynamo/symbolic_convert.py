"""The symbolic interpreter: a frame runs the normal form of a function's bytecode on trackers.
Calls of Python functions run in frames of their own. The root frame decides what happens where
the trace cannot go on: it writes code for what was traced so far, leaves the instruction to
Python, and goes on behind it in a function of its own (resume_execution)."""

from __future__ import annotations

import builtins
import functools
import itertools
import linecache
import operator
import os
import sys
import traceback
import types
from typing import TYPE_CHECKING

import torch
from torch._dynamo import compile_log, trace_rules
from torch._dynamo.bytecode import Program, program_of
from torch._dynamo.data_model import DataModel
from torch._dynamo.exc import (
    ObservedException,
    raise_error,
    raise_observed,
    raise_value,
    unimplemented,
)
from torch._dynamo.patterns import (  # noqa: F401
    COPY_DICT_WITHOUT_KEYS,
    MATCH_CLASS,
    MATCH_KEYS,
    MATCH_MAPPING,
    MATCH_SEQUENCE,
)
from torch._dynamo.resume_execution import unbound_text
from torch._dynamo.source import AttrSource, GetItemSource, GlobalSource
from torch._dynamo.variables.base import Args, Kwargs, LazyVariableTracker, VariableTracker
from torch._dynamo.variables.constant import FALSE, NONE, TRUE, ConstantVariable
from torch._dynamo.variables.dicts import ConstDictVariable
from torch._dynamo.variables.exceptions import ExceptionVariable, TracebackVariable
from torch._dynamo.variables.functions import (
    BaseUserFunctionVariable,
    CellVariable,
    NestedUserFunctionVariable,
)
from torch._dynamo.variables.iter import IteratorVariable
from torch._dynamo.variables.lists import (
    BaseListVariable,
    ListVariable,
    SliceVariable,
    TupleVariable,
)
from torch._dynamo.variables.misc import UNBOUND, PythonModuleVariable
from torch._dynamo.variables.sets import SetVariable
from torch._dynamo.variables.tensor import SymNodeVariable, TensorVariable
from torch._dynamo.variables.user_defined import (
    _MISSING,
    DELETED,
    UserDefinedClassVariable,
    UserDefinedObjectVariable,
    class_attribute,
)

if TYPE_CHECKING:
    from torch._dynamo.opcodes import Instruction
    from torch._dynamo.output_graph import OutputGraph

BINARY = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv,
    "//": operator.floordiv, "%": operator.mod, "**": operator.pow, "@": operator.matmul,
    "&": operator.and_, "|": operator.or_, "^": operator.xor, "<<": operator.lshift,
    ">>": operator.rshift, "+=": operator.iadd, "-=": operator.isub, "*=": operator.imul,
    "/=": operator.itruediv, "//=": operator.ifloordiv, "%=": operator.imod,
    "**=": operator.ipow, "@=": operator.imatmul, "&=": operator.iand, "|=": operator.ior,
    "^=": operator.ixor, "<<=": operator.ilshift, ">>=": operator.irshift,
}  # fmt: skip
COMPARE = {
    "<": operator.lt, "<=": operator.le, "==": operator.eq, "!=": operator.ne,
    ">": operator.gt, ">=": operator.ge,
}  # fmt: skip
_GRAPH_VALUES = (TensorVariable, SymNodeVariable)
_GENERATOR, _COROUTINE = 0x20, 0x80 | 0x200
_DEEPEST = 150


@functools.lru_cache(4096)
def _line_text(filename: str, name: str, line: int) -> str:
    text = linecache.getline(filename, line).strip()
    shown = f"    {text}\n" if text else ""
    return f'  File "{filename}", line {line}, in {name}\n{shown}'


class Frame(DataModel):
    """One activation of a function."""

    def __init__(
        self,
        out: OutputGraph,
        program: Program,
        fn_globals: dict[str, object],
        parent: Frame | None = None,
        fn: BaseUserFunctionVariable | None = None,
    ) -> None:
        self.out = out
        self.program = program
        self.code = program.code
        self.globals = fn_globals
        self.parent = parent
        self.fn = fn
        self.depth = 0 if parent is None else parent.depth + 1
        self.ip = 0
        self.stack: list[VariableTracker] = []
        self.locals: dict[str, VariableTracker] = {}
        self.cells: dict[str, CellVariable] = {}
        self.result: VariableTracker | None = None
        self.yielded = False
        # The exception that this frame or its caller handles; a generator has its own.
        self.handling: VariableTracker | None = None if parent is None else parent.handled()
        self.is_generator = False
        # Sources of globals are left out where the file is part of a library.
        self.is_library = trace_rules.is_library_file(self.code.co_filename)
        if not self.is_library:
            out.codes.add(self.code)

    # ---- running

    def run(self) -> VariableTracker:
        """Runs to the return, or to the next yield (then `yielded` is set)."""
        steps = self.steps()
        while True:
            handler, ins = steps[self.ip]
            self.ip += 1
            try:
                if handler(self, ins):
                    return self.result
            except ObservedException as error:
                self.unwind(ins, error)
            except Exception as error:
                # Faults of the tracer as well: the message names the user's line.
                if getattr(error, "frames", None) is None:
                    error.frames = self.user_stack()
                raise

    def steps(self) -> list[tuple]:
        """The instructions with what carries them out."""
        steps = self.program.steps
        return compile_log.watched(self, steps) if self.out.watches_steps else steps

    def unwind(self, ins: Instruction, error: ObservedException) -> None:
        """Goes to the handler of an exception, or leaves the frame with it."""
        if ins.handler is None:
            try:
                raise error
            finally:
                # Its traceback holds this frame, which must not hold it.
                del error
        value = error.value
        del self.stack[ins.depth :]
        if ins.lasti:
            self.stack.append(ConstantVariable(self.ip - 1))
        self.stack.append(value)
        self.ip = self.program.index[id(ins.handler)]

    def handled(self) -> VariableTracker | None:
        """The exception being handled, as sys.exception() has it."""
        if self.handling is None and self.is_generator and self.parent is not None:
            return self.parent.handled()
        return self.handling

    def chain_context(self, value: VariableTracker) -> None:
        """Notes in an exception which one was being handled when it was raised."""
        context = self.handled()
        if context is None or context is value or not isinstance(value, ExceptionVariable):
            return
        # The chain never comes back to its start, but the program may have closed another circle.
        link, seen = context, set()
        while isinstance(link, ExceptionVariable) and id(link) not in seen:
            seen.add(id(link))
            following = link.attrs.get("__context__")
            if following is value:
                link.set_origin(self, "__context__", NONE)
                break
            link = following
        value.set_origin(self, "__context__", context)

    def catches_exceptions(self) -> bool:
        """Whether the program could handle an exception raised now."""
        frame: Frame | None = self
        while frame is not None:
            if frame.ip and frame.program.steps[frame.ip - 1][1].handler is not None:
                return True
            frame = frame.parent
        return False

    # ---- where the trace is

    def line(self) -> int:
        """The line of the current instruction."""
        place = max(self.ip - 1, 0)
        while place >= 0:
            number = self.program.steps[place][1].lineno
            if number is not None:
                return number
            place -= 1
        return self.code.co_firstlineno

    def user_stack(self) -> list[traceback.FrameSummary]:
        """The user's frames, the outermost first."""
        frames = []
        frame: Frame | None = self
        while frame is not None:
            code, line = frame.code, frame.line()
            text = linecache.getline(code.co_filename, line).strip()
            frames.append(traceback.FrameSummary(code.co_filename, line, code.co_name, line=text))
            frame = frame.parent
        return frames[::-1]

    def user_stack_text(self) -> str:
        """The user's frames as a traceback shows them."""
        parts = []
        frame: Frame | None = self
        while frame is not None:
            code = frame.code
            parts.append(_line_text(code.co_filename, code.co_name, frame.line()))
            frame = frame.parent
        return "".join(reversed(parts))

    # ---- calls

    def call(self, fn: VariableTracker, args: Args, kwargs: Kwargs) -> VariableTracker:
        """fn(*args, **kwargs)"""
        return fn.call_function(self, args, kwargs)

    def inline(self, fn: BaseUserFunctionVariable, args: Args, kwargs: Kwargs) -> VariableTracker:
        """Runs a function's bytecode in a frame of its own."""
        code = fn.code()
        if self.depth > _DEEPEST:
            unimplemented("recursion", fn.name(), "calls are nested too deep to be traced")
        if code.co_flags & _COROUTINE:
            unimplemented("coroutine", fn.name(), "async functions are not traced")
        bound = fn.bind(self, args, kwargs)
        child = Frame(self.out, program_of(code), fn.globals(), self, fn)
        child.enter(bound, fn.cells(self))
        if code.co_flags & _GENERATOR:
            from torch._dynamo.variables.generators import GeneratorVariable

            child.handling, child.is_generator = None, True
            made = GeneratorVariable(child)
            self.out.generators.append(made)
            return made
        return child.run()

    def enter(self, bound: dict[str, VariableTracker], cells: list[CellVariable]) -> None:
        """Gives the frame its parameters and the cells of its closure."""
        self.locals = bound
        for name in self.code.co_cellvars:
            self.cells[name] = CellVariable(name, bound.pop(name, None))
        self.cells.update(zip(self.code.co_freevars, cells, strict=True))

    def call_by_rule(
        self, rule: object, fn: VariableTracker, value: object, args: Args, kwargs: Kwargs
    ) -> VariableTracker:
        """A call of a function that is not run by its bytecode."""
        from torch._dynamo.variables import torch as torch_rules

        return torch_rules.call(self, rule, fn, value, args, kwargs)

    def construct(
        self, cls: UserDefinedClassVariable, args: Args, kwargs: Kwargs
    ) -> VariableTracker:
        """cls(...)"""
        from torch._dynamo.variables import construction

        return construction.construct(self, cls, args, kwargs)

    def call_class_method(
        self, cls: UserDefinedClassVariable, name: str, args: Args, kwargs: Kwargs
    ) -> VariableTracker:
        """cls.name(...) for a method that C code defines."""
        from torch._dynamo.variables import construction

        return construction.class_method(self, cls, name, args, kwargs)

    def call_c_base(
        self, obj: VariableTracker, name: str, raw: object, args: Args, kwargs: Kwargs
    ) -> VariableTracker:
        """A method of a base class in C, called on an object of a derived class."""
        from torch._dynamo.variables import construction

        return construction.c_base_method(self, obj, name, raw, args, kwargs)

    def size_of(self, tensor: VariableTracker, dim: int) -> VariableTracker:
        """One size of a tensor, symbolic or not."""
        from torch._dynamo.variables import builder

        return builder.size_of(self, tensor, dim)

    # ---- stack

    def push(self, vt: VariableTracker) -> None:
        """Puts a value on the stack."""
        self.stack.append(vt)

    def pop(self) -> VariableTracker:
        """Takes a value off the stack."""
        return self.stack.pop()

    def popn(self, count: int) -> Args:
        """Takes values off the stack, the lowest first."""
        if not count:
            return []
        taken = self.stack[-count:]
        del self.stack[-count:]
        return taken


# ---- instructions. Each returns something true to leave the frame.


def NOP(self: Frame, ins: Instruction) -> None:
    pass


def POP_TOP(self: Frame, ins: Instruction) -> None:
    self.stack.pop()


def COPY(self: Frame, ins: Instruction) -> None:
    self.stack.append(self.stack[-ins.arg])


def SWAP(self: Frame, ins: Instruction) -> None:
    stack = self.stack
    stack[-1], stack[-ins.arg] = stack[-ins.arg], stack[-1]


def LOAD_CONST(self: Frame, ins: Instruction) -> None:
    self.stack.append(ConstantVariable.create(ins.argval))


def LOAD_FAST(self: Frame, ins: Instruction) -> None:
    found = self.locals.get(ins.argval)
    if found is None:
        raise_error(self, UnboundLocalError, unbound_text(ins.argval, own=True))
    if type(found) is LazyVariableTracker:
        found = self.locals[ins.argval] = found.realize()
    self.stack.append(found)


def STORE_FAST(self: Frame, ins: Instruction) -> None:
    value = self.stack.pop()
    if value is UNBOUND:
        self.locals.pop(ins.argval, None)
        return
    self.locals[ins.argval] = value
    if isinstance(value, _GRAPH_VALUES) and not value.named:
        # A graph is read with the program beside it: a value has the name of its first variable.
        value.named = True
        value.node._rename(ins.argval)


def DELETE_FAST(self: Frame, ins: Instruction) -> None:
    if self.locals.pop(ins.argval, None) is None:
        raise_error(self, UnboundLocalError, unbound_text(ins.argval, own=True))


def LOAD_FAST_AND_CLEAR(self: Frame, ins: Instruction) -> None:
    self.stack.append(self.locals.pop(ins.argval, UNBOUND))


def LOAD_DEREF(self: Frame, ins: Instruction) -> None:
    found = self.cells[ins.argval].load(self)
    if found is None:
        _raise_unbound(self, ins.argval)
    self.stack.append(found)


def _raise_unbound(self: Frame, name: str) -> None:
    """A variable that functions share is read before it has a value."""
    if name in self.program.origin.co_cellvars:
        raise_error(self, UnboundLocalError, unbound_text(name, own=True))
    raise_error(self, NameError, unbound_text(name, own=False))


def STORE_DEREF(self: Frame, ins: Instruction) -> None:
    self.cells[ins.argval].store(self, self.stack.pop())


def DELETE_DEREF(self: Frame, ins: Instruction) -> None:
    if self.cells[ins.argval].load(self) is None:
        _raise_unbound(self, ins.argval)
    self.cells[ins.argval].store(self, None)


def LOAD_CLOSURE(self: Frame, ins: Instruction) -> None:
    self.stack.append(self.cells[ins.argval])


def LOAD_GLOBAL(self: Frame, ins: Instruction) -> None:
    self.stack.append(load_global(self, ins.argval))


def load_global(self: Frame, name: str) -> VariableTracker:
    """A global variable or a builtin."""
    stored = self.out.side_effects.global_value(self.globals, name)
    if stored is not None:
        if stored is DELETED:
            raise_error(self, NameError, f"name {name!r} is not defined")
        return stored
    if name in self.globals:
        value = self.globals[name]
        return VariableTracker.build(self, value, global_source(self, name, value))
    names = self.globals.get("__builtins__", builtins)
    names = names if isinstance(names, dict) else names.__dict__
    if name not in names:
        raise_error(self, NameError, f"name {name!r} is not defined")
    if self.globals is self.out.root_globals:
        self.out.builtins_read.add(name)
    return VariableTracker.build(self, names[name])


def global_source(self: Frame, name: str, value: object) -> object:
    """Where a global variable is found; None for those of libraries, which do not change, except
    the environment in `os`."""
    definition = isinstance(value, types.FunctionType | type | types.ModuleType)
    if self.is_library and definition and value is not os:
        return None
    if self.globals is self.out.root_globals:
        return GlobalSource(name)
    module = self.globals.get("__name__")
    if isinstance(module, str) and getattr(sys.modules.get(module), "__dict__", None) is (
        self.globals
    ):
        alias = f"__import_{module.replace('.', '_dot_')}"
        self.out.root_globals.setdefault(alias, sys.modules[module])
        return AttrSource(GlobalSource(alias), name)
    if self.fn is not None and self.fn.source is not None:
        return GetItemSource(AttrSource(self.fn.source, "__globals__"), name)
    alias = f"__globals_{id(self.globals)}"
    return GetItemSource(self.out.alias(alias, self.globals), name)


def STORE_GLOBAL(self: Frame, ins: Instruction) -> None:
    self.out.side_effects.set_global(self.globals, ins.argval, self.stack.pop())


def DELETE_GLOBAL(self: Frame, ins: Instruction) -> None:
    load_global(self, ins.argval)
    self.out.side_effects.set_global(self.globals, ins.argval, DELETED)


def LOAD_ATTR(self: Frame, ins: Instruction) -> None:
    self.stack[-1] = self.stack[-1].getattr(self, ins.argval).realize()


def STORE_ATTR(self: Frame, ins: Instruction) -> None:
    value, obj = self.popn(2)
    obj.setattr(self, ins.argval, value)


def DELETE_ATTR(self: Frame, ins: Instruction) -> None:
    self.stack.pop().delattr(self, ins.argval)


def BINARY_OP(self: Frame, ins: Instruction) -> None:
    b = self.stack.pop()
    self.stack[-1] = self.binary(BINARY[ins.argval], self.stack[-1], b)


def _unary(op: object) -> object:
    def run(self: Frame, ins: Instruction) -> None:
        self.stack[-1] = self.unary(op, self.stack[-1])

    return run


UNARY_POSITIVE = _unary(operator.pos)
UNARY_NEGATIVE = _unary(operator.neg)
UNARY_NOT = _unary(operator.not_)
UNARY_INVERT = _unary(operator.invert)


def COMPARE_OP(self: Frame, ins: Instruction) -> None:
    b = self.stack.pop()
    self.stack[-1] = self.binary(COMPARE[ins.argval], self.stack[-1], b)


def IS_OP(self: Frame, ins: Instruction) -> None:
    b = self.stack.pop()
    same = self.identical(self.stack[-1], b)
    self.stack[-1] = same if not ins.arg else (FALSE if same is TRUE else TRUE)


def CONTAINS_OP(self: Frame, ins: Instruction) -> None:
    container = self.stack.pop()
    found = self.contains(self.stack[-1], container)
    self.stack[-1] = self.unary(operator.not_, found) if ins.arg else found


def BINARY_SUBSCR(self: Frame, ins: Instruction) -> None:
    key = self.stack.pop()
    obj = self.stack[-1]
    if isinstance(obj, SetVariable):
        _check_slot(self, obj, "__getitem__", "is not subscriptable")
    self.stack[-1] = obj.getitem(self, key).realize()


def STORE_SUBSCR(self: Frame, ins: Instruction) -> None:
    value, obj, key = self.popn(3)
    _check_slot(self, obj, "__setitem__", "does not support item assignment")
    obj.setitem(self, key, value)


def DELETE_SUBSCR(self: Frame, ins: Instruction) -> None:
    obj, key = self.popn(2)
    _check_slot(self, obj, "__delitem__", "doesn't support item deletion")
    obj.call_method(self, "__delitem__", [key], {})


_MODELLED = (BaseListVariable, ConstantVariable, SetVariable, UserDefinedObjectVariable)


def _check_slot(self: Frame, obj: VariableTracker, name: str, text: str) -> None:
    """Raises where the class of an object has no such method."""
    if isinstance(obj, _MODELLED) and class_attribute(obj.python_type(), name) is _MISSING:
        raise_error(self, TypeError, f"{obj.python_type().__name__!r} object {text}")


def BUILD_TUPLE(self: Frame, ins: Instruction) -> None:
    self.stack.append(TupleVariable(self.popn(ins.arg)))


def BUILD_LIST(self: Frame, ins: Instruction) -> None:
    self.stack.append(ListVariable(self.popn(ins.arg)))


def BUILD_SET(self: Frame, ins: Instruction) -> None:
    self.stack.append(SetVariable.of(self, self.popn(ins.arg)))


def BUILD_STRING(self: Frame, ins: Instruction) -> None:
    parts = self.popn(ins.arg)
    self.stack.append(ConstantVariable("".join(p.as_python_constant() for p in parts)))


def BUILD_MAP(self: Frame, ins: Instruction) -> None:
    flat = self.popn(2 * ins.arg)
    pairs = list(zip(flat[::2], flat[1::2], strict=True))
    self.stack.append(ConstDictVariable.of(self, pairs))


def BUILD_CONST_KEY_MAP(self: Frame, ins: Instruction) -> None:
    keys = self.stack.pop().unpack(self)
    pairs = list(zip(keys, self.popn(ins.arg), strict=True))
    self.stack.append(ConstDictVariable.of(self, pairs))


def BUILD_SLICE(self: Frame, ins: Instruction) -> None:
    self.stack.append(SliceVariable(self.popn(ins.arg)))


def LIST_APPEND(self: Frame, ins: Instruction) -> None:
    value = self.stack.pop()
    _container(self, ins).items.append(value)


def _container(self: Frame, ins: Instruction) -> VariableTracker:
    """What an instruction of a display or comprehension adds to. After a break it is an object of
    the running program."""
    container = self.stack[-ins.arg]
    self.mutate(container)
    return container


def SET_ADD(self: Frame, ins: Instruction) -> None:
    value = self.stack.pop()
    self.stack[-ins.arg].add(self, value)


def MAP_ADD(self: Frame, ins: Instruction) -> None:
    key, value = self.popn(2)
    self.stack[-ins.arg].setitem(self, key, value)


def LIST_EXTEND(self: Frame, ins: Instruction) -> None:
    value = self.stack.pop()
    if isinstance(value, ConstantVariable) and not hasattr(type(value.value), "__iter__"):
        kind = type(value.value).__name__
        raise_error(self, TypeError, f"Value after * must be an iterable, not {kind}")
    values = value.unpack(self)
    _container(self, ins).items.extend(values)


def SET_UPDATE(self: Frame, ins: Instruction) -> None:
    value = self.stack.pop()
    self.stack[-ins.arg].call_method(self, "update", [value], {})


def DICT_UPDATE(self: Frame, ins: Instruction) -> None:
    value = self.stack.pop()
    _check_mapping(value)
    self.stack[-ins.arg].update(self, [value], {})


def _check_mapping(value: VariableTracker) -> None:
    if isinstance(value, ConstantVariable | BaseListVariable):
        unimplemented("mapping", f"**{value!r}", "no mapping stands behind **: Python says so")


def DICT_MERGE(self: Frame, ins: Instruction) -> None:
    value = self.stack.pop()
    _check_mapping(value)
    target = self.stack[-ins.arg]
    for key, item in self.pairs(value):
        if target.lookup(self, key) is not None:
            unimplemented("call", f"**{value!r}", "a keyword is given twice: Python says so")
        target.setitem(self, key, item)


def LIST_TO_TUPLE(self: Frame, ins: Instruction) -> None:
    self.stack[-1] = TupleVariable(self.stack[-1].items)


def UNPACK_SEQUENCE(self: Frame, ins: Instruction) -> None:
    items = _taken(self, self.stack.pop(), ins.arg + 1)
    if len(items) != ins.arg:
        few = len(items) < ins.arg
        raise_error(
            self,
            ValueError,
            f"not enough values to unpack (expected {ins.arg}, got {len(items)})"
            if few
            else f"too many values to unpack (expected {ins.arg})",
        )
    self.stack.extend(reversed(items))


def _taken(self: Frame, value: VariableTracker, most: int | None = None) -> Args:
    """The first values of an iteration; no more are taken from an iterator."""
    lazy = isinstance(value, IteratorVariable) or hasattr(value, "send")
    if isinstance(value, ConstantVariable | UserDefinedObjectVariable):
        kind, lazy = value.python_type(), True
        found = (class_attribute(kind, name) for name in ("__iter__", "__getitem__"))
        if all(raw is _MISSING or raw is None for raw in found):
            raise_error(self, TypeError, f"cannot unpack non-iterable {kind.__name__} object")
    if not lazy:
        return value.unpack(self)
    return [item.realize() for item in itertools.islice(value.iterate(self), most)]


def UNPACK_EX(self: Frame, ins: Instruction) -> None:
    before, after = ins.arg & 0xFF, ins.arg >> 8
    items = _taken(self, self.stack.pop())
    if len(items) < before + after:
        raise_error(
            self,
            ValueError,
            f"not enough values to unpack (expected at least {before + after}, got {len(items)})",
        )
    rest = ListVariable(items[before : len(items) - after])
    parts = [*items[:before], rest, *items[len(items) - after :]]
    self.stack.extend(reversed(parts))


def FORMAT_VALUE(self: Frame, ins: Instruction) -> None:
    form = self.stack.pop().as_python_constant() if ins.arg & 4 else ""
    value = self.stack.pop()
    convert = ins.arg & 3
    if convert == 1:
        value = self.text(value, "__str__")
    elif convert in (2, 3):
        value = self.text(value, "__repr__")
        if convert == 3:
            value = ConstantVariable(ascii(value.as_python_constant())[1:-1])
    self.stack.append(self.formatted(value, form))


def CALL(self: Frame, ins: Instruction) -> None:
    args = self.popn(ins.arg)
    names = ins.argval
    fn = self.stack.pop()
    if names:
        count = len(args) - len(names)
        kwargs = dict(zip(names, args[count:], strict=True))
        self.stack.append(fn.call_function(self, args[:count], kwargs).realize())
    else:
        self.stack.append(fn.call_function(self, args, {}).realize())


def CALL_FUNCTION_EX(self: Frame, ins: Instruction) -> None:
    kwargs = {}
    if ins.arg & 1:
        for key, value in self.pairs(self.stack.pop()):
            if not issubclass(key.python_type(), str):
                raise_error(self, TypeError, "keywords must be strings")
            kwargs[key.as_python_constant()] = value
    given = self.stack.pop()
    if isinstance(given, ConstantVariable) and not isinstance(given.value, str | bytes):
        unimplemented("call", f"*{given!r}", "no iterable stands behind *: Python says so")
    args = given.unpack(self)
    fn = self.stack.pop()
    self.stack.append(fn.call_function(self, args, kwargs).realize())


def MAKE_FUNCTION(self: Frame, ins: Instruction) -> None:
    code = self.stack.pop().as_python_constant()
    made = NestedUserFunctionVariable(code, self.globals)
    if isinstance(ins.argval, str):  # 3.10: the code object does not know it
        made.qualname = ins.argval
    if ins.arg & 8:
        made.closure = list(self.stack.pop().items)
    if ins.arg & 4:
        made.annotations = self.stack.pop()
        if isinstance(made.annotations, TupleVariable):
            flat = made.annotations.items
            pairs = list(zip(flat[::2], flat[1::2], strict=True))
            made.annotations = ConstDictVariable.of(self, pairs)
    if ins.arg & 2:
        named = self.stack.pop()
        made.kwdefault_values = {
            k.as_python_constant(): v.realize() for k, v in named.items.values()
        }
    if ins.arg & 1:
        made.default_values = self.stack.pop().unpack(self)
    self.stack.append(made)


def LOAD_ASSERTION_ERROR(self: Frame, ins: Instruction) -> None:
    self.stack.append(VariableTracker.build(self, AssertionError))


def LOAD_BUILD_CLASS(self: Frame, ins: Instruction) -> None:
    self.stack.append(VariableTracker.build(self, builtins.__build_class__))


def GET_ITER(self: Frame, ins: Instruction) -> None:
    self.stack[-1] = self.make_iterator(self.stack[-1])


def GET_LEN(self: Frame, ins: Instruction) -> None:
    self.stack.append(self.length(self.stack[-1]))


def FOR_ITER(self: Frame, ins: Instruction) -> None:
    it = self.stack[-1]
    if type(it) is IteratorVariable:
        for value in it.it:
            self.stack.append(value.realize())
            return
    else:
        try:
            self.stack.append(self.next(it))
            return
        except ObservedException as error:
            if not issubclass(error.value.python_type(), StopIteration):
                raise
    self.stack.pop()
    self.ip = self.program.index[id(ins.target)]


def JUMP(self: Frame, ins: Instruction) -> None:
    self.ip = self.program.index[id(ins.target)]


def POP_JUMP_IF_TRUE(self: Frame, ins: Instruction) -> None:
    if _checked_in_graph(self) or self.truth(self.stack[-1]):
        self.ip = self.program.index[id(ins.target)]
    self.stack.pop()


def _checked_in_graph(self: Frame) -> bool:
    """`assert` of a tensor: the graph raises the error."""
    steps, tested = self.program.steps, self.stack[-1]
    if steps[self.ip][1].opname != "LOAD_ASSERTION_ERROR" or not isinstance(tested, TensorVariable):
        return False
    from torch._dynamo import config

    if not config.rewrite_assert_with_torch_assert:
        return False
    rest = [ins for _, ins in steps[self.ip + 1 : self.ip + 4]]
    message = "assertion error"
    if rest[0].opname == "LOAD_CONST" and rest[1].opname == "CALL" and rest[1].arg == 1:
        message = rest[0].argval
        if not isinstance(message, str):
            unimplemented("assert with non-string message", repr(message), "the message is no text")
    elif rest[0].opname != "RAISE_VARARGS":
        unimplemented(
            "assert with non-string message", repr(tested), "the message is not a constant"
        )
    self.out.call_effect(self, torch._assert_async, [tested, ConstantVariable(message)], {})
    return True


def POP_JUMP_IF_FALSE(self: Frame, ins: Instruction) -> None:
    if not self.truth(self.stack[-1]):
        self.ip = self.program.index[id(ins.target)]
    self.stack.pop()


def POP_JUMP_IF_NONE(self: Frame, ins: Instruction) -> None:
    if self.identical(self.stack.pop(), NONE) is TRUE:
        self.ip = self.program.index[id(ins.target)]


def POP_JUMP_IF_NOT_NONE(self: Frame, ins: Instruction) -> None:
    if self.identical(self.stack.pop(), NONE) is FALSE:
        self.ip = self.program.index[id(ins.target)]


def RETURN_VALUE(self: Frame, ins: Instruction) -> bool:
    self.result = self.stack.pop()
    return True


def YIELD_VALUE(self: Frame, ins: Instruction) -> bool:
    self.result = self.stack.pop()
    self.yielded = True
    return True


def RETURN_GENERATOR(self: Frame, ins: Instruction) -> None:
    # The generator object is made by the caller; the instruction leaves what POP_TOP removes.
    self.stack.append(NONE)


def GET_YIELD_FROM_ITER(self: Frame, ins: Instruction) -> None:
    self.stack[-1] = self.make_iterator(self.stack[-1])


def SEND(self: Frame, ins: Instruction) -> None:
    value = self.stack.pop()
    receiver = self.stack[-1]
    keeps = sys.version_info >= (3, 12)
    try:
        if value.is_same(NONE):
            result = self.next(receiver)
        else:
            result = receiver.call_method(self, "send", [value], {})
        self.stack.append(result)
    except ObservedException as error:
        if not issubclass(error.value.python_type(), StopIteration):
            raise
        if not keeps:
            self.stack.pop()
        self.stack.append(error.value.args[0] if error.value.args else NONE)
        self.ip = self.program.index[id(ins.target)]


def END_SEND(self: Frame, ins: Instruction) -> None:
    value = self.stack.pop()
    self.stack[-1] = value


# ---- exceptions and contexts


def as_exception(
    self: Frame, vt: VariableTracker, otherwise: str = "exceptions must derive from BaseException"
) -> VariableTracker:
    """What `raise vt` raises."""
    if isinstance(vt, UserDefinedClassVariable) and issubclass(vt.value, BaseException):
        return vt.call_function(self, [], {})
    if not issubclass(vt.python_type(), BaseException):
        raise_error(self, TypeError, otherwise)
    return vt


def RAISE_VARARGS(self: Frame, ins: Instruction) -> None:
    if ins.arg == 0:
        active = self.handled()
        if active is None:
            raise_error(self, RuntimeError, "No active exception to reraise")
        raise ObservedException(active)
    cause = self.stack.pop() if ins.arg == 2 else None
    value = as_exception(self, self.stack.pop())
    if cause is not None:
        if not cause.is_same(NONE):
            cause = as_exception(self, cause, "exception causes must derive from BaseException")
        value.setattr(self, "__cause__", cause)
        value.setattr(self, "__suppress_context__", TRUE)
    raise_value(self, value)


def RERAISE(self: Frame, ins: Instruction) -> None:
    raise ObservedException(self.stack.pop())


def PUSH_EXC_INFO(self: Frame, ins: Instruction) -> None:
    value = self.stack.pop()
    self.stack.append(self.handling or NONE)
    self.stack.append(value)
    self.handling = value


def POP_EXCEPT(self: Frame, ins: Instruction) -> None:
    before = self.stack.pop()
    self.handling = None if before.is_same(NONE) else before


def CHECK_EXC_MATCH(self: Frame, ins: Instruction) -> None:
    kinds = self.stack.pop().as_python_constant()
    for kind in kinds if isinstance(kinds, tuple) else (kinds,):
        if not (isinstance(kind, type) and issubclass(kind, BaseException)):
            text = "catching classes that do not inherit from BaseException is not allowed"
            raise_error(self, TypeError, text)
    self.stack.append(ConstantVariable(issubclass(self.stack[-1].python_type(), kinds)))


def BEFORE_WITH(self: Frame, ins: Instruction) -> None:
    manager = self.stack.pop()
    enter = special_method(self, manager, "__enter__")
    leave = special_method(self, manager, "__exit__")
    entered = enter.call_function(self, [], {})
    self.stack.append(leave)
    self.stack.append(entered)


def special_method(self: Frame, obj: VariableTracker, name: str) -> VariableTracker:
    """A special method, as statements look for it."""
    found = None
    if isinstance(obj, UserDefinedObjectVariable):
        found = obj.special(self, name)
    elif not isinstance(obj, ConstantVariable) or hasattr(type(obj.value), name):
        found = obj.getattr(self, name)
    if found is None:
        kind = obj.python_type().__name__
        text = f"{kind!r} object does not support the context manager protocol"
        missed = " (missed __exit__ method)" if name == "__exit__" else ""
        raise_error(self, TypeError, text + missed)
    return found


def WITH_EXCEPT_START(self: Frame, ins: Instruction) -> None:
    value = self.stack[-1]
    leave = self.stack[-4]
    kind = VariableTracker.build(self, value.python_type())
    self.stack.append(leave.call_function(self, [kind, value, TracebackVariable()], {}))


# ---- imports


def IMPORT_NAME(self: Frame, ins: Instruction) -> None:
    level, names = self.popn(2)
    wanted = names.as_python_constant()
    try:
        value = __import__(ins.argval, self.globals, None, wanted, level.as_python_constant())
    except ImportError as error:
        raise_observed(self, error)
    self.stack.append(PythonModuleVariable(value))


def IMPORT_FROM(self: Frame, ins: Instruction) -> None:
    module = self.stack[-1]
    try:
        found = module.getattr(self, ins.argval)
    except ObservedException:
        name = f"{module.value.__name__}.{ins.argval}"
        if name not in sys.modules:
            raise_error(self, ImportError, f"cannot import name {ins.argval!r}")
        found = PythonModuleVariable(sys.modules[name])
    self.stack.append(found)


def unknown(self: Frame, ins: Instruction) -> None:
    """An instruction that is not traced."""
    unimplemented(
        "Missing bytecode handler",
        f"{ins.opname} with args ({self!r}, {ins!r})",
        f"Dynamo does not know how to handle the bytecode instruction `{ins.opname}`.",
    )


HANDLERS = {
    name: value
    for name, value in list(globals().items())
    if name.isupper() and callable(value) and not isinstance(value, type)
}
HANDLERS["RESUME"] = NOP
HANDLERS["JUMP_NO_INTERRUPT"] = JUMP
HANDLERS["LOAD_CLASSDEREF"] = LOAD_DEREF
InstructionTranslator = InstructionTranslatorBase = Frame
