#!/usr/bin/env python3
"""Fills in the tables of docs/migration.md: what is the same as in PyTorch, what is better and what
is missing.

The page itself is written by hand and its programs are run by a test. What can be counted is asked
of the built package, of the operator tables and of the README's measurements, so that no number
stands in two places or goes stale. Each table replaces a line `<!-- table: NAME -->`.
Usage: tools/migration.py PAGE, which is rewritten in place."""

import argparse
import contextlib
import importlib
import io
import pathlib
import pkgutil
import re
import subprocess
import sys
import types
import warnings

import limits

import torch
from torch import _later
from torch.testing._internal import opinfo
from torchgen import derivatives, emit_limits, model

ROOT = pathlib.Path(__file__).resolve().parent.parent
_MARKER = re.compile(r"^<!-- table: (\w+) -->$", re.M)
# Packages that are no part of the interface a program migrates from.
_OWN = ("testing._internal",)
# Packages for what this implementation does not drive: their is_available() is False.
ABSENT = ("torch.mps", "torch.mtia", "torch.xpu")
_PLACEHOLDER = _later.function("x").__doc__


def table(head, rows) -> str:
    """A table in Markdown."""
    lines = [head, ["---"] * len(head), *rows]
    return "".join(f"| {' | '.join(map(str, line))} |\n" for line in lines)


def public_modules():
    """The importable modules whose path has no part that is private."""
    found = {"torch": torch}
    for info in pkgutil.walk_packages(torch.__path__, "torch.", onerror=lambda name: None):
        short = info.name.removeprefix("torch.")
        if any(part.startswith("_") for part in info.name.split(".")) or short.startswith(_OWN):
            continue
        # A module whose package from elsewhere is not installed is left out; some print at import.
        with contextlib.suppress(ImportError), contextlib.redirect_stdout(io.StringIO()):
            found[info.name] = importlib.import_module(info.name)
    return found


def public_names(module):
    """The names a module offers: its own list where it has one, else what it holds that does not
    come from a package that is not ours; without private names and modules."""
    listed = getattr(module, "__all__", None)
    if listed is None:
        members = vars(module).items()
        origin = ((name, str(getattr(value, "__module__", "torch"))) for name, value in members)
        listed = [name for name, source in origin if source.split(".")[0] == "torch"]
    return {
        name
        for name in listed
        if not name.startswith("_") and not isinstance(getattr(module, name), types.ModuleType)
    }


def package_of(module) -> str:
    """torch, or the package of the first level that a module belongs to."""
    return ".".join(module.split(".")[:2])


def names_by_package():
    """{package: (names to use, names that only raise)}, each as paths."""
    found = {}
    for path, module in public_modules().items():
        works, raises = found.setdefault(package_of(path), (set(), set()))
        for name in public_names(module):
            refused = getattr(getattr(module, name), "__doc__", None) == _PLACEHOLDER
            (raises if refused else works).add(f"{path}.{name}")
    for path, names in limits.placeholders().items():
        if not any(part.startswith("_") for part in path.split(".")):
            raises = found.setdefault(package_of(path), (set(), set()))[1]
            raises.update(f"{path}.{name}" for name in names)
    return found


def is_offered(package, works, raises):
    """Whether a package is there for use, and not for its names."""
    return package not in ABSENT and len(works) > len(raises)


def load_tables():
    """The operators and their derivatives, as the code generator reads them."""
    operators = model.load(str(ROOT / "aten/src/ATen/native/native_functions.yaml"))
    return operators, derivatives.load(str(ROOT / "tools/autograd/derivatives.yaml"), operators)


def same(packages, operators):
    """Everything that can be called as before."""
    methods = [name for name in dir(torch.Tensor) if not name.startswith("_")]
    rows = [
        (f"`{name}`", len(works), len(raises) or "-")
        for name, (works, raises) in sorted(packages.items())
        if is_offered(name, works, raises)
    ]
    return (
        f"{len(operators.ops):,} operator overloads with PyTorch's schemas, {len(methods)} methods "
        "and attributes of `torch.Tensor`, and these public names:\n\n"
        + table(("package", "names", "besides, names that only raise"), rows)
    )


def import_cost():
    """What tools/measure_import.py says. Started as a process of its own, because the peak memory
    of a new process begins with that of the one that started it."""
    command = [sys.executable, str(ROOT / "tools" / "measure_import.py")]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.split("\n")[0]


def better():
    """The README's measurements, and what can be measured while the page is made."""
    text = (ROOT / "README.md").read_text()
    measured = re.search(r"^## How it compares\n(.*?)(?=^## )", text, re.S | re.M)
    records = [record for record in opinfo.records() if "threads" not in record.skips]
    return (
        f"{len(records):,} operator records are tested for the same bits on 1, 2 and 4 threads. "
        f"On the machine that made this page: {import_cost()}.\n" + measured[1].rstrip() + "\n"
    )


def missing(packages, operators, formulas):
    """Everything that raises NotImplementedError, in numbers, with the pages that name it."""
    rows = [
        (f"`{name}`", len(raises) or "-", len(works) or "-")
        for name, (works, raises) in sorted(packages.items())
        if (works or raises) and not is_offered(name, works, raises)
    ]
    public = [op for op in operators.ops if op.functional is None and op.alias_of is None]
    lacking = {op.base for op in public if emit_limits.lacks_cuda(op)}
    refused = {name for name, d in formulas.by_op.items() if emit_limits.refused_inputs(d)}
    refused |= {op.schema.full_name for op in formulas.missing}
    gaps = emit_limits.second_order_gaps(operators, formulas)
    kinds = [("run on the CPU and not on CUDA", len(lacking))]
    for words, names in (("for some input", refused), ("of the second order", gaps)):
        bases = {name.split(".")[0].removesuffix("_") for name in names}
        kinds.append((f"have no derivative {words}", len(bases)))
    return (
        "Packages that programs can import and ask about, but that do not do their work "
        "([every name that only raises](ops/limits_names.md)):\n\n"
        + table(("package", "names that only raise", "other names"), rows)
        + "\nOperators ([each by name](ops/limits.md), [by dtype](ops/limits_dtypes.md)):\n\n"
        + table(("operators that", "number"), kinds)
    )


def fill(text, tables):
    """The page with every marker replaced; it has to have one for each table."""
    found = _MARKER.findall(text)
    if sorted(found) != sorted(tables):
        raise SystemExit(f"migration.py: the page has markers {found}, there are {list(tables)}")
    return _MARKER.sub(lambda match: tables[match[1]].rstrip(), text)


def main(arguments=None) -> int:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("page", type=pathlib.Path)
    options = parser.parse_args(arguments)
    warnings.simplefilter("ignore")
    packages = names_by_package()
    operators, formulas = load_tables()
    tables = {
        "same": same(packages, operators),
        "better": better(),
        "missing": missing(packages, operators, formulas),
    }
    options.page.write_text(fill(options.page.read_text(), tables))
    return 0


if __name__ == "__main__":
    sys.exit(main())
