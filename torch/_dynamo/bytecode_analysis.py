"""What can be said of CPython's instructions (bytecode_transformation) without running them: which
are reached, which locals are still read, how deep the stack gets."""

from __future__ import annotations

import dis
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch._dynamo.bytecode_transformation import Instruction

TERMINAL_OPCODES = {
    dis.opmap[name]
    for name in (
        "RETURN_VALUE RETURN_CONST JUMP_FORWARD JUMP_BACKWARD JUMP_BACKWARD_NO_INTERRUPT "
        "JUMP_ABSOLUTE RAISE_VARARGS RERAISE INTERPRETER_EXIT"
    ).split()
    if name in dis.opmap
}
JUMP_OPCODES = {*dis.hasjrel, *dis.hasjabs}
HASLOCAL = set(dis.haslocal)
HASFREE = set(dis.hasfree)


def is_jump(ins: Instruction) -> bool:
    """Whether an instruction may go on elsewhere."""
    return ins.opcode in JUMP_OPCODES


def _places(instructions: Sequence[Instruction]) -> dict[int, int]:
    return {id(ins): i for i, ins in enumerate(instructions)}


def _next(instructions: Sequence[Instruction], places: dict[int, int], i: int) -> list[int]:
    """Instructions that may run after one, handlers included."""
    ins = instructions[i]
    found = [] if ins.opcode in TERMINAL_OPCODES or i + 1 == len(instructions) else [i + 1]
    if is_jump(ins) and ins.target is not None:
        found.append(places[id(ins.target)])
    if ins.exn_tab_entry is not None:
        found.append(places[id(ins.exn_tab_entry.target)])
    return found


def remove_dead_code(instructions: list[Instruction]) -> list[Instruction]:
    """The instructions that can be reached. Ranges of handlers shrink to what is left of them."""
    places = _places(instructions)
    live = {0}
    todo = [0]
    while todo:
        for i in _next(instructions, places, todo.pop()):
            if i not in live:
                live.add(i)
                todo.append(i)
    kept = sorted(live)
    entries = {
        id(e): e for i in kept if (e := instructions[i].exn_tab_entry) is not None
    }  # fmt: skip
    for entry in entries.values():
        start, end = places[id(entry.start)], places[id(entry.end)]
        inside = [i for i in kept if start <= i <= end]
        entry.start, entry.end = instructions[inside[0]], instructions[inside[-1]]
    return [instructions[i] for i in kept]


def remove_pointless_jumps(instructions: list[Instruction]) -> list[Instruction]:
    """Without jumps to the very next instruction."""
    unconditional = ("JUMP_FORWARD", "JUMP_ABSOLUTE")
    after = [*instructions[1:], None]
    return [
        ins
        for ins, following in zip(instructions, after, strict=True)
        if not (ins.opname in unconditional and ins.target is not None and ins.target is following)
    ]


def livevars_analysis(instructions: Sequence[Instruction], instruction: Instruction) -> set[str]:
    """Names of the locals whose value may still be read when the instruction is about to run."""
    places = _places(instructions)
    count = len(instructions)
    live: list[frozenset[str]] = [frozenset()] * count
    changed = True
    while changed:
        changed = False
        for i in range(count - 1, -1, -1):
            ins = instructions[i]
            now = frozenset().union(*[live[j] for j in _next(instructions, places, i)])
            if ins.opcode in HASLOCAL or ins.opcode in HASFREE:
                names = ins.argval if isinstance(ins.argval, tuple) else (ins.argval,)
                if ins.opname == "STORE_FAST" and ins.exn_tab_entry is None:
                    now -= {*names}
                elif not ins.opname.startswith("STORE") and ins.opname != "MAKE_CELL":
                    now |= {*names}
            if now != live[i]:
                live[i] = now
                changed = True
    return set(live[places[id(instruction)]])


def _effect(ins: Instruction, jump: bool) -> int:
    if ins.opname == "RETURN_GENERATOR":
        return 1  # what the generator is sent lies on the stack when it goes on
    argument = ins.arg if ins.opcode >= dis.HAVE_ARGUMENT else None
    return dis.stack_effect(ins.opcode, argument or 0 if argument is not None else None, jump=jump)


def stacksize_analysis(instructions: Sequence[Instruction]) -> int:
    """The greatest depth of the stack."""
    if not instructions:
        return 0
    places = _places(instructions)
    depth: dict[int, int] = {0: 0}
    greatest = 0
    todo = [0]

    def reach(i: int, height: int) -> None:
        if depth.get(i, -1) < height and i < len(instructions):
            if height > 10**5:
                raise ValueError("the stack grows without end")
            depth[i] = height
            todo.append(i)

    while todo:
        i = todo.pop()
        ins = instructions[i]
        height = depth[i]
        after = height + _effect(ins, False)
        greatest = max(greatest, height, after)
        if is_jump(ins) and ins.target is not None:
            reached = height + _effect(ins, True)
            greatest = max(greatest, reached)
            reach(places[id(ins.target)], reached)
        if ins.opcode not in TERMINAL_OPCODES:
            reach(i + 1, after)
        entry = ins.exn_tab_entry
        if entry is not None:
            reached = entry.depth + entry.lasti + 1
            greatest = max(greatest, reached)
            reach(places[id(entry.target)], reached)
    return greatest
