"""The backends by name, for which kinds of device each is, and third parties' own."""

from __future__ import annotations

import os
from collections.abc import Callable

import torch
from torch._C._distributed_c10d import ProcessGroup, _is_gloo_available

# Name, devices it serves, the kind its groups report, and the devices it is the default of.
_ENGINES: tuple[tuple[str, str, str, str], ...] = (
    ("undefined", "", "UNDEFINED", ""),
    ("gloo", "cpu cuda", "GLOO", "cpu mps"),
    ("nccl", "cuda", "NCCL", "cuda"),
    ("xccl", "xpu", "XCCL", "xpu"),
    ("ucc", "cpu cuda", "UCC", ""),
    ("mpi", "cpu cuda", "MPI", ""),
    ("fake", "cpu cuda hpu xpu", "CUSTOM", ""),
)


class Backend(str):
    """The name of a way to communicate; names are lower case. Each is an attribute too: GLOO."""

    UNDEFINED: str
    _BackendPlugin = tuple[Callable, bool]
    _plugins: dict[str, tuple[Callable, bool]] = {}
    backend_list = [engine[0] for engine in _ENGINES]
    backend_capability: dict[str, list[str]] = {
        name: devices.split() for name, devices, _, _ in _ENGINES if devices
    }
    backend_type_map: dict[str, ProcessGroup.BackendType] = {
        name: getattr(ProcessGroup.BackendType, kind) for name, _, kind, _ in _ENGINES
    }
    default_device_backend_map: dict[str, str] = {
        device: name for name, _, _, devices in _ENGINES for device in devices.split()
    }

    def __new__(cls, name: str) -> str:
        if not isinstance(name, str):
            raise ValueError("Backend constructor parameter must be string-ish")
        value = getattr(cls, name.upper(), Backend.UNDEFINED)
        return str.__new__(cls, name.lower() if value == Backend.UNDEFINED else value)

    @classmethod
    def register_backend(
        cls,
        name: str,
        func: Callable,
        extended_api: bool = False,
        devices: str | list[str] | None = None,
    ) -> None:
        """Makes `name` a backend that func(store, rank, size, timeout) opens; with extended_api,
        func(options, backend_options)."""
        lower = name.lower()
        if lower in cls._plugins:
            raise RuntimeError(f"{name.upper()} c10d backend creator function already exist")
        if lower not in cls.backend_list:
            setattr(cls, name.upper(), lower)
            cls.backend_list.append(lower)
        if isinstance(devices, str):
            devices = [devices]
        if devices is not None:
            for device in devices:
                if device not in cls.default_device_backend_map:
                    cls.default_device_backend_map[device] = lower
        cls.backend_type_map[lower] = ProcessGroup.BackendType.CUSTOM
        cls.backend_capability[lower] = devices or ["cpu", "cuda"]
        cls._plugins[lower] = (func, extended_api)


for _name in Backend.backend_list:
    setattr(Backend, _name.upper(), _name)
# Kept for programs that use the name the attribute has elsewhere.
Backend._plugins_by_name = Backend._plugins


class BackendConfig:
    """Which backend serves which kind of device: "gloo", or "cpu:gloo,cuda:nccl"."""

    def __init__(self, backend: str) -> None:
        self.device_backend_map: dict[str, str] = {}
        text = str(backend)
        if text == Backend.UNDEFINED:
            for device, name in Backend.default_device_backend_map.items():
                if is_backend_available(name):
                    self.device_backend_map[device] = Backend(name)
        elif ":" in text.lower():
            for pair in text.lower().split(","):
                self._add_pair(pair, text)
        elif text.lower() in Backend.backend_list:
            devices = Backend.backend_capability.get(text.lower(), ["cpu", "cuda"])
            self.device_backend_map = {device: Backend(text) for device in devices}
        else:
            raise ValueError(
                f"Unknown backend {text!r}; known are {', '.join(Backend.backend_list)}"
            )

    def _add_pair(self, pair: str, text: str) -> None:
        device, colon, name = pair.strip().partition(":")
        known = self.device_backend_map
        if not colon or ":" in name:
            raise ValueError(
                f"The custom backend string argument is invalid: {text}.\n  expected "
                "device:backend,device:backend, for example cpu:gloo,cuda:nccl"
            )
        if known.setdefault(device, Backend(name)) != name:
            raise ValueError(
                f"Duplicate device type {device} in backend string: {text}. Each can have one."
            )

    def __repr__(self) -> str:
        return ",".join(f"{device}:{name}" for device, name in self.device_backend_map.items())

    def get_device_backend_map(self) -> dict[str, str]:
        """The backends by kind of device."""
        return self.device_backend_map


def is_gloo_available() -> bool:
    """Whether Gloo can be used."""
    return _is_gloo_available()


def is_nccl_available() -> bool:
    """Whether NCCL can be used: its library can be loaded and there is a GPU."""
    from torch._distributed.engines import plugin_error

    if plugin_error("nccl") is not None:
        return False
    # A library that stands for NCCL in tests works on the CPU.
    return torch.cuda.is_available() or "CRESSET_NCCL_LIBRARY" in os.environ


# Set by launchers of Open MPI, of MPICH and its kin, and of those that speak PMIx.
_MPI_LAUNCHERS = ("OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "PMIX_RANK")


def is_mpi_available() -> bool:
    """Whether MPI can be used: the plugin for it was built, its library is there, and the process
    is not one of several that another launcher started, which are no world of MPI's."""
    from torch._distributed.engines import plugin_error

    alone = os.environ.get("WORLD_SIZE", "1") == "1"
    if not alone and not any(name in os.environ for name in _MPI_LAUNCHERS):
        return False
    return plugin_error("mpi") is None


def is_ucc_available() -> bool:
    """Whether UCC can be used: not in this version."""
    return False


def is_xccl_available() -> bool:
    """Whether XCCL can be used: not in this version."""
    return False


_ASK = {
    Backend.GLOO: is_gloo_available,
    Backend.NCCL: is_nccl_available,
    Backend.MPI: is_mpi_available,
    Backend.UCC: is_ucc_available,
    Backend.XCCL: is_xccl_available,
}


def is_backend_available(backend: str) -> bool:
    """Whether the backend of that name can be used."""
    name = backend.lower()
    return _ASK[name]() if name in _ASK else name in Backend.backend_list


def get_default_backend_for_device(device: str | torch.device) -> str:
    """The backend that serves a kind of device when none is named."""
    kind = device.type if isinstance(device, torch.device) else torch.device(device).type
    found = Backend.default_device_backend_map.get(kind)
    if not found:
        raise ValueError(f"Default backend not registered for device : {device}")
    return found
