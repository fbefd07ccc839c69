"""Patterns of dimensions: "b (h w) ... -> b ... h w". One side is a sequence of axes; an axis in
parentheses is made of several. `...` stands for any number of axes, a number for an axis of that
size without a name."""

from __future__ import annotations

import re
from collections.abc import Mapping

__all__ = ["AnonymousAxis", "ParsedExpression", "parse_pattern", "validate_rearrange_expressions"]

# One character in place of three dots: no name, and a token of its own.
_ellipsis = "\u2026"


class AnonymousAxis:
    """An axis that has a size in place of a name. Two of the same size are not the same."""

    def __init__(self, value: str) -> None:
        self.value = int(value)
        if self.value < 2:
            raise ValueError(f"an axis without a name must be longer than 1, got {self.value}")

    def __repr__(self) -> str:
        return f"{self.value}-axis"


Axis = str | AnonymousAxis


class ParsedExpression:
    """One side of a pattern. `composition` has a list of axes for each dimension, and the ellipsis
    itself where it stands outside of parentheses."""

    def __init__(
        self, expression: str, *, allow_underscore: bool = False, allow_duplicates: bool = False
    ) -> None:
        self.text = expression
        self.has_ellipsis = False
        self.has_ellipsis_parenthesized = False
        self.has_non_unitary_anonymous_axes = False
        self.identifiers: set[Axis] = set()
        self.composition: list[list[Axis] | str] = []
        self._underscore, self._duplicates = allow_underscore, allow_duplicates
        self._read()

    def _fail(self, why: str) -> ValueError:
        return ValueError(f"{why} in the expression {self.text!r}")

    def _read(self) -> None:
        if _ellipsis in self.text:
            raise self._fail(f"the character {_ellipsis!r}")
        group: list[Axis] | None = None
        for token in re.findall(r"[()]|[^\s()]+", self.text):
            if token == "(":
                if group is not None:
                    raise self._fail("parentheses inside of parentheses")
                group = []
            elif token == ")":
                if group is None:
                    raise self._fail("a closing parenthesis without an opening one")
                self.composition.append(group)
                group = None
            elif token == "...":
                self._add_ellipsis(group)
            else:
                self._add(token, group)
        if group is not None:
            raise self._fail("an opening parenthesis without a closing one")

    def _add_ellipsis(self, group: list[Axis] | None) -> None:
        if self.has_ellipsis:
            raise self._fail("a second ellipsis")
        self.has_ellipsis = True
        self.identifiers.add(_ellipsis)
        if group is None:
            self.composition.append(_ellipsis)
        else:
            self.has_ellipsis_parenthesized = True
            group.append(_ellipsis)

    def _add(self, token: str, group: list[Axis] | None) -> None:
        axes: list[Axis] = []
        if token.isdecimal():
            if int(token) != 1:  # an axis of size 1 is no axis
                self.has_non_unitary_anonymous_axes = True
                axes.append(AnonymousAxis(token))
        else:
            reason = self.check_axis_name_return_reason(token, self._underscore)[1]
            if reason:
                raise self._fail(f"the axis name {token!r}, which {reason},")
            if token in self.identifiers and not self._duplicates:
                raise self._fail(f"the axis {token!r} twice")
            axes.append(token)
        self.identifiers.update(axes)
        if group is None:
            self.composition.append(axes)
        else:
            group.extend(axes)

    @staticmethod
    def check_axis_name_return_reason(
        name: str, allow_underscore: bool = False
    ) -> tuple[bool, str]:
        """Whether a text can name an axis, and why not."""
        if not name.isidentifier():
            return False, "is no identifier"
        if name.startswith("_") or name.endswith("_"):
            allowed = name == "_" and allow_underscore
            return allowed, "" if allowed else "begins or ends with an underscore"
        return True, ""

    @staticmethod
    def check_axis_name(name: str) -> bool:
        """Whether a text can name an axis."""
        return ParsedExpression.check_axis_name_return_reason(name)[0]


def parse_pattern(
    pattern: str, axes_lengths: Mapping[str, int]
) -> tuple[ParsedExpression, ParsedExpression]:
    """Both sides of a pattern."""
    sides = pattern.split("->")
    if len(sides) != 2:
        raise ValueError(f"the pattern {pattern!r} must have the form 'left -> right'")
    left, right = map(ParsedExpression, sides)
    if right.has_ellipsis and not left.has_ellipsis:
        raise ValueError(f"an ellipsis on the right of {pattern!r} has none on the left")
    if left.has_ellipsis_parenthesized:
        raise ValueError(f"an ellipsis on the left of {pattern!r} stands in parentheses")
    return left, right


def validate_rearrange_expressions(
    left: ParsedExpression, right: ParsedExpression, axes_lengths: Mapping[str, int]
) -> None:
    """Raises unless both sides have the same axes, and lengths are given for axes of the left."""
    for name, length in axes_lengths.items():
        if not isinstance(length, int):
            raise TypeError(f"the length of the axis {name!r} must be an int, got {type(length)}")
    if left.has_non_unitary_anonymous_axes or right.has_non_unitary_anonymous_axes:
        raise ValueError("an axis without a name can be rearranged only if it has size 1")
    apart = left.identifiers ^ right.identifiers
    if apart:
        raise ValueError(f"the two sides have different names: {sorted(map(str, apart))}")
    unknown = axes_lengths.keys() - left.identifiers
    if unknown:
        raise ValueError(f"lengths are given for axes that are not there: {sorted(unknown)}")
