"""Decisions that users may take over by V.set_choices_handler."""

from __future__ import annotations

__all__ = ["InductorChoices"]


class InductorChoices:
    """The usual decisions. What is scheduled in C++ does not ask."""
