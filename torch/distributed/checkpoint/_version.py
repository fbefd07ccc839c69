"""Which rules for the names of values the checkpoint that is being loaded was written by."""

from __future__ import annotations

__all__: list[str] = []

# "2_3" while a checkpoint is loaded that was written before 2.4, else None.
_derived_version: str | None = None
