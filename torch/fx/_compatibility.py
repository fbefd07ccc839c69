"""The mark that says whether a name keeps its meaning between versions. `compatibility` notes it in
the docstring and in two sets that tools read."""

import textwrap
from collections.abc import Callable
from typing import Any, TypeVar

_T = TypeVar("_T", bound=Callable[..., Any])

_BACK_COMPAT_OBJECTS: dict[Any, None] = {}
_MARKED_WITH_COMPATIBILITY: dict[Any, None] = {}

_STABLE = "Backwards-compatibility for this API is guaranteed."
_OPEN = "This API is experimental and is *NOT* backward-compatible."


def compatibility(is_backward_compatible: bool) -> Callable[[_T], _T]:
    """A decorator that marks a function or class as stable or experimental."""

    def mark(fn: _T) -> _T:
        text = textwrap.dedent(fn.__doc__ or "")
        note = (
            f".. note::\n    {_STABLE}" if is_backward_compatible else f".. warning::\n    {_OPEN}"
        )
        fn.__doc__ = f"{text}\n\n{note}\n"
        _MARKED_WITH_COMPATIBILITY[fn] = None
        if is_backward_compatible:
            _BACK_COMPAT_OBJECTS[fn] = None
        return fn

    return mark
