"""Reports of workers that failed. A worker whose entry point is marked with `record` writes what it
raised into a file that the launcher named; the launcher raises ChildFailedError, in which the first
failure comes first."""

from __future__ import annotations

import functools
import json
import os
import signal
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from torch.distributed.elastic.multiprocessing.errors.error_handler import ErrorHandler
from torch.distributed.elastic.multiprocessing.errors.handlers import get_error_handler

__all__ = [
    "ChildFailedError",
    "ErrorHandler",
    "ProcessFailure",
    "get_error_handler",
    "record",
]

_NO_TRACEBACK = "To enable traceback see: https://pytorch.org/docs/stable/elastic/errors.html"
_NO_FILE = "<N/A>"


def record(fn: Callable, error_handler: ErrorHandler | None = None) -> Callable:
    """Marks the entry point of a worker: what it raises is reported to the launcher. An entry point
    that leaves by sys.exit(0) returns None."""
    handler = error_handler or get_error_handler()

    @functools.wraps(fn)
    def entry(*args: Any, **kwargs: Any) -> Any:
        handler.initialize()
        try:
            return fn(*args, **kwargs)
        except SystemExit as stop:
            if stop.code in (None, 0):
                return None
            raise
        except ChildFailedError as error:
            # The report of the worker that failed first is ours too.
            _, failure = error.get_first_failure()
            if failure.error_file != _NO_FILE:
                handler.dump_error_file(failure.error_file, failure.exitcode)
            raise
        except Exception as error:
            handler.record_exception(error)
            raise

    return entry


@dataclass
class ProcessFailure:
    """A worker that failed, with its report where it left one."""

    local_rank: int
    pid: int
    exitcode: int
    error_file: str
    error_file_data: dict[str, Any] = field(init=False)
    message: str = field(init=False)
    timestamp: int = field(init=False)

    def __post_init__(self) -> None:
        self.error_file_data = {"message": "<NONE>"}
        self.message, self.timestamp = self._without_report(), int(time.time())
        if not os.path.isfile(self.error_file):
            self.error_file = _NO_FILE
            return
        with open(self.error_file) as file:
            self.error_file_data = json.load(file)
        told = self.error_file_data["message"]
        if isinstance(told, dict):
            extra = told["extraInfo"]
            self.message = extra.get("py_callstack") or told["message"]
            self.timestamp = int(extra["timestamp"])
        else:
            self.message = told
            self.timestamp = int(self.error_file_data.get("timestamp", self.timestamp))

    def _without_report(self) -> str:
        if self.exitcode < 0:
            return f"Signal {-self.exitcode} ({self.signal_name()}) received by PID {self.pid}"
        return _NO_TRACEBACK

    def signal_name(self) -> str:
        """The name of the signal that killed the worker."""
        if self.exitcode >= 0:
            return "<N/A>"
        try:
            return signal.Signals(-self.exitcode).name
        except ValueError:
            return "<Invalid Signal>"

    def timestamp_isoformat(self) -> str:
        """When it failed."""
        return time.strftime("%Y-%m-%d_%H:%M:%S", time.localtime(self.timestamp))


class ChildFailedError(Exception):
    """Workers failed; `failures` has them by global rank."""

    def __init__(self, name: str, failures: dict[int, ProcessFailure]) -> None:
        if not failures:
            raise AssertionError("ChildFailedError needs at least one failure")
        self.name, self.failures = name, failures
        super().__init__(self.format_msg())

    def get_first_failure(self) -> tuple[int, ProcessFailure]:
        """The rank that failed first, and how."""
        rank = min(self.failures, key=lambda one: self.failures[one].timestamp)
        return rank, self.failures[rank]

    def format_msg(self, boarder_delim: str = "=", section_delim: str = "-") -> str:
        """The report: all failures, then the first."""
        first, _ = self.get_first_failure()
        others = [rank for rank in self.failures if rank != first]
        body = [self._entry(i + 1, rank) for i, rank in enumerate(others)]
        width = 60
        return "\n".join(
            [
                "",
                boarder_delim * width,
                f"{self.name} FAILED",
                section_delim * width,
                "Failures:",
                *(body or ["  <NO_OTHER_FAILURES>"]),
                section_delim * width,
                "Root Cause (first observed failure):",
                self._entry(0, first),
                boarder_delim * width,
            ]
        )

    def _entry(self, number: int, rank: int) -> str:
        failure = self.failures[rank]
        trace = failure.message.rstrip().replace("\n", "\n    ")
        return "\n".join(
            [
                f"[{number}]:",
                f"  time      : {failure.timestamp_isoformat()}",
                f"  host      : {socket.gethostname()}",
                f"  rank      : {rank} (local_rank: {failure.local_rank})",
                f"  exitcode  : {failure.exitcode} (pid: {failure.pid})",
                f"  error_file: {failure.error_file}",
                f"  traceback : {trace}",
            ]
        )
