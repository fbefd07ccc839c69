"""What a graph knows about an object of a custom class that is no tensor."""

from __future__ import annotations

import dataclasses

__all__ = ["ScriptObjectMeta"]


@dataclasses.dataclass
class ScriptObjectMeta:
    """The name under which a program keeps the object, and the full name of its class."""

    constant_name: str
    class_fqn: str
