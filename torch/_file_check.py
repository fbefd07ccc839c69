"""FileCheck: a text is searched for patterns in order, in the manner of LLVM's tool of that name.

    FileCheck().check("mul").check_not("add").check("return").run(text)

Every check moves a position forward through the text. A "not" waits for the next check and then
looks between the two; consecutive "dag" checks are met in any order."""

from __future__ import annotations

import re
from typing import NamedTuple

__all__ = ["FileCheck"]

_PRAGMA = re.compile(
    r"(CHECK(?:-NOT|-SAME|-NEXT|-DAG|-SOURCE-HIGHLIGHTED|-REGEX|-COUNT-(?:EXACTLY-)?(?P<n>\d+))?):"
    r"\s*(?P<pattern>.*?)\s*$"
)


class _Check(NamedTuple):
    kind: str
    pattern: str
    count: int = 1
    exactly: bool = False

    def __str__(self) -> str:
        kind = self.kind
        if kind == "CHECK-COUNT":
            kind += f"-{'EXACTLY-' if self.exactly else ''}{self.count}"
        return f"{kind}: {self.pattern}"


class _Failure(Exception):
    pass


def _highlight(text: str, start: int, end: int) -> str:
    """The text up to the line of a place, with the place underlined."""
    begin = text.rfind("\n", 0, start) + 1
    stop = text.find("\n", start)
    stop = len(text) if stop < 0 else stop
    marks = " " * (start - begin) + "~" * max(1, min(end, stop) - start)
    return f"{text[:stop]}\n{marks} <--- HERE"


class _Search:
    """A text and how far its checks have come."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.group_start = 0  # where a group of dag checks began
        self.group_found: list[int] = []  # what it found so far
        self.group_refused: list[_Check] = []  # what must not stand before it

    def find(self, pattern: str, start: int) -> int:
        """Where a pattern begins, at `start` or behind it."""
        found = self.text.find(pattern, start)
        if found < 0:
            raise _Failure(
                f'Expected to find "{pattern}" but did not find it\nSearched string:\n{self.text}'
            )
        return found

    def refuse(self, pattern: str, start: int, end: int) -> None:
        """Fails where a pattern lies in a part of the text."""
        found = self.text.find(pattern, start, end)
        if found >= 0:
            shown = pattern.replace("\n", "\\n")
            where = _highlight(self.text, found, found + len(pattern))
            raise _Failure(f'Expected to not find "{shown}" but found it\n{where}')

    def run(self, check: _Check) -> int:
        """Moves behind what a check finds; returns where that begins."""
        step = getattr(self, "_" + check.kind.lower().replace("-", "_"))
        return step(check)

    def _check(self, check: _Check) -> int:
        found = self.find(check.pattern, self.at)
        self.at = found + len(check.pattern)
        return found

    def _check_same(self, check: _Check) -> int:
        found = self.find(check.pattern, self.at)
        self.refuse("\n", self.at, found)
        self.at = found + len(check.pattern)
        return found

    def _check_next(self, check: _Check) -> int:
        line = self.find("\n", self.at) + 1
        found = self.find(check.pattern, line)
        self.refuse("\n", line, found)
        self.at = found + len(check.pattern)
        return found

    def _check_count(self, check: _Check) -> int:
        first = self.at
        for i in range(check.count):
            found = self._check(check)
            first = found if i == 0 else first
        return first

    def _check_dag(self, check: _Check) -> int:
        found = self.find(check.pattern, self.group_start)
        self.at = max(self.at, found + len(check.pattern))
        return found

    def _check_regex(self, check: _Check) -> int:
        found = re.compile(check.pattern).search(self.text, self.at)
        if found is None:
            raise _Failure(
                f'Expected to find regex "{check.pattern}" but did not find it\n'
                f"Searched string:\n{self.text}"
            )
        self.at = found.end()
        return found.start()

    def _check_source_highlighted(self, check: _Check) -> int:
        found = self.find(check.pattern, self.at)
        begin = self.text.rfind("\n", 0, found) + 1
        below = self.find("\n", found) + 1
        marks = self.text[below:].split("\n", 1)[0]
        column = found - begin
        if marks[column : column + len(check.pattern)] != "~" * len(check.pattern):
            where = _highlight(self.text, found, found + len(check.pattern))
            raise _Failure(f'Expected to find "{check.pattern}" highlighted\n{where}')
        self.at = below + len(marks)
        return found


class FileCheck:
    """Checks to be applied to a text. Each method returns the object, so that they chain."""

    def __init__(self) -> None:
        self._checks: list[_Check] = []
        self._has_run = False

    def _add(self, *fields: str | int | bool) -> FileCheck:
        self._checks.append(_Check(*fields))
        return self

    def check(self, pattern: str) -> FileCheck:
        """The pattern comes next, anywhere behind the last."""
        return self._add("CHECK", pattern)

    def check_not(self, pattern: str) -> FileCheck:
        """The pattern is not there before the next check's, or the end."""
        return self._add("CHECK-NOT", pattern)

    def check_same(self, pattern: str) -> FileCheck:
        """The pattern follows on the same line."""
        return self._add("CHECK-SAME", pattern)

    def check_next(self, pattern: str) -> FileCheck:
        """The pattern is on the next line."""
        return self._add("CHECK-NEXT", pattern)

    def check_count(self, pattern: str, count: int, exactly: bool = False) -> FileCheck:
        """The pattern comes `count` times; exactly: and no more before the next check's."""
        self._add("CHECK-COUNT", pattern, count, exactly)
        return self.check_not(pattern) if exactly else self

    def check_dag(self, pattern: str) -> FileCheck:
        """The pattern comes next, in any order with its neighbours of this kind."""
        return self._add("CHECK-DAG", pattern)

    def check_source_highlighted(self, pattern: str) -> FileCheck:
        """The pattern comes next and is underlined with ~."""
        return self._add("CHECK-SOURCE-HIGHLIGHTED", pattern)

    def check_regex(self, pattern: str) -> FileCheck:
        """A match of the regular expression comes next."""
        return self._add("CHECK-REGEX", pattern)

    def run(self, *texts: object, checks_file: object = None, test_file: object = None) -> None:
        """run(text), or run(annotated, text) with "# CHECK: ..." in the lines of the first. Raises
        RuntimeError at the first check that fails."""
        self._has_run = True
        texts += tuple(t for t in (checks_file, test_file) if t is not None)
        if len(texts) not in (1, 2):
            raise TypeError(f"FileCheck.run() takes one or two texts, got {len(texts)}")
        if len(texts) == 2:
            self._parse(str(texts[0]))
        if not self._checks:
            raise RuntimeError(
                "No checks have been added to this instance of Filecheck! Check for bad input."
            )
        search = _Search(str(texts[-1]))
        refused: list[_Check] = []
        previous = None
        for check in self._checks:
            try:
                if check.kind != "CHECK-DAG":
                    self._end_group(search)
                if check.kind == "CHECK-NOT":
                    refused.append(check)
                else:
                    self._step(search, check, previous, refused)
            except _Failure as failure:
                raise RuntimeError(f"{failure}\nFrom {check}\n") from None
            previous = check
        self._end_group(search)
        self._refuse(search, refused, search.at, len(search.text))

    def _step(
        self, search: _Search, check: _Check, previous: _Check | None, refused: list[_Check]
    ) -> None:
        if check.kind == "CHECK-DAG":
            if previous is None or previous.kind != "CHECK-DAG":
                search.group_start = search.at
                search.group_refused, search.group_found = refused.copy(), []
                refused.clear()
            search.group_found.append(search.run(check))
            return
        before = search.at
        found = search.run(check)
        self._refuse(search, refused, before, found)

    def _end_group(self, search: _Search) -> None:
        """What must not stand before a group must not stand before the first of its matches."""
        if search.group_found:
            first = min(search.group_found)
            self._refuse(search, search.group_refused, search.group_start, first)
            search.group_found = []

    @staticmethod
    def _refuse(search: _Search, refused: list[_Check], start: int, end: int) -> None:
        for check in refused:
            try:
                search.refuse(check.pattern, start, end)
            except _Failure as failure:
                raise RuntimeError(f"{failure}\nFrom {check}\n") from None
        refused.clear()

    def _parse(self, annotated: str) -> None:
        for line in annotated.splitlines():
            start = line.find("# CHECK")
            if start < 0:
                continue
            found = _PRAGMA.match(line, start + 2)
            if found is None:
                raise RuntimeError(f"Could not parse check at:\n{line}\nCheck for bad input.")
            kind, pattern = found.group(1), found.group("pattern")
            if found.group("n") is not None:
                self.check_count(pattern, int(found.group("n")), "EXACTLY" in kind)
            else:
                self._add(kind, pattern)

    def __repr__(self) -> str:
        lines = "".join(f"\t{check}\n" for check in self._checks)
        return f"FileCheck checks:\n{lines}"

    def __del__(self) -> None:
        if not self.__dict__.get("_has_run", True):
            print(f"You have not run this instance of FileCheck!\n{self!r}", end="")
