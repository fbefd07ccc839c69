"""CPython's own instructions as objects that can be edited and put together again, for programs
that change bytecode (hooks of register_bytecode_hook). The tracer itself works on the normal form
of docs/dynamo.md; nothing here is on its path.

Code is read in three steps: instructions with jumps and handlers as references, exception table,
line table; and written in the other direction, where offsets and the length of arguments depend on
each other and are found by repetition."""

from __future__ import annotations

import dataclasses
import dis
import itertools
import sys
import types
from collections.abc import Callable, Iterable, Iterator, Sequence

from torch._dynamo.bytecode_analysis import is_jump, stacksize_analysis

_CACHES = getattr(dis, "_inline_cache_entries", ())
_EXTENDED = dis.opmap["EXTENDED_ARG"]


class _NotGiven:
    def __repr__(self) -> str:
        return "<no argval>"


NOT_GIVEN = _NotGiven()


@dataclasses.dataclass(slots=True, eq=False)
class InstructionExnTabEntry:
    """The handler of the instructions from start to end, both included."""

    start: Instruction
    end: Instruction
    target: Instruction
    depth: int
    lasti: bool

    def key(self) -> tuple[int, int, bool]:
        """What instructions of one handler have in common."""
        return id(self.target), self.depth, self.lasti


@dataclasses.dataclass(slots=True, eq=False)
class Instruction:
    """One instruction. Jumps have a target; arg is computed from argval when code is assembled."""

    opcode: int
    opname: str
    arg: int | None
    argval: object
    offset: int | None = None
    starts_line: int | None = None
    is_jump_target: bool = False
    positions: dis.Positions | None = None
    target: Instruction | None = None
    exn_tab_entry: InstructionExnTabEntry | None = None
    argrepr: str | None = None

    def __repr__(self) -> str:
        return f"Instruction(opname={self.opname}, offset={self.offset})"


@dataclasses.dataclass(slots=True)
class ExceptionTableEntry:
    """A row of an exception table, in bytes; `end` is the last code unit of the range."""

    start: int
    end: int
    target: int
    depth: int
    lasti: bool


def get_code_keys() -> list[str]:
    """Names of a code object's parts, in the order of types.CodeType's parameters."""
    parts = "argcount posonlyargcount kwonlyargcount nlocals stacksize flags code consts names"
    more = "varnames filename name qualname firstlineno linetable exceptiontable freevars cellvars"
    if sys.version_info < (3, 11):
        more = more.replace("qualname ", "").replace("exceptiontable ", "")
    return [f"co_{part}" for part in f"{parts} {more}".split()]


# ---- making instructions


def create_instruction(
    name: str, *, arg: int | None = None, argval: object = NOT_GIVEN,
    target: Instruction | None = None,
) -> Instruction:  # fmt: skip
    """An instruction by name, with a number, a value or a target."""
    if argval is NOT_GIVEN:
        argval = target if target is not None else arg
    return Instruction(dis.opmap[name], name, arg, argval, target=target)


def create_load_const(val: object, checked: bool = True) -> Instruction:
    """Pushes a constant."""
    return create_instruction("LOAD_CONST", argval=val)


def create_jump_absolute(target: Instruction) -> Instruction:
    """Jumps, in either direction."""
    name = "JUMP_ABSOLUTE" if sys.version_info < (3, 11) else "JUMP_FORWARD"
    return create_instruction(name, target=target)


def create_dup_top() -> Instruction:
    """Pushes the top of the stack once more."""
    return create_copy(1) if sys.version_info >= (3, 11) else create_instruction("DUP_TOP")


def create_copy(i: int) -> Instruction:
    """Pushes the i-th value from the top."""
    return create_instruction("COPY", arg=i)


def create_swap(n: int) -> list[Instruction]:
    """Exchanges the top with the n-th value."""
    return [] if n <= 1 else [create_instruction("SWAP", arg=n)]


def create_rot_n(n: int) -> list[Instruction]:
    """Moves the top below the n - 1 values under it."""
    if n <= 1:
        return []
    if sys.version_info < (3, 11):
        return [create_instruction("ROT_N", arg=n)]
    return [create_instruction("SWAP", arg=i) for i in range(n, 1, -1)]


def create_call_function(nargs: int, push_null: bool) -> list[Instruction]:
    """Calls what lies below the arguments; with `push_null` nothing lies below the callable yet."""
    if sys.version_info < (3, 11):
        return [create_instruction("CALL_FUNCTION", arg=nargs)]
    out: list[Instruction] = []
    if push_null:
        out = [create_instruction("PUSH_NULL"), *create_rot_n(nargs + 2)]
        if sys.version_info >= (3, 13):
            # NULL belongs above the callable: one place higher.
            out = [create_instruction("PUSH_NULL"), *create_rot_n(nargs + 1)]
    if sys.version_info < (3, 12):
        out.append(create_instruction("PRECALL", arg=nargs))
    return [*out, create_instruction("CALL", arg=nargs)]


def is_generator(code: types.CodeType) -> bool:
    """Whether code belongs to a generator or to something awaited."""
    return bool(code.co_flags & 0x2A0)


_ids = itertools.count()


def unique_id(name: str, with_uuid: bool = False) -> str:
    """A name that was not given before."""
    if not with_uuid:
        return f"{name}_{next(_ids)}"
    import uuid

    return f"{name}_{uuid.uuid4()}_{next(_ids)}".replace("-", "_")


# ---- exception table


def encode_exception_table_varint(n: int) -> list[int]:
    """A number in groups of six bits, the highest first; bit 6 says that more follow."""
    groups = [n & 63]
    while n := n >> 6:
        groups.append(n & 63 | 64)
    return groups[::-1]


def decode_exception_table_varint(bytes_iter: Iterator[int]) -> int:
    """The next number."""
    byte = next(bytes_iter)
    value = byte & 63
    while byte & 64:
        byte = next(bytes_iter)
        value = value << 6 | byte & 63
    return value


def parse_exception_table(exntab: bytes) -> list[ExceptionTableEntry]:
    """The rows of a table."""
    data = iter(exntab)
    rows = []
    while True:
        try:
            start = decode_exception_table_varint(data) * 2
        except StopIteration:
            return rows
        length = decode_exception_table_varint(data) * 2
        target = decode_exception_table_varint(data) * 2
        rest = decode_exception_table_varint(data)
        rows.append(
            ExceptionTableEntry(start, start + length - 2, target, rest >> 1, bool(rest & 1))
        )


def assemble_exception_table(tab: list[ExceptionTableEntry]) -> bytes:
    """The table of these rows."""
    out: list[int] = []
    for row in tab:
        first = encode_exception_table_varint(row.start // 2)
        first[0] |= 128
        out += first
        out += encode_exception_table_varint((row.end - row.start) // 2 + 1)
        out += encode_exception_table_varint(row.target // 2)
        out += encode_exception_table_varint(row.depth << 1 | row.lasti)
    return bytes(out)


def _entries(instructions: Sequence[Instruction]) -> list[InstructionExnTabEntry | None]:
    """The innermost handler of each instruction, of all that any of them names."""
    place = {id(ins): i for i, ins in enumerate(instructions)}
    known = {id(e): e for ins in instructions if (e := ins.exn_tab_entry) is not None}
    ranges = [(place[id(e.start)], -place[id(e.end)], e) for e in known.values()]
    found: list[InstructionExnTabEntry | None] = [None] * len(instructions)
    for start, end, entry in sorted(ranges, key=lambda r: r[:2]):
        for i in range(start, -end + 1):
            found[i] = entry
    return found


def propagate_inst_exn_table_entries(instructions: Sequence[Instruction]) -> None:
    """Gives each instruction the innermost handler whose range it lies in."""
    for ins, entry in zip(instructions, _entries(instructions), strict=True):
        ins.exn_tab_entry = entry


def compute_exception_table(instructions: Sequence[Instruction]) -> list[ExceptionTableEntry]:
    """The rows for instructions with offsets."""
    entry_offsets = _entry_offsets(instructions)
    rows: list[ExceptionTableEntry] = []
    last: tuple | None = None
    for ins, entry in zip(instructions, _entries(instructions), strict=True):
        if entry is None:
            last = None
            continue
        end = ins.offset + instruction_size(ins) - 2
        if last == entry.key():
            rows[-1].end = end
            continue
        last = entry.key()
        target = entry_offsets[id(entry.target)]
        rows.append(ExceptionTableEntry(ins.offset, end, target, entry.depth, entry.lasti))
    return rows


# ---- reading code


def convert_instruction(i: dis.Instruction) -> Instruction:
    """An instruction as `dis` has it."""
    line = i.starts_line
    if isinstance(line, bool):  # from 3.13 on the line stands elsewhere
        line = i.line_number if line else None
    return Instruction(
        i.opcode, i.opname, i.arg, i.argval, i.offset, line, i.is_jump_target,
        getattr(i, "positions", None), argrepr=i.argrepr,
    )  # fmt: skip


def cleaned_instructions(code: types.CodeType, safe: bool = False) -> list[Instruction]:
    """The instructions of code, ready to be edited: targets for jumps, handlers, no EXTENDED_ARG;
    unless `safe`, tests for None and double loads are written as the simpler instructions."""
    found = [convert_instruction(i) for i in dis.get_instructions(code)]
    for ins in found:
        if ins.opname == "KW_NAMES":  # whose value `dis` does not tell
            ins.argval = code.co_consts[ins.arg]
    _link_jumps(found)
    if sys.version_info >= (3, 11):
        _link_handlers(found, parse_exception_table(code.co_exceptiontable))
    found = strip_extended_args(found)
    return found if safe else _simplified(found)


def _after_prefix(instructions: Sequence[Instruction]) -> dict[int, Instruction]:
    """By offset: the instruction that begins there, behind its EXTENDED_ARGs."""
    found: dict[int, Instruction] = {}
    waiting: list[int] = []
    for ins in instructions:
        waiting.append(ins.offset)
        if ins.opcode != _EXTENDED:
            found.update(dict.fromkeys(waiting, ins))
            waiting = []
    return found


def _link_jumps(instructions: list[Instruction]) -> None:
    by_offset = _after_prefix(instructions)
    for ins in instructions:
        if is_jump(ins):
            ins.target = by_offset[ins.argval]
            ins.target.is_jump_target = True


virtualize_jumps = _link_jumps


def _link_handlers(instructions: list[Instruction], rows: list[ExceptionTableEntry]) -> None:
    by_offset = _after_prefix(instructions)
    for row in rows:
        covered = [
            i for i in instructions if row.start <= i.offset <= row.end and i.opcode != _EXTENDED
        ]
        if not covered:
            continue
        entry = InstructionExnTabEntry(
            covered[0], covered[-1], by_offset[row.target], row.depth, row.lasti
        )
        for ins in covered:
            ins.exn_tab_entry = entry


def strip_extended_args(instructions: list[Instruction]) -> list[Instruction]:
    """Without EXTENDED_ARG. The list itself is changed, too."""
    instructions[:] = [ins for ins in instructions if ins.opcode != _EXTENDED]
    return instructions


def _like(ins: Instruction, name: str, **parts: object) -> Instruction:
    made = create_instruction(name, **parts)
    made.positions, made.exn_tab_entry = ins.positions, ins.exn_tab_entry
    return made


def _simpler(ins: Instruction) -> list[Instruction] | None:
    """What an instruction stands for, the first of it being the instruction itself, changed."""
    if ins.opname.endswith(("_IF_NONE", "_IF_NOT_NONE")):
        test = "TRUE" if ins.opname.endswith("_IF_NONE") else "FALSE"
        name = ins.opname.rsplit("_IF_", 1)[0] + f"_IF_{test}"
        parts = [_like(ins, "IS_OP", arg=0), _like(ins, name, target=ins.target)]
        ins.opname, ins.arg, ins.argval, ins.target = "LOAD_CONST", None, None, None
    elif ins.opname in ("LOAD_FAST_LOAD_FAST", "STORE_FAST_STORE_FAST", "STORE_FAST_LOAD_FAST"):
        first, second = ins.opname[: ins.opname.index("FAST") + 4], ins.opname.rsplit("_", 2)[1:]
        parts = [_like(ins, "_".join(second), argval=ins.argval[1])]
        ins.opname, ins.arg, ins.argval = first, None, ins.argval[0]
    else:
        return None
    ins.opcode = dis.opmap[ins.opname]
    return [ins, *parts]


def _simplified(instructions: list[Instruction]) -> list[Instruction]:
    out: list[Instruction] = []
    for ins in instructions:
        parts = _simpler(ins)
        out += [ins] if parts is None else parts
        if parts is not None and ins.exn_tab_entry is not None and ins.exn_tab_entry.end is ins:
            ins.exn_tab_entry.end = parts[-1]
    return out


# ---- writing code


def instruction_size(inst: Instruction) -> int:
    """Bytes of an instruction with its caches."""
    if sys.version_info < (3, 11):
        return 2
    caches = _CACHES.get(inst.opname, 0) if isinstance(_CACHES, dict) else _CACHES[inst.opcode]
    return 2 * (int(caches) + 1)


def update_offsets(instructions: Iterable[Instruction]) -> None:
    """Numbers the instructions."""
    offset = 0
    for ins in instructions:
        ins.offset = offset
        offset += instruction_size(ins)


def _entry_offsets(instructions: Sequence[Instruction]) -> dict[int, int]:
    """By identity: where a jump to an instruction has to go, before its EXTENDED_ARGs."""
    out: dict[int, int] = {}
    start: int | None = None
    for ins in instructions:
        start = ins.offset if start is None else start
        out[id(ins)] = start
        if ins.opcode != _EXTENDED:
            start = None
    return out


def devirtualize_jumps(instructions: Sequence[Instruction]) -> None:
    """Arguments of jumps from the offsets; their names say forward or backward as it is."""
    entry_offsets = _entry_offsets(instructions)
    for ins in instructions:
        if ins.target is None or not is_jump(ins):
            continue
        goal = entry_offsets[id(ins.target)]
        if ins.opcode in dis.hasjabs:
            ins.arg = goal // 2
            continue
        distance = goal - (ins.offset + instruction_size(ins))
        wrong, right = ("FORWARD", "BACKWARD") if distance < 0 else ("BACKWARD", "FORWARD")
        name = ins.opname.replace(wrong, right)
        if name != ins.opname and name in dis.opmap:
            ins.opname, ins.opcode = name, dis.opmap[name]
        ins.arg, ins.argval = abs(distance) // 2, goal


def fix_extended_args(instructions: list[Instruction]) -> int:
    """Puts EXTENDED_ARGs where arguments need them; returns by how many their number changed."""
    out: list[Instruction] = []
    had = sum(ins.opcode == _EXTENDED for ins in instructions)
    for ins in instructions:
        if ins.opcode == _EXTENDED:
            continue
        high = (ins.arg or 0) >> 8
        prefix = []
        while high:
            prefix.append(_like(ins, "EXTENDED_ARG", arg=high & 255))
            high >>= 8
        out += [*reversed(prefix), ins]
    instructions[:] = out
    return sum(ins.opcode == _EXTENDED for ins in instructions) - had


def get_const_index(code_options: dict[str, object], val: object) -> int:
    """The place of a constant, which is added where it is new."""
    consts = code_options["co_consts"]
    for same in (lambda c: c is val, lambda c: type(c) is type(val) and repr(c) == repr(val)):
        for place, const in enumerate(consts):
            if same(const):
                return place
    code_options["co_consts"] = (*consts, val)
    return len(consts)


def _name_index(code_options: dict[str, object], name: str) -> int:
    names = code_options["co_names"]
    if name not in names:
        code_options["co_names"] = names = (*names, name)
    return names.index(name)


def fix_vars(instructions: list[Instruction], code_options: dict[str, object]) -> None:
    """Arguments from names and constants."""
    varnames = code_options["co_varnames"]
    cells = [n for n in code_options["co_cellvars"] if n not in varnames]
    places = [*varnames, *cells, *code_options["co_freevars"]]
    for ins in instructions:
        given = ins.argval is not NOT_GIVEN
        if ins.opcode in dis.hasname and given:
            bits = _flag_bits(ins)
            low = (ins.arg or 0) & ((1 << bits) - 1)
            ins.arg = _name_index(code_options, ins.argval) << bits | low
        elif ins.opcode in dis.hasconst and given:
            ins.arg = get_const_index(code_options, ins.argval)
        elif (ins.opcode in dis.haslocal or ins.opcode in dis.hasfree) and given:
            ins.arg = places.index(ins.argval)


def _flag_bits(ins: Instruction) -> int:
    """Bits of an argument below the number of a name."""
    if ins.opname == "LOAD_GLOBAL" and sys.version_info >= (3, 11):
        return 1
    if ins.opname == "LOAD_ATTR" and sys.version_info >= (3, 12):
        return 1
    return 2 if ins.opname == "LOAD_SUPER_ATTR" else 0


def _varint(n: int) -> list[int]:
    out = [n & 63]
    while n := n >> 6:
        out[-1] |= 64
        out.append(n & 63)
    return out


def _signed(n: int) -> list[int]:
    return _varint(-n << 1 | 1 if n < 0 else n << 1)


def _location(positions: tuple, units: int, line: int) -> tuple[list[int], int]:
    """An entry of the line table for up to eight code units, and the line it leaves."""
    first, last, column, end = positions
    if first is None:
        return [128 | 15 << 3 | units - 1], line
    if last is None or column is None or end is None:
        return [128 | 13 << 3 | units - 1, *_signed(first - line)], first
    numbers = [*_signed(first - line), *_varint(last - first), *_varint(column + 1)]
    return [128 | 14 << 3 | units - 1, *numbers, *_varint(end + 1)], first


def assemble(instructions: Sequence[Instruction], firstlineno: int) -> tuple[bytes, bytes]:
    """Code and line table of instructions whose arguments are known."""
    if sys.version_info < (3, 11):
        raise NotImplementedError("assemble: line tables of Python before 3.11")
    code, table = bytearray(), bytearray()
    line = firstlineno
    for ins in instructions:
        size = instruction_size(ins)
        code += bytes([ins.opcode, (ins.arg or 0) & 255]) + bytes(size - 2)
        positions = tuple(ins.positions) if ins.positions else (ins.starts_line, None, None, None)
        units = size // 2
        while units:
            part = min(units, 8)
            entry, line = _location(positions, part, line)
            table += bytes(entry)
            units -= part
    return bytes(code), bytes(table)


def clean_and_assemble_instructions(
    instructions: list[Instruction], keys: list[str], code_options: dict[str, object]
) -> tuple[list[Instruction], types.CodeType]:
    """The code object of instructions, and the instructions as they are in it."""
    code_options = dict(code_options)
    strip_extended_args(instructions)
    fix_vars(instructions, code_options)
    changed = True
    while changed:
        update_offsets(instructions)
        devirtualize_jumps(instructions)
        changed = fix_extended_args(instructions) != 0
    code, table = assemble(instructions, code_options["co_firstlineno"])
    code_options["co_code"], code_options["co_linetable"] = code, table
    code_options["co_nlocals"] = len(code_options["co_varnames"])
    code_options["co_stacksize"] = stacksize_analysis(instructions)
    if sys.version_info >= (3, 11):
        rows = compute_exception_table(instructions)
        code_options["co_exceptiontable"] = assemble_exception_table(rows)
    return instructions, types.CodeType(*[code_options[key] for key in keys])


def transform_code_object(
    code: types.CodeType,
    transformations: Callable[[list[Instruction], dict[str, object]], object],
    safe: bool = False,
) -> types.CodeType:
    """Code after `transformations(instructions, parts)` changed either in place."""
    instructions = cleaned_instructions(code, safe)
    propagate_inst_exn_table_entries(instructions)
    names = get_code_keys()
    parts = dict(zip(names, map(code.__getattribute__, names), strict=True))
    transformations(instructions, parts)
    _, made = clean_and_assemble_instructions(instructions, names, parts)
    return made


_PREFIX = frozenset({"RESUME", "MAKE_CELL", "COPY_FREE_VARS", "RETURN_GENERATOR"})


def bytecode_from_template(
    fn: Callable,
    varname_map: dict[str, object] | None = None,
    noreturn: bool = True,
    noprefix: bool = True,
) -> list[Instruction]:
    """The instructions of a function, to be put into another: names replaced, what begins a
    function left out, returns as jumps to a NOP at the end, where the result lies on the stack."""
    found = cleaned_instructions(fn.__code__)
    if noprefix:
        found = [ins for ins in found if ins.opname not in _PREFIX]
    for ins in found:
        ins.starts_line, ins.positions = None, None
        if isinstance(ins.argval, str) and ins.argval in (varname_map or {}):
            ins.argval = varname_map[ins.argval]
        if ins.opname.startswith("LOAD") and _flag_bits(ins) == 0:
            ins.arg = None
    return _without_returns(found) if noreturn else found


def _without_returns(instructions: list[Instruction]) -> list[Instruction]:
    last = instructions[-1]
    if last.opname == "RETURN_VALUE":
        last.opname, last.opcode = "NOP", dis.opmap["NOP"]
        end, body = last, instructions[:-1]
    else:
        end, body = create_instruction("NOP"), instructions
    out: list[Instruction] = []
    for ins in body:
        if ins.opname == "RETURN_CONST":
            ins.opname, ins.opcode, ins.arg = "LOAD_CONST", dis.opmap["LOAD_CONST"], None
            out.append(ins)
            if ins is not body[-1] or end is not last:
                out.append(create_jump_absolute(end))
            continue
        if ins.opname == "RETURN_VALUE":
            jump = create_jump_absolute(end)
            ins.opname, ins.opcode = jump.opname, jump.opcode
            ins.arg, ins.argval, ins.target = None, end, end
        out.append(ins)
    return [*out, end]
