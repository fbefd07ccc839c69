#!/usr/bin/env python3
"""Writes the pages of limits that need the built package: `limits_dtypes.md`, which dtypes each
operator refuses on the CPU, and `limits_names.md`, which public names raise whenever they are used
and which calls nested tensors take.

The dtypes a kernel takes are decided in the kernel, so the calls of the op records are the only
source that cannot be wrong. One sample per operator and dtype is enough: refusals come before any
work. Usage: tools/limits.py FOLDER"""

from __future__ import annotations

import argparse
import importlib
import pathlib
import sys
import warnings

import torch
from torch import _later
from torch.testing._internal import opinfo

DTYPES = {
    "float16": torch.float16,
    "bfloat16": torch.bfloat16,
    "float32": torch.float32,
    "float64": torch.float64,
    "complex32": torch.complex32,
    "complex64": torch.complex64,
    "complex128": torch.complex128,
    "bool": torch.bool,
    "uint8": torch.uint8,
    "int8": torch.int8,
    "int16": torch.int16,
    "int32": torch.int32,
    "int64": torch.int64,
    "uint16": torch.uint16,
    "uint32": torch.uint32,
    "uint64": torch.uint64,
}
GROUPS = {
    "floating": ("float16", "bfloat16", "float32", "float64"),
    "complex": ("complex64", "complex128"),
    "integers": ("uint8", "int8", "int16", "int32", "int64"),
    "wide unsigned": ("uint16", "uint32", "uint64"),
}
_INTRO = """# Dtypes by operator

Measured by `tools/limits.py` with the op records, on the CPU. *Refused*: `NotImplementedError`
naming operator and dtype. *Not meant*: the operator is not defined for the dtype and says so with
another error. *floating*: float16, bfloat16, float32, float64. *complex*: complex64 and complex128.
*integers*: uint8 and the signed ones. *wide unsigned*: uint16, uint32, uint64.

| operator | accepted | refused | not meant |
| --- | --- | --- | --- |
"""


def outcome(record, dtype) -> str:
    """ "accepted", "refused" or "not meant" for the first sample of a record that has the dtype."""
    if dtype in record.dtypes:
        return "accepted"
    try:
        samples = record.sample_inputs("cpu", dtype)
        # Some records make their tensors in a dtype of their own: that says nothing about this one.
        asked = [s for s in samples if any(t.dtype == dtype for t in s.tensors())]
        if not asked:
            return "not meant"
        record.apply(asked[0])
    except NotImplementedError:
        return "refused"
    except Exception as error:
        return "refused" if "not implemented for" in str(error) else "not meant"
    return "accepted"


def measure(records):
    """{full name: {outcome: [names of dtypes]}}; records of one operator are joined."""
    found = {}
    for record in records:
        row = found.setdefault(record.name, {"accepted": [], "refused": [], "not meant": []})
        for name, dtype in DTYPES.items():
            kind = outcome(record, dtype)
            if all(name not in names for names in row.values()):
                row[kind].append(name)
            elif kind == "accepted" and name not in row["accepted"]:
                for names in row.values():
                    if name in names:
                        names.remove(name)
                row["accepted"].append(name)
    return found


def shortened(names) -> str:
    """The dtypes in words, whole groups by their name."""
    if len(names) == len(DTYPES):
        return "all"
    left, words = list(names), []
    for group, members in GROUPS.items():
        if all(m in left for m in members):
            words.append(group)
            left = [n for n in left if n not in members]
    return ", ".join(words + [n for n in DTYPES if n in left]) or "-"


def page(found):
    """The page, one line for every operator."""
    lines = []
    for name, row in sorted(found.items()):
        cells = [f"`{name}`"]
        cells += [shortened(row[kind]) for kind in ("accepted", "refused", "not meant")]
        lines.append("| " + " | ".join(cells) + " |\n")
    return _INTRO + "".join(lines)


def placeholders():
    """{module: names} of what can be named but not used."""
    packages = sorted(p.name for p in pathlib.Path(torch.__file__).parent.iterdir() if p.is_dir())
    for package in packages:
        if package.isidentifier():
            importlib.import_module(f"torch.{package}")
    importlib.import_module("torch._extension_names")  # those of torch._C, made at their first use
    found = {}
    for module in [*sys.modules, *_later._Finder.tables]:
        if module.split(".")[0] != "torch":
            continue
        for name, value in vars(importlib.import_module(module)).items():
            if getattr(value, "__doc__", None) == _later.function("x").__doc__:
                found.setdefault(value.__module__, set()).add(name)
    return found


def names_page(found) -> str:
    """The page of placeholders and of the calls that nested tensors take."""
    calls = sorted(n for n in torch.nested._registry._jagged if n != "pointwise")
    lines = [
        f"| `{module}` | {', '.join(f'`{n}`' for n in sorted(names))} |\n"
        for module, names in sorted(found.items())
    ]
    return (
        "# Names that only raise\n\nPrograms can import these and ask about them; using one raises "
        "`NotImplementedError`.\n\n| module | names |\n| --- | --- |\n"
        + "".join(lines)
        + "\n## Nested tensors\n\nNested tensors of the jagged layout take element-wise calls, the "
        "questions about a tensor's type and size, and the following; others raise "
        "`NotImplementedError`.\n\n" + ", ".join(f"`{n}`" for n in calls) + "\n"
    )


def main() -> int:
    """Writes the pages."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=pathlib.Path)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    (options.folder / "limits_dtypes.md").write_text(page(measure(opinfo.records())))
    (options.folder / "limits_names.md").write_text(names_page(placeholders()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
