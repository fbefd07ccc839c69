"""Writes random Python functions from the templates of function_templates.py."""

from __future__ import annotations

import random
import re

import function_idioms as idioms
from function_templates import (
    CAUGHT,
    NESTED,
    NUMBERS,
    RAISED,
    REBINDING,
    SIMPLE,
    TENSORS,
    TESTS,
    TEXTS,
)

BREAK = "torch._dynamo.graph_break()"
KINDS = "NTLDEBPWVQC"
_DELETED = re.compile(r"del \$([NTLW])")


def _choices(text: str) -> list[str]:
    return [part for line in text.strip().split("\n") for part in line.split("  ")]


def _statements(text: str) -> list[str]:
    # A line that begins with spaces goes on with the one before.
    lines = text.strip().replace("\n    ", " ").split("\n")
    return [line.replace(r"\n", "\n") for line in lines]


def _caught(template: str) -> str:
    """A statement whose exceptions are noted."""
    lines = "".join(f"\n    {line}" for line in template.split("\n"))
    return f"try:{lines}\nexcept Exception as error:\n    log.append(repr(error))"


class Maker:
    """Writes one function."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.lines: list[str] = []
        # Where statements begin: the number of the line and its depth.
        self.starts: list[tuple[int, int]] = []
        self.counter = 0
        self.names = {"N": ["n", "k"], "T": ["x", "y"], "L": ["items"], "D": ["table"],
                      "E": ["some"], "B": ["box"], "P": ["point"], "W": ["word"],
                      "V": ["vec"], "Q": ["queue"], "C": ["both"]}  # fmt: skip
        # How the function is written: by itself, inside of another one, or as a method.
        self.form = rng.choice(("plain", "plain", "closure", "method"))
        self.base = 1 if self.form == "plain" else 2
        self.in_function = 0
        self.depth = 0

    # ---- expressions

    def expression(self, kind: str) -> str:
        """A random expression of a kind."""
        rng = self.rng
        self.depth += 1
        try:
            if self.depth > 2 or rng.random() < 0.3:
                if kind == "n":
                    return rng.choice([str(rng.randint(-3, 6)), rng.choice(self.names["N"])])
                if kind == "t":
                    return rng.choice(self.names["T"])
                if kind == "w":
                    return rng.choice([rng.choice(self.names["W"]), "'ab'", "'cab'"])
            table = {"n": _NUMBERS, "t": _TENSORS, "c": _TESTS, "w": _TEXTS}[kind]
            return self.filled(rng.choice(table), {}, [])
        finally:
            self.depth -= 1

    def filled(self, template: str, own: dict[str, str], made: list[tuple[str, str]]) -> str:
        """The template with every mark replaced; `made` gets the new variables."""
        before = list(made)

        def mark(match: re.Match) -> str:
            new, name = match.groups()
            if new:
                return self.new_name(name, made)
            if name.isdigit():
                return str(self.rng.randint(0, int(name)))
            if name in KINDS:
                fresh = [n for kind, n in before if kind == name]
                return fresh[-1] if fresh else self.rng.choice(self.names[name])
            if name in "ntcw":
                return self.expression(name)
            if name == "x":
                return self.filled(self.rng.choice(RAISED), own, made)
            if name == "k":
                return self.rng.choice(CAUGHT)
            if name not in own:
                self.counter += 1
                own[name] = f"{name}_{self.counter}"
            return own[name]

        return re.sub(r"\$(\+?)(\w)", mark, template)

    def new_name(self, kind: str, made: list[tuple[str, str]]) -> str:
        self.counter += 1
        name = f"{kind.lower()}{self.counter}"
        made.append((kind, name))
        return name

    # ---- statements

    def statement(self, depth: int) -> None:
        """One statement, with the blocks inside."""
        rng = self.rng
        self.starts.append((len(self.lines), depth))
        if depth < self.base + 3 and rng.random() < 0.42:
            template = rng.choice(_NESTED)
        elif not self.in_function and rng.random() < 0.15:
            template = rng.choice(_REBINDING)
        else:
            template = rng.choice(_SIMPLE)
            if depth < self.base + 3 and rng.random() < 0.25:
                # Much of this raises: what comes behind is to be reached too.
                template = _caught(template)
        self.write(template, depth)

    def write(self, template: str, depth: int) -> None:
        """Writes a template. Names that the head of a block introduces are known in it alone."""
        own: dict[str, str] = {}
        made: list[tuple[str, str]] = []
        for line in template.split("\n"):
            block = re.fullmatch(r"( *)([@%])(\d)(?:-(\d))?", line)
            if block is None:
                parts = [self.filled(part, own, made) for part in line.split("; ")]
                self.emit(depth, "; ".join(parts))
                continue
            space, kind, low, high = block.groups()
            self.in_function += kind == "%"
            count = self.rng.randint(int(low), int(high or low))
            self.block(depth + len(space) // 4, count, made)
            self.in_function -= kind == "%"
        if (gone := _DELETED.match(template)) and self.rng.random() < 0.8:
            name = self.lines[-1].split()[-1]
            rest = [n for n in self.names[gone[1]] if n != name]
            self.names[gone[1]] = rest or [name]
        if not template.startswith(("for ", "with ", "if ", "try", "match ")):
            for kind, name in made:
                self.names[kind].append(name)

    def block(self, depth: int, count: int, made: list[tuple[str, str]]) -> None:
        saved = {kind: list(names) for kind, names in self.names.items()}
        for kind, name in made:
            self.names[kind].append(name)
        for _ in range(count):
            self.statement(depth)
        self.names = saved

    def emit(self, depth: int, text: str) -> None:
        self.lines.append("    " * depth + text)

    def write_function(self) -> None:
        """Writes the statements of the function."""
        if self.form == "closure":
            self.emit(self.base, "nonlocal shared")
            self.emit(self.base, "shared = n")
            self.names["N"].append("shared")
        elif self.form == "method":
            self.emit(self.base, "k = super().tag(n) + self.step(k)")
        for _ in range(self.rng.randint(2, 4)):
            self.statement(self.base)

    def source(self, breaks: set[int] | None = None) -> str:
        """The text of the function `f`. Statements with the numbers `breaks` come after a graph
        break."""
        lines = list(self.lines)
        for index in sorted(breaks or (), reverse=True):
            place, depth = self.starts[index]
            lines.insert(place, "    " * depth + BREAK)
        names = ", ".join(self.names["T"] + self.names["N"] + self.names["W"])
        space = "    " * self.base
        lines.append(f"{space}return [{names}], items, table, box, some, point, vec, queue, both")
        return "\n".join([*self.head(), *lines, *_TAILS[self.form], ""])

    def head(self) -> list[str]:
        """The lines before the statements."""
        outer, inner = "    " * (self.base - 1), "    " * self.base
        first = f"{outer}def f({_OWN[self.form]}{_PARAMETERS}):"
        return [*_HEADS[self.form], first, f"{inner}global total"]

    def line_of(self, index: int) -> int:
        """The line on which a statement begins in the text without breaks."""
        return self.starts[index][0] + len(self.head()) + 1


_PARAMETERS = (
    "x, y, n, items, table, box, some, point, word, vec, queue, both, k=3, *more, j=2, **named"
)
_OWN = {"plain": "", "closure": "", "method": "self, "}
_HEADS = {"plain": [], "closure": ["def outside(shared):"], "method": ["class Own(Host):"]}
_TAILS = {
    "plain": [],
    "closure": ["    return f", "f = outside(1)"],
    "method": ["f = Own().f"],
}
_NUMBERS = _choices(NUMBERS) + _choices(idioms.NUMBERS)
_TENSORS = _choices(TENSORS) + _choices(idioms.TENSORS)
_TESTS = _choices(TESTS) + _choices(idioms.TESTS)
_TEXTS = _choices(TEXTS) + _choices(idioms.TEXTS)
_SIMPLE = _statements(SIMPLE) + _statements(idioms.SIMPLE)
_REBINDING = _statements(REBINDING)
_NESTED = NESTED.strip().split("\n\n") + idioms.NESTED.strip().split("\n\n")
