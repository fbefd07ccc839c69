"""Seeds and states of the generators of CUDA devices. They are numbers on the host: seeding needs
no device."""

from __future__ import annotations

from typing import Any as _Any

import torch
from torch import _C
from torch.cuda._devices import _index, device_count
from torch.cuda._init import _lazy_init

__all__ = [
    "get_rng_state",
    "get_rng_state_all",
    "initial_seed",
    "manual_seed",
    "manual_seed_all",
    "seed",
    "seed_all",
    "set_rng_state",
    "set_rng_state_all",
]


def _generator(device):
    _lazy_init()
    return _C._cuda_getDefaultGenerator(_index(device))


def get_rng_state(device="cuda") -> _Any:
    """The state of a device's generator as a ByteTensor."""
    return _generator(device).get_state()


def get_rng_state_all() -> _Any:
    """The states of all devices."""
    return [get_rng_state(i) for i in range(device_count())]


def set_rng_state(new_state, device="cuda") -> _Any:
    """Puts a device's generator into a state that get_rng_state() returned."""
    _generator(device).set_state(new_state)


def set_rng_state_all(new_states) -> _Any:
    """Puts the generators of all devices into the given states."""
    for i, state in enumerate(new_states):
        set_rng_state(state, i)


def manual_seed(seed) -> _Any:
    """Seeds the generator of the current device; nothing where there is no CUDA."""
    if _C._has_cuda:
        _C._cuda_getDefaultGenerator(None).manual_seed(int(seed))


def manual_seed_all(seed) -> _Any:
    """Seeds the generators of all devices; nothing where there is no CUDA."""
    if _C._has_cuda:
        _C._cuda_seedAll(int(seed))


def seed() -> _Any:
    """Seeds the generator of the current device from the operating system."""
    if _C._has_cuda:
        _C._cuda_getDefaultGenerator(None).seed()


def seed_all() -> _Any:
    """Seeds the generators of all devices with one number from the operating system."""
    manual_seed_all(torch.Generator().seed())


def initial_seed() -> _Any:
    """The number that the generator of the current device was last seeded with."""
    return _generator(None).initial_seed()
