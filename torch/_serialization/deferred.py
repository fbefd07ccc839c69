"""Checks that need the content of storages. In the legacy format that comes after the object, so
what is built of it (sparse tensors, whose indices must lie inside of them) is checked when the
storages have been filled; in the other format at once."""

import contextlib
import threading

__all__ = ["deferring", "is_deferring", "when_filled"]

_state = threading.local()


@contextlib.contextmanager
def deferring():
    """Collects checks instead of running them; yields the function that runs them."""
    before, checks = getattr(_state, "checks", None), []
    _state.checks = checks
    try:
        yield lambda: [check() for check in checks]
    finally:
        _state.checks = before


def is_deferring() -> bool:
    """Whether storages have no content yet."""
    return getattr(_state, "checks", None) is not None


def when_filled(check) -> None:
    """Runs a check as soon as the storages have their content."""
    checks = getattr(_state, "checks", None)
    if checks is None:
        check()
    else:
        checks.append(check)
