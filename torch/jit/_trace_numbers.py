"""Sizes of tensors in a trace: integers that remember which value of the graph they are. Arithmetic
with them is recorded; as soon as Python makes another kind of number of one, it is a constant."""

from __future__ import annotations

import math
import typing

from torch.jit._ir import Value

if typing.TYPE_CHECKING:
    from torch.jit._trace import Recorder


class TracedInt(int):
    """An integer that the graph computes."""

    recorder: Recorder
    value: Value

    def __hash__(self) -> int:
        return int.__hash__(self)

    def __eq__(self, other: object) -> bool:
        return int.__eq__(self, other)

    def __reduce__(self) -> tuple[type[int], tuple[int]]:
        return int, (int(self),)

    def __neg__(self) -> int:
        return traced(self.recorder, int.__neg__(self), "aten::neg", [self])


class TracedSize(tuple):
    """The shape of a tensor: a torch.Size would forget where its numbers come from."""

    __slots__ = ()

    def numel(self) -> int:
        """The product of the sizes."""
        return math.prod(self)


def traced(recorder: Recorder, result: int, name: str, parts: list[int]) -> int:
    """The integer `result` as what the builtin `name` makes of the parts."""
    if recorder.paused:
        return result
    from torch.jit import _types as T

    inputs = [recorder.value(p, T.Int) for p in parts]
    return known(recorder, result, recorder.builtin(name, inputs))


def known(recorder: Recorder, number: int, value: Value) -> TracedInt:
    """A number that is this value of the graph."""
    made = TracedInt(number)
    made.recorder, made.value = recorder, value
    return made


def _operator(name: str, builtin: str, mirrored: bool) -> typing.Callable[[int, object], object]:
    plain = getattr(int, name)

    def method(self: TracedInt, other: object) -> object:
        result = plain(self, other)
        if type(result) is not int or isinstance(other, bool):
            return result
        parts = [other, self] if mirrored else [self, other]
        return traced(self.recorder, result, builtin, parts)

    method.__name__ = name
    return method


for _name, _builtin in (
    ("add", "aten::add"),
    ("sub", "aten::sub"),
    ("mul", "aten::mul"),
    ("floordiv", "aten::floordiv"),
    ("mod", "aten::remainder"),
):
    setattr(TracedInt, f"__{_name}__", _operator(f"__{_name}__", _builtin, False))
    setattr(TracedInt, f"__r{_name}__", _operator(f"__r{_name}__", _builtin, True))
