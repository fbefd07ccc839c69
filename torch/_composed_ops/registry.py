"""Declares operators that are written in terms of others. They have no kernel of their own: a call
runs Python, and every device, transform and mode sees the operators it is made of.

An operator of an engine that does not exist here is declared without a composition: a program can
name it and read its schema, and a call raises NotImplementedError with the operator, the dtypes and
the devices."""

import functools
from collections.abc import Callable

import torch
from torch import Tensor

LIBRARY = torch.library.Library("aten", "FRAGMENT")

Composition = Callable[..., object]

# By the full name of the overload. Nested tensors, which take calls over before the dispatcher
# sees them, find the compositions that are meant for them here.
COMPOSITIONS: dict[str, Composition] = {}


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


def on_device(
    device: str, *schemas: str, out: str | None = None
) -> Callable[[Composition], Composition]:
    """As composed, for operators whose first tensor must lie on a device of this type."""

    def register(function: Composition) -> Composition:
        name = _split(schemas[0])[0]

        @functools.wraps(function)
        def checked(*args: object, **kwargs: object) -> object:
            tensors = (a for a in (*args, *kwargs.values()) if isinstance(a, Tensor))
            given = next(tensors, None)
            if given is not None and given.device.type not in (device, "meta"):
                raise NotImplementedError(
                    f"Could not run 'aten::{name}' with arguments from the "
                    f"'{given.device.type.upper()}' backend: it takes tensors on {device}, got "
                    f"{given.dtype} on {given.device}"
                )
            return function(*args, **kwargs)

        composed(*schemas, out=out)(checked)
        return function

    return register


def reading(schema: str, meta: Composition) -> Callable[[Composition], Composition]:
    """Defines an operator that reads the values of its arguments: traces keep it as one node, and
    tensors without data run `meta`."""

    def register(function: Composition) -> Composition:
        full = _enter(schema)
        LIBRARY.impl(full, function, "CompositeExplicitAutograd")
        LIBRARY.impl(full, meta, "Meta")
        return function

    return register


def declare(*schemas: str, out: str | None = None) -> None:
    """Declares operators that nothing here computes; `out` as in composed."""
    for schema in schemas:
        _enter(schema)
    if out is not None:
        _enter(_out_schema(schemas[0], out)[0])


def _enter(schema: str) -> str:
    """Adds an operator to the table; returns its name with the overload."""
    name, overload, _, _ = _split(schema)
    if defined(name, overload):
        raise RuntimeError(f"aten::{schema} has an entry in native_functions.yaml already")
    LIBRARY.define(schema)
    return f"{name}.{overload}" if overload else name


def define(schema: str, function: Composition) -> None:
    full = _enter(schema)
    LIBRARY.impl(full, function, "CompositeImplicitAutograd")
    COMPOSITIONS[full] = function


def _written(kind: str, letter: str) -> str:
    return kind.replace("Tensor", f"Tensor({letter}!)")


def _out_schema(schema: str, overload: str) -> tuple[str, list[str], bool]:
    """The schema of an out overload, its tensors to write, and whether any is a list."""
    name, _, arguments, returns = _split(schema)
    outs = []
    free = [c for c in "abcdefghijkl" if f"({c}!)" not in arguments]
    for i, declared in enumerate(returns):
        kind, _, given = declared.partition(" ")
        unnamed = "output" if overload == "output" else "out"
        label = unnamed if len(returns) == 1 else f"out{i}"
        outs.append((label if overload == "out" else given or label, _written(kind, free[i])))
    separator = ", " if "*, " in arguments else ", *, " if arguments else "*, "
    text = ", ".join(f"{kind} {label}" for label, kind in outs)
    lists = any("[]" in kind for _, kind in outs)
    results = [] if lists else [kind for _, kind in outs]
    shown = results[0] if len(results) == 1 else f"({', '.join(results)})"
    labels = [label for label, _ in outs]
    return f"{name}.{overload}({arguments}{separator}{text}) -> {shown}", labels, lists


def define_out(schema: str, overload: str, function: Composition) -> None:
    """Defines the out overload of `schema`, whose results are new tensors or lists of them."""
    declared, labels, lists = _out_schema(schema, overload)

    def write(*args: object, **kwargs: object) -> object:
        targets = [kwargs.pop(label) for label in labels]
        computed = function(*args, **kwargs)
        for target, value in zip(
            targets, computed if len(targets) > 1 else [computed], strict=True
        ):
            single = isinstance(target, Tensor)
            for one, source in [(target, value)] if single else zip(target, value, strict=True):
                if source is not None:  # a gradient that was not asked for
                    _write(one, source)
        if lists:
            return None
        return targets[0] if len(targets) == 1 else tuple(targets)

    define(declared, write)


def _write(target: Tensor, source: Tensor) -> None:
    if source.layout == torch.strided:
        torch.ops.aten.clone.out(source, out=target)
    elif target.shape == source.shape:
        target.copy_(source)
    else:
        raise RuntimeError(
            f"expected an out tensor of size {list(source.shape)} for a result of layout "
            f"{source.layout}, got {list(target.shape)}: it is not resized"
        )


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
