"""The agent whose workers are processes of this machine."""

from __future__ import annotations

import logging
import os
import signal
import time
import uuid
from string import Template
from typing import Any

from torch.distributed.elastic import events, timer
from torch.distributed.elastic.agent.server.api import (
    RunResult,
    SimpleElasticAgent,
    Worker,
    WorkerGroup,
    WorkerSpec,
    WorkerState,
)
from torch.distributed.elastic.agent.server.health_check_server import (
    HealthCheckServer,
    create_healthcheck_server,
)
from torch.distributed.elastic.metrics import prof
from torch.distributed.elastic.multiprocessing import LogsSpecs, PContext, start_processes
from torch.distributed.elastic.utils import macros
from torch.distributed.elastic.utils.process_state import (
    is_uninterruptible_state,
    read_proc_state,
)

__all__ = [
    "TORCHELASTIC_ENABLE_FILE_TIMER",
    "TORCHELASTIC_HEALTH_CHECK_PORT",
    "TORCHELASTIC_TIMER_FILE",
    "TORCHELASTIC_UNINTERRUPTIBLE_STATE_TIMEOUT",
    "LocalElasticAgent",
]

logger = logging.getLogger(__name__)

TORCHELASTIC_ENABLE_FILE_TIMER = "TORCHELASTIC_ENABLE_FILE_TIMER"
TORCHELASTIC_HEALTH_CHECK_PORT = "TORCHELASTIC_HEALTH_CHECK_PORT"
TORCHELASTIC_TIMER_FILE = "TORCHELASTIC_TIMER_FILE"
TORCHELASTIC_UNINTERRUPTIBLE_STATE_TIMEOUT = "TORCHELASTIC_UNINTERRUPTIBLE_STATE_TIMEOUT"


class LocalElasticAgent(SimpleElasticAgent):
    """Starts functions or commands on this machine."""

    def __init__(
        self,
        spec: WorkerSpec,
        logs_specs: LogsSpecs,
        start_method: str = "spawn",
        exit_barrier_timeout: float = 300,
        log_line_prefix_template: str | None = None,
        shutdown_timeout: int = 30,
        health_check_server: HealthCheckServer | None = None,
        uninterruptible_state_timeout: float | None = None,
    ) -> None:
        super().__init__(spec, exit_barrier_timeout, shutdown_timeout)
        self._start_method, self._logs_specs = start_method, logs_specs
        self._log_line_prefix_template = log_line_prefix_template
        self._health_check_server = health_check_server
        self._run_id = spec.rdzv_handler.get_run_id()
        self._pcontext: PContext | None = None
        self._watchdog: timer.FileTimerServer | None = None
        limit = os.environ.get(TORCHELASTIC_UNINTERRUPTIBLE_STATE_TIMEOUT)
        if uninterruptible_state_timeout is None and limit:
            uninterruptible_state_timeout = float(limit)
        self._stuck_limit = uninterruptible_state_timeout
        self._stuck_since: dict[int, float] = {}

    # ---- beside the workers
    def _setup_local_watchdog(self, envs: dict[int, dict[str, str]]) -> None:
        """A timer server for the workers, where TORCHELASTIC_ENABLE_FILE_TIMER is 1."""
        path = os.environ.get(TORCHELASTIC_TIMER_FILE)
        if os.environ.get(TORCHELASTIC_ENABLE_FILE_TIMER) == "1":
            path = path or f"/tmp/watchdog_timer_{uuid.uuid4()}"
            if self._watchdog is None:
                self._watchdog = timer.FileTimerServer(
                    path, self._run_id, max_interval=0.1, daemon=True,
                    log_event=self._log_watchdog_event,
                )  # fmt: skip
                self._watchdog.start()
        if path:
            for env in envs.values():
                env[TORCHELASTIC_TIMER_FILE] = path

    def _log_watchdog_event(self, name: str, request: timer.FileTimerRequest | None) -> None:
        about = {} if request is None else {
            "worker_pid": str(request.worker_pid),
            "scope_id": request.scope_id,
            "expiration_time": str(request.expiration_time),
            "signal": str(request.signal),
        }  # fmt: skip
        event = events.Event(
            name=f"watchdog.{name}",
            source=events.EventSource.AGENT,
            timestamp=int(time.time()),
            metadata={"run_id": self._run_id, "role": self._worker_group.spec.role, **about},
        )
        events.record(event, self._worker_group.spec.event_log_handler)

    def _last_progress(self) -> int:
        return int(time.time()) if self._watchdog is None else (
            self._watchdog.get_last_progress_time()
        )  # fmt: skip

    def _setup_healthcheck(self) -> None:
        port = os.environ.get(TORCHELASTIC_HEALTH_CHECK_PORT)
        if port is None and self._health_check_server is None:
            return
        if self._health_check_server is None:
            self._health_check_server = create_healthcheck_server(
                self._last_progress, int(port), timeout=60
            )
        self._health_check_server.start()

    # ---- workers
    def _environment(self, group: WorkerGroup, worker: Worker) -> dict[str, str]:
        spec = group.spec
        local_rank = 0 if spec.virtual_local_rank else worker.local_rank
        values: dict[str, Any] = {
            "LOCAL_RANK": local_rank,
            "RANK": worker.global_rank,
            "GROUP_RANK": group.group_rank,
            "ROLE_RANK": worker.role_rank,
            "ROLE_NAME": spec.role,
            "LOCAL_WORLD_SIZE": spec.local_world_size,
            "WORLD_SIZE": worker.world_size,
            "GROUP_WORLD_SIZE": group.group_world_size,
            "ROLE_WORLD_SIZE": worker.role_world_size,
            "MASTER_ADDR": group.master_addr,
            "MASTER_PORT": group.master_port,
            "TORCHELASTIC_RESTART_COUNT": spec.max_restarts - self._remaining_restarts,
            "TORCHELASTIC_MAX_RESTARTS": spec.max_restarts,
            "TORCHELASTIC_RUN_ID": self._run_id,
            "TORCHELASTIC_USE_AGENT_STORE": spec.rdzv_handler.use_agent_store,
            "TORCH_NCCL_ASYNC_ERROR_HANDLING": os.environ.get(
                "TORCH_NCCL_ASYNC_ERROR_HANDLING", "1"
            ),
        }
        if "OMP_NUM_THREADS" in os.environ:
            values["OMP_NUM_THREADS"] = os.environ["OMP_NUM_THREADS"]
        elif spec.local_world_size > 1:
            # Workers share the machine: one thread each unless the user knows better.
            values["OMP_NUM_THREADS"] = 1
        return {name: str(value) for name, value in values.items()}

    @prof
    def _start_workers(self, worker_group: WorkerGroup) -> dict[int, Any]:
        spec = worker_group.spec
        args: dict[int, tuple] = {}
        envs: dict[int, dict[str, str]] = {}
        prefixes: dict[int, str] | None = {} if self._log_line_prefix_template else None
        for worker in worker_group.workers:
            rank = worker.local_rank
            envs[rank] = self._environment(worker_group, worker)
            args[rank] = tuple(macros.substitute(list(spec.args), str(rank)))
            if prefixes is not None:
                prefixes[rank] = Template(self._log_line_prefix_template).safe_substitute(
                    role_name=spec.role, rank=worker.global_rank, local_rank=rank
                )
        self._setup_local_watchdog(envs)
        self._setup_healthcheck()
        self._pcontext = start_processes(
            name=spec.role,
            entrypoint=spec.entrypoint,
            args=args,
            envs=envs,
            logs_specs=self._logs_specs,
            log_line_prefixes=prefixes,
            start_method=self._start_method,
            numa_options=spec.numa_options,
            duplicate_stdout_filters=spec.duplicate_stdout_filters,
            duplicate_stderr_filters=spec.duplicate_stderr_filters,
        )
        return self._pcontext.pids()

    @prof
    def _stop_workers(self, worker_group: WorkerGroup, is_restart: bool = False) -> None:
        self._shutdown(is_restart=is_restart)

    def _shutdown(
        self, death_sig: signal.Signals = signal.SIGTERM, is_restart: bool = False
    ) -> None:
        if self._watchdog is not None and not is_restart:
            self._watchdog.stop()
            self._watchdog = None
        if self._health_check_server is not None and not is_restart:
            self._health_check_server.stop()
            self._health_check_server = None
        if self._pcontext is not None:
            self._pcontext.close(death_sig, timeout=self._shutdown_timeout)
            self._pcontext = None

    def _stuck(self, pids: dict[int, int]) -> list[int]:
        """Processes that have waited in the kernel for longer than the limit."""
        if self._stuck_limit is None:
            return []
        now = time.monotonic()
        waiting = {pid for pid in pids.values() if is_uninterruptible_state(read_proc_state(pid))}
        self._stuck_since = {pid: self._stuck_since.get(pid, now) for pid in waiting}
        return [pid for pid, since in self._stuck_since.items() if now - since > self._stuck_limit]

    @prof
    def _monitor_workers(self, worker_group: WorkerGroup) -> RunResult:
        pids = self._pcontext.pids()
        if {worker.id for worker in worker_group.workers} != set(pids.values()):
            logger.error("the workers %s are not the processes %s", worker_group.workers, pids)
            return RunResult(state=WorkerState.UNKNOWN)
        result = self._pcontext.wait(0)
        if result is None:
            stuck = self._stuck(pids)
            if stuck:
                logger.error("processes %s wait in the kernel for too long", stuck)
                return RunResult(state=WorkerState.UNHEALTHY)
            return RunResult(state=WorkerState.HEALTHY)
        ranks = {worker.local_rank: worker.global_rank for worker in worker_group.workers}
        if result.is_failed():
            for local_rank, failure in result.failures.items():
                logger.error("rank %d failed: %s", ranks[local_rank], failure.message)
            return RunResult(
                state=WorkerState.FAILED,
                failures={ranks[rank]: failure for rank, failure in result.failures.items()},
            )
        return RunResult(
            state=WorkerState.SUCCEEDED,
            return_values={ranks[rank]: value for rank, value in result.return_values.items()},
        )
