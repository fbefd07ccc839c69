"""Timers: a worker says how long a block may take, and a server outside kills it when it takes
longer. `LocalTimerServer` shares a queue with its workers; `FileTimerServer` makes a named pipe, so
that its workers need not be its children."""

from torch.distributed.elastic.timer.api import (
    TimerClient,
    TimerRequest,
    TimerServer,
    configure,
    expires,
)
from torch.distributed.elastic.timer.file_based_local_timer import (
    FileTimerClient,
    FileTimerRequest,
    FileTimerServer,
)
from torch.distributed.elastic.timer.local_timer import LocalTimerClient, LocalTimerServer

__all__ = [
    "FileTimerClient",
    "FileTimerRequest",
    "FileTimerServer",
    "LocalTimerClient",
    "LocalTimerServer",
    "TimerClient",
    "TimerRequest",
    "TimerServer",
    "configure",
    "expires",
]
