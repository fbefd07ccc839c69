"""Whether an object comes from a package."""

from __future__ import annotations

from types import ModuleType

from torch.package._mangling import is_mangled


def is_from_package(obj: object) -> bool:
    """True for a module of a package, and for an object whose class is defined in one."""
    name = obj.__name__ if isinstance(obj, ModuleType) else type(obj).__module__
    return is_mangled(name)
