"""Small rules on text: an opening paragraph, no machine paths or package hosts, no notes to self,
100 columns.

The project must build on any machine, so a path or host of one particular machine is an error
wherever it stands.
"""

from __future__ import annotations

import pathlib
import re
from collections.abc import Iterator

from common import CPP_SUFFIXES, Finding, project_files, read
from layers import tomllib

TEXT_SUFFIXES = CPP_SUFFIXES | {
    *(".py", ".pyi", ".md", ".yaml", ".yml", ".toml", ".txt", ".cmake", ".sh", ".in", ".cfg", "")
}
COLUMN_SUFFIXES = {".cmake", ".sh", ".toml", ".in", ""}
COLUMNS = 100

# Spelt in pieces, so that this file passes its own check.
FORBIDDEN = [
    (
        re.compile(r"(?<![\w.])/(?:w" + r"ork|r" + r"oot|h" + r"ome/\w+|m" + r"nt)/"),
        "a machine path",
    ),
    (re.compile(r"\.\./sh" + "ared"), "a path outside the repository"),
    (
        re.compile(r"(?:pypi|pythonhosted|debian|ubuntu|arti" + r"factory)\.(?:org|com)/"),
        "a package host",
    ),
    (
        re.compile(r"\b(?:TO" + "DO|FIX" + r"ME|XX" + r"X)\b"),
        "a note to self; open an issue instead",
    ),
]
README_MENTIONS = ["make build", "make test"]


def opens_with_comment(path: str, text: str) -> bool:
    body = re.sub(r"\A#![^\n]*\n", "", text).lstrip()
    if not body:
        return path.endswith("__init__.py")
    if path.endswith(".py"):
        return body.startswith(('"""', "#", 'r"""'))
    return body.removeprefix("#pragma once").lstrip().startswith(("//", "/*"))


def check_file(path: str) -> Iterator[Finding]:
    suffix = pathlib.Path(path).suffix
    text = read(path)
    if (suffix in CPP_SUFFIXES or suffix == ".py") and not opens_with_comment(path, text):
        yield Finding(path, 1, "open the file with a paragraph: what it is for and why so")
    if text and not text.endswith("\n"):
        yield Finding(path, text.count("\n") + 1, "no newline at the end of the file")
    for number, line in enumerate(text.splitlines(), 1):
        for pattern, what in FORBIDDEN:
            if found := pattern.search(line):
                yield Finding(path, number, f"{what}: {found[0]!r}")
        if suffix in COLUMN_SUFFIXES and len(line) > COLUMNS:
            yield Finding(path, number, f"{len(line)} columns; {COLUMNS} at most")


def check_versions() -> Iterator[Finding]:
    declared = tomllib.loads(read("pyproject.toml"))["project"]["version"]
    for path in ("torch/version.py", "torch/_version.py"):
        if path in project_files():
            found = re.search(r"^__version__[^=\n]*=\s*[\"']([^\"']+)", read(path), re.MULTILINE)
            if found and found[1] != declared:
                yield Finding(path, 1, f"version {found[1]}, but pyproject.toml has {declared}")


def check() -> Iterator[Finding]:
    for path in project_files():
        if pathlib.Path(path).suffix in TEXT_SUFFIXES:
            yield from check_file(path)
    readme = read("README.md")
    mentions = list(README_MENTIONS)
    if re.search(r"^train:", read("Makefile"), re.MULTILINE):
        mentions.append("make train")
    for words in mentions:
        if words not in readme:
            yield Finding("README.md", 1, f"does not mention `{words}`")
    yield from check_versions()
