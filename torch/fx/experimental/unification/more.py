"""Unification of objects by their attributes."""

from typing import Any

from torch.fx.experimental.unification.core import reify, unify


def unifiable(cls: type) -> type:
    """A class decorator: objects unify and are reified by their __dict__."""
    cls._unify_ = unify_object
    cls._reify_ = reify_object
    return cls


def reify_object(o: Any, s: dict) -> Any:
    """An object with variables among its attributes replaced; the object itself where none is."""
    new = reify(vars(o), s)
    if new == vars(o):
        return o
    made = object.__new__(type(o))
    made.__dict__.update(new)
    return made


def unify_object(u: Any, v: Any, s: dict) -> dict | bool:
    """Unifies two objects of one class by their attributes."""
    return unify(vars(u), vars(v), s) if type(u) is type(v) else False
