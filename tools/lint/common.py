"""What every check shares: the list of the project's files and the form of a finding."""

from __future__ import annotations

import dataclasses
import functools
import pathlib
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]
CPP_SUFFIXES = {".cpp", ".h", ".hpp", ".cu", ".cuh"}


@dataclasses.dataclass(frozen=True)
class Finding:
    """One thing a check has to say. Warnings are printed and counted, errors fail the run."""

    path: str
    line: int
    message: str
    warning: bool = False

    def __str__(self) -> str:
        kind = "warning: " if self.warning else ""
        return f"{self.path}:{self.line}: {kind}{self.message}"


@functools.cache
def project_files() -> list[str]:
    """Paths relative to the root: tracked files and new ones that are not ignored."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"]
    listing = subprocess.run(command, cwd=ROOT, capture_output=True, check=True).stdout.decode()
    return sorted(path for path in set(listing.split("\0")) if path and (ROOT / path).is_file())


def cpp_files() -> list[str]:
    return [path for path in project_files() if pathlib.Path(path).suffix in CPP_SUFFIXES]


def python_files() -> list[str]:
    return [path for path in project_files() if path.endswith(".py")]


@functools.cache
def read(path: str) -> str:
    return (ROOT / path).read_text(encoding="utf-8", errors="replace")
