"""unify and reify. A substitution is a dict {variable: value}; it is never changed, each step
returns a larger one, or False."""

from collections.abc import Iterator
from typing import Any

from torch.fx.experimental.unification.utils import assoc
from torch.fx.experimental.unification.variable import isvar


def walk(key: Any, d: dict) -> Any:
    """What a variable stands for, following variables that stand for others."""
    while isvar(key) and key in d:
        key = d[key]
    return key


def reify(e: Any, s: dict) -> Any:
    """A value with what the substitution says in place of variables."""
    if isvar(e):
        return reify(s[e], s) if e in s else e
    if isinstance(e, tuple):
        items = [reify(item, s) for item in e]
        return type(e)(*items) if hasattr(e, "_fields") else tuple(items)
    if isinstance(e, list):
        return [reify(item, s) for item in e]
    if isinstance(e, dict):
        return {key: reify(value, s) for key, value in e.items()}
    if isinstance(e, slice):
        return slice(reify(e.start, s), reify(e.stop, s), reify(e.step, s))
    if isinstance(e, Iterator):
        return (reify(item, s) for item in e)
    if hasattr(type(e), "_reify_"):
        return e._reify_(s)
    return e


def _unify_items(left: Any, right: Any, s: dict) -> dict | bool:
    for a, b in zip(left, right, strict=True):
        found = unify(a, b, s)
        if found is False:
            return False
        s = found
    return s


def unify(u: Any, v: Any, s: dict | None = None) -> dict | bool:
    """A substitution that makes two values equal, or False where there is none."""
    s = {} if s is None else s
    u, v = walk(u, s), walk(v, s)
    if isvar(u) and isvar(v) and u == v:
        return s
    if isvar(u):
        return assoc(s, u, v)
    if isvar(v):
        return assoc(s, v, u)
    if isinstance(u, slice) and isinstance(v, slice):
        return _unify_items((u.start, u.stop, u.step), (v.start, v.stop, v.step), s)
    if type(u) is type(v):
        if isinstance(u, tuple | list):
            return _unify_items(u, v, s) if len(u) == len(v) else False
        if isinstance(u, dict):
            if u.keys() != v.keys():
                return False
            return _unify_items(u.values(), [v[key] for key in u], s)
        if hasattr(type(u), "_unify_"):
            return u._unify_(v, s)
    return s if u == v else False
