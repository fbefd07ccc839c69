"""Translation of one frame: runs the interpreter, again where a choice turned out wrong, and
returns the code that takes the frame's place, with its guards. Graph breaks are written here."""

from __future__ import annotations

import dataclasses
import logging
import sys
import traceback
import types
from collections.abc import Callable
from typing import TYPE_CHECKING

import torch
from torch._C._dynamo.eval_frame import ThreadSettings
from torch._dynamo import compile_log, decorators, written_memory
from torch._dynamo.aliases import drop_unread
from torch._dynamo.bytecode import program_of
from torch._dynamo.codegen import Codegen
from torch._dynamo.exc import (
    ObservedException,
    SkipFrame,
    TorchDynamoException,
    TorchRuntimeError,
    Unsupported,
    UserError,
    UserErrorType,
    forget_frames,
    is_of_tracer,
    with_user_code,
)
from torch._dynamo.guards import GuardRecord
from torch._dynamo.opcodes import TERMINATORS
from torch._dynamo.output_graph import OutputGraph
from torch._dynamo.resume_execution import needed_first, origin_program, parted, resume_code
from torch._dynamo.source import (
    AttrSource,
    ClosureSource,
    LocalSource,
    is_of_class,
    is_of_module,
)
from torch._dynamo.symbolic_convert import Frame
from torch._dynamo.variables import (  # noqa: F401
    builder,
    ctx_manager,
    function_modes,
    higher_order_ops,
    pytree,
    user_defined,
)
from torch._dynamo.variables import torch as torch_rules  # noqa: F401
from torch._dynamo.variables.base import LazyVariableTracker, VariableTracker
from torch._dynamo.variables.functions import CellVariable
from torch._guards import active_fake_mode, tracing
from torch.fx.experimental.symbolic_shapes import DimDynamic, GuardOnDataDependentSymNode

if TYPE_CHECKING:
    from torch._dynamo.opcodes import Instruction
    from torch._guards import Source
    from torch._subclasses.fake_tensor import FakeTensorMode


log = logging.getLogger("torch._dynamo")
# What a size that varied becomes (config.automatic_dynamic_shapes_mark_as).
_MARK_AS = {
    "dynamic": DimDynamic.DUCK,
    "unbacked": DimDynamic.SIZE_LIKE_UNBACKED,
    "oblivious": DimDynamic.OBLIVIOUS_SIZE,
}


@dataclasses.dataclass
class Options:
    """How a frame is translated. `state` is kept with the code: the numbers and sizes seen so far
    under each source, so that what changes becomes a symbol."""

    backend: Callable | None = None
    fullgraph: bool = False
    export: bool = False
    dynamic: bool | None = None
    state: dict[str, object] = dataclasses.field(default_factory=dict)
    # Everything becomes a symbol: the last compilation that the limit permits.
    all_symbolic: bool = False
    # The mode of fake tensors among the arguments, which the trace then goes on under.
    fake_mode: FakeTensorMode | None = None

    def may_be_dynamic(self, source: Source, value: float) -> bool:
        """Whether a number at a source can become a symbol."""
        if self.dynamic is False or not torch._dynamo.config.automatic_dynamic_shapes:
            return self.dynamic is True
        of_object = torch._dynamo.config.allow_unspec_int_on_nn_module
        if of_object and type(value) is int and isinstance(source, AttrSource):
            # Layers that differ in such a number alone are to share their graphs.
            return not is_of_class(source)
        return not is_of_module(source)

    def saw_number(self, source: Source, value: float) -> bool:
        """Notes a number; whether it is to be a symbol."""
        name = source.name()
        before = self.state.setdefault(name, value)
        if before != value:
            self.state[name] = None
        return self.state[name] is None or self.dynamic is True or self.all_symbolic

    def symbolic_context(self, value: torch.Tensor, source: Source) -> object | None:
        """Which sizes of a tensor become symbols; None for none."""
        marked = getattr(value, "_dynamo_dynamic_indices", None) or set()
        weak = getattr(value, "_dynamo_weak_dynamic_indices", None) or set()
        static = getattr(value, "_dynamo_static_indices", None) or set()
        shape = tuple(value.shape)
        name = source.name()
        seen = self.state.setdefault(name, [*shape])
        changed: set[int] = set()
        if isinstance(seen, list) and len(seen) == len(shape):
            for i, size in enumerate(shape):
                if seen[i] is not None and seen[i] != size:
                    seen[i] = None
            changed = {i for i, size in enumerate(seen) if size is None}
        elif isinstance(seen, list):
            self.state[name] = [*shape]
        automatic = self.dynamic is None and torch._dynamo.config.automatic_dynamic_shapes
        if not automatic or not torch._dynamo.config.assume_static_by_default:
            changed = set()
        every = (
            self.dynamic is True
            or self.all_symbolic
            or not torch._dynamo.config.assume_static_by_default
        )
        fixed = torch._dynamo.config.force_parameter_static_shapes
        if (isinstance(value, torch.nn.Parameter) and fixed) or "_buffers" in name:
            every, changed = False, set()
        unbacked = set(getattr(value, "_dynamo_unbacked_indices", None) or ()) | set(
            getattr(value, "_dynamo_strict_unbacked_indices", None) or ()
        )
        wanted = set(range(len(shape))) if every else changed | set(marked) | set(weak)
        wanted = (wanted - set(static)) | unbacked
        if not wanted:
            return None
        found = _MARK_AS[torch._dynamo.config.automatic_dynamic_shapes_mark_as]
        own = set(marked) | (set(weak) if self.export else set())  # no other size has their symbols
        dims = [
            DimDynamic.DYNAMIC if i in own else (found if i in wanted else DimDynamic.STATIC)
            for i in range(len(shape))
        ]
        for i in unbacked:
            dims[i] = DimDynamic.SIZE_LIKE_UNBACKED
        ranges = {
            dim: (least, most)
            for dim, least, most in getattr(value, "_dynamo_dynamic_range", None) or ()
        }
        return builder.dynamic_context(dims, set(marked), ranges)


class Translation:
    """What came of a frame."""

    __slots__ = (
        *("break_reason", "code", "consts", "graph", "graph_object", "guards", "has_break"),
        *("inputs", "out", "text"),
    )

    def __init__(self, out: OutputGraph, code: types.CodeType, cg: Codegen) -> None:
        self.out = out
        self.code = code
        self.text = cg.text
        self.consts = cg.consts
        self.graph_object = cg.graph_object
        self.guards: list[GuardRecord] = list(out.guards.values())
        self.graph = out.graph_module
        self.has_break = out.has_break
        self.break_reason: Exception | None = None
        self.inputs = out.inputs


class RestartWithBreak(Exception):
    """The trace begins again and breaks before a step of the root frame."""

    def __init__(self, step: int, reason: Exception) -> None:
        super().__init__()
        self.step = step
        self.reason = reason


class RootFrame(Frame):
    """The frame that is translated."""

    def __init__(
        self,
        out: OutputGraph,
        code: types.CodeType,
        fn_globals: dict[str, object],
        break_step: int | None,
        reason: Exception | None,
    ) -> None:
        super().__init__(out, program_of(code), fn_globals)
        self.break_step = break_step
        self.reason = reason
        self.count = 0
        self.cg: Codegen | None = None

    def load_frame(
        self, values: dict[str, object], closure: tuple[types.CellType, ...] | None
    ) -> None:
        """Takes over the parameters and the closure of the running frame."""
        for name, value in values.items():
            source = LocalSource(name, is_input=True)
            self.locals[name] = LazyVariableTracker(self, value, source)
        own = values.get("self")
        if isinstance(own, torch.nn.Module):
            self.out.enter_module("L['self']", type(own))
        for name in self.code.co_cellvars:
            self.cells[name] = CellVariable(name, self.locals.pop(name, None))
        for name, cell in zip(self.code.co_freevars, closure or (), strict=True):
            self.cells[name] = self.out.cell(cell, name, ClosureSource(name))

    def run(self) -> VariableTracker:
        steps = self.steps()
        while True:
            handler, ins = steps[self.ip]
            if self.count == self.break_step:
                return self._break(ins)
            self.count += 1
            self.ip += 1
            try:
                if handler(self, ins):
                    return self.result
            except ObservedException as error:
                if ins.handler is None:
                    self._cannot(
                        Unsupported.of(
                            "Observed exception",
                            f"raised exception {error.value.describe()}",
                            "Dynamo found no exception handler at the top-level compiled function "
                            "when encountering an exception. Exception will propagate outside the "
                            "compiled region.",
                            (),
                        )
                    )
                self.unwind(ins, error)
            except Unsupported as error:
                self._cannot(error)
            except GuardOnDataDependentSymNode as error:
                text = f"Consider annotating your code using torch._check*(). {error}"
                kind = UserErrorType.ANTI_PATTERN
                if self.out.options.export:
                    kind = UserErrorType.DYNAMIC_CONTROL_FLOW
                self._cannot(UserError(kind, text))
            except (TorchRuntimeError, RecursionError) as error:
                if isinstance(error, RecursionError):
                    self._cannot(Unsupported.of("recursion", "", "calls are nested too deep", ()))
                with_user_code(error, getattr(error, "frames", None) or self.user_stack())
                raise
            except TorchDynamoException:
                raise
            except Exception as error:
                error.frames = getattr(error, "frames", None) or self.user_stack()
                self._leave_to_python(error)
                raise

    def _leave_to_python(self, error: Exception) -> None:
        """Breaks at an instruction on which the tracer itself failed: Python knows what it does."""
        strict = self.out.options.fullgraph or self.out.error_on_break
        if strict or isinstance(error, NotImplementedError) or not is_of_tracer(error):
            return
        text = f"{type(error).__name__}: {error}"
        log.warning(
            "the tracer failed, which is a fault of it, and leaves this to Python: %s", text
        )
        found = Unsupported.of("Fault of the tracer", text, "Dynamo failed on this instruction.")
        found.frames = error.frames
        self._cannot(found)

    def _cannot(self, error: Unsupported) -> None:
        if self.out.options.fullgraph or self.out.error_on_break:
            if self.out.error_on_break:
                # Regions that code before a break entered are not left by an error of the compiler.
                decorators.leave_regions()
            with_user_code(error, getattr(error, "frames", None) or self.user_stack())
            raise error
        frames = getattr(error, "frames", None) or self.user_stack()
        if error.real_stack is None:
            error.real_stack = traceback.StackSummary.from_list(frames)
        raise RestartWithBreak(self.count - 1, error)

    def forget(self) -> None:
        """Lets go of the values of the program."""
        self.locals.clear()
        self.cells.clear()
        self.stack.clear()

    # ---- breaks

    def _break(self, ins: Instruction) -> VariableTracker:
        """Writes code for what was traced, the instruction itself, and the rest."""
        place = self.ip
        origin = origin_program(self.program)
        if self.handling is not None:
            raise SkipFrame("graph break while an exception is handled")
        if origin.in_loop(self.program.place(place)):
            raise SkipFrame("Skipping frame because there is a graph break in a for/while loop")
        if self.out.function_modes != self.out.open_modes:
            raise SkipFrame("graph break under a function mode")
        self.cg = Codegen(self.out, self.code)
        self.out.has_break = True
        if ins.opname.startswith("POP_JUMP_IF"):
            self._break_at_jump(ins)
        else:
            self._break_at(ins)
        return builder.wrap_constant(None)

    def _leave_contexts(self) -> list:
        """Leaves the contexts that are open, in the graph; they are entered again in the code."""
        held = list(self.out.contexts)
        for manager in reversed(held):
            manager.leave(self)
        return held

    def _enter_contexts(self, held: list) -> None:
        for manager in held:
            name = self.cg.expr(manager)
            self.cg.effect(f"{name}.__enter__()")

    def _hand_over(self, place: int, below: list[VariableTracker]) -> tuple[list[str], tuple]:
        """Expressions for the values on the stack and the locals that are read from a place on."""
        stack = [self.cg.expr(vt) for vt in below]
        names = self._live_names(place)
        values = [self.cg.expr(self.locals[name]) for name in names]
        return [*stack], (names, values)

    def _live_names(self, place: int) -> tuple[str, ...]:
        live = origin_program(self.program).live(place)
        own = needed_first(self.program.origin)
        if own is not None and own not in self.locals:
            raise SkipFrame("graph break where super() needs a variable that is not there")
        return tuple(sorted(n for n in self.locals if n in live or n == own))

    def _resume_call(self, place: int, stack: list[str], names: tuple, values: list[str]) -> str:
        origin = self.program.origin
        code = resume_code(origin, place, len(stack), names)
        self.out.resumes[code] = [place, len(stack), list(names)]
        given = dict(zip(names, values, strict=True))
        first, rest = parted(origin, names)
        args = ", ".join([*[given[n] for n in first], *stack, *[given[n] for n in rest]])
        free = code.co_freevars
        if not free:
            fn = types.FunctionType(code, self.globals, code.co_name)
            return f"{self.cg.const(fn)}({args})"
        cells = "".join(f"{self.cg.expr(self.cells[name])}, " for name in free)
        make = self.cg.const(types.FunctionType)
        return (
            f"{make}({self.cg.const(code)}, {self.cg.const(self.globals)}, "
            f"{code.co_name!r}, None, ({cells}))({args})"
        )

    def _break_at_jump(self, ins: Instruction) -> None:
        held = self._leave_contexts()
        tested = self.cg.expr(self.stack.pop())
        test = {
            "POP_JUMP_IF_TRUE": tested,
            "POP_JUMP_IF_FALSE": f"not {tested}",
            "POP_JUMP_IF_NONE": f"{tested} is None",
            "POP_JUMP_IF_NOT_NONE": f"{tested} is not None",
        }[ins.opname]
        self._enter_contexts(held)
        calls = []
        for target in (self.program.index[id(ins.target)], self.ip + 1):
            place = self.program.place(target)
            stack, (names, values) = self._hand_over(place, self.stack)
            calls.append(self._resume_call(place, stack, names, values))
        self.cg.tail = [f"if {test}: return {calls[0]}", f"return {calls[1]}"]
        if ins.handler is not None:
            raise SkipFrame("graph break at a test inside of try")

    def _break_at(self, ins: Instruction) -> None:
        rule = BREAKABLE.get(ins.opname)
        if rule is None:
            raise SkipFrame(f"graph break at {ins.opname}")
        held = self._leave_contexts()
        stack = list(self.stack)
        statement, pops, pushes = rule(self.cg, ins, stack)
        go_on = "" if ins.opname in TERMINATORS else self._go_on(stack[: len(stack) - pops], pushes)
        self._enter_contexts(held)
        if ins.handler is None:
            self.cg.tail = [*statement.split("\n"), go_on]
            return
        self.cg.tail = [
            "try:",
            *[f"    {line}" for line in statement.split("\n")],
            "except BaseException as __e:",
            "    __x = [__e]",
            "else:",
            f"    {go_on or 'pass'}",
            # Outside of the clause: what is raised after the handler has no context.
            f"return {self._handler_call(ins, stack)}",
        ]

    def _go_on(self, below: list[VariableTracker], pushes: int) -> str:
        """The statement that runs what comes behind the instruction."""
        place = self.program.place(self.ip + 1)
        rest, (names, values) = self._hand_over(place, below)
        results = [f"__r{i}" for i in range(pushes)]
        return f"return {self._resume_call(place, [*rest, *results], names, values)}"

    def _handler_call(self, ins: Instruction, stack: list[VariableTracker]) -> str:
        place = self.program.place(self.program.index[id(ins.handler)])
        below = [self.cg.expr(vt) for vt in stack[: ins.depth]]
        if ins.lasti:
            below.append("0")
        # Taken from where it is: an exception must not hold the frame that holds it.
        below.append("__x.pop()")
        names = self._live_names(place)
        values = [self.cg.expr(self.locals[name]) for name in names]
        return self._resume_call(place, below, names, values)


# ---- instructions as statements. Each returns the text and how many values it pops and pushes.


def _call(cg: Codegen, ins: Instruction, stack: list) -> tuple[str, int, int]:
    parts = [cg.expr(vt) for vt in stack[len(stack) - ins.arg - 1 :]]
    names = ins.argval or ()
    plain = parts[1 : len(parts) - len(names)]
    named = [f"{k}={v}" for k, v in zip(names, parts[len(parts) - len(names) :], strict=True)]
    return f"__r0 = {parts[0]}({', '.join([*plain, *named])})", ins.arg + 1, 1


def _call_ex(cg: Codegen, ins: Instruction, stack: list) -> tuple[str, int, int]:
    count = 3 if ins.arg & 1 else 2
    parts = [cg.expr(vt) for vt in stack[-count:]]
    more = f", **{parts[2]}" if ins.arg & 1 else ""
    return f"__r0 = {parts[0]}(*{parts[1]}{more})", count, 1


def _operator(template: str, pops: int, pushes: int) -> Callable:
    def text(cg: Codegen, ins: Instruction, stack: list) -> tuple[str, int, int]:
        parts = [cg.expr(vt) for vt in stack[len(stack) - pops :]]
        return template.format(*parts, op=ins.argval), pops, pushes

    return text


def _binary(cg: Codegen, ins: Instruction, stack: list) -> tuple[str, int, int]:
    a, b = (cg.expr(vt) for vt in stack[-2:])
    if ins.argval.endswith("=") and ins.argval not in ("==", "!=", "<=", ">="):
        return f"__r0 = {a}\n__r0 {ins.argval} {b}", 2, 1
    return f"__r0 = {a} {ins.argval} {b}", 2, 1


def _is_or_in(word: str, inverted: str) -> Callable:
    def text(cg: Codegen, ins: Instruction, stack: list) -> tuple[str, int, int]:
        a, b = (cg.expr(vt) for vt in stack[-2:])
        return f"__r0 = {a} {inverted if ins.arg else word} {b}", 2, 1

    return text


def _unpack(cg: Codegen, ins: Instruction, stack: list) -> tuple[str, int, int]:
    names = "".join(f"__r{ins.arg - 1 - i}, " for i in range(ins.arg))
    return f"({names}) = {cg.expr(stack[-1])}", 1, ins.arg


def _raise(cg: Codegen, ins: Instruction, stack: list) -> tuple[str, int, int]:
    parts = [cg.expr(vt) for vt in stack[len(stack) - ins.arg :]]
    text = {0: "raise", 1: "raise {}", 2: "raise {} from {}"}[ins.arg].format(*parts)
    made = [part for part in parts if part.startswith("__t") and part.isidentifier()]
    names = made if ins.handler is None else []
    if names:
        # An exception holds the frames that it leaves: they must not hold it.
        text = f"try:\n    {text}\nfinally:\n    {' = '.join(names)} = None"
    return text, ins.arg, 0


def _with(cg: Codegen, ins: Instruction, stack: list) -> tuple[str, int, int]:
    manager = cg.expr(stack[-1])
    return f"__r0 = {manager}.__exit__\n__r1 = {manager}.__enter__()", 1, 2


BREAKABLE: dict[str, Callable] = {
    "CALL": _call,
    "CALL_FUNCTION_EX": _call_ex,
    "BINARY_OP": _binary,
    "COMPARE_OP": _operator("__r0 = {0} {op} {1}", 2, 1),
    "BINARY_SUBSCR": _operator("__r0 = {0}[{1}]", 2, 1),
    "STORE_SUBSCR": _operator("{1}[{2}] = {0}", 3, 0),
    "DELETE_SUBSCR": _operator("del {0}[{1}]", 2, 0),
    "LOAD_ATTR": _operator("__r0 = {0}.{op}", 1, 1),
    "STORE_ATTR": _operator("{1}.{op} = {0}", 2, 0),
    "DELETE_ATTR": _operator("del {0}.{op}", 1, 0),
    "UNARY_NOT": _operator("__r0 = not {0}", 1, 1),
    "UNARY_NEGATIVE": _operator("__r0 = -{0}", 1, 1),
    "UNARY_INVERT": _operator("__r0 = ~{0}", 1, 1),
    "GET_ITER": _operator("__r0 = iter({0})", 1, 1),
    "IS_OP": _is_or_in("is", "is not"),
    "CONTAINS_OP": _is_or_in("in", "not in"),
    "UNPACK_SEQUENCE": _unpack,
    "RAISE_VARARGS": _raise,
    "BEFORE_WITH": _with,
    "IMPORT_NAME": lambda cg, ins, stack: (
        f"__r0 = __import__({ins.argval!r}, globals(), None, {cg.expr(stack[-1])}, "
        f"{cg.expr(stack[-2])})",
        2,
        1,
    ),
}


# ---- one frame


def _attempt(
    code: types.CodeType,
    fn_globals: dict[str, object],
    closure: tuple[types.CellType, ...] | None,
    values: dict[str, object],
    options: Options,
    restart: RestartWithBreak | None,
) -> Translation:
    options.fake_mode = _given_mode(values)
    out = OutputGraph(fn_globals, options)
    frame = RootFrame(
        out,
        code,
        fn_globals,
        None if restart is None else restart.step,
        None if restart is None else restart.reason,
    )
    made: Translation | None = None
    try:
        with _settings(out), tracing(out.tracing_context):
            function_modes.take_over_open_modes(frame)
            made = _traced(frame, out, code, closure, values)
            return made
    except ObservedException as error:
        # Values that an iterator still has to give are made after the graph, and one raises.
        raise SkipFrame(str(error)) from error
    except Unsupported as error:
        # The values after the graph cannot be made, or a break is an error.
        if options.fullgraph or out.error_on_break:
            with_user_code(error, frame.user_stack())
            raise
        raise SkipFrame(str(error)) from error
    finally:
        frame.forget()
        out.release()
        if made is None:
            drop_unread(out.root_globals, out.aliases)
            out.forget()


def _given_mode(values: dict[str, object]) -> FakeTensorMode | None:
    """The mode of fake tensors among the arguments, or the one that is active."""
    for value in values.values():
        for part in value if type(value) in (tuple, list) else (value,):
            if isinstance(part, torch.Tensor) and torch._C._is_fake(part):
                return torch._C._fake_mode_of(part)
    return active_fake_mode()


def _traced(
    frame: RootFrame,
    out: OutputGraph,
    code: types.CodeType,
    closure: tuple[types.CellType, ...] | None,
    values: dict[str, object],
) -> Translation:
    with function_modes.paused():
        frame.load_frame(values, closure)
        out.values = {**values, **dict(zip(code.co_freevars, closure or (), strict=True))}
        result = frame.run()
        if not out.options.fullgraph and any(g.is_left_inside() for g in out.generators):
            raise SkipFrame("a generator is left inside of its try")
        cg = frame.cg
        if cg is None:
            if (
                out.count_calls() == 0
                and out.side_effects.is_empty()
                and out.function_modes == out.open_modes
                and not out.options.export
            ):
                raise SkipFrame("no content in function call")
            cg = Codegen(out, code)
            cg.tail = [f"return {cg.expr(result)}"]
        compile_log.side_effects(frame)
        out.side_effects.write(cg)
        if out.function_modes != out.open_modes:
            modes = ", ".join(cg.expr(mode) for mode in out.function_modes)
            cg.effect(f"{cg.const(function_modes.replace_stack)}([{modes}])")
        call = out.finish(cg, frame)
        out.distinct = out.distinct_objects()
        out.apart, out.shared_memory = written_memory.conditions(out.inputs, out.tensor_sources)
    return Translation(out, cg.assemble(call, frame.line()), cg)


class _settings:
    """Puts back the settings of the process that a trace changes. A trace that ends early leaves
    levels of transforms open."""

    def __init__(self, out: OutputGraph) -> None:
        self.reads = out.class_reads

    def __enter__(self) -> None:
        self.before = ThreadSettings((), [])
        self.outer_reads = user_defined.class_reads
        user_defined.class_reads = self.reads
        sys.setrecursionlimit(decorators.recursion_limit or max(sys.getrecursionlimit(), 8000))

    def __exit__(self, *error: object) -> None:
        user_defined.class_reads = self.outer_reads
        self.before.put_back()


def translate(
    code: types.CodeType,
    fn_globals: dict[str, object],
    closure: tuple[types.CellType, ...] | None,
    values: dict[str, object],
    options: Options | None = None,
) -> Translation:
    """The translation of a frame with these parameters. SkipFrame says that it runs as it is;
    under fullgraph an error says what cannot be traced."""
    options = options or Options()
    if code.co_flags & 0x2A0:
        raise SkipFrame("generators and coroutines are not compiled")
    restart: RestartWithBreak | None = None
    handled = sys.exc_info()[1]
    for _ in range(3):
        try:
            found = _attempt(code, fn_globals, closure, values, options, restart)
            found.break_reason = None if restart is None else restart.reason
            return found
        except RestartWithBreak as again:
            restart = again
            # Frames of the program would live as long as tracebacks of the trace.
            forget_frames(restart, handled)
            forget_frames(restart.reason, handled)
    raise SkipFrame("the trace does not come to the same place twice")
