"""Copying log files to a stream while they grow, each line with a prefix that says whose it is."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from threading import Event
from typing import TextIO

__all__ = ["TailLog", "tail_logfile"]

logger = logging.getLogger(__name__)


def tail_logfile(
    header: str,
    file: str,
    dst: TextIO,
    finished: Event,
    interval_sec: float,
    log_line_filter: Callable[[str], bool] | None = None,
) -> None:
    """Copies lines until `finished` is set and the file is read to its end. The file may come
    later."""
    while not os.path.exists(file):
        if finished.wait(interval_sec):
            break
    if not os.path.exists(file):
        return
    with open(file, errors="replace") as log:
        while True:
            # Asked before reading: what was written until then is read.
            is_last = finished.is_set()
            for line in log:
                if log_line_filter is None or log_line_filter(line):
                    dst.write(f"{header}{line}")
            if is_last:
                return
            finished.wait(interval_sec)


class TailLog:
    """Copies several log files to one stream, each on a thread."""

    def __init__(
        self,
        name: str,
        log_files: dict[int, str],
        dst: TextIO,
        log_line_prefixes: dict[int, str] | None = None,
        interval_sec: float = 0.1,
        log_line_filter: Callable[[str], bool] = lambda line: True,
    ) -> None:
        self._name, self._files, self._dst = name, log_files, dst
        self._prefixes = log_line_prefixes or {}
        self._interval, self._filter = interval_sec, log_line_filter
        self._threadpool = ThreadPoolExecutor(max(len(log_files), 1)) if log_files else None
        self._finished = Event()
        self._running: list[Future] = []
        self._stopped = False

    def start(self) -> TailLog:
        """Starts copying."""
        for local_rank, file in self._files.items():
            self._running.append(
                self._threadpool.submit(
                    tail_logfile,
                    self._prefixes.get(local_rank, f"[{self._name}{local_rank}]:"),
                    file,
                    self._dst,
                    self._finished,
                    self._interval,
                    self._filter,
                )
            )
        return self

    def stop(self) -> None:
        """Copies what is there and ends."""
        self._finished.set()
        for (local_rank, file), copying in zip(self._files.items(), self._running, strict=False):
            problem = copying.exception()
            if problem is not None:
                logger.error(
                    "error in log tailer for %s%s (%s): %s", self._name, local_rank, file, problem
                )
        if self._threadpool is not None:
            self._threadpool.shutdown(wait=True)
        self._stopped = True

    def stopped(self) -> bool:
        """True after `stop`."""
        return self._stopped
