"""Starting workers from a program: elastic_launch(config, entrypoint)(*args)."""

from __future__ import annotations

import sys
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from torch.distributed.elastic._agent import Agent
from torch.distributed.elastic._nodes import Nodes, open_store

__all__ = ["LaunchConfig", "elastic_launch", "launch_agent"]


@dataclass
class LaunchConfig:
    """How many workers on how many nodes, and how nodes find each other."""

    min_nodes: int
    max_nodes: int
    nproc_per_node: int
    logs_specs: Any = None
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
    log_dir: str | None = None
    redirects: int = 0
    tee: int = 0

    def __post_init__(self) -> None:
        if self.rdzv_timeout != -1:
            self.rdzv_configs["timeout"] = self.rdzv_timeout
        elif "timeout" not in self.rdzv_configs:
            self.rdzv_configs["timeout"] = 900


def _address(endpoint: str) -> tuple[str, int]:
    host, _, port = endpoint.rpartition(":") if ":" in endpoint else (endpoint, "", "29400")
    return host or "localhost", int(port)


def _is_host(config: LaunchConfig) -> bool | None:
    word = config.rdzv_configs.get("is_host")
    return None if word is None else str(word).lower() in ("1", "true", "t", "yes")


def launch_agent(
    config: LaunchConfig, entrypoint: Callable | str | None, args: list[Any]
) -> dict[int, Any]:
    """Runs the workers of this node; their results by global rank."""
    run_id = config.run_id or f"run{uuid.uuid4().hex[:8]}"
    conf = config.rdzv_configs
    timeout = float(conf.get("join_timeout", conf["timeout"]))
    if config.rdzv_backend not in ("static", "c10d"):
        raise NotImplementedError(
            f"rendezvous backend {config.rdzv_backend!r} is not implemented; use static or c10d"
        )
    node_rank = int(conf["rank"]) if config.rdzv_backend == "static" else None
    if not config.rdzv_endpoint:
        host, port, is_host = "localhost", 0, True
    else:
        host, port = _address(config.rdzv_endpoint)
        is_host = node_rank == 0 if node_rank is not None else _is_host(config)
    store = open_store(host, port, is_host, timeout)
    nodes = Nodes(
        store,
        run_id,
        config.min_nodes,
        config.max_nodes,
        node_rank,
        timeout,
        float(conf.get("last_call_timeout", 30)),
    )
    command = entrypoint if callable(entrypoint) else [entrypoint or sys.executable, *args]
    agent = Agent(
        nodes,
        command,
        tuple(args),
        config.nproc_per_node,
        run_id,
        config.max_restarts,
        config.monitor_interval,
        config.start_method,
        config.log_dir,
        config.redirects,
        config.tee,
        config.role,
    )
    return agent.run()


class elastic_launch:
    """Starts workers that run a function or a command, and waits for them."""

    def __init__(self, config: LaunchConfig, entrypoint: Callable | str | None) -> None:
        self._config, self._entrypoint = config, entrypoint

    def __call__(self, *args: Any) -> dict[int, Any]:
        return launch_agent(self._config, self._entrypoint, list(args))
