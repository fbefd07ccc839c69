"""Patterns as Python text. Expressions that occur more than once get a name of their own, so that
the text says what is shared."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from torch._inductor._matching.expressions import (
    Ignored,
    KeywordArg,
    ListOf,
    MultiOutputPattern,
    Multiple,
    PatternExpr,
    RepeatedExpr,
    _Node,
    _NodeWithArgs,
    target_name,
)

__all__ = ["PatternPrettyPrinter"]


class PatternPrettyPrinter:
    """Writes one pattern."""

    def __init__(self, pattern: PatternExpr) -> None:
        self.lines: list[str] = []
        self.names: dict[PatternExpr, str] = {}
        self.uses = Counter(_occurrences(pattern))

    @staticmethod
    def run(obj: PatternExpr, output_name: str = "output") -> str:
        """The text: an assignment for each shared expression and one for the whole."""
        printer = PatternPrettyPrinter(obj)
        if isinstance(obj, PatternExpr):
            whole = printer._full(obj)
        else:
            whole = repr(obj)
        return "\n".join([*printer.lines, f"{output_name} = {whole}"])

    def _text(self, value: object) -> str:
        if isinstance(value, PatternExpr):
            return self._named(value)
        if isinstance(value, (list, tuple)):
            inner = ", ".join(map(self._text, value))
            return f"[{inner}]" if isinstance(value, list) else f"({inner},)"
        if isinstance(value, dict):
            return "{" + ", ".join(f"{k!r}: {self._text(v)}" for k, v in value.items()) + "}"
        return repr(value)

    def _named(self, pattern: PatternExpr) -> str:
        if self.uses[pattern] < 2 or isinstance(pattern, (KeywordArg, Ignored)):
            return self._full(pattern)
        if pattern not in self.names:
            text = self._full(pattern)
            self.names[pattern] = f"tmp_{len(self.names)}"
            self.lines.append(f"{self.names[pattern]} = {text}")
        return self.names[pattern]

    def _full(self, pattern: PatternExpr) -> str:
        kind = type(pattern).__name__
        if isinstance(pattern, Ignored):
            return "Ignored()"
        if isinstance(pattern, MultiOutputPattern):
            outputs = ",\n  ".join(map(self._text, pattern.outputs))
            return f"MultiOutputPattern([{outputs}\n])"
        if isinstance(pattern, (ListOf, RepeatedExpr)):
            inner = next(pattern.children())
            more = ", partial=True" if getattr(pattern, "partial", False) else ""
            return f"{kind}({self._text(inner)}{more})"
        if isinstance(pattern, _Node):
            parts = [target_name(pattern.fns[0])]
            if isinstance(pattern, _NodeWithArgs):
                parts += map(self._text, pattern.args)
                parts += [f"{name}={self._text(v)}" for name, v in pattern.kwargs.items()]
            if isinstance(pattern.users, Multiple):
                parts.append("_users=MULTIPLE")
            elif pattern.users != 1:
                parts.append(f"_users={pattern.users}")
            return f"{kind}({', '.join(parts)})"
        return repr(pattern)


def _occurrences(pattern: PatternExpr) -> Iterator[PatternExpr]:
    """Each expression as often as something refers to it; below a shared one only once."""
    seen: set[PatternExpr] = set()
    open_: list[PatternExpr] = [pattern] if isinstance(pattern, PatternExpr) else []
    while open_:
        current = open_.pop()
        yield current
        if current not in seen:
            seen.add(current)
            open_.extend(current.children())
