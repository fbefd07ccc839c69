"""The code of an entry from its text. Objects that the code refers to stand in the text as marked
strings and are put into the constants of the compiled code."""

from __future__ import annotations

import sys
import types

_MARK = "\x00constant %d"


def constant_lines(count: int) -> list[str]:
    """Statements that give the objects their names."""
    return [f"__k{i} = {_MARK % i!r}" for i in range(count)]


def _only_code(code: types.CodeType) -> types.CodeType:
    found = [c for c in code.co_consts if isinstance(c, types.CodeType)]
    if not found:
        raise ValueError("a text without a function")
    return found[0]


def _number(value: int) -> bytes:
    """A signed number as tables of lines have it: six bits a byte, the lowest first."""
    left, out = (-value << 1 | 1) if value < 0 else value << 1, bytearray()
    while left >= 64:
        out.append(left & 63 | 64)
        left >>= 6
    out.append(left)
    return bytes(out)


def _all_on_line(code: types.CodeType, distance: int) -> bytes:
    """The table of lines of code that stands on one line, so far behind its first."""
    out = bytearray()
    if sys.version_info < (3, 11):
        while abs(distance) > 127:
            step = 127 if distance > 0 else -127
            out += bytes((0, step & 255))
            distance -= step
        for start in range(0, len(code.co_code), 254):
            out += bytes((min(254, len(code.co_code) - start), distance & 255))
            distance = 0
        return bytes(out)
    units = len(code.co_code) // 2
    for start in range(0, units, 8):
        # A line without columns, for up to eight units.
        out.append(0x80 | 13 << 3 | min(8, units - start) - 1)
        out += _number(distance)
        distance = 0
    return bytes(out)


def code_of(
    text: str, template: types.CodeType, objects: list[object], line: int | None = None
) -> types.CodeType:
    """The code of the innermost function of a text, named like `template`. Lines of the text mean
    nothing to the program: tracebacks show the `line` of the program where the trace ended."""
    module = compile(text, template.co_filename, "exec", dont_inherit=True)
    made = _only_code(_only_code(module))
    table = {_MARK % i: value for i, value in enumerate(objects)}
    consts = tuple(table.get(c, c) if type(c) is str else c for c in made.co_consts)
    if any(type(c) is str and c.startswith(_MARK[:9]) for c in consts):
        raise ValueError("a text that refers to more objects than there are")
    first = template.co_firstlineno
    fields = {
        "co_consts": consts,
        "co_firstlineno": first,
        "co_linetable": _all_on_line(made, 0 if line is None else line - first),
    }
    for name in ("co_name", "co_qualname"):
        if hasattr(template, name):  # up to 3.10 there is no qualified name
            fields[name] = getattr(template, name)
    return made.replace(**fields)
