"""Declares operators that are written in terms of others. They have no kernel of their own: a call
runs Python, and every device, transform and mode sees the operators it is made of."""

from collections.abc import Callable

import torch
from torch import Tensor

LIBRARY = torch.library.Library("aten", "FRAGMENT")

Composition = Callable[..., object]


def defined(name: str, overload: str = "") -> bool:
    return overload in torch._C._get_overload_names(f"aten::{name}")


def _split(schema: str) -> tuple[str, str, str, list[str]]:
    """Name, overload, the text of the arguments, and the declarations of the results."""
    head, _, returns = schema.rpartition(" -> ")
    name, _, arguments = head.partition("(")
    name, _, overload = name.partition(".")
    inside = returns.strip("()")
    return name, overload, arguments[:-1], inside.split(", ") if inside else []


def composed(*schemas: str, out: str | None = None) -> Callable[[Composition], Composition]:
    """Defines operators with one composition. `out` names an overload that writes the results of
    the first into the caller's tensors."""

    def register(function: Composition) -> Composition:
        for schema in schemas:
            define(schema, function)
        if out is not None:
            define_out(schemas[0], out, function)
        return function

    return register


def reading(schema: str, meta: Composition) -> Callable[[Composition], Composition]:
    """Defines an operator that reads the values of its arguments: traces keep it as one node, and
    tensors without data run `meta`."""

    def register(function: Composition) -> Composition:
        name, overload, _, _ = _split(schema)
        full = f"{name}.{overload}" if overload else name
        LIBRARY.define(schema)
        LIBRARY.impl(full, function, "CompositeExplicitAutograd")
        LIBRARY.impl(full, meta, "Meta")
        return function

    return register


def define(schema: str, function: Composition) -> None:
    name, overload, _, _ = _split(schema)
    if defined(name, overload):
        raise RuntimeError(f"aten::{schema} has an entry in native_functions.yaml already")
    LIBRARY.define(schema)
    full = f"{name}.{overload}" if overload else name
    LIBRARY.impl(full, function, "CompositeImplicitAutograd")


def define_out(schema: str, overload: str, function: Composition) -> None:
    """Defines the out overload of `schema`, whose results are new tensors or lists of them."""
    name, _, arguments, returns = _split(schema)
    outs = []
    for i, declared in enumerate(returns):
        kind, _, given = declared.partition(" ")
        unnamed = "output" if overload == "output" else "out"
        label = given or (unnamed if len(returns) == 1 else f"out{i}")
        outs.append((label, kind.replace("Tensor", f"Tensor({'abcdefgh'[i]}!)")))
    separator = ", " if "*, " in arguments else ", *, " if arguments else "*, "
    text = ", ".join(f"{kind} {label}" for label, kind in outs)
    lists = any("[]" in kind for _, kind in outs)
    results = [] if lists else [kind for _, kind in outs]
    shown = results[0] if len(results) == 1 else f"({', '.join(results)})"
    labels = [label for label, _ in outs]

    def write(*args: object, **kwargs: object) -> object:
        targets = [kwargs.pop(label) for label in labels]
        computed = function(*args, **kwargs)
        for target, value in zip(
            targets, computed if len(targets) > 1 else [computed], strict=True
        ):
            single = isinstance(target, Tensor)
            for one, source in [(target, value)] if single else zip(target, value, strict=True):
                torch.ops.aten.clone.out(source, out=one)
        if lists:
            return None
        return targets[0] if len(targets) == 1 else tuple(targets)

    define(f"{name}.{overload}({arguments}{separator}{text}) -> {shown}", write)


def on_copies(inplace: Composition, *mutated: int) -> Composition:
    """The functional form of an in-place operator: it works on copies of the arguments at the
    positions `mutated`, and returns those."""

    def functional(*args: object, **kwargs: object) -> object:
        copies = list(args)
        for i in mutated:
            given = copies[i]
            copies[i] = given.clone() if isinstance(given, Tensor) else [t.clone() for t in given]
        inplace(*copies, **kwargs)
        results = tuple(copies[i] for i in mutated)
        return results[0] if len(results) == 1 else results

    return functional
