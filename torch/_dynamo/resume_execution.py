"""Functions that go on in the middle of another. After a graph break the rest of a function runs
in a resume function: its parameters are the values on the stack and the locals that are still
read, its body is the original bytecode entered at the place of the break. They are kept by
place and by what is handed over, so that a loop comes back to the same function."""

from __future__ import annotations

import sys
import types
import weakref
from typing import TYPE_CHECKING

from torch._dynamo.bytecode import Program, program_of, register_program

if TYPE_CHECKING:
    from torch._dynamo.opcodes import Instruction

_NO_SHAPE_FLAGS = ~(0x04 | 0x08)
_resumes: dict[tuple, tuple[weakref.ref, types.CodeType]] = {}


def _reachable(program: Program, start: int) -> list[int]:
    """Numbers of the instructions that can run from a place on, in order."""
    seen = {start}
    todo = [start]
    while todo:
        for place in program.successors(todo.pop()):
            if place not in seen:
                seen.add(place)
                todo.append(place)
    return sorted(seen)


def resume_code(
    origin: types.CodeType, place: int, depth: int, names: tuple[str, ...]
) -> types.CodeType:
    """The code that enters `origin` at an instruction with `depth` values on the stack and these
    locals."""
    key = (id(origin), place, depth, names)
    found = _resumes.get(key)
    if found is not None and found[0]() is origin:
        return found[1]
    made = _make(origin, place, depth, names)
    _resumes[key] = (weakref.ref(origin, lambda _, known=_resumes: known.pop(key, None)), made)
    return made


def parted(origin: types.CodeType, names: tuple[str, ...]) -> tuple[tuple, tuple]:
    """Locals that come before the values of the stack, and those behind them. super() without
    arguments takes the first parameter of the running function for `self`."""
    own = needed_first(origin)
    if own is None:
        return (), names
    return (own,), tuple(name for name in names if name != own)


def needed_first(origin: types.CodeType) -> str | None:
    """The parameter that has to stay the first one."""
    if "__class__" in origin.co_freevars and origin.co_argcount:
        return origin.co_varnames[0]
    return None


def _make(origin: types.CodeType, place: int, depth: int, names: tuple[str, ...]) -> types.CodeType:
    from torch._dynamo.opcodes import Instruction, encode

    base = program_of(origin)
    stack = [f"___stack{i}" for i in range(depth)]
    first, rest = parted(origin, names)
    head: list[Instruction] = [
        Instruction("RESUME", 0, 0),
        *[Instruction(op, None, name) for name in stack for op in ("LOAD_FAST", "DELETE_FAST")],
        Instruction("JUMP", None, None, base.instructions[place]),
    ]
    kept = _reachable(base, place)
    body = [base.instructions[i] for i in kept]
    params = (*first, *stack, *rest)
    written = _with_checks(origin, place, kept, head) or [*head, *body]
    made = encode(
        written,
        origin,
        name=f"torch_dynamo_resume_in_{origin.co_name}_at_{_line(base, place)}",
        argcount=len(params),
        posonlyargcount=0,
        kwonlyargcount=0,
        varnames=params,
        cellvars=(),
        freevars=(*origin.co_freevars, *origin.co_cellvars),
        flags=origin.co_flags & _NO_SHAPE_FLAGS,
    )
    places = [place] * len(head) + kept
    register_program(made, Program(made, [*head, *body], origin, places))
    return made


# ---- variables that nested functions share. They are local variables of the original function and
# free ones of the resume function, and the errors of reading them unbound differ.


def unbound_text(name: str, *, own: bool) -> str:
    """The message of reading a variable that has no value, in the function that owns it or in
    another."""
    if sys.version_info < (3, 11):
        if own:
            return f"local variable {name!r} referenced before assignment"
        return f"free variable {name!r} referenced before assignment in enclosing scope"
    if own:
        return f"cannot access local variable {name!r} where it is not associated with a value"
    return (
        f"cannot access free variable {name!r} where it is not associated with a value in "
        "enclosing scope"
    )


def shared_value(cell: types.CellType, name: str) -> object:
    """What a cell holds, with the error of the function that owns the variable."""
    if cell == _EMPTY:
        raise UnboundLocalError(unbound_text(name, own=True))
    return cell.cell_contents


_EMPTY = types.CellType()


def _maybe_unbound(program: Program) -> set[int]:
    """Instructions that may find a shared variable of the function without a value."""
    code = program.code
    own = set(code.co_cellvars)
    users = {"LOAD_DEREF", "DELETE_DEREF"}
    if not any(i.opname in users and i.argval in own for i in program.instructions):
        return set()
    bound: dict[int, frozenset[str]] = {0: frozenset(own & set(code.co_varnames))}
    todo = [0]
    while todo:
        place = todo.pop()
        ins, before = program.instructions[place], bound[place]
        after = before
        if ins.opname == "STORE_DEREF":
            after = before | {ins.argval}
        elif ins.opname == "DELETE_DEREF":
            after = before - {ins.argval}
        raised = None if ins.handler is None else program.index[id(ins.handler)]
        for follower in program.successors(place):
            new = before & after if follower == raised else after
            new &= bound.get(follower, new)
            if bound.get(follower) != new:
                bound[follower] = new
                todo.append(follower)
    return {
        i
        for i, ins in enumerate(program.instructions)
        if ins.opname in users and ins.argval in own and ins.argval not in bound.get(i, own)
    }


def _with_checks(
    origin: types.CodeType, place: int, kept: list[int], head: list[Instruction]
) -> list[Instruction] | None:
    """The instructions of a resume function, where shared variables without a value raise what they
    raise in the original; None if all have one."""
    from torch._dynamo.opcodes import Instruction, decode

    if not origin.co_cellvars:
        return None
    known = program_of(origin)
    if known.unsure is None:
        known.unsure = frozenset(_maybe_unbound(known))
    unsure = known.unsure.intersection(kept)
    if not unsure:
        return None
    base = Program(origin, decode(origin))
    *start, _ = head
    written = [*start, Instruction("JUMP", None, None, base.instructions[place])]
    for i in kept:
        ins = base.instructions[i]
        if i not in unsure:
            written.append(ins)
            continue
        name = ins.argval
        check = [
            Instruction("LOAD_CONST", None, shared_value),
            Instruction("LOAD_CLOSURE", None, name),
            Instruction("LOAD_CONST", None, name),
            Instruction("CALL", 2, ()),
        ]
        if ins.opname == "DELETE_DEREF":
            check += [Instruction("POP_TOP"), Instruction("DELETE_DEREF", None, name)]
        for new in check:
            new.positions, new.handler = ins.positions, ins.handler
            new.depth, new.lasti = ins.depth, ins.lasti
        # Jumps lead to the instruction itself.
        first = check[0]
        ins.opname, ins.argval = first.opname, first.argval
        written += [ins, *check[1:]]
    return written


def _line(program: Program, place: int) -> int:
    for ins in program.instructions[place:]:
        if ins.lineno is not None:
            return ins.lineno
    return program.code.co_firstlineno


def origin_program(program: Program) -> Program:
    """The program of the code that the programmer wrote."""
    return program if program.places is None else program_of(program.origin)
