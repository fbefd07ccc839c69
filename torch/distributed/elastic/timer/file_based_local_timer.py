"""Timers over a named pipe: one JSON line a request. A line is shorter than the pipe's atomic size,
so that those of several workers do not mix."""

from __future__ import annotations

import contextlib
import json
import logging
import os
import select
import signal
import threading
import time
from collections.abc import Callable

from torch.distributed.elastic.timer.api import TimerClient, TimerRequest
from torch.distributed.elastic.timer.debug_info_logging import log_debug_info_for_expired_timers
from torch.distributed.elastic.utils.process_state import read_proc_state

__all__ = ["FileTimerClient", "FileTimerRequest", "FileTimerServer"]

logger = logging.getLogger(__name__)


class FileTimerRequest(TimerRequest):
    """A request that names a process and the signal to end it with. Signal 0 sends none."""

    __slots__ = ["signal", "version"]

    def __init__(
        self, worker_pid: int, scope_id: str, expiration_time: float, signal: int = 0
    ) -> None:
        super().__init__(worker_pid, scope_id, expiration_time)
        self.version, self.signal = 1, signal

    @property
    def worker_pid(self) -> int:
        """The process."""
        return self.worker_id

    def _fields(self) -> tuple:
        return (*super()._fields(), self.signal, self.version)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, FileTimerRequest):
            return NotImplemented
        return self._fields() == other._fields()

    __hash__ = TimerRequest.__hash__

    def to_json(self) -> str:
        """The request as one line."""
        names = ("pid", "scope_id", "expiration_time", "signal", "version")
        return json.dumps(dict(zip(names, self._fields(), strict=True)))


def _request_of(line: bytes) -> FileTimerRequest | None:
    """The request in a line; None, with a note in the log, where it is none."""
    try:
        told = json.loads(line)
        return FileTimerRequest(
            int(told["pid"]), str(told["scope_id"]), float(told["expiration_time"]),
            int(told["signal"]),
        )  # fmt: skip
    except (ValueError, KeyError, TypeError):
        logger.warning("a line in the timer's pipe is no request: %r", line[:200])
        return None


class FileTimerClient(TimerClient):
    """Writes requests for this process into the server's pipe."""

    def __init__(self, file_path: str, signal: int = signal.SIGKILL) -> None:
        self._file_path, self.signal = file_path, signal

    def _send_request(self, request: FileTimerRequest) -> None:
        try:
            pipe = os.open(self._file_path, os.O_WRONLY | os.O_NONBLOCK)
        except OSError as error:
            raise BrokenPipeError(
                f"no timer server reads {self._file_path}; start it before its clients"
            ) from error
        try:
            line = request.to_json().encode() + b"\n"
            if len(line) > select.PIPE_BUF:
                raise ValueError(f"scope_id is too long for a timer: {len(line)} bytes")
            os.write(pipe, line)
        finally:
            os.close(pipe)

    def acquire(self, scope_id: str, expiration_time: float) -> None:
        """Starts the timer of a scope."""
        self._send_request(FileTimerRequest(os.getpid(), scope_id, expiration_time, self.signal))

    def release(self, scope_id: str) -> None:
        """Ends the timer of a scope."""
        self._send_request(FileTimerRequest(os.getpid(), scope_id, -1, 0))


class FileTimerServer:
    """Reads requests from a pipe that it makes, and sends processes whose time is over the signal
    they asked for."""

    def __init__(
        self,
        file_path: str,
        run_id: str,
        max_interval: float = 10,
        daemon: bool = True,
        log_event: Callable[[str, FileTimerRequest | None], None] | None = None,
    ) -> None:
        self._file_path, self._run_id = file_path, run_id
        self._max_interval, self._daemon = max_interval, daemon
        self._log_event = log_event or (lambda name, request: None)
        self._timers: dict[tuple[int, str], FileTimerRequest] = {}
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None
        self._pipe: int | None = None
        self._rest = b""
        self._request_count = 0
        self._last_progress_time = int(time.time())

    def start(self) -> None:
        """Makes the pipe and starts the watching thread."""
        if self._pipe is None:
            if os.path.exists(self._file_path):
                os.remove(self._file_path)
            os.mkfifo(self._file_path)
            # Reading and writing: the end of a client is then no end of the file.
            self._pipe = os.open(self._file_path, os.O_RDWR | os.O_NONBLOCK)
        self._stopping.clear()
        self._thread = threading.Thread(target=self._watch, daemon=self._daemon)
        self._thread.start()
        self._log_event("watchdog started", None)

    def _end_thread(self) -> None:
        self._stopping.set()
        if self._thread is not None:
            self._thread.join()
            self._thread = None

    def stop(self) -> None:
        """Stops watching and removes the pipe."""
        self._end_thread()
        if self._pipe is not None:
            os.close(self._pipe)
            self._pipe = None
            with contextlib.suppress(FileNotFoundError):
                os.remove(self._file_path)
        self._log_event("watchdog stopped", None)

    def run_once(self) -> None:
        """Stops the thread, takes what is in the pipe and acts on it."""
        self._end_thread()
        if self._pipe is not None:
            self._run_watchdog(self._pipe)

    def _watch(self) -> None:
        while not self._stopping.is_set():
            try:
                self._run_watchdog(self._pipe)
            except Exception:
                logger.exception("the timer server goes on after an error")
            self._stopping.wait(self._max_interval)

    def _read(self, pipe: int) -> list[FileTimerRequest]:
        text = self._rest
        while True:
            try:
                part = os.read(pipe, 1 << 16)
            except BlockingIOError:
                break
            if not part:
                break
            text += part
        *lines, self._rest = text.split(b"\n")
        return [request for line in lines if (request := _request_of(line)) is not None]

    def _run_watchdog(self, pipe: int) -> None:
        requests = self._read(pipe)
        self.register_timers(requests)
        expired = self.get_expired_timers(time.time())
        scopes = {pid: [one.scope_id for one in of_pid] for pid, of_pid in expired.items()}
        log_debug_info_for_expired_timers(self._run_id, scopes)
        gone = set()
        for pid, of_pid in expired.items():
            signals = {request.signal for request in of_pid}
            if self._reap_worker(pid, max(signals)):
                self._log_event("kill worker process", of_pid[0])
                gone.add(pid)
        gone |= {
            pid for pid, _ in self._timers if pid not in gone and not self.is_process_running(pid)
        }
        self.clear_timers(gone)
        self._last_progress_time = int(time.time())

    @staticmethod
    def is_process_running(pid: int) -> bool:
        """True for a process that has not ended."""
        return read_proc_state(pid) not in (None, "Z", "X")

    def register_timers(self, timer_requests: list[FileTimerRequest]) -> None:
        """Takes in acquired and released scopes."""
        for request in timer_requests:
            self._request_count += 1
            key = (request.worker_pid, request.scope_id)
            if request.expiration_time < 0:
                self._timers.pop(key, None)
            else:
                self._timers[key] = request

    def clear_timers(self, worker_pids: set[int]) -> None:
        """Forgets all scopes of these processes."""
        self._timers = {
            key: request for key, request in self._timers.items() if key[0] not in worker_pids
        }

    def get_expired_timers(self, deadline: float) -> dict[int, list[FileTimerRequest]]:
        """The scopes that end before the deadline, by process."""
        expired: dict[int, list[FileTimerRequest]] = {}
        for request in self._timers.values():
            if request.expiration_time <= deadline:
                expired.setdefault(request.worker_pid, []).append(request)
        return expired

    def get_last_progress_time(self) -> int:
        """When the server last looked, or now where it has nothing to watch."""
        return self._last_progress_time if self._timers else int(time.time())

    def _reap_worker(self, worker_pid: int, signal: int) -> bool:
        if signal == 0:
            return True
        try:
            os.kill(worker_pid, signal)
        except ProcessLookupError:
            logger.info("process %s has ended already", worker_pid)
        except OSError:
            logger.exception("process %s could not be killed", worker_pid)
            return False
        return True
