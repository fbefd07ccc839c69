"""A mark for functions that reply later."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

__all__ = ["async_execution"]

MARK = "_replies_by_future"


def async_execution(fn: Callable) -> Callable:
    """Marks a function that returns a Future: the caller gets its value when it is there, and no
    thread waits for it."""

    @functools.wraps(fn)
    def marked(*args: Any, **kwargs: Any) -> Any:
        return fn(*args, **kwargs)

    setattr(marked, MARK, True)
    return marked
