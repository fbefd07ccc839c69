"""Names of modules that come from packages: each importer has a prefix of its own, so that modules
of the same name from two packages, or from the program, never meet."""

from __future__ import annotations

import itertools
import re

_PREFIX = re.compile(r"<torch_package_\d+>")
_numbers = itertools.count()


class PackageMangler:
    """Puts the prefix of one importer in front of names."""

    def __init__(self) -> None:
        self._parent = f"<torch_package_{next(_numbers)}>"

    def mangle(self, name: str) -> str:
        assert name, "an empty name has no mangled form"
        return f"{self._parent}.{name}"

    def demangle(self, mangled: str) -> str:
        """The name behind this mangler's prefix; other names stay."""
        front = self._parent + "."
        return mangled[len(front) :] if mangled.startswith(front) else mangled

    def parent_name(self) -> str:
        return self._parent


def is_mangled(name: str) -> bool:
    return _PREFIX.match(name) is not None


def demangle(name: str) -> str:
    """The name without the prefix of any importer."""
    return name.partition(".")[2] if is_mangled(name) else name


def get_mangle_prefix(name: str) -> str:
    return name.partition(".")[0] if is_mangled(name) else name
