"""The records of events and how they become JSON."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from enum import Enum

__all__ = ["Event", "EventMetadataValue", "EventSource", "NodeState", "RdzvEvent"]

EventMetadataValue = str | int | float | bool | None


class EventSource(str, Enum):
    """Who reports."""

    AGENT = "AGENT"
    WORKER = "WORKER"


class NodeState(str, Enum):
    """The states of a node in a rendezvous."""

    INIT = "INIT"
    RUNNING = "RUNNING"
    SUCCEEDED = "SUCCEEDED"
    FAILED = "FAILED"


class _Record:
    """A dataclass that travels as one JSON object."""

    def __str__(self) -> str:
        return self.serialize()

    def serialize(self) -> str:
        """The record as JSON."""
        return json.dumps(asdict(self))


@dataclass
class Event(_Record):
    """Something that happened to an agent or a worker."""

    name: str
    source: EventSource
    timestamp: int = 0
    metadata: dict[str, EventMetadataValue] = field(default_factory=dict)

    __str__ = _Record.__str__

    @staticmethod
    def deserialize(data: str | Event) -> Event:
        """The event that was serialised; an event is returned as it is."""
        if isinstance(data, Event):
            return data
        values = json.loads(data)
        return Event(**{**values, "source": EventSource(values["source"])})

    def serialize(self) -> str:
        """The record as JSON."""
        return super().serialize()


@dataclass
class RdzvEvent(_Record):
    """Something that happened in a rendezvous."""

    name: str
    run_id: str
    message: str
    hostname: str
    pid: int
    node_state: NodeState
    master_endpoint: str = ""
    rank: int | None = None
    local_id: int | None = None
    error_trace: str = ""

    __str__ = _Record.__str__

    @staticmethod
    def deserialize(data: str | RdzvEvent) -> RdzvEvent:
        """The event that was serialised; an event is returned as it is."""
        if isinstance(data, RdzvEvent):
            return data
        values = json.loads(data)
        return RdzvEvent(**{**values, "node_state": NodeState(values["node_state"])})

    def serialize(self) -> str:
        """The record as JSON."""
        return super().serialize()
