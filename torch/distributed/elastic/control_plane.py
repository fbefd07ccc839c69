"""A server inside a worker that tells and does things on request, over a Unix socket or TCP: which
handlers there are, a ping, where each thread stands. `worker_main` starts it where the variable
TORCH_WORKER_SERVER_SOCKET names a socket."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from torch._C._distributed_c10d import _WorkerServer

__all__ = ["worker_main"]

TORCH_WORKER_SERVER_SOCKET = "TORCH_WORKER_SERVER_SOCKET"


@contextmanager
def worker_main() -> Iterator[None]:
    """Serves while the block runs."""
    path = os.environ.get(TORCH_WORKER_SERVER_SOCKET)
    server = _WorkerServer(path) if path else None
    try:
        yield
    finally:
        if server is not None:
            server.shutdown()
