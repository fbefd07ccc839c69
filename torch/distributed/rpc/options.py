"""What users choose about remote calls."""

from __future__ import annotations

import torch
from torch.distributed.rpc.constants import (
    DEFAULT_INIT_METHOD,
    DEFAULT_NUM_WORKER_THREADS,
    DEFAULT_RPC_TIMEOUT_SEC,
)

__all__ = ["RpcBackendOptions", "TensorPipeRpcBackendOptions"]

Device = int | str | torch.device


class RpcBackendOptions:
    """The default timeout in seconds, and where the store is."""

    def __init__(
        self,
        rpc_timeout: float = DEFAULT_RPC_TIMEOUT_SEC,
        init_method: str = DEFAULT_INIT_METHOD,
    ) -> None:
        self.rpc_timeout, self.init_method = rpc_timeout, init_method


class TensorPipeRpcBackendOptions(RpcBackendOptions):
    """The same, and how many threads run calls. Transports and channels are names of another
    library and have no effect; tensors of devices are not sent."""

    def __init__(
        self,
        *,
        num_worker_threads: int = DEFAULT_NUM_WORKER_THREADS,
        rpc_timeout: float = DEFAULT_RPC_TIMEOUT_SEC,
        init_method: str = DEFAULT_INIT_METHOD,
        device_maps: dict[str, dict[Device, Device]] | None = None,
        devices: list[Device] | None = None,
        _transports: list[str] | None = None,
        _channels: list[str] | None = None,
    ) -> None:
        super().__init__(rpc_timeout, init_method)
        if num_worker_threads < 1:
            raise ValueError(f"num_worker_threads must be positive, got {num_worker_threads}")
        self.num_worker_threads = num_worker_threads
        self.device_maps: dict[str, dict[Device, Device]] = {}
        self.devices: list[torch.device] = []
        for to, device_map in (device_maps or {}).items():
            self.set_device_map(to, device_map)
        self.set_devices(devices or [])

    def set_device_map(self, to: str, device_map: dict[Device, Device]) -> None:
        """Devices of tensors that are sent: only the CPU's are."""
        if any(torch.device(one).type != "cpu" for one in device_map):
            raise NotImplementedError("rpc: tensors of devices other than the CPU are not sent")
        self.device_maps[to] = device_map

    def set_devices(self, devices: list[Device]) -> None:
        """Devices that calls use: only the CPU."""
        wanted = [torch.device(one) for one in devices]
        if any(one.type != "cpu" for one in wanted):
            raise NotImplementedError("rpc: devices other than the CPU are not supported")
        self.devices = wanted
