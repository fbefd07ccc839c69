"""Patterns of dotted names or paths: `*` stands for part of one component, `**` for any number of
whole components."""

from __future__ import annotations

import re
from collections.abc import Iterable

GlobPattern = str | Iterable[str]


def _compiled(pattern: str, separator: str) -> re.Pattern[str]:
    """Matches candidates that are written with a separator in front."""
    text = ""
    for component in pattern.split(separator):
        if component == "**":
            text += f"({re.escape(separator)}[^{separator}]+)*"
        elif "**" in component:
            raise ValueError("** can only appear as an entire path segment")
        else:
            parts = (re.escape(part) for part in component.split("*"))
            text += re.escape(separator) + f"[^{separator}]*".join(parts)
    return re.compile(text)


class GlobGroup:
    """Names that match one of `include` and none of `exclude`."""

    def __init__(
        self, include: GlobPattern, *, exclude: GlobPattern = (), separator: str = "."
    ) -> None:
        def patterns(given: GlobPattern) -> list[re.Pattern[str]]:
            listed = [given] if isinstance(given, str) else list(given)
            return [_compiled(p, separator) for p in listed]

        self._text = f"GlobGroup(include={include}, exclude={exclude})"
        self.include, self.exclude = patterns(include), patterns(exclude)
        self.separator = separator

    def matches(self, candidate: str) -> bool:
        written = self.separator + candidate
        wanted = any(p.fullmatch(written) for p in self.include)
        return wanted and not any(p.fullmatch(written) for p in self.exclude)

    def __str__(self) -> str:
        return self._text

    __repr__ = __str__
