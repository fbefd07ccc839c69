#!/usr/bin/env python3
"""Print every place an operator lives, file:line, in the order a call travels.

Usage: opmap.py NAME [--build FOLDER]. NAME is an operator's base name (add, sum, masked_fill);
the schema's namespace, the overload and a trailing underscore may be left off. Places are found
by the conventions of the tree, not by an index, so the result is as fresh as the files: the yaml
entry names the functor, shape function and kernels, and those names lead on. Generated code is
shown when the build folder has it. Exits 1 when there is no such operator.
"""

from __future__ import annotations

import argparse
import dataclasses
import difflib
import functools
import pathlib
import re
from collections.abc import Iterable, Iterator

ROOT = pathlib.Path(__file__).resolve().parents[1]
YAML = ROOT / "aten/src/ATen/native/native_functions.yaml"
DERIVATIVES = ROOT / "tools/autograd/derivatives.yaml"
NATIVE = ROOT / "aten/src/ATen/native"
OPINFO = ROOT / "torch/testing/_internal/opinfo"
FAMILY = re.compile(r"^# ==== family: (\w+)")
FUNC = re.compile(r"^- func:\s*(?P<name>[\w:]+)(?:\.(?P<overload>\w+))?\(")


@dataclasses.dataclass
class Entry:
    """One entry of native_functions.yaml with its own lines."""

    name: str
    line: int
    family: str
    lines: list[str]

    @property
    def base(self) -> str:
        return base_name(self.name)

    def functors(self) -> set[str]:
        return set(re.findall(r"\bfunctor:\s*(\w+)", self.text()))

    def kernels(self) -> set[str]:
        """Names of the native functions: what the dispatch tables map to, or the op's own name."""
        text = re.sub(r"#.*", "", self.text())
        names: set[str] = set()
        for table in re.findall(r"(?:structured|dispatch):\s*\{([^}]*)\}", text):
            pairs = re.findall(r"(\w+)\s*:\s*([\w:]+)", table)
            names.update(value for key, value in pairs if key != "meta")
        for block in re.findall(r"dispatch:\s*\n((?:    +\S.*\n?)+)", text):
            names.update(re.findall(r":\s*([\w:]+)\s*$", block, re.MULTILINE))
        if not names and "pointwise:" not in text and "structured:" not in text:
            names.add(self.name)
        return names

    def metas(self) -> set[str]:
        return set(re.findall(r"\bmeta:\s*(\w+)", self.text()))

    def text(self) -> str:
        return "\n".join(self.lines)


@dataclasses.dataclass(frozen=True)
class Place:
    what: str
    path: pathlib.Path
    line: int
    text: str


def base_name(name: str) -> str:
    """add_, aten::add and add.Tensor all belong to add; __and__ keeps its underscores."""
    name = name.removeprefix("aten::").partition(".")[0]
    return name if name.endswith("__") else name.rstrip("_") or name


@functools.cache
def lines_of(path: pathlib.Path) -> list[str]:
    return path.read_text(encoding="utf-8", errors="replace").splitlines()


def read_entries() -> list[Entry]:
    entries: list[Entry] = []
    family = "?"
    for number, line in enumerate(lines_of(YAML), 1):
        if match := FAMILY.match(line):
            family = match[1]
        elif match := FUNC.match(line):
            entries.append(Entry(match["name"], number, family, [line]))
        elif entries and line.startswith(" "):
            entries[-1].lines.append(line)
    return entries


def files(folder: pathlib.Path, *patterns: str) -> Iterator[pathlib.Path]:
    for pattern in patterns:
        yield from sorted(folder.rglob(pattern))


def search(
    what: str, pattern: str, paths: Iterable[pathlib.Path], most: int = 0
) -> Iterator[Place]:
    """Lines that match; with `most`, at most that many from each file."""
    compiled = re.compile(pattern)
    for path in paths:
        found = 0
        for number, line in enumerate(lines_of(path), 1):
            if compiled.search(line):
                yield Place(what, path, number, line.strip())
                found += 1
                if most and found == most:
                    break


def definition(name: str) -> str:
    """A C++ definition of `name`: at the start of a line, with a type before it, not a call."""
    plain = re.escape(name.rpartition("::")[2])
    return rf"^(?!\s|//|#)[\w:<>,&*\s\[\]]+?[\s&*]{plain}\((?!.*;\s*$)"


def source_places(entries: list[Entry]) -> Iterator[Place]:
    sources = list(files(NATIVE, "*.cpp", "*.h", "*.cu", "*.cuh"))
    headers = [path for path in sources if path.suffix in (".h", ".cuh")]
    names = {
        kind: sorted(set().union(*(getattr(e, kind)() for e in entries)))
        for kind in ("metas", "functors", "kernels")
    }
    for name in names["metas"]:
        yield from search("shape", rf"^\w.*\bmeta_{name}\(", sources)
    for name in names["functors"]:
        yield from search("functor", rf"^\s*struct {name}\b", headers)
    for name in names["kernels"]:
        yield from search("kernel", definition(name), sources)


def generated_places(build: pathlib.Path, base: str) -> Iterator[Place]:
    gen = build / "gen"
    header = gen / f"ATen/ops/{base}.h"
    if not header.exists():
        return
    declared = list(search("C++ (generated)", r"^struct TORCH_API \w+", [header]))
    yield from declared
    overloads = "|".join(place.text.split()[2] for place in declared)
    shards = files(gen, "Ops_*.cpp")
    yield from search("dispatch (generated)", rf"OperatorEntry ({overloads})::entry", shards)
    bindings = files(gen, "bind_*.cpp")
    yield from search("binding (generated)", rf"^PyObject\* py_{re.escape(base)}_?\(", bindings)


def derivative_places(base: str) -> Iterator[Place]:
    pattern = rf"^- name:\s*{re.escape(base)}_?(\.\w+)?\s*$"
    yield from search("derivative", pattern, [DERIVATIVES])


def user_places(base: str) -> Iterator[Place]:
    name = re.escape(base)
    yield from derivative_places(base)
    yield from search(
        "record", rf"""\(\s*["']{name}["']|name=["']{name}["']""", files(OPINFO, "*.py")
    )
    python = [path for path in files(ROOT / "torch", "*.py") if OPINFO not in path.parents]
    yield from search("Python", rf"^\s*def {name}_?\(", python)
    csrc = ROOT / "torch/csrc"
    yield from search("C++ by hand", rf"_ops::{name}(_\w+)?::call", files(csrc, "*.cpp", "*.h"), 1)
    tests = files(ROOT / "test", "*.py", "*.cpp")
    yield from search("test", rf"\btest_{name}_?\b|\btest_{name}_|torch\.{name}_?\(", tests, 1)
    yield from search("docs", rf"`(torch\.)?{name}`", files(ROOT / "docs", "*.md"), 1)
    yield from search("bench", rf"\btorch\.{name}_?\(", files(ROOT / "benchmarks", "*.py"), 1)


def places(entries: list[Entry], base: str, build: pathlib.Path) -> Iterator[Place]:
    for entry in entries:
        yield Place(f"schema ({entry.family})", YAML, entry.line, entry.lines[0][8:])
    yield from generated_places(build, base)
    yield from source_places(entries)
    yield from user_places(base)


def shown(path: pathlib.Path) -> str:
    try:
        return str(path.relative_to(pathlib.Path.cwd()))
    except ValueError:
        return str(path)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("name")
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build")
    args = parser.parse_args()
    base = base_name(args.name)
    everything = read_entries()
    entries = [entry for entry in everything if entry.base == base]
    if not entries:
        near = difflib.get_close_matches(base, {entry.base for entry in everything}, 3)
        hint = f"; did you mean {', '.join(near)}?" if near else ""
        print(f"opmap: no operator {args.name!r} in {shown(YAML)}{hint}")
        return 1
    last = ""
    for place in places(entries, base, args.build.resolve()):
        label = place.what if place.what != last else ""
        last = place.what
        print(f"{label:22} {shown(place.path)}:{place.line}: {place.text[:80]}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
