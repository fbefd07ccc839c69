"""Where shape functions stand: in their family's folder, in <Family>Meta.cpp or in the file of the
CPU kernel they serve. aten/src/ATen/native/README.md says so to those who add an operator, and
those who look for one need not search."""

from __future__ import annotations

import re
from collections.abc import Iterator

import yaml
from common import Finding, project_files, read

NATIVE = "aten/src/ATen/native/"
ENTRIES = NATIVE + "native_functions.yaml"
FAMILY = re.compile(r"^# ==== family: (\w+) ====$", re.MULTILINE)
SHAPE = re.compile(r"^void (?:at::meta::)?(meta_\w+)\(", re.MULTILINE)
KERNEL = re.compile(r"^void (?:at::native::)?(\w+)\(", re.MULTILINE)


def structured_entries(text: str) -> Iterator[tuple[str, str, list[str]]]:
    """(family, shape function, CPU kernels) of every structured entry."""
    parts = FAMILY.split(text)
    for family, section in zip(parts[1::2], parts[2::2], strict=True):
        for entry in yaml.safe_load(section) or []:
            kernels = dict(entry.get("structured", {}))
            if shape := kernels.pop("meta", None):
                cpu = [fn for keys, fn in kernels.items() if "CPU" in keys.split(", ")]
                yield family, f"meta_{shape}", cpu


def definitions(pattern: re.Pattern[str], sources: dict[str, str]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for path, text in sources.items():
        for name in pattern.findall(text):
            found.setdefault(name, []).append(path)
    return found


def misplaced(entries: str, sources: dict[str, str]) -> Iterator[Finding]:
    """Findings about the entries of a yaml text, given the sources below native/ by path."""
    shapes, kernels = definitions(SHAPE, sources), definitions(KERNEL, sources)
    served: dict[str, set[str]] = {}
    for family, shape, cpu in structured_entries(entries):
        places = {f"{NATIVE}{family}/{family.capitalize()}Meta.cpp"}
        for kernel in cpu:
            places.update(p for p in kernels.get(kernel, ()) if p.startswith(NATIVE + family + "/"))
        served.setdefault(shape, set()).update(places)
    for shape, places in served.items():
        for path in shapes.get(shape, ()):
            if path not in places:
                line = sources[path][: sources[path].index(f"{shape}(")].count("\n") + 1
                wanted = " or ".join(sorted(p.removeprefix(NATIVE) for p in places))
                yield Finding(path, line, f"the shape function {shape} belongs to {wanted}")


def check() -> Iterator[Finding]:
    paths = [p for p in project_files() if p.startswith(NATIVE) and p.endswith(".cpp")]
    yield from misplaced(read(ENTRIES), {path: read(path) for path in paths})
