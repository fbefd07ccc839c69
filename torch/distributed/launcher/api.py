"""Starting workers from a program: elastic_launch(config, entrypoint)(*args)."""

from __future__ import annotations

import logging
import os
import sys
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch.distributed.elastic.rendezvous.registry as rdzv_registry
from torch.distributed.elastic import events, metrics
from torch.distributed.elastic.agent.server.api import WorkerSpec
from torch.distributed.elastic.agent.server.local_elastic_agent import LocalElasticAgent
from torch.distributed.elastic.multiprocessing import DefaultLogsSpecs, LogsSpecs, SignalException
from torch.distributed.elastic.multiprocessing.errors import ChildFailedError
from torch.distributed.elastic.rendezvous import RendezvousParameters
from torch.distributed.elastic.rendezvous.utils import parse_rendezvous_endpoint

__all__ = ["LaunchConfig", "elastic_launch", "launch_agent"]

logger = logging.getLogger(__name__)


@dataclass
class LaunchConfig:
    """How many workers on how many nodes, and how nodes find each other."""

    min_nodes: int
    max_nodes: int
    nproc_per_node: int
    logs_specs: LogsSpecs | None = None
    run_id: str = ""
    role: str = "default_role"
    rdzv_endpoint: str = ""
    rdzv_backend: str = "c10d"
    rdzv_configs: dict[str, Any] = field(default_factory=dict)
    rdzv_timeout: int = -1
    max_restarts: int = 3
    monitor_interval: float = 0.1
    start_method: str = "spawn"
    log_line_prefix_template: str | None = None
    metrics_cfg: dict[str, str] = field(default_factory=dict)
    local_addr: str | None = None
    event_log_handler: str = "null"
    numa_options: object = None
    signals_to_handle: str = "SIGTERM,SIGINT,SIGHUP,SIGQUIT"
    duplicate_stdout_filters: list[str] | None = None
    duplicate_stderr_filters: list[str] | None = None
    virtual_local_rank: bool = False
    shutdown_timeout: int | None = None

    def __post_init__(self) -> None:
        if self.rdzv_timeout != -1:
            self.rdzv_configs["timeout"] = self.rdzv_timeout
        else:
            self.rdzv_configs.setdefault("timeout", 900)
        if self.logs_specs is None:
            self.logs_specs = DefaultLogsSpecs()
        if self.numa_options is not None:
            raise NotImplementedError("LaunchConfig: numa_options is not implemented")


def _get_entrypoint_name(entrypoint: Callable | str | None, args: list[Any]) -> str:
    """The function's name; of a Python command the first argument that is no option."""
    if callable(entrypoint):
        return getattr(entrypoint, "__qualname__", str(entrypoint))
    if entrypoint == sys.executable:
        return next((str(word) for word in args if str(word)[:1] != "-"), "")
    return entrypoint or ""


def _get_addr_and_port(params: RendezvousParameters) -> tuple[str | None, int | None]:
    """Where the store of the workers is, as far as a static rendezvous says."""
    if params.backend != "static":
        return None, None
    endpoint = params.endpoint.strip()
    if not endpoint:
        raise ValueError("Endpoint is missing in endpoint. Try to add --master-addr and "
                         "--master-port")  # fmt: skip
    host, port = parse_rendezvous_endpoint(endpoint, default_port=-1)
    if port == -1:
        raise ValueError(f"port is missing in endpoint: {endpoint}. Try to specify --master-port")
    # Port 0 is chosen by the store.
    return host, port or None


def _spec(config: LaunchConfig, entrypoint: Callable | str | None, args: list[Any]) -> WorkerSpec:
    endpoint, options = config.rdzv_endpoint, dict(config.rdzv_configs)
    if not endpoint and config.rdzv_backend == "c10d" and config.max_nodes == 1:
        # Nobody else has to know the port.
        endpoint = "localhost:0"
        options.setdefault("is_host", True)
    params = RendezvousParameters(
        backend=config.rdzv_backend,
        endpoint=endpoint,
        run_id=config.run_id,
        min_nodes=config.min_nodes,
        max_nodes=config.max_nodes,
        local_addr=config.local_addr,
        **options,
    )
    address, port = _get_addr_and_port(params)
    return WorkerSpec(
        role=config.role,
        local_world_size=config.nproc_per_node,
        entrypoint=entrypoint or sys.executable,
        args=tuple(args),
        rdzv_handler=rdzv_registry.get_rendezvous_handler(params),
        max_restarts=config.max_restarts,
        monitor_interval=config.monitor_interval,
        master_addr=address,
        master_port=port,
        local_addr=config.local_addr,
        event_log_handler=config.event_log_handler,
        duplicate_stdout_filters=config.duplicate_stdout_filters,
        duplicate_stderr_filters=config.duplicate_stderr_filters,
        virtual_local_rank=config.virtual_local_rank,
    )


def launch_agent(
    config: LaunchConfig,
    entrypoint: Callable | str | None,
    args: list[Any],
    health_check_server: object = None,
) -> dict[int, Any]:
    """Runs the workers of this node; their results by global rank."""
    if not config.run_id:
        config.run_id = str(uuid.uuid4().int)
        logger.info("the job has no run_id; generated %s", config.run_id)
    name = _get_entrypoint_name(entrypoint, args)
    os.environ["TORCHELASTIC_SIGNALS_TO_HANDLE"] = config.signals_to_handle
    metrics.initialize_metrics(metrics.MetricsConfig(config.metrics_cfg))
    spec = _spec(config, entrypoint, args)
    limit = {} if config.shutdown_timeout is None else {
        "shutdown_timeout": config.shutdown_timeout
    }  # fmt: skip
    agent = LocalElasticAgent(
        spec=spec,
        logs_specs=config.logs_specs,
        start_method=config.start_method,
        log_line_prefix_template=config.log_line_prefix_template,
        health_check_server=health_check_server,
        **limit,
    )
    ends_rendezvous = True
    try:
        result = agent.run()
        events.record(agent.get_event_succeeded(), config.event_log_handler)
        if result is None:
            return {}
        if result.is_failed():
            raise ChildFailedError(name, result.failures)
        return result.return_values
    except ChildFailedError:
        raise
    except SignalException:
        # The others may go on with another node in this one's place.
        ends_rendezvous = False
        events.record(agent.get_event_failed(), config.event_log_handler)
        raise
    except Exception:
        events.record(agent.get_event_failed(), config.event_log_handler)
        raise
    finally:
        if ends_rendezvous:
            spec.rdzv_handler.shutdown()


class elastic_launch:
    """Starts workers that run a function or a command, and waits for them."""

    def __init__(
        self,
        config: LaunchConfig,
        entrypoint: Callable | str | None,
        health_check_server: object = None,
    ) -> None:
        self._config, self._entrypoint = config, entrypoint
        self._health_check_server = health_check_server

    def __call__(self, *args: Any) -> dict[int, Any]:
        return launch_agent(self._config, self._entrypoint, list(args), self._health_check_server)
