"""Starting a function in several processes and waiting for all of them: the first that fails ends
the others, and its traceback or exit code is raised in the parent."""

from __future__ import annotations

import concurrent.futures
import contextlib
import logging
import multiprocessing
import multiprocessing.connection
import os
import pickle
import signal
import sys
import tempfile
import time
import traceback
import warnings

from torch import _C

__all__ = [
    "ProcessContext",
    "ProcessException",
    "ProcessExitedException",
    "ProcessRaisedException",
    "SpawnContext",
    "spawn",
    "start_processes",
]


# With this variable at 1 and the start method forkserver, start_processes starts all processes at
# once: each waits until its child has read what it was sent.
ENV_VAR_PARALLEL_START = "TORCH_MP_PARALLEL_START"
_PATIENCE = 30  # seconds between SIGTERM and SIGKILL
_log = logging.getLogger(__name__)


class ProcessException(Exception):
    """A process of start_processes failed."""

    __slots__ = ("error_index", "error_pid")

    def __init__(self, msg, error_index, error_pid) -> None:
        super().__init__(msg)
        self.msg = msg
        self.error_index = error_index
        self.error_pid = error_pid

    def __reduce__(self):
        return type(self), (self.msg, self.error_index, self.error_pid)


class ProcessRaisedException(ProcessException):
    """A process raised an exception."""

    def __init__(self, msg, error_index, error_pid) -> None:
        super().__init__(msg, error_index, error_pid)


class ProcessExitedException(ProcessException):
    """A process was killed by a signal or exited with a code other than 0."""

    __slots__ = ("exit_code",)

    def __init__(self, msg, error_index, error_pid, exit_code, signal_name=None) -> None:
        super().__init__(msg, error_index, error_pid)
        self.exit_code = exit_code
        self.signal_name = signal_name

    def __reduce__(self):
        return type(self), (
            self.msg,
            self.error_index,
            self.error_pid,
            self.exit_code,
            self.signal_name,
        )


def _wrap(fn, i, args, error_file, parent) -> None:
    """What runs in each process."""
    _C._die_with(parent, signal.SIGINT)
    try:
        fn(i, *args)
    except KeyboardInterrupt:
        return  # either the parent got it too, or it is gone
    except Exception:
        _leave_report(error_file, traceback.format_exc())


def _leave_report(path, text) -> None:
    """Ends this process; the parent raises an exception with the text."""
    with open(path, "xb") as report:
        pickle.dump(text, report)
    sys.exit(1)


class ProcessContext:
    """Processes that were started together."""

    def __init__(self, processes, error_files) -> None:
        self.error_files = error_files
        self.processes = processes
        self.sentinels = {process.sentinel: i for i, process in enumerate(processes)}

    def pids(self) -> list[int]:
        """The ids of the processes."""
        return [int(process.pid) for process in self.processes]

    def join(self, timeout=None, grace_period=None):
        """Waits until a process ends or `timeout` seconds passed; True when all have ended. When a
        process failed, the others have `grace_period` seconds (none by default) to end by
        themselves, then they are ended, and this raises."""
        if not self.sentinels:
            return True
        ready = multiprocessing.connection.wait(list(self.sentinels), timeout)
        failed = None
        for sentinel in ready:
            index = self.sentinels.pop(sentinel)
            self.processes[index].join()
            if self.processes[index].exitcode != 0:
                failed = index
                break
        if failed is None:
            done = not self.sentinels
            if done:
                self._remove_files()
            return done
        if grace_period is not None:
            self._wait_for_all(grace_period)
        self._end_all()
        self._raise(failed)

    def _wait_for_all(self, seconds) -> None:
        deadline = time.monotonic() + seconds
        for process in self.processes:
            process.join(max(0.0, deadline - time.monotonic()))

    def _end_all(self) -> None:
        """Asks the others to end, then makes them."""
        for signal_name, end in (("SIGTERM", "terminate"), ("SIGKILL", "kill")):
            running = [process for process in self.processes if process.is_alive()]
            for process in running:
                _log.warning("Terminating process %s via signal %s", process.pid, signal_name)
                getattr(process, end)()
            self._wait_for_all(_PATIENCE if running else 0)

    def _raise(self, index):
        process = self.processes[index]
        text = self._error_text(index)
        self._remove_files()
        if text is not None:
            message = f"\n\n-- Process {index} terminated with the following error:\n{text}"
            raise ProcessRaisedException(message, index, process.pid)
        code = process.exitcode
        name = None
        message = f"process {index} terminated with exit code {code}"
        if code < 0:
            try:
                name = signal.Signals(-code).name
            except ValueError:
                name = f"<Unknown signal {-code}>"
            message = f"process {index} terminated with signal {name}"
        raise ProcessExitedException(message, index, process.pid, code, name)

    def _error_text(self, index):
        try:
            with open(self.error_files[index], "rb") as file:
                return pickle.load(file)
        except (OSError, EOFError, pickle.UnpicklingError):
            return None

    def _remove_files(self) -> None:
        for name in self.error_files:
            with contextlib.suppress(OSError):
                os.unlink(name)


class SpawnContext(ProcessContext):
    """The name this class had first."""


def start_processes(
    fn, args=(), nprocs=1, join=True, daemon=False, start_method="spawn"
) -> ProcessContext | None:
    """Runs fn(i, *args) for i < nprocs, each in a process. With join=False returns the
    ProcessContext at once."""
    context = multiprocessing.get_context(start_method)

    def start(i):
        # A name that does not exist yet: the file says by existing that the function raised.
        handle, name = tempfile.mkstemp(prefix="torch-errorfile-", suffix=".pickle")
        os.close(handle)
        os.unlink(name)
        process = context.Process(
            target=_wrap, args=(fn, i, args, name, os.getpid()), daemon=daemon
        )
        process.start()
        return process, name

    at_once = start_method == "forkserver" and os.environ.get(ENV_VAR_PARALLEL_START) == "1"
    if at_once and nprocs > 0:
        with concurrent.futures.ThreadPoolExecutor(nprocs) as pool:
            made = list(pool.map(start, range(nprocs)))
    else:
        made = [start(i) for i in range(nprocs)]
    started = ProcessContext([process for process, _ in made], [name for _, name in made])
    if not join:
        return started
    while not started.join():
        pass
    return None


def spawn(fn, args=(), nprocs=1, join=True, daemon=False, start_method="spawn"):
    """start_processes with fresh interpreters."""
    if start_method != "spawn":
        warnings.warn(
            f"spawn() starts processes by 'spawn' only (got start_method={start_method!r}): use "
            "start_processes(..., start_method=...) for another",
            FutureWarning,
            stacklevel=2,
        )
    return start_processes(fn, args, nprocs, join, daemon, start_method="spawn")
