"""Guards as programs choose among them: torch.compile(options={"guard_filter_fn": f}) hands f one
entry for each guard of a trace and keeps those for which it answers True. Leaving out a guard is
the program's promise that the condition holds."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import torch
from torch._dynamo.source import GlobalSource
from torch._guards import ChainedSource, GuardSource, Source

if TYPE_CHECKING:
    from torch._dynamo.guards import GuardRecord
    from torch._dynamo.output_graph import OutputGraph


@dataclasses.dataclass(frozen=True)
class Origin:
    """Where a guarded value is found."""

    source: GuardSource


@dataclasses.dataclass(frozen=True)
class GuardFilterEntry:
    """One guard: the value that it looks at, under its name, and what it compares."""

    name: str
    has_value: bool
    value: object
    guard_type: str
    derived_guard_types: tuple[str, ...]
    is_global: bool
    orig_guard: Origin


_SHAPES = GuardFilterEntry("", False, None, "SHAPE_ENV", (), False, Origin(GuardSource.SHAPE_ENV))


def _value(source: Source, scope: dict[str, object]) -> tuple[bool, object]:
    try:
        return True, eval(source.name(), {"torch": torch, "type": type}, scope)
    except Exception:  # an attribute may run any code of the program, or be there no more
        return False, None


def _root(source: Source) -> Source:
    while isinstance(source, ChainedSource):
        source = source.base
    return source


def _kind(source: Source, scope: dict[str, object]) -> GuardSource:
    """Whether a value belongs to a module, and to one of torch.nn: the innermost counts."""
    place = "GLOBAL" if isinstance(_root(source), GlobalSource) else "LOCAL"
    link: Source | None = source
    while link is not None:
        value = _value(link, scope)[1]
        if isinstance(value, torch.nn.Module):
            own = type(value).__module__.startswith("torch.nn.")
            builtin = "BUILTIN_" if own else ""
            return GuardSource[f"{place}_UNSPECIALIZED_{builtin}NN_MODULE"]
        link = link.base if isinstance(link, ChainedSource) else None
    return GuardSource[place]


def _entry(record: GuardRecord, scope: dict[str, object]) -> GuardFilterEntry:
    source = record.source
    has_value, value = _value(source, scope)
    is_global = isinstance(_root(source), GlobalSource)
    kind = record.kind
    return GuardFilterEntry(
        source.name(), has_value, value, kind, (kind,), is_global, Origin(_kind(source, scope))
    )


def apply(
    choose: Callable[[Sequence[GuardFilterEntry]], Sequence[bool]],
    out: OutputGraph,
    fn_globals: dict[str, object],
) -> None:
    """Leaves out of a trace the guards that a program does not want."""
    scope = {"L": out.values, "G": fn_globals}
    keys = [key for key, record in out.guards.items() if record.source is not None]
    entries = [_entry(out.guards[key], scope) for key in keys]
    if out.shape_sources:
        entries.append(_SHAPES)
    kept = list(choose(entries))
    if len(kept) != len(entries):
        raise AssertionError(
            f"guard_filter_fn answered {len(kept)} times to {len(entries)} guards: one truth value "
            "for each is expected"
        )
    if out.shape_sources and not kept[-1]:
        out.shape_sources = []
    dropped = {key for key, wanted in zip(keys, kept, strict=False) if not wanted}
    unknown = {out.guards[key].source for key in dropped}
    for key in dropped:
        del out.guards[key]
    # Conditions on several values fall with those on one of them.
    out.tensor_sources = [source for source in out.tensor_sources if source not in unknown]
    out.distinct = [group for group in out.distinct if unknown.isdisjoint(group)]
    out.apart = [[source for source in group if source not in unknown] for group in out.apart]


def exported(out: OutputGraph) -> list[GuardFilterEntry]:
    """The guards of a trace without the values they look at, for those who list them."""
    return [
        dataclasses.replace(_entry(record, {}), has_value=False, value=None)
        for record in out.guards.values()
        if record.source is not None
    ]
