"""Small functions on dicts that return new ones."""

from collections.abc import Callable
from typing import Any


def assoc(d: dict, key: Any, value: Any) -> dict:
    """The dict with one more entry."""
    return {**d, key: value}


def hashable(x: Any) -> bool:
    """Whether a value has a hash."""
    try:
        hash(x)
    except TypeError:
        return False
    return True


def transitive_get(key: Any, d: dict) -> Any:
    """Follows a chain of entries to its end."""
    while hashable(key) and key in d:
        key = d[key]
    return key


def raises(err: type[BaseException], lamda: Callable[[], Any]) -> bool:
    """Whether a call raises that error."""
    try:
        lamda()
    except err:
        return True
    return False


def freeze(d: Any) -> Any:
    """Containers as hashable ones."""
    if isinstance(d, dict):
        return frozenset((key, freeze(value)) for key, value in d.items())
    if isinstance(d, set):
        return frozenset(map(freeze, d))
    if isinstance(d, list | tuple):
        return tuple(map(freeze, d))
    return d
