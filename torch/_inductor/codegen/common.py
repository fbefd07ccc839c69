"""Backends for other devices: what programs register for a kind of device. Plans are made in C++
for the CPU; a registered device keeps its classes here, and its pass and its settings are used."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

from torch import fx
from torch.utils._config_module import ConfigModule

__all__ = [
    "DeviceCodegen",
    "device_codegens",
    "get_custom_backend_config_for_device",
    "get_custom_backend_pass_for_device",
    "get_scheduling_for_device",
    "get_wrapper_codegen_for_device",
    "init_backend_registration",
    "register_backend_for_device",
]

ModulePass = Callable[[fx.GraphModule], None]


@dataclasses.dataclass
class DeviceCodegen:
    """What was registered for a kind of device."""

    scheduling: object
    wrapper_codegen: type | None
    cpp_wrapper_codegen: type | None = None
    fx_wrapper_codegen: type | None = None
    custom_pass: ModulePass | None = None
    custom_config: ConfigModule | None = None


device_codegens: dict[str, DeviceCodegen] = {}


def init_backend_registration() -> None:
    """Registers the devices of this package: those of the CPU need nothing."""


def register_backend_for_device(
    device: str,
    device_scheduling: object,
    device_wrapper_codegen: type | None,
    device_cpp_wrapper_codegen: type | None = None,
    device_fx_wrapper_codegen: type | None = None,
    device_custom_pass: ModulePass | None = None,
    device_custom_config: ConfigModule | None = None,
) -> None:
    """Makes a backend known for a kind of device. Its pass runs on every graph with a tensor of
    that device, after the post-grad passes."""
    if device_custom_config is not None and not isinstance(device_custom_config, ConfigModule):
        raise AssertionError(
            f"device_custom_config={device_custom_config!r} should be a module of settings "
            "(torch.utils._config_module.install_config_module)"
        )
    device_codegens[device] = DeviceCodegen(
        device_scheduling,
        device_wrapper_codegen,
        device_cpp_wrapper_codegen,
        device_fx_wrapper_codegen,
        device_custom_pass,
        device_custom_config,
    )


def get_scheduling_for_device(device: str) -> object:
    """The scheduling class of a device, or None."""
    found = device_codegens.get(device)
    return None if found is None else found.scheduling


def get_wrapper_codegen_for_device(
    device: str, cpp_wrapper: bool = False, fx_wrapper: bool = False
) -> type | None:
    """The class that writes programs for a device, or None."""
    found = device_codegens.get(device)
    if found is None:
        return None
    if fx_wrapper:
        return found.fx_wrapper_codegen
    return found.cpp_wrapper_codegen if cpp_wrapper else found.wrapper_codegen


def get_custom_backend_pass_for_device(device: str) -> ModulePass | None:
    """The pass of a device, or None."""
    found = device_codegens.get(device)
    return None if found is None else found.custom_pass


def get_custom_backend_config_for_device(device: str) -> ConfigModule | None:
    """The settings of a device, or None."""
    found = device_codegens.get(device)
    return None if found is None else found.custom_config
