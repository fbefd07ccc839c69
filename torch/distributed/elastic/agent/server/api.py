"""What every agent does: meets the other agents, gives its workers ranks, starts them, looks at
them at intervals, and starts all anew when one failed or when more nodes came. How workers are
started is the business of a subclass."""

from __future__ import annotations

import json
import logging
import os
import signal
import socket
import time
import traceback
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

import torch.distributed.elastic.utils.store as store_util
from torch.distributed import Store
from torch.distributed.elastic.events import Event, EventSource, record
from torch.distributed.elastic.metrics import prof, put_metric
from torch.distributed.elastic.multiprocessing import ProcessFailure, SignalException
from torch.distributed.elastic.rendezvous import RendezvousGracefulExitError, RendezvousHandler

__all__ = [
    "ElasticAgent",
    "RunResult",
    "SimpleElasticAgent",
    "Worker",
    "WorkerGroup",
    "WorkerSpec",
    "WorkerState",
]

logger = logging.getLogger(__name__)

_EXIT_BARRIER = "torchelastic/agent/terminal_state"
_ROLE_INFOS = "torchelastic/role_info"


@dataclass
class WorkerSpec:
    """What to run, how often to try, and how to find the others."""

    role: str
    local_world_size: int
    rdzv_handler: RendezvousHandler
    fn: Callable | None = None
    entrypoint: Callable | str | None = None
    args: tuple = ()
    max_restarts: int = 3
    monitor_interval: float = 0.1
    master_port: int | None = None
    master_addr: str | None = None
    local_addr: str | None = None
    event_log_handler: str = "null"
    numa_options: object = None
    duplicate_stdout_filters: list[str] | None = None
    duplicate_stderr_filters: list[str] | None = None
    virtual_local_rank: bool = False

    def __post_init__(self) -> None:
        if self.local_world_size <= 0:
            raise AssertionError(f"local_world_size must be positive, got {self.local_world_size}")
        if self.monitor_interval <= 0:
            raise AssertionError(f"monitor_interval must be positive, got {self.monitor_interval}")
        if self.fn is not None:
            warnings.warn(
                "WorkerSpec.fn will be deprecated, please use WorkerSpec.entrypoint instead",
                category=DeprecationWarning,
                stacklevel=3,
            )
            self.entrypoint = self.fn
        if not self.entrypoint:
            raise AssertionError("WorkerSpec needs an entrypoint")

    def get_entrypoint_name(self) -> str:
        """The name of the function, or the command."""
        if isinstance(self.entrypoint, str):
            return os.path.basename(self.entrypoint)
        return self.entrypoint.__qualname__


class Worker:
    """One worker. `id` is what the agent started it as: a process."""

    __slots__ = ["global_rank", "id", "local_rank", "role_rank", "role_world_size", "world_size"]

    def __init__(
        self,
        local_rank: int,
        global_rank: int = -1,
        role_rank: int = -1,
        world_size: int = -1,
        role_world_size: int = -1,
    ) -> None:
        self.id: Any = None
        self.local_rank, self.global_rank, self.role_rank = local_rank, global_rank, role_rank
        self.world_size, self.role_world_size = world_size, role_world_size

    def __repr__(self) -> str:
        values = ", ".join(f"{name}={getattr(self, name)}" for name in sorted(self.__slots__))
        return f"Worker({values})"


class WorkerState(str, Enum):
    """The state of an agent's workers."""

    UNKNOWN = "UNKNOWN"
    INIT = "INIT"
    HEALTHY = "HEALTHY"
    UNHEALTHY = "UNHEALTHY"
    STOPPED = "STOPPED"
    SUCCEEDED = "SUCCEEDED"
    FAILED = "FAILED"

    @staticmethod
    def is_running(state: WorkerState) -> bool:
        """True while there are processes."""
        return state in (WorkerState.HEALTHY, WorkerState.UNHEALTHY)


class WorkerGroup:
    """The workers of an agent. Ranks and addresses come with the rendezvous."""

    __slots__ = [
        "group_rank",
        "group_world_size",
        "master_addr",
        "master_port",
        "spec",
        "state",
        "store",
        "workers",
    ]

    def __init__(self, spec: WorkerSpec) -> None:
        self.spec, self.state = spec, WorkerState.INIT
        self.workers = [Worker(local_rank) for local_rank in range(spec.local_world_size)]
        self.store: Store | None = None
        self.group_rank: int | None = None
        self.group_world_size: int | None = None
        self.master_addr: str | None = None
        self.master_port: int | None = None


class _RoleInstanceInfo:
    """What an agent tells the others: its role, its rank, how many workers it has."""

    __slots__ = ["local_world_size", "rank", "role"]

    def __init__(self, role: str, rank: int, local_world_size: int) -> None:
        self.role, self.rank, self.local_world_size = role, rank, local_world_size

    def serialize(self) -> bytes:
        """For the store."""
        return json.dumps([self.role, self.rank, self.local_world_size]).encode()

    @staticmethod
    def deserialize(data: bytes) -> _RoleInstanceInfo:
        """From the store."""
        return _RoleInstanceInfo(*json.loads(data))

    @staticmethod
    def compare(obj1: _RoleInstanceInfo, obj2: _RoleInstanceInfo) -> int:
        """-1, 0 or 1: by role, then by rank."""
        one, other = (obj1.role, obj1.rank), (obj2.role, obj2.rank)
        return (one > other) - (one < other)

    @staticmethod
    def find_role_boundaries(roles_infos: list[_RoleInstanceInfo], role: str) -> tuple[int, int]:
        """The first and the last place of a role in a list."""
        places = [place for place, info in enumerate(roles_infos) if info.role == role]
        return (places[0], places[-1]) if places else (-1, -1)


@dataclass
class RunResult:
    """How the workers ended: results or failures by global rank."""

    state: WorkerState
    return_values: dict[int, Any] = field(default_factory=dict)
    failures: dict[int, ProcessFailure] = field(default_factory=dict)

    def is_failed(self) -> bool:
        """True where they failed."""
        return self.state == WorkerState.FAILED


def _get_fq_hostname() -> str:
    return socket.getfqdn(socket.gethostname())


class ElasticAgent(ABC):
    """Starts and watches workers."""

    @abstractmethod
    def run(self, role: str = "default") -> RunResult:
        """Runs the workers to their end."""

    @abstractmethod
    def get_worker_group(self, role: str = "default") -> WorkerGroup:
        """The workers, to look at."""


class SimpleElasticAgent(ElasticAgent):
    """An agent for workers of one role."""

    def __init__(
        self, spec: WorkerSpec, exit_barrier_timeout: float = 300, shutdown_timeout: int = 30
    ) -> None:
        self._worker_group = WorkerGroup(spec)
        self._remaining_restarts = spec.max_restarts
        self._store: Store | None = None
        self._exit_barrier_timeout = exit_barrier_timeout
        self._shutdown_timeout = shutdown_timeout
        self._total_execution_time, self._began = 0, time.monotonic()

    def get_worker_group(self, role: str = "default") -> WorkerGroup:
        """The workers."""
        return self._worker_group

    # ---- what a subclass does
    @abstractmethod
    def _start_workers(self, worker_group: WorkerGroup) -> dict[int, Any]:
        """Starts all; returns their ids by local rank."""

    @abstractmethod
    def _stop_workers(self, worker_group: WorkerGroup, is_restart: bool = False) -> None:
        """Stops all."""

    @abstractmethod
    def _monitor_workers(self, worker_group: WorkerGroup) -> RunResult:
        """Looks at all."""

    @abstractmethod
    def _shutdown(
        self, death_sig: signal.Signals = signal.SIGTERM, is_restart: bool = False
    ) -> None:
        """Frees everything."""

    # ---- ranks
    @prof
    def _rendezvous(self, worker_group: WorkerGroup) -> None:
        """Meets the other agents and gives the workers their ranks."""
        spec = worker_group.spec
        with self.record_duration("RENDEZVOUS"):
            info = spec.rdzv_handler.next_rendezvous()
        self._store = info.store
        with self.record_duration("ASSIGN_WORKER_RANKS"):
            worker_group.workers = self._assign_worker_ranks(
                info.store, info.rank, info.world_size, spec
            )
        worker_group.store, worker_group.group_rank = info.store, info.rank
        worker_group.group_world_size = info.world_size
        found = info.bootstrap_store_info
        worker_group.master_addr = spec.master_addr or found.master_addr
        worker_group.master_port = spec.master_port or found.master_port

    @prof
    def _assign_worker_ranks(
        self, store: Store, group_rank: int, group_world_size: int, spec: WorkerSpec
    ) -> list[Worker]:
        """Ranks follow the agents' ranks; role ranks count the workers of the same role only. Where
        all agents have equally many workers (TORCH_ELASTIC_WORKER_IDENTICAL=1) none asks."""
        count = spec.local_world_size
        if os.environ.get("TORCH_ELASTIC_WORKER_IDENTICAL", "0") == "1":
            infos = [_RoleInstanceInfo(spec.role, rank, count) for rank in range(group_world_size)]
        else:
            own = _RoleInstanceInfo(spec.role, group_rank, count).serialize()
            told = store_util.synchronize(store, own, group_rank, group_world_size, _ROLE_INFOS)
            infos = [_RoleInstanceInfo.deserialize(one) for one in told]
        same = [info for info in infos if info.role == spec.role]
        first = sum(info.local_world_size for info in infos if info.rank < group_rank)
        role_first = sum(info.local_world_size for info in same if info.rank < group_rank)
        world_size = sum(info.local_world_size for info in infos)
        role_world_size = sum(info.local_world_size for info in same)
        return [
            Worker(local, first + local, role_first + local, world_size, role_world_size)
            for local in range(count)
        ]

    # ---- life of the workers
    @prof
    def _initialize_workers(self, worker_group: WorkerGroup) -> None:
        self._rendezvous(worker_group)
        with self.record_duration("START_WORKERS"):
            ids = self._start_workers(worker_group)
        for worker in worker_group.workers:
            worker.id = ids[worker.local_rank]
        worker_group.state = WorkerState.HEALTHY

    @prof
    def _restart_workers(self, worker_group: WorkerGroup) -> None:
        self._stop_workers(worker_group, is_restart=True)
        worker_group.state = WorkerState.STOPPED
        self._initialize_workers(worker_group)

    @contextmanager
    def _cleaned_up(self) -> Iterator[None]:
        """Frees everything at the end, by the signal that ended the agent where there was one."""
        signals: list[signal.Signals] = []
        self._began = time.monotonic()
        try:
            yield
        except SignalException as error:
            signals.append(error.sigval)
            raise
        finally:
            self._shutdown(*signals)
            # At least a second, so that a short run shows.
            self._total_execution_time = max(self._seconds_since_start(), 1)

    def _seconds_since_start(self) -> int:
        return int(time.monotonic() - self._began)

    @prof
    def run(self, role: str = "default") -> RunResult | None:
        """Runs the workers to their end; None where the rendezvous let this agent go."""
        with self._cleaned_up(), suppress(RendezvousGracefulExitError):
            result = self._invoke_run(role)
            self._total_execution_time = self._seconds_since_start()
            for tell in (self._record_metrics, self._record_worker_events):
                tell(result)
            return result
        return None

    def _invoke_run(self, role: str = "default") -> RunResult:
        group = self._worker_group
        spec = group.spec
        self._initialize_workers(group)
        while True:
            time.sleep(spec.monitor_interval)
            result = self._monitor_workers(group)
            group.state = result.state
            put_metric(f"workers.{role}.remaining_restarts", self._remaining_restarts)
            put_metric(f"workers.{role}.{result.state.name.lower()}", 1)
            if result.state is WorkerState.SUCCEEDED:
                self._exit_barrier()
                return result
            if result.state in (WorkerState.UNHEALTHY, WorkerState.FAILED):
                if self._remaining_restarts <= 0:
                    self._stop_workers(group)
                    group.state = WorkerState.FAILED
                    return result
                logger.info("workers failed; %d restarts left", self._remaining_restarts)
                self._remaining_restarts -= 1
                self._restart_workers(group)
            elif result.state is not WorkerState.HEALTHY:
                raise RuntimeError(f"[{role}] Worker group in {result.state.name} state")
            elif spec.rdzv_handler.num_nodes_waiting() > 0:
                logger.info("more nodes came; the workers are started anew with them")
                self._restart_workers(group)

    def _exit_barrier(self) -> None:
        """Waits until the workers of all agents are done: agent 0 may serve their store. Whoever
        does not come in time is left alone."""
        try:
            store_util.barrier(
                self._store,
                self._worker_group.group_world_size,
                key_prefix=_EXIT_BARRIER,
                barrier_timeout=self._exit_barrier_timeout,
            )
        except SignalException:
            raise
        except Exception:
            logger.exception("not all agents were done after %s s", self._exit_barrier_timeout)

    # ---- metrics and events
    def _record_metrics(self, group_results: RunResult) -> None:
        role = self._worker_group.spec.role
        failed = group_results.is_failed()
        retried = self._remaining_restarts != self._worker_group.spec.max_restarts
        self._record_flakiness_metric(failed)
        put_metric(f"workers.{role}.run_total", 1)
        for outcome, is_failure in (("success", False), ("failed", True)):
            for words, with_retries in (("with_retries", True), ("no_retries", False)):
                hit = failed == is_failure and retried == with_retries
                put_metric(f"workers.{role}.run_{outcome}_{words}", int(hit))

    def _record_flakiness_metric(self, is_failed: bool = False) -> None:
        """How much of the restarts was used up, in percent; 100 for a failure."""
        spec = self._worker_group.spec
        share = (self._remaining_restarts + 1) / (spec.max_restarts + 1)
        flakiness = 100.0 if is_failed else 100.0 - 100.0 * share
        if not is_failed and spec.max_restarts == 0:
            flakiness = 0.0
        put_metric(f"workers.{spec.role}.flakiness", int(flakiness))

    def _record_worker_events(self, result: RunResult) -> None:
        for worker in self._worker_group.workers:
            failure = result.failures.get(worker.global_rank)
            state = result.state.name
            if failure is not None:
                state, error = "FAILED", json.dumps(failure.error_file_data)
            else:
                # The others of a group that failed were stopped.
                state, error = ("TERMINATED" if result.is_failed() else state), None
            record(
                self._construct_event(state, EventSource.WORKER, worker, error),
                self._worker_group.spec.event_log_handler,
            )

    def get_event_failed(self) -> Event:
        """The event of an agent that ends with the exception being handled."""
        return self._construct_event("FAILED", EventSource.AGENT, raw_error=traceback.format_exc())

    def get_event_succeeded(self) -> Event:
        """The event of an agent that ends well."""
        return self._construct_event("SUCCEEDED", EventSource.AGENT)

    def _construct_event(
        self,
        state: str,
        source: EventSource,
        worker: Worker | None = None,
        raw_error: str | None = None,
        duration_ms: float | None = None,
    ) -> Event:
        group = self._worker_group
        spec = group.spec
        metadata = {
            "run_id": spec.rdzv_handler.get_run_id(),
            "global_rank": None if worker is None else worker.global_rank,
            "group_rank": group.group_rank,
            "worker_id": None if worker is None else str(worker.id),
            "role": spec.role,
            "hostname": _get_fq_hostname(),
            "state": state,
            "total_run_time": self._total_execution_time,
            "rdzv_backend": spec.rdzv_handler.get_backend(),
            "raw_error": raw_error,
            "agent_restarts": spec.max_restarts - self._remaining_restarts,
            "duration_ms": duration_ms,
        }
        if worker is not None:
            metadata["metadata"] = json.dumps(
                {
                    "group_world_size": group.group_world_size,
                    "entry_point": spec.get_entrypoint_name(),
                    "local_rank": [worker.local_rank],
                    "role_rank": [worker.role_rank],
                    "role_world_size": [worker.role_world_size],
                }
            )
        return Event(
            name=f"torchelastic.worker.status.{state}",
            source=EventSource(source),
            timestamp=int(time.time()),
            metadata=metadata,
        )

    @contextmanager
    def record_duration(self, state: str) -> Iterator[None]:
        """Publishes how long the block took."""
        began = time.perf_counter()
        try:
            yield
        finally:
            took = (time.perf_counter() - began) * 1000
            put_metric(f"agent.{state.lower()}.duration.ms", int(took))
