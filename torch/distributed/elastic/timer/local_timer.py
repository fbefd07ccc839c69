"""Timers for the workers of one machine that share a multiprocessing queue with the server."""

from __future__ import annotations

import logging
import multiprocessing as mp
import os
import signal
import time
from queue import Empty

from torch.distributed.elastic.timer.api import (
    RequestQueue,
    TimerClient,
    TimerRequest,
    TimerServer,
)

__all__ = ["LocalTimerClient", "LocalTimerServer", "MultiprocessingRequestQueue"]

logger = logging.getLogger(__name__)


class LocalTimerClient(TimerClient):
    """Puts requests into the queue; the worker's id is its process id."""

    def __init__(self, mp_queue: mp.Queue) -> None:
        self._mp_queue = mp_queue

    def acquire(self, scope_id: str, expiration_time: float) -> None:
        """Starts the timer of a scope."""
        self._mp_queue.put(TimerRequest(os.getpid(), scope_id, expiration_time))

    def release(self, scope_id: str) -> None:
        """Ends the timer of a scope."""
        self._mp_queue.put(TimerRequest(os.getpid(), scope_id, -1))


class MultiprocessingRequestQueue(RequestQueue):
    """Requests from a multiprocessing queue."""

    def __init__(self, mp_queue: mp.Queue) -> None:
        super().__init__()
        self._mp_queue = mp_queue

    def size(self) -> int:
        """About how many are waiting."""
        return self._mp_queue.qsize()

    def get(self, size: int, timeout: float) -> list[TimerRequest]:
        """Those that come before the timeout, at most that many."""
        until = time.monotonic() + timeout
        found: list[TimerRequest] = []
        while len(found) < size:
            left = until - time.monotonic()
            if left <= 0 and found:
                break
            try:
                found.append(self._mp_queue.get(block=True, timeout=max(left, 0)))
            except Empty:
                break
        return found


class LocalTimerServer(TimerServer):
    """Kills processes of this machine."""

    def __init__(self, mp_queue: mp.Queue, max_interval: float = 60, daemon: bool = True) -> None:
        super().__init__(MultiprocessingRequestQueue(mp_queue), max_interval, daemon)
        self._timers: dict[tuple, TimerRequest] = {}

    def register_timers(self, timer_requests: list[TimerRequest]) -> None:
        """Takes in acquired and released scopes."""
        for request in timer_requests:
            key = (request.worker_id, request.scope_id)
            if request.expiration_time < 0:
                self._timers.pop(key, None)
            else:
                self._timers[key] = request

    def clear_timers(self, worker_ids: set[int]) -> None:
        """Forgets all scopes of these workers."""
        self._timers = {
            key: request for key, request in self._timers.items() if key[0] not in worker_ids
        }

    def get_expired_timers(self, deadline: float) -> dict[object, list[TimerRequest]]:
        """The scopes that end before the deadline, by worker."""
        expired: dict[object, list[TimerRequest]] = {}
        for request in self._timers.values():
            if request.expiration_time <= deadline:
                expired.setdefault(request.worker_id, []).append(request)
        return expired

    def _reap_worker(self, worker_id: int) -> bool:
        try:
            os.kill(worker_id, signal.SIGKILL)
        except ProcessLookupError:
            logger.info("worker %s has ended already", worker_id)
        except OSError:
            logger.exception("worker %s could not be killed", worker_id)
            return False
        return True
