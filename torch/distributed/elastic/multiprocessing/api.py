"""Processes that are started together: where their output goes, what they returned, and who failed.
A function's result comes back through a queue; a command returns None."""

from __future__ import annotations

import logging
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack, nullcontext, suppress
from dataclasses import dataclass, field
from enum import IntFlag
from types import FrameType
from typing import Any, TextIO

from torch.distributed.elastic.multiprocessing.errors import ProcessFailure, record
from torch.distributed.elastic.multiprocessing.redirects import redirect_stderr, redirect_stdout
from torch.distributed.elastic.multiprocessing.tail_log import TailLog

__all__ = [
    "DefaultLogsSpecs",
    "LogsDest",
    "LogsSpecs",
    "MultiprocessContext",
    "PContext",
    "RunProcsResult",
    "SignalException",
    "Std",
    "SubprocessContext",
    "get_std_cm",
    "to_map",
]

logger = logging.getLogger(__name__)

_SIGNALS = "SIGTERM,SIGINT,SIGHUP,SIGQUIT"


class SignalException(Exception):
    """The launcher got a signal that ends it."""

    def __init__(self, msg: str, sigval: signal.Signals) -> None:
        super().__init__(msg)
        self.sigval = sigval


def _raise_signal(number: int, frame: FrameType | None) -> None:
    sigval = signal.Signals(number)
    raise SignalException(f"Process {os.getpid()} got signal: {sigval}", sigval=sigval)


class Std(IntFlag):
    """Standard streams."""

    NONE = 0
    OUT = 1
    ERR = 2
    ALL = OUT | ERR

    @classmethod
    def from_str(cls, vm: str) -> Std | dict[int, Std]:
        """A stream for all ranks, "3", or by local rank, "0:1,1:3"."""
        if re.fullmatch(r"[0-3]", vm):
            return cls(int(vm))
        if re.fullmatch(r"\d+:[0-3](,\d+:[0-3])*", vm):
            pairs = (pair.split(":") for pair in vm.split(","))
            return {int(rank): cls(int(value)) for rank, value in pairs}
        raise ValueError(
            f"{vm!r} says no streams: expected 0 to 3, or <rank>:<0 to 3> separated by commas"
        )


def to_map(val_or_map: Std | dict[int, Std], local_world_size: int) -> dict[int, Std]:
    """Streams by local rank; ranks that are not named have none."""
    if isinstance(val_or_map, Std):
        return dict.fromkeys(range(local_world_size), val_or_map)
    return {rank: val_or_map.get(rank, Std.NONE) for rank in range(local_world_size)}


@dataclass
class LogsDest:
    """The files of each local rank; an empty name where there is none."""

    stdouts: dict[int, str] = field(default_factory=dict)
    stderrs: dict[int, str] = field(default_factory=dict)
    tee_stdouts: dict[int, str] = field(default_factory=dict)
    tee_stderrs: dict[int, str] = field(default_factory=dict)
    error_files: dict[int, str] = field(default_factory=dict)
    filtered_stdout: str = field(default_factory=str)
    filtered_stderr: str = field(default_factory=str)


class LogsSpecs(ABC):
    """Where output goes: into files (redirects), into files and here (tee), or only here."""

    def __init__(
        self,
        log_dir: str | None = None,
        redirects: Std | dict[int, Std] = Std.NONE,
        tee: Std | dict[int, Std] = Std.NONE,
        local_ranks_filter: set[int] | None = None,
    ) -> None:
        self._root_log_dir, self._local_ranks_filter = log_dir, local_ranks_filter
        self._redirects, self._tee = redirects, tee

    @abstractmethod
    def reify(self, envs: dict[int, dict[str, str]]) -> LogsDest:
        """The files for workers with these environments."""

    @property
    @abstractmethod
    def root_log_dir(self) -> str | None:
        """The folder of all files."""


class DefaultLogsSpecs(LogsSpecs):
    """<log_dir>/<run>_<unique>/attempt_<n>/<local rank>/ with stdout.log, stderr.log and
    error.json."""

    def __init__(
        self,
        log_dir: str | None = None,
        redirects: Std | dict[int, Std] = Std.NONE,
        tee: Std | dict[int, Std] = Std.NONE,
        local_ranks_filter: set[int] | None = None,
    ) -> None:
        if log_dir and os.path.isfile(log_dir):
            raise NotADirectoryError(f"log_dir: {log_dir} is a file")
        if log_dir:
            os.makedirs(log_dir, exist_ok=True)
        super().__init__(log_dir, redirects, tee, local_ranks_filter)
        self._run_log_dir: str | None = None

    @property
    def root_log_dir(self) -> str:
        """The folder of all files; made when first asked for."""
        if not self._root_log_dir:
            self._root_log_dir = tempfile.mkdtemp(prefix="torchelastic_")
        return self._root_log_dir

    def _streams(self, count: int) -> tuple[dict[int, Std], dict[int, Std]]:
        redirects, tee = to_map(self._redirects, count), to_map(self._tee, count)
        if self._local_ranks_filter:
            # Ranks that shall not be seen here write into files.
            for rank in set(range(count)) - self._local_ranks_filter:
                redirects[rank], tee[rank] = Std.ALL, Std.NONE
        return redirects, tee

    def reify(self, envs: dict[int, dict[str, str]]) -> LogsDest:
        """The files of one attempt; its folders are made."""
        if not envs:
            return LogsDest()
        first = envs[min(envs)]
        if self._run_log_dir is None:
            run_id = first.get("TORCHELASTIC_RUN_ID", "test_run_id")
            self._run_log_dir = tempfile.mkdtemp(prefix=f"{run_id}_", dir=self.root_log_dir)
        attempt = os.path.join(
            self._run_log_dir, f"attempt_{first.get('TORCHELASTIC_RESTART_COUNT', '0')}"
        )
        shutil.rmtree(attempt, ignore_errors=True)
        redirects, tee = self._streams(len(envs))
        files = LogsDest(
            filtered_stdout=os.path.join(attempt, "filtered_stdout.log"),
            filtered_stderr=os.path.join(attempt, "filtered_stderr.log"),
        )
        for rank in range(len(envs)):
            folder = os.path.join(attempt, str(rank))
            os.makedirs(folder)
            files.error_files[rank] = os.path.join(folder, "error.json")
            for std, name, direct, teed in (
                (Std.OUT, "stdout.log", files.stdouts, files.tee_stdouts),
                (Std.ERR, "stderr.log", files.stderrs, files.tee_stderrs),
            ):
                path = os.path.join(folder, name)
                direct[rank] = path if std & (redirects[rank] | tee[rank]) else ""
                if std & tee[rank]:
                    teed[rank] = path
        return files

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, DefaultLogsSpecs):
            return False
        return vars(self) == vars(other)

    __hash__ = None


@dataclass
class RunProcsResult:
    """How the processes ended: results or failures by local rank."""

    return_values: dict[int, Any] = field(default_factory=dict)
    failures: dict[int, ProcessFailure] = field(default_factory=dict)
    stdouts: dict[int, str] = field(default_factory=dict)
    stderrs: dict[int, str] = field(default_factory=dict)

    def is_failed(self) -> bool:
        """True where any failed."""
        return bool(self.failures)


def _validate_full_rank(by_rank: dict[int, Any], nprocs: int, what: str) -> None:
    if set(by_rank) != set(range(nprocs)) or not nprocs:
        raise RuntimeError(
            f"{what}, local rank mapping mismatch, expected: {set(range(nprocs))}, "
            f"actual: {set(by_rank)}"
        )


def get_std_cm(std_rd: str, redirect_fn: Callable) -> AbstractContextManager:
    """The context in which a stream goes to the file, if there is one."""
    return redirect_fn(std_rd) if std_rd else nullcontext()


class PContext(ABC):
    """Processes that were started together."""

    def __init__(
        self,
        name: str,
        entrypoint: Callable | str,
        args: dict[int, tuple],
        envs: dict[int, dict[str, str]],
        logs_specs: LogsSpecs,
        log_line_prefixes: dict[int, str] | None = None,
        duplicate_stdout_filters: list[str] | None = None,
        duplicate_stderr_filters: list[str] | None = None,
    ) -> None:
        self.name, self.entrypoint, self.args = name, entrypoint, args
        self.nprocs = len(args)
        files = logs_specs.reify(envs)
        self.stdouts, self.stderrs = files.stdouts, files.stderrs
        self.error_files = files.error_files
        self.envs = {
            rank: {**env, "TORCHELASTIC_ERROR_FILE": files.error_files[rank]}
            for rank, env in envs.items()
        }
        self._stdout_tail = TailLog(name, files.tee_stdouts, sys.stdout, log_line_prefixes)
        self._stderr_tail = TailLog(name, files.tee_stderrs, sys.stderr, log_line_prefixes)
        self._tails = [self._stdout_tail, self._stderr_tail]
        self._opened: list[TextIO] = []
        for sources, words, target in (
            (files.stdouts, duplicate_stdout_filters, files.filtered_stdout),
            (files.stderrs, duplicate_stderr_filters, files.filtered_stderr),
        ):
            if words:
                self._tails.append(self._filtered(name, sources, words, target, log_line_prefixes))

    def _filtered(
        self,
        name: str,
        sources: dict[int, str],
        words: list[str],
        target: str,
        prefixes: dict[int, str] | None,
    ) -> TailLog:
        """Copies lines with one of the words, of ranks whose output goes to files."""
        self._opened.append(open(target, "w"))  # noqa: SIM115
        existing = {rank: file for rank, file in sources.items() if file}
        return TailLog(
            name, existing, self._opened[-1], prefixes,
            log_line_filter=lambda line: any(word in line for word in words),
        )  # fmt: skip

    def start(self) -> None:
        """Starts all. Signals that end this process raise SignalException from now on."""
        if threading.current_thread() is threading.main_thread():
            words = os.environ.get("TORCHELASTIC_SIGNALS_TO_HANDLE", _SIGNALS)
            for word in words.split(","):
                if hasattr(signal, word.strip()):
                    signal.signal(getattr(signal, word.strip()), _raise_signal)
        self._start()
        for tail in self._tails:
            tail.start()

    @abstractmethod
    def _start(self) -> None:
        """Starts the processes."""

    @abstractmethod
    def _poll(self) -> RunProcsResult | None:
        """The result when all ended or one failed; the others are then ended."""

    @abstractmethod
    def _close(self, death_sig: signal.Signals, timeout: int = 30) -> None:
        """Ends those that run: by the signal, and after the timeout by SIGKILL."""

    @abstractmethod
    def pids(self) -> dict[int, int]:
        """The processes by local rank."""

    def wait(self, timeout: float = -1, period: float = 1) -> RunProcsResult | None:
        """Waits for the end; None where the timeout came first. A timeout of 0 only looks."""
        if timeout == 0:
            return self._poll()
        until = sys.maxsize if timeout < 0 else time.monotonic() + timeout
        while time.monotonic() < until:
            result = self._poll()
            if result is not None:
                return result
            time.sleep(period)
        return None

    def close(self, death_sig: signal.Signals | None = None, timeout: int = 30) -> None:
        """Ends those that run and copies the rest of their output."""
        self._close(death_sig or signal.SIGTERM, timeout)
        for tail in self._tails:
            if not tail.stopped():
                tail.stop()
        while self._opened:
            self._opened.pop().close()

    def _result(self, **values: Any) -> RunProcsResult:
        return RunProcsResult(stdouts=self.stdouts, stderrs=self.stderrs, **values)

    def _failed(self, exit_codes: dict[int, tuple[int, int]]) -> RunProcsResult:
        """The result with failures: (pid, exit code) by local rank."""
        return self._result(
            failures={
                rank: ProcessFailure(rank, pid, code, self.error_files[rank])
                for rank, (pid, code) in exit_codes.items()
            }
        )


def _end_all(
    processes: list, death_sig: signal.Signals, timeout: float, wait: Callable[[Any, float], None]
) -> None:
    """Sends the signal, waits, and kills what is left."""
    for number in (death_sig, signal.SIGKILL):
        running = [one for one in processes if wait(one, 0) is None]
        for one in running:
            logger.warning("ending process %s via signal %s", one.pid, number.name)
            with suppress(ProcessLookupError):  # It ended meanwhile.
                os.kill(one.pid, number)
        until = time.monotonic() + timeout
        for one in running:
            wait(one, max(until - time.monotonic(), 0))
    for one in processes:
        wait(one, timeout)


def _wrap(
    local_rank: int,
    fn: Callable,
    args: dict[int, tuple],
    envs: dict[int, dict[str, str]],
    stdout_redirects: dict[int, str],
    stderr_redirects: dict[int, str],
    ret_vals: dict[int, Any],
    queue_finished_reading_event: Any,
) -> None:
    """What runs in the process of a function."""
    os.environ.update(envs[local_rank])
    with (
        get_std_cm(stdout_redirects[local_rank], redirect_stdout),
        get_std_cm(stderr_redirects[local_rank], redirect_stderr),
    ):
        ret_vals[local_rank].put(record(fn)(*args[local_rank]))
        # A result may live in memory that this process shares until it is read.
        queue_finished_reading_event.wait()


def _join(process: Any, timeout: float) -> int | None:
    process.join(timeout)
    return process.exitcode


class MultiprocessContext(PContext):
    """Functions, each in a process."""

    def __init__(
        self,
        name: str,
        entrypoint: Callable,
        args: dict[int, tuple],
        envs: dict[int, dict[str, str]],
        start_method: str,
        logs_specs: LogsSpecs,
        log_line_prefixes: dict[int, str] | None = None,
        numa_options: object = None,
        duplicate_stdout_filters: list[str] | None = None,
        duplicate_stderr_filters: list[str] | None = None,
    ) -> None:
        super().__init__(
            name, entrypoint, args, envs, logs_specs, log_line_prefixes,
            duplicate_stdout_filters, duplicate_stderr_filters,
        )  # fmt: skip
        # Commands do without the import.
        import torch.multiprocessing as mp

        self._mp, self.start_method = mp, start_method
        context = mp.get_context(start_method)
        self._ret_vals = {rank: context.SimpleQueue() for rank in range(self.nprocs)}
        self._return_values: dict[int, Any] = {}
        self._pc: mp.ProcessContext | None = None
        self._worker_finished_event = context.Event()

    def _start(self) -> None:
        if self._pc is not None:
            raise ValueError("the processes of these functions were started already")
        where = (self.stdouts, self.stderrs)
        told = (self.entrypoint, self.args, self.envs, *where)
        told += (self._ret_vals, self._worker_finished_event)
        start = self._mp.start_processes
        self._pc = start(_wrap, told, self.nprocs, False, False, self.start_method)

    def _is_done(self) -> bool:
        return len(self._return_values) == self.nprocs

    def _poll(self) -> RunProcsResult | None:
        try:
            # A queue holds a pipe's worth; its writer waits until the result is read.
            self._pc.join(-1)
            for rank, queue in self._ret_vals.items():
                if rank not in self._return_values and not queue.empty():
                    self._return_values[rank] = queue.get()
            if not self._is_done():
                return None
            self._worker_finished_event.set()
            while not self._pc.join():
                logger.debug("%s: waiting for the functions' processes to end", self.name)
        except (self._mp.ProcessRaisedException, self._mp.ProcessExitedException) as error:
            rank = error.error_index
            code = self._pc.processes[rank].exitcode
            logger.error("local rank %d (pid %d) of %s failed", rank, error.error_pid, self.name)
            self.close()
            return self._failed({rank: (error.error_pid, code)})
        self.close()
        return self._result(return_values=self._return_values)

    def pids(self) -> dict[int, int]:
        """The processes by local rank."""
        return dict(enumerate(self._pc.pids()))

    def _close(self, death_sig: signal.Signals, timeout: int = 30) -> None:
        if self._pc is not None:
            _end_all(self._pc.processes, death_sig, timeout, _join)


def _wait(process: subprocess.Popen, timeout: float) -> int | None:
    try:
        return process.wait(timeout)
    except subprocess.TimeoutExpired:
        return None


class SubprocessContext(PContext):
    """Commands."""

    def __init__(
        self,
        name: str,
        entrypoint: str,
        args: dict[int, tuple],
        envs: dict[int, dict[str, str]],
        logs_specs: LogsSpecs,
        log_line_prefixes: dict[int, str] | None = None,
        numa_options: object = None,
        duplicate_stdout_filters: list[str] | None = None,
        duplicate_stderr_filters: list[str] | None = None,
    ) -> None:
        super().__init__(
            name, entrypoint, args, envs, logs_specs, log_line_prefixes,
            duplicate_stdout_filters, duplicate_stderr_filters,
        )  # fmt: skip
        self._processes: dict[int, subprocess.Popen] = {}
        self._exit_codes: dict[int, int] = {}

    def _start(self) -> None:
        if self._processes:
            raise ValueError("these commands were started already")
        for rank in range(self.nprocs):
            with ExitStack() as files:
                out, err = (
                    files.enter_context(open(path, "wb")) if path else None
                    for path in (self.stdouts[rank], self.stderrs[rank])
                )
                self._processes[rank] = subprocess.Popen(
                    [self.entrypoint, *(str(word) for word in self.args[rank])],
                    env={**os.environ, **self.envs[rank]},
                    stdout=out,
                    stderr=err,
                )

    def _poll(self) -> RunProcsResult | None:
        for rank, process in self._processes.items():
            code = process.poll()
            if code is not None:
                self._exit_codes[rank] = code
        failed = {
            rank: (self._processes[rank].pid, code)
            for rank, code in self._exit_codes.items()
            if code != 0
        }
        if not failed and len(self._exit_codes) < self.nprocs:
            return None
        self.close()
        for rank, (pid, code) in failed.items():
            logger.error("local rank %d (pid %d) of %s ended with %d", rank, pid, self.name, code)
        if failed:
            return self._failed(failed)
        return self._result(return_values=dict.fromkeys(range(self.nprocs)))

    def pids(self) -> dict[int, int]:
        """The processes by local rank."""
        return {rank: process.pid for rank, process in self._processes.items()}

    def _close(self, death_sig: signal.Signals, timeout: int = 30) -> None:
        _end_all(list(self._processes.values()), death_sig, timeout, _wait)
