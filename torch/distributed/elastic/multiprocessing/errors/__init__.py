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
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

__all__ = [
    "ChildFailedError",
    "ErrorHandler",
    "ProcessFailure",
    "get_error_handler",
    "record",
]

_NO_TRACEBACK = "To enable traceback see: https://pytorch.org/docs/stable/elastic/errors.html"


class ErrorHandler:
    """Writes what a worker raised to the file named by TORCHELASTIC_ERROR_FILE."""

    def initialize(self) -> None:
        """Called before the entry point."""
        import contextlib
        import faulthandler

        with contextlib.suppress(Exception):
            faulthandler.enable(all_threads=True)

    def record_exception(self, error: BaseException) -> None:
        """Writes the report."""
        path = os.environ.get("TORCHELASTIC_ERROR_FILE")
        if not path:
            return
        lines = "".join(traceback.format_exception(error))
        extra = {"py_callstack": lines, "timestamp": str(int(time.time()))}
        message = {"message": f"{type(error).__name__}: {error}", "extraInfo": extra}
        temporary = f"{path}.{os.getpid()}"
        with open(temporary, "w") as file:
            json.dump({"message": message}, file)
        os.replace(temporary, path)


def get_error_handler() -> ErrorHandler:
    """The handler that `record` uses."""
    return ErrorHandler()


def record(fn: Callable, error_handler: ErrorHandler | None = None) -> Callable:
    """Marks the entry point of a worker: what it raises is reported to the launcher."""
    handler = error_handler or get_error_handler()

    @functools.wraps(fn)
    def entry(*args: Any, **kwargs: Any) -> Any:
        handler.initialize()
        try:
            return fn(*args, **kwargs)
        except SystemExit as stop:
            if stop.code not in (None, 0):
                handler.record_exception(stop)
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
    message: str = field(init=False)
    timestamp: int = field(init=False)

    def __post_init__(self) -> None:
        self.timestamp = int(time.time())
        self.message = self._without_report()
        if not os.path.isfile(self.error_file):
            self.error_file = "<N/A>"
            return
        try:
            with open(self.error_file) as file:
                told = json.load(file)["message"]
            extra = told.get("extraInfo", {}) if isinstance(told, dict) else {}
            self.message = extra.get("py_callstack") or (
                told if isinstance(told, str) else told["message"]
            )
            self.timestamp = int(extra.get("timestamp", self.timestamp))
        except (OSError, ValueError, KeyError, TypeError) as error:
            self.message = f"the report {self.error_file} could not be read: {error}"

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
