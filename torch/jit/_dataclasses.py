"""Methods that Python makes for a dataclass exist without source. Here they are written out, as
text that the script compiler reads like any other method."""

from __future__ import annotations

import dataclasses
import functools
import inspect
import linecache
import types
import typing

_files = iter(range(1 << 62))


def dataclass_methods(cls: type, own: dict[str, typing.Any]) -> dict[str, typing.Any]:
    """The methods of a dataclass, those that the class wrote itself among them."""
    out = {n: m for n, m in own.items() if n in ("__post_init__",) or _has_source(m)}
    out.setdefault("__init__", _compiled(cls, _init_text(cls)))
    parameters = cls.__dataclass_params__
    if parameters.eq:
        out.setdefault("__eq__", _compiled(cls, _comparison_text(cls, "__eq__", "==")))
    if parameters.order:
        for name, sign in (("__lt__", "<"), ("__le__", "<="), ("__gt__", ">"), ("__ge__", ">=")):
            out.setdefault(name, _compiled(cls, _comparison_text(cls, name, sign)))
    return out


def _has_source(method: types.FunctionType) -> bool:
    try:
        inspect.getsource(method)
    except (OSError, TypeError):
        return False
    return not method.__qualname__.startswith("__create_fn__")


def _fields(cls: type) -> list[dataclasses.Field]:
    """Fields in order, variables that only __init__ sees among them."""
    return [
        f
        for f in cls.__dataclass_fields__.values()
        if f._field_type in (dataclasses._FIELD, dataclasses._FIELD_INITVAR)
    ]


def _is_variable(field: dataclasses.Field) -> bool:
    return field._field_type is dataclasses._FIELD_INITVAR


def _init_text(cls: type) -> str:
    parameters, body = [], []
    for field in _fields(cls):
        if field.default_factory is not dataclasses.MISSING:
            raise NotImplementedError(
                f"default_factory of the field '{field.name}' of the dataclass '{cls.__name__}' "
                "cannot be scripted: give a default value"
            )
        if field.init:
            default = "" if field.default is dataclasses.MISSING else f" = {field.default!r}"
            parameters.append(f"{field.name}: _type_{field.name}{default}")
        elif field.default is not dataclasses.MISSING:
            body.append(f"self.{field.name}: _type_{field.name} = {field.default!r}")
            continue
        if field.init and not _is_variable(field):
            body.append(f"self.{field.name}: _type_{field.name} = {field.name}")
    if hasattr(cls, "__post_init__"):
        given = ", ".join(f.name for f in _fields(cls) if _is_variable(f))
        body.append(f"self.__post_init__({given})")
    lines = "\n".join(f"    {line}" for line in body or ["pass"])
    return f"def __init__(self, {', '.join(parameters)}):\n{lines}\n"


def _comparison_text(cls: type, name: str, sign: str) -> str:
    """Fields are compared in order, as the tuples of them would be; None is equal to None only."""
    lines = [f"def {name}(self, other: _own_class) -> bool:"]
    for field in _fields(cls):
        if field.compare and not _is_variable(field):
            lines += _compare_field(field.name, sign, _may_be_none(_hints(cls)[field.name]))
    lines.append(f"    return {'=' in sign}")
    return "\n".join(lines) + "\n"


def _compare_field(name: str, sign: str, optional: bool) -> list[str]:
    pad = "    " if not optional else "        "
    if sign == "==":
        tests = [f"{pad}if a_{name} != b_{name}:", f"{pad}    return False"]
    else:
        tests = [
            f"{pad}if a_{name} {sign[0]} b_{name}:",
            f"{pad}    return True",
            f"{pad}elif b_{name} {sign[0]} a_{name}:",
            f"{pad}    return False",
        ]
    out = [f"    a_{name} = self.{name}", f"    b_{name} = other.{name}"]
    if optional:
        out.append(f"    if a_{name} is not None and b_{name} is not None:")
    out += tests
    if optional and sign == "==":
        out += [f"    elif not (a_{name} is None and b_{name} is None):", "        return False"]
    return out


def _may_be_none(annotation: object) -> bool:
    return type(None) in typing.get_args(annotation)


@functools.cache
def _hints(cls: type) -> dict[str, object]:
    try:
        return typing.get_type_hints(cls)
    except NameError:  # a name that only the scope of the class knows
        return dict(cls.__annotations__)


def _compiled(cls: type, text: str) -> types.FunctionType:
    """The function that a text defines, with a source that inspect finds."""
    filename = f"<dataclass {cls.__qualname__} {next(_files)}>"
    linecache.cache[filename] = (len(text), None, text.splitlines(True), filename)
    scope: dict[str, object] = dict(vars(inspect.getmodule(cls) or types))
    for name, hint in _hints(cls).items():
        scope[f"_type_{name}"] = hint.type if isinstance(hint, dataclasses.InitVar) else hint
    scope["_own_class"] = cls
    made: dict[str, types.FunctionType] = {}
    exec(compile(text, filename, "exec"), scope, made)
    (function,) = made.values()
    return function
