"""The code of an entry from its text. Objects that the code refers to stand in the text as marked
strings and are put into the constants of the compiled code."""

from __future__ import annotations

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


def code_of(text: str, template: types.CodeType, objects: list[object]) -> types.CodeType:
    """The code of the innermost function of a text, named like `template`."""
    module = compile(text, template.co_filename, "exec", dont_inherit=True)
    made = _only_code(_only_code(module))
    table = {_MARK % i: value for i, value in enumerate(objects)}
    consts = tuple(table.get(c, c) if type(c) is str else c for c in made.co_consts)
    if any(type(c) is str and c.startswith(_MARK[:9]) for c in consts):
        raise ValueError("a text that refers to more objects than there are")
    fields = {"co_consts": consts, "co_firstlineno": template.co_firstlineno}
    for name in ("co_name", "co_qualname"):
        if hasattr(template, name):  # up to 3.10 there is no qualified name
            fields[name] = getattr(template, name)
    return made.replace(**fields)
