"""Seeding and the state of the default generators."""

from __future__ import annotations

import contextlib
import warnings
from typing import Any as _Any

import torch
from torch._C import default_generator

__all__ = [
    "set_rng_state",
    "get_rng_state",
    "manual_seed",
    "seed",
    "initial_seed",
    "fork_rng",
]


def set_rng_state(new_state) -> _Any:
    """Puts the CPU generator into a state that get_rng_state() returned."""
    default_generator.set_state(new_state)


def get_rng_state() -> _Any:
    """The state of the CPU generator as a ByteTensor."""
    return default_generator.get_state()


def _accelerator():
    """The module of the accelerator that has been used, or None; looking must not initialise it."""
    import sys

    module = sys.modules.get("torch.cuda")
    return module if module is not None and module.is_available() else None


def _seed_devices(number) -> None:
    # Generators of devices are numbers on the host: seeding them loads no driver.
    if torch._C._has_cuda:
        torch._C._cuda_seedAll(number)


def manual_seed(seed) -> _Any:
    """Seeds the generators of all devices and returns the CPU's."""
    seed = int(seed)
    generator = default_generator.manual_seed(seed)
    _seed_devices(seed)
    return generator


def seed() -> _Any:
    """Seeds the generators of all devices from the operating system and returns the number."""
    number = default_generator.seed()
    _seed_devices(number)
    return number


def initial_seed() -> _Any:
    """The number that the CPU generator was last seeded with."""
    return default_generator.initial_seed()


@contextlib.contextmanager
def fork_rng(
    devices=None, enabled=True, _caller="fork_rng", _devices_kw="devices", device_type=None
) -> _Any:
    """Saves the state of the generators and puts it back at the end of the with statement.

    devices: indices of the accelerators whose state is saved too; all of them by default."""
    if not enabled:
        yield
        return
    kind = None if device_type is None else torch.device(device_type).type
    module = None if kind in ("cpu", "meta") else _accelerator()
    if module is None:
        devices = []
    elif devices is None:
        devices = list(range(module.device_count()))
        if len(devices) > 1:
            warnings.warn(
                f"{_caller} saves the state of all {len(devices)} devices; name those that are "
                "used with "
                f"`{_devices_kw}`.",
                stacklevel=3,
            )
    else:
        devices = list(devices)
    cpu_state = get_rng_state()
    device_states = [module.get_rng_state(device) for device in devices]
    try:
        yield
    finally:
        set_rng_state(cpu_state)
        for device, state in zip(devices, device_states, strict=True):
            module.set_rng_state(state, device)
