"""Run every check of the project: clang-format, ruff, layers, budgets, hygiene, shapes.

Usage: run.py [--fix] [--only NAME,...]. --fix lets clang-format and ruff rewrite the files.
Prints one line per finding, file:line first, and a closing count; exits 1 when there is an error.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import os
import pathlib
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator

sys.path.insert(0, str(pathlib.Path(__file__).parent))

import budgets
import hygiene
import layers
import shapes
from common import ROOT, Finding, cpp_files, python_files

BATCH = 24
CLANG_LINE = re.compile(r"^(?P<path>[^:\n]+):(?P<line>\d+):\d+: error: (?P<text>.*)$", re.MULTILINE)


def tool(name: str) -> str:
    """The pinned tool of this environment, never another one that happens to be on the path."""
    beside = pathlib.Path(sys.executable).parent / name
    found = str(beside) if beside.exists() else shutil.which(name)
    if found is None:
        raise SystemExit(f"lint: {name} is missing; run `make lint`, which installs it")
    return found


def run_clang_format(files: list[str], fix: bool) -> list[Finding]:
    mode = ["-i"] if fix else ["--dry-run", "-Werror", "--ferror-limit=1"]
    command = [tool("clang-format"), "--style=file", *mode, *files]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    findings = [
        Finding(match["path"], int(match["line"]), "not in the project's format (make format)")
        for match in CLANG_LINE.finditer(result.stderr)
    ]
    if result.returncode and not findings:
        findings.append(Finding(files[0], 1, f"clang-format failed: {result.stderr.strip()}"))
    return findings


def check_clang_format(fix: bool) -> Iterator[Finding]:
    files = cpp_files()
    batches = [files[i : i + BATCH] for i in range(0, len(files), BATCH)]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for findings in pool.map(lambda batch: run_clang_format(batch, fix), batches):
            yield from findings


def check_ruff(fix: bool) -> Iterator[Finding]:
    files = python_files()
    if not files:
        return
    ruff = tool("ruff")
    if fix:
        subprocess.run([ruff, "format", "--quiet", *files], cwd=ROOT)
    lint = [
        ruff,
        "check",
        "--quiet",
        "--output-format=concise",
        *(["--fix"] if fix else []),
        *files,
    ]
    result = subprocess.run(lint, cwd=ROOT, capture_output=True, text=True)
    for line in result.stdout.splitlines():
        if match := re.match(r"(.+?):(\d+):\d+: (.*)", line):
            yield Finding(os.path.relpath(ROOT / match[1], ROOT), int(match[2]), match[3])
    if result.returncode > 1:
        yield Finding("pyproject.toml", 1, f"ruff failed: {result.stderr.strip()}")
    style = subprocess.run(
        [ruff, "format", "--check", *files], cwd=ROOT, capture_output=True, text=True
    )
    for path in re.findall(r"^Would reformat: (.*)$", style.stdout, re.MULTILINE):
        yield Finding(path, 1, "not in ruff's format (make format)")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--fix", action="store_true", help="rewrite files into the format")
    parser.add_argument("--only", help="comma-separated checks")
    args = parser.parse_args()
    checks: dict[str, Callable[[], Iterable[Finding]]] = {
        "clang-format": lambda: check_clang_format(args.fix),
        "ruff": lambda: check_ruff(args.fix),
        "layers": layers.check,
        "budgets": budgets.check,
        "hygiene": hygiene.check,
        "shapes": shapes.check,
    }
    chosen = args.only.split(",") if args.only else list(checks)
    unknown = set(chosen) - set(checks)
    if unknown:
        parser.error(f"no such check: {', '.join(sorted(unknown))}; there are {', '.join(checks)}")

    errors = warnings = 0
    start = time.monotonic()
    for name in chosen:
        for finding in checks[name]():
            print(f"{finding} [{name}]")
            warnings += finding.warning
            errors += not finding.warning
    taken = time.monotonic() - start
    print(f"lint: {errors} errors, {warnings} warnings in {taken:.1f} s ({', '.join(chosen)})")
    return 1 if errors else 0


if __name__ == "__main__":
    raise SystemExit(main())
