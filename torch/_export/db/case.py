"""What an example is: a module, arguments for it, and whether it can be exported."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from enum import Enum

import torch

__all__ = ["ExportCase", "SupportLevel", "example"]


class SupportLevel(Enum):
    """Whether a program can be exported."""

    SUPPORTED = 1
    NOT_SUPPORTED_YET = 0


@dataclasses.dataclass
class ExportCase:
    """One example."""

    name: str
    description: str
    model: torch.nn.Module
    example_args: tuple[object, ...] = ()
    example_kwargs: dict[str, object] = dataclasses.field(default_factory=dict)
    extra_args: tuple[object, ...] | None = None  # other arguments that the program takes
    tags: set[str] = dataclasses.field(default_factory=set)
    support_level: SupportLevel = SupportLevel.SUPPORTED
    dynamic_shapes: dict[str, object] | None = None
    rewrites: tuple[str, ...] = ()  # names of examples that say the same and can be exported


_CASES: dict[str, ExportCase] = {}


def example(
    *args: object,
    name: str,
    tags: str = "",
    kwargs: dict[str, object] | None = None,
    extra: tuple[object, ...] | None = None,
    supported: bool = True,
    dynamic_shapes: dict[str, object] | None = None,
) -> Callable[[type[torch.nn.Module]], type[torch.nn.Module]]:
    """Makes an example of a module class; its first line of text describes it."""

    def note(cls: type[torch.nn.Module]) -> type[torch.nn.Module]:
        level = SupportLevel.SUPPORTED if supported else SupportLevel.NOT_SUPPORTED_YET
        _CASES[name] = ExportCase(
            name,
            (cls.__doc__ or "").strip(),
            cls(),
            args,
            dict(kwargs or {}),
            extra,
            set(tags.split()),
            level,
            dynamic_shapes,
        )
        return cls

    return note
