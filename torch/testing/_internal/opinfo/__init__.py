"""The op records, one module per operator family; `records()` gives all of them.

docs/testing.md tells how a record is added.
"""

from __future__ import annotations

import functools
import importlib
import pkgutil

from .core import ErrorInput, Maker, OpInfo, SampleInput
from .wrong_calls import WRONG_CALLS

__all__ = ["ErrorInput", "Maker", "OpInfo", "SampleInput", "families", "records"]

# Families whose operators take every integer dtype, the wide unsigned ones included.
_UNSIGNED = ("pointwise", "reduce", "index", "shape", "sort", "cumulative")
_HELPERS = ("core", "factor_refs", "refs", "uncovered", "wrong_calls")


@functools.cache
def families() -> dict[str, list[OpInfo]]:
    """Family name -> its records: the list RECORDS of each module of this package."""
    found = {}
    for module in pkgutil.iter_modules(__path__):
        if module.name in _HELPERS or module.name.startswith("_"):
            continue
        family = module.name.removesuffix("_more")
        records = importlib.import_module(f"{__name__}.{module.name}").RECORDS
        for record in records:
            record.family = family
            record.wrong_calls = WRONG_CALLS.get(record.full_name)
            if family in _UNSIGNED:
                record.add_unsigned()
        found.setdefault(family, []).extend(records)
    return found


@functools.cache
def records() -> tuple[OpInfo, ...]:
    """Every record, sorted by name."""
    return tuple(sorted((r for f in families().values() for r in f), key=lambda r: r.full_name))
