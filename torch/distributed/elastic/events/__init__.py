"""Events: what agents and rendezvous report about their life, one JSON line each, to a logger
that the user may point somewhere. The default destination drops them."""

from __future__ import annotations

import inspect
import logging
import os
import socket
import traceback

from torch.distributed.elastic.events.api import Event, EventSource, NodeState, RdzvEvent
from torch.distributed.elastic.events.handlers import get_logging_handler

__all__ = [
    "Event",
    "EventSource",
    "NodeState",
    "RdzvEvent",
    "construct_and_record_rdzv_event",
    "get_logging_handler",
    "record",
    "record_rdzv_event",
]

_loggers: dict[str, logging.Logger] = {}


def _get_or_create_logger(destination: str = "null") -> logging.Logger:
    logger = _loggers.get(destination)
    if logger is None:
        logger = logging.getLogger(f"torchelastic-events-{destination}")
        logger.setLevel(os.environ.get("LOGLEVEL", "INFO"))
        logger.propagate = False
        logger.addHandler(get_logging_handler(destination))
        _loggers[destination] = logger
    return logger


def record(event: Event, destination: str = "null") -> None:
    """Writes the event to the destination's handler."""
    _get_or_create_logger(destination).info(event.serialize())


def record_rdzv_event(event: RdzvEvent) -> None:
    """Writes an event of a rendezvous."""
    _get_or_create_logger("dynamic_rendezvous").info(event.serialize())


def _caller_name(depth: int) -> str:
    """file:function of the frame that many calls above this function's caller."""
    frames = inspect.stack(context=0)
    frame = frames[min(depth + 1, len(frames) - 1)]
    return f"{os.path.splitext(os.path.basename(frame.filename))[0]}:{frame.function}"


def construct_and_record_rdzv_event(
    run_id: str,
    message: str,
    node_state: NodeState,
    name: str = "",
    hostname: str = "",
    pid: int | None = None,
    master_endpoint: str = "",
    local_id: int | None = None,
    rank: int | None = None,
) -> None:
    """Records an event of a rendezvous, named after the caller where no name is given, with the
    traceback of the exception that is being handled."""
    # Nothing is gathered where nobody listens.
    if isinstance(get_logging_handler("dynamic_rendezvous"), logging.NullHandler):
        return
    record_rdzv_event(
        RdzvEvent(
            name=name or _caller_name(1),
            run_id=run_id,
            message=message,
            hostname=hostname or socket.getfqdn(),
            pid=os.getpid() if pid is None else pid,
            node_state=node_state,
            master_endpoint=master_endpoint,
            rank=rank,
            local_id=local_id,
            error_trace=traceback.format_exc() if node_state is NodeState.FAILED else "",
        )
    )
