"""Random numbers of distributed tensors. All ranks of a mesh draw from generators in the same
state: the first draw on a mesh takes over the state of the mesh's first rank. From then on the
generators stay together, because every rank draws for the whole tensor."""

from __future__ import annotations

import weakref

import torch
from torch.distributed import distributed_c10d as _core
from torch.distributed.device_mesh import DeviceMesh

_agreed: weakref.WeakKeyDictionary = weakref.WeakKeyDictionary()


def is_rng_supported_mesh(device_mesh: DeviceMesh) -> bool:
    """Whether random operators give the same numbers for every placement on the mesh: on CPU and
    CUDA they do."""
    return device_mesh.device_type in ("cpu", "cuda")


def agree(mesh: DeviceMesh) -> None:
    """Makes the generators of a mesh equal when it is first used for random numbers."""
    group = _core._get_default_group() if _core.is_initialized() else None
    if group is None or mesh.get_coordinate() is None or _agreed.get(mesh) is group:
        return
    _agreed[mesh] = group
    if not mesh._groups:
        return
    cuda = mesh.device_type == "cuda"
    state = torch.cuda.get_rng_state() if cuda else torch.get_rng_state()
    sent = state.to(mesh.device_type)
    for dim in range(mesh.ndim):
        _core.broadcast(sent, group=mesh.get_group(dim), group_src=0)
    (torch.cuda.set_rng_state if cuda else torch.set_rng_state)(sent.cpu())


def manual_seed(seed: int, device_mesh: DeviceMesh) -> None:
    """Seeds the generators that distributed tensors on the mesh draw from."""
    if device_mesh.get_coordinate() is None:
        raise RuntimeError(
            "manual_seed requires the current rank to be a part of the device mesh otherwise "
            "DTensor RNG state on the rank will not be initialized and the behavior of DTensor "
            "random ops is undefined."
        )
    _agreed[device_mesh] = _core._get_default_group()
    torch.manual_seed(seed)
