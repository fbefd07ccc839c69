"""Calls of functions in other processes, and references to values that live there. Workers find
each other through a store; each listens on a TCP port of its own (`_agent.py`)."""

from torch.distributed.rpc._agent import WorkerInfo
from torch.distributed.rpc.api import (
    PyRRef,
    RRef,
    get_worker_info,
    init_rpc,
    is_available,
    remote,
    rpc_async,
    rpc_sync,
    shutdown,
)
from torch.distributed.rpc.backend_registry import BackendType
from torch.distributed.rpc.options import RpcBackendOptions, TensorPipeRpcBackendOptions

__all__ = [
    "BackendType",
    "PyRRef",
    "RRef",
    "RpcBackendOptions",
    "TensorPipeRpcBackendOptions",
    "WorkerInfo",
    "get_worker_info",
    "init_rpc",
    "is_available",
    "remote",
    "rpc_async",
    "rpc_sync",
    "shutdown",
]
