"""What every kind of timer has: requests, the client's `expires`, the server's watching thread."""

from __future__ import annotations

import logging
import sys
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = [
    "RequestQueue",
    "TimerClient",
    "TimerRequest",
    "TimerServer",
    "configure",
    "expires",
]

logger = logging.getLogger(__name__)


class TimerRequest:
    """A worker's wish: be killed after expiration_time unless the scope is released. A negative
    time releases the scope."""

    __slots__ = ["expiration_time", "scope_id", "worker_id"]

    def __init__(self, worker_id: object, scope_id: str, expiration_time: float) -> None:
        self.worker_id, self.scope_id = worker_id, scope_id
        self.expiration_time = expiration_time

    def _fields(self) -> tuple:
        return (self.worker_id, self.scope_id, self.expiration_time)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, TimerRequest):
            return NotImplemented
        return self._fields() == other._fields()

    def __hash__(self) -> int:
        return hash(self._fields())


class TimerClient(ABC):
    """The worker's side."""

    @abstractmethod
    def acquire(self, scope_id: str, expiration_time: float) -> None:
        """Starts, or sets anew, the timer of a scope."""

    @abstractmethod
    def release(self, scope_id: str) -> None:
        """Ends the timer of a scope."""


class RequestQueue(ABC):
    """Where a server finds requests."""

    @abstractmethod
    def size(self) -> int:
        """About how many requests are waiting."""

    @abstractmethod
    def get(self, size: int, timeout: float) -> list[TimerRequest]:
        """At most that many requests, those that came before the timeout."""


class TimerServer(ABC):
    """Takes requests at least every max_interval seconds and kills workers whose time is over."""

    def __init__(
        self, request_queue: RequestQueue, max_interval: float, daemon: bool = True
    ) -> None:
        self._request_queue, self._max_interval, self._daemon = request_queue, max_interval, daemon
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None

    @abstractmethod
    def register_timers(self, timer_requests: list[TimerRequest]) -> None:
        """Takes in acquired and released scopes."""

    @abstractmethod
    def clear_timers(self, worker_ids: set) -> None:
        """Forgets all scopes of these workers."""

    @abstractmethod
    def get_expired_timers(self, deadline: float) -> dict[str, list[TimerRequest]]:
        """The scopes that end before the deadline, by worker."""

    @abstractmethod
    def _reap_worker(self, worker_id: object) -> bool:
        """Kills a worker; True where it is gone."""

    def _is_gone(self, worker_id: object) -> bool:
        try:
            return self._reap_worker(worker_id)
        except Exception:
            # A worker that cannot be reaped now will not be later; its timers go.
            logger.exception("worker %s could not be killed", worker_id)
            return True

    def _run_watchdog(self) -> None:
        waiting = max(1, self._request_queue.size())
        self.register_timers(self._request_queue.get(waiting, self._max_interval))
        gone = set()
        for worker_id, expired in self.get_expired_timers(time.time()).items():
            scopes = ", ".join(request.scope_id for request in expired)
            logger.info("killing worker %s: its time is over in %s", worker_id, scopes)
            if self._is_gone(worker_id):
                gone.add(worker_id)
        self.clear_timers(gone)

    def _watch(self) -> None:
        while not self._stopping.is_set():
            try:
                self._run_watchdog()
            except Exception:
                logger.exception("the timer server goes on after an error")

    def start(self) -> None:
        """Starts the watching thread."""
        logger.info("starting %s, max_interval=%s", type(self).__name__, self._max_interval)
        self._stopping.clear()
        self._thread = threading.Thread(target=self._watch, daemon=self._daemon)
        self._thread.start()

    def stop(self) -> None:
        """Stops it and waits a little for its end."""
        self._stopping.set()
        if self._thread is not None:
            self._thread.join(self._max_interval)
            self._thread = None


_client: TimerClient | None = None


def configure(timer_client: TimerClient | None) -> None:
    """Sets the client that `expires` uses in this process."""
    global _client
    _client = timer_client


@contextmanager
def expires(
    after: float, scope: str | None = None, client: TimerClient | None = None
) -> Iterator[None]:
    """The worker is killed if the block takes longer than that many seconds. The scope is the
    place of the `with` statement unless it is given: entering it again sets the timer anew."""
    used = client or _client
    if used is None:
        raise RuntimeError("Configure timer client before using countdown timers.")
    if scope is None:
        # This frame, contextlib's __enter__, then the user's.
        frame = sys._getframe(2)
        scope = f"{frame.f_code.co_filename}#{frame.f_lineno}"
    used.acquire(scope, time.time() + after)
    try:
        yield
    finally:
        used.release(scope)
