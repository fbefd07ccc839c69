"""All examples, by topic: control flow, Python's values, sizes, state."""

from __future__ import annotations

from torch._export.db import case
from torch._export.db.case import ExportCase, SupportLevel
from torch._export.db.examples import control_flow as control_flow
from torch._export.db.examples import sizes as sizes
from torch._export.db.examples import state as state
from torch._export.db.examples import values as values

__all__ = ["all_examples", "filter_examples_by_support_level", "get_rewrite_cases"]


def all_examples() -> dict[str, ExportCase]:
    """{name: example}"""
    return dict(case._CASES)


def filter_examples_by_support_level(support_level: SupportLevel) -> dict[str, ExportCase]:
    """Those that can, or cannot, be exported."""
    return {name: c for name, c in all_examples().items() if c.support_level == support_level}


def get_rewrite_cases(case: ExportCase) -> list[ExportCase]:
    """Examples that do what one does that cannot be exported."""
    known = all_examples()
    return [known[name] for name in case.rewrites]
