"""Packages that are used where they are installed and done without where they are not."""

from __future__ import annotations

import functools
import importlib
import importlib.util
from types import ModuleType

__all__ = ["dill_available", "import_dill"]


def _check_module_exists(name: str) -> bool:
    """Whether a package can be imported; it is not."""
    try:
        return importlib.util.find_spec(name) is not None
    except ImportError:
        return False


@functools.cache
def dill_available() -> bool:
    """Whether dill, which pickles lambdas and local functions, is installed."""
    return _check_module_exists("dill")


@functools.cache
def import_dill() -> ModuleType | None:
    """dill, or None. Plain pickle goes on as it was for the rest of the program."""
    if not dill_available():
        return None
    dill = importlib.import_module("dill")
    dill.extend(use_dill=False)
    return dill
