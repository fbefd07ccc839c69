"""The launcher of one node: starts its workers, watches them, starts all anew when one fails while
restarts are left, and reports the first failure when none are."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import pickle
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from typing import IO, Any

from torch.distributed import DistNetworkError
from torch.distributed.elastic._nodes import Nodes, Round
from torch.distributed.elastic.multiprocessing.errors import (
    ChildFailedError,
    ProcessFailure,
    record,
)

_STOP_PATIENCE = 30.0  # seconds between SIGTERM and SIGKILL


class _Worker:
    """One process: a command or a function."""

    def __init__(self, local_rank: int, rank: int, folder: str) -> None:
        self.local_rank, self.rank = local_rank, rank
        self.folder = os.path.join(folder, str(local_rank))
        os.makedirs(self.folder, exist_ok=True)
        self.error_file = os.path.join(self.folder, "error.json")
        self._readers: list[threading.Thread] = []

    def start_command(self, command: list[str], env: dict[str, str], log: int, tee: int) -> None:
        out, err = (self._sink(name, bit, log, tee) for name, bit in (("stdout", 1), ("stderr", 2)))
        self._process = subprocess.Popen(command, env=env, stdout=out, stderr=err)
        for name, bit, pipe in (
            ("stdout", 1, self._process.stdout),
            ("stderr", 2, self._process.stderr),
        ):
            if tee & bit:
                self._copy(name, pipe)
        self.pid = self._process.pid

    def _sink(self, name: str, bit: int, log: int, tee: int) -> Any:
        if tee & bit:
            return subprocess.PIPE
        return open(os.path.join(self.folder, f"{name}.log"), "wb") if log & bit else None

    def _copy(self, name: str, pipe: IO[bytes]) -> None:
        path = os.path.join(self.folder, f"{name}.log")
        target = sys.stdout if name == "stdout" else sys.stderr

        def run() -> None:
            with open(path, "wb") as file:
                for line in pipe:
                    file.write(line)
                    target.write(f"[rank{self.rank}]:{line.decode(errors='replace')}")
                    target.flush()

        self._readers.append(threading.Thread(target=run, daemon=True))
        self._readers[-1].start()

    def start_function(
        self, function: Callable, args: tuple, env: dict[str, str], method: str
    ) -> None:
        self._result = os.path.join(self.folder, "result")
        context = multiprocessing.get_context(method)
        self._process = context.Process(
            target=_run_function, args=(function, args, env, self._result)
        )
        self._process.start()
        self.pid = self._process.pid

    def exit_code(self) -> int | None:
        if isinstance(self._process, subprocess.Popen):
            return self._process.poll()
        return self._process.exitcode

    def signal(self, number: int) -> None:
        if self.exit_code() is None:
            os.kill(self.pid, number)

    def finish(self) -> None:
        if isinstance(self._process, subprocess.Popen):
            self._process.wait()
        else:
            self._process.join()
        for reader in self._readers:
            reader.join(1)

    def result(self) -> Any:
        path = getattr(self, "_result", None)
        if path is None or not os.path.exists(path):
            return None
        with open(path, "rb") as file:
            return pickle.load(file)


def _run_function(function: Callable, args: tuple, env: dict[str, str], result: str) -> None:
    os.environ.update(env)
    value = record(function)(*args)
    with open(result, "wb") as file:
        pickle.dump(value, file)


class Agent:
    """Runs the workers of one node until they succeed or fail for good."""

    def __init__(
        self,
        nodes: Nodes,
        entrypoint: Callable | list[str],
        args: tuple,
        nproc_per_node: int,
        run_id: str,
        max_restarts: int = 0,
        monitor_interval: float = 0.1,
        start_method: str = "spawn",
        log_dir: str | None = None,
        redirects: int = 0,
        tee: int = 0,
        role: str = "default",
    ) -> None:
        self._nodes, self._entrypoint, self._args = nodes, entrypoint, args
        self._count, self._run_id, self._max_restarts = nproc_per_node, run_id, max_restarts
        self._interval, self._method, self._role = monitor_interval, start_method, role
        self._redirects, self._tee = redirects, tee
        self._keeps_logs = log_dir is not None
        if log_dir:
            os.makedirs(log_dir, exist_ok=True)
        self._folder = tempfile.mkdtemp(prefix=f"{run_id}_", dir=log_dir)
        self._workers: list[_Worker] = []

    @property
    def name(self) -> str:
        """What is run, for reports."""
        entry = self._entrypoint
        return entry.__name__ if callable(entry) else entry[-1 if len(entry) < 3 else 2]

    def run(self) -> dict[int, Any]:
        """The results of functions by global rank. Raises ChildFailedError."""
        before = [
            (number, signal.signal(number, self._on_signal))
            for number in (signal.SIGTERM, signal.SIGINT)
            if threading.current_thread() is threading.main_thread()
        ]
        try:
            return self._attempts()
        finally:
            self._stop()
            for number, handler in before:
                signal.signal(number, handler)
            if not self._keeps_logs:
                shutil.rmtree(self._folder, ignore_errors=True)

    def _on_signal(self, number: int, frame: object) -> None:
        self._stop(number)
        raise SystemExit(128 + number)

    def _attempts(self) -> dict[int, Any]:
        used = 0
        while True:
            at = self._nodes.next_round()
            self._start(at)
            outcome = self._watch(at)
            if outcome == "succeeded":
                return {worker.rank: worker.result() for worker in self._workers}
            failures = self._failures()
            self._stop()
            if outcome == "restarted":
                continue
            if outcome == "failed" and used < self._max_restarts:
                used += 1
                self._nodes.request_restart(at.number)
                continue
            with contextlib.suppress(DistNetworkError):
                self._nodes.report_end(at.number, failed=True)
            if not failures:
                raise RuntimeError("another node of the job failed")
            raise ChildFailedError(self.name, failures)

    # ---- one attempt
    def _environment(self, at: Round, local_rank: int, error_file: str) -> dict[str, str]:
        rank = at.rank * self._count + local_rank
        host, port = self._nodes.address
        env = dict(os.environ)
        env.update(
            LOCAL_RANK=str(local_rank),
            RANK=str(rank),
            GROUP_RANK=str(at.rank),
            ROLE_RANK=str(rank),
            ROLE_NAME=self._role,
            LOCAL_WORLD_SIZE=str(self._count),
            WORLD_SIZE=str(self._count * at.size),
            GROUP_WORLD_SIZE=str(at.size),
            ROLE_WORLD_SIZE=str(self._count * at.size),
            MASTER_ADDR=host,
            MASTER_PORT=str(port),
            TORCHELASTIC_RESTART_COUNT=str(at.number),
            TORCHELASTIC_MAX_RESTARTS=str(self._max_restarts),
            TORCHELASTIC_RUN_ID=self._run_id,
            TORCHELASTIC_USE_AGENT_STORE=str(True),
            TORCHELASTIC_ERROR_FILE=error_file,
        )
        if self._count > 1:
            # Workers share the machine: one thread each unless the user knows better.
            env.setdefault("OMP_NUM_THREADS", "1")
        return env

    def _start(self, at: Round) -> None:
        folder = os.path.join(self._folder, f"attempt_{at.number}")
        self._workers = []
        for local_rank in range(self._count):
            worker = _Worker(local_rank, at.rank * self._count + local_rank, folder)
            env = self._environment(at, local_rank, worker.error_file)
            if callable(self._entrypoint):
                worker.start_function(self._entrypoint, self._args, env, self._method)
            else:
                worker.start_command(self._entrypoint, env, self._redirects, self._tee)
            self._workers.append(worker)

    def _watch(self, at: Round) -> str:
        """How the attempt ended: succeeded, failed, restarted, or given up elsewhere."""
        self._reported = False
        try:
            return self._watch_all(at)
        except DistNetworkError:
            # The node that served the store has left. It does so when all succeeded, or gave up.
            return "succeeded" if self._reported else "given up"

    def _watch_all(self, at: Round) -> str:
        while True:
            codes = [worker.exit_code() for worker in self._workers]
            if any(code not in (None, 0) for code in codes):
                return "failed"
            if all(code == 0 for code in codes):
                if not self._reported:
                    self._nodes.report_end(at.number, failed=False)
                    self._reported = True
                if at.size == 1 or self._nodes.all_succeeded(at.number, at.size):
                    return "succeeded"
            if at.size > 1:
                if self._nodes.has_failed(at.number):
                    return "given up"
                if self._nodes.current_round() != at.number:
                    return "restarted"
            time.sleep(self._interval)

    def _failures(self) -> dict[int, ProcessFailure]:
        found = {}
        for worker in self._workers:
            code = worker.exit_code()
            if code not in (None, 0):
                found[worker.rank] = ProcessFailure(
                    worker.local_rank, worker.pid, code, worker.error_file
                )
        return found

    def _stop(self, number: int = signal.SIGTERM) -> None:
        for worker in self._workers:
            worker.signal(number)
        deadline = time.monotonic() + _STOP_PATIENCE
        for worker in self._workers:
            while worker.exit_code() is None and time.monotonic() < deadline:
                time.sleep(0.01)
            worker.signal(signal.SIGKILL)
            worker.finish()
