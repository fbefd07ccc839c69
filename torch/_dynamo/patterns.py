"""The instructions of `match`: what a value has to be to fit a pattern."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torch._dynamo.exc import raise_error
from torch._dynamo.variables.base import VariableTracker
from torch._dynamo.variables.constant import NONE, ConstantVariable
from torch._dynamo.variables.dicts import ConstDictVariable
from torch._dynamo.variables.lists import TupleVariable
from torch._dynamo.variables.user_defined import _MISSING, class_attribute

if TYPE_CHECKING:
    from torch._dynamo.opcodes import Instruction
    from torch._dynamo.symbolic_convert import Frame

# Flags of classes that patterns ask for: sequence, mapping, and that a class such as int takes the
# value itself as its one positional part.
_SEQUENCE, _MAPPING, _ITSELF = 1 << 5, 1 << 6, 1 << 22


def MATCH_MAPPING(self: Frame, ins: Instruction) -> None:
    self.stack.append(ConstantVariable(_has_flag(self.stack[-1], _MAPPING)))


def MATCH_SEQUENCE(self: Frame, ins: Instruction) -> None:
    self.stack.append(ConstantVariable(_has_flag(self.stack[-1], _SEQUENCE)))


def _has_flag(vt: VariableTracker, flag: int) -> bool:
    return bool(vt.python_type().__flags__ & flag)


def MATCH_KEYS(self: Frame, ins: Instruction) -> None:
    keys, subject = self.stack[-1], self.stack[-2]
    missing = VariableTracker.build(self, object())
    values, seen = [], set()
    for key in keys.unpack(self):
        hashed = key.hash_key(self)
        if hashed in seen:
            shown = self.text(key, "__repr__").as_python_constant()
            raise_error(self, ValueError, f"mapping pattern checks duplicate key ({shown})")
        seen.add(hashed)
        value = subject.call_method(self, "get", [key, missing], {})
        if value is missing:
            self.stack.append(NONE)
            return
        values.append(value.realize())
    self.stack.append(TupleVariable(values))


def COPY_DICT_WITHOUT_KEYS(self: Frame, ins: Instruction) -> None:
    keys = {key.hash_key(self) for key in self.stack.pop().unpack(self)}
    subject = getattr(self.stack[-1], "contents", None) or self.stack[-1]
    rest = [pair for pair in self.pairs(subject) if pair[0].hash_key(self) not in keys]
    self.stack.append(ConstDictVariable.of(self, rest))


def MATCH_CLASS(self: Frame, ins: Instruction) -> None:
    subject, cls, names = self.popn(3)
    kind = cls.as_python_constant()
    if not isinstance(kind, type):
        raise_error(self, TypeError, "called match pattern must be a class")
    if not issubclass(subject.python_type(), kind):
        self.stack.append(NONE)
        return
    values: list[VariableTracker] = []
    wanted = list(names.as_python_constant())
    if ins.arg:
        matched = class_attribute(kind, "__match_args__")
        if matched is not _MISSING and type(matched) is not tuple:
            text = f"{kind.__name__}.__match_args__ must be a tuple (got {type(matched).__name__})"
            raise_error(self, TypeError, text)
        itself = matched is _MISSING and bool(kind.__flags__ & _ITSELF)
        positional = () if matched is _MISSING else matched
        most = 1 if itself else len(positional)
        if most < ins.arg:
            plural = "" if most == 1 else "s"
            raise_error(
                self,
                TypeError,
                f"{kind.__name__}() accepts {most} positional sub-pattern{plural} "
                f"({ins.arg} given)",
            )
        if itself:
            values.append(subject)
        else:
            wanted = [*positional[: ins.arg], *wanted]
    seen: set[str] = set()
    for name in wanted:
        if not isinstance(name, str):
            text = f"__match_args__ elements must be strings (got {type(name).__name__})"
            raise_error(self, TypeError, text)
        if name in seen:
            text = f"{kind.__name__}() got multiple sub-patterns for attribute {name!r}"
            raise_error(self, TypeError, text)
        seen.add(name)
        if not self.has_attribute(subject, name):
            self.stack.append(NONE)
            return
        values.append(subject.getattr(self, name))
    self.stack.append(TupleVariable(values))
