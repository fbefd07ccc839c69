"""Functions chosen by patterns: a Dispatcher holds functions under signatures with logic
variables and calls the first one whose signature unifies with the arguments, most specific
first."""

from collections.abc import Callable
from typing import Any

from torch.fx.experimental.unification.core import reify, unify
from torch.fx.experimental.unification.utils import freeze
from torch.fx.experimental.unification.variable import isvar

__all__ = [
    "Dispatcher",
    "MatchDispatcher",
    "VarDispatcher",
    "edge",
    "match",
    "ordering",
    "supercedes",
]


class Dispatcher:
    """Functions of one name by signature."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.funcs: dict[tuple, Callable] = {}
        self.ordering: list[tuple] = []

    def add(self, signature: tuple, func: Callable) -> None:
        """Enters a function."""
        self.funcs[freeze(signature)] = func
        self.ordering = ordering(self.funcs)

    def resolve(self, args: tuple) -> tuple[Callable, dict]:
        """The function for the arguments, and what its variables stand for."""
        for signature in self.ordering:
            if len(signature) != len(args):
                continue
            found = unify(freeze(args), signature)
            if found is not False:
                return self.funcs[signature], found
        raise NotImplementedError(
            f"No match found. \nKnown matches: {self.ordering}\nInput: {args}"
        )

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        function, _ = self.resolve(args)
        return function(*args, **kwargs)

    def register(self, *signature: Any) -> Callable:
        """A decorator that enters a function."""

        def enter(func: Callable) -> "Dispatcher":
            self.add(signature, func)
            return self

        return enter


class VarDispatcher(Dispatcher):
    """A dispatcher that calls functions with what their variables stand for."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        function, found = self.resolve(args)
        return function(**{key.token: value for key, value in found.items()})


MatchDispatcher = Dispatcher
_namespace: dict[str, Dispatcher] = {}


def match(
    *signature: Any, namespace: dict | None = None, Dispatcher: type = Dispatcher
) -> Callable[[Callable], Any]:
    """A decorator: the function is one of those of its name, for this signature."""
    known = _namespace if namespace is None else namespace

    def enter(func: Callable) -> Any:
        table = known.setdefault(func.__name__, Dispatcher(func.__name__))
        return table.register(*signature)(func)

    return enter


def supercedes(a: Any, b: Any) -> bool:
    """Whether the first signature is at least as specific as the second."""
    if isvar(b) and not isvar(a):
        return True
    found = unify(a, b)
    if found is False:
        return False
    return not any(isvar(key) and not isvar(reify(key, found)) for key in _variables(a)) or a == b


def _variables(value: Any) -> list:
    if isvar(value):
        return [value]
    return [v for item in value for v in _variables(item)] if isinstance(value, tuple) else []


def edge(a: Any, b: Any, tie_breaker: Callable[[Any], Any] = hash) -> bool:
    """Whether the first signature is asked before the second."""
    if not supercedes(a, b):
        return False
    return not supercedes(b, a) or tie_breaker(a) > tie_breaker(b)


def ordering(signatures: Any) -> list[tuple]:
    """Signatures with the more specific ones first."""
    rest = [tuple(s) if isinstance(s, list) else s for s in signatures]
    order: list[tuple] = []
    while rest:
        head = next((s for s in rest if not any(edge(o, s) for o in rest if o is not s)), rest[0])
        rest.remove(head)
        order.append(head)
    return order
