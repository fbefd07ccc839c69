"""On which device a storage lives, as files say it ('cpu', 'cuda:0', 'meta'), and where it goes on
loading: the registered packages in order of priority, and the forms of `map_location`."""

from __future__ import annotations

import os
import re
import sys

import torch
from torch import _C
from torch._serialization.errors import CheckpointError
from torch.storage import TypedStorage, UntypedStorage

__all__ = [
    "default_restore_location",
    "location_tag",
    "register_package",
    "restore_function",
    "validate_cuda_device",
]

_TAG = re.compile(r"[a-z][a-z0-9_]{0,31}(:[0-9]{1,4})?\Z")
_packages = []


def is_location(tag) -> bool:
    """Whether a text has the form of a device."""
    return type(tag) is str and _TAG.match(tag) is not None


def register_package(priority, tagger, deserializer) -> None:
    """Registers how storages of a kind of device are named and restored; lower priorities are
    asked first."""
    _packages.append((priority, tagger, deserializer))
    _packages.sort(key=lambda package: package[0])


def cuda_available() -> bool:
    """Whether this build has CUDA and finds a GPU. Asked without torch.cuda where nothing has
    imported it: a file must not be the cause of an import."""
    cuda = sys.modules.get("torch.cuda")
    if cuda is not None:
        return cuda.is_available()
    return _C._has_cuda and _C._cuda_getDeviceCount() > 0


def validate_cuda_device(location) -> int:
    """The index of the GPU that `location` names; raises if there is none."""
    index = torch.device(location).index or 0
    if not cuda_available():
        raise CheckpointError(
            "Attempting to deserialize object on a CUDA device but torch.cuda.is_available() is "
            "False. If you are running on a CPU-only machine, please use torch.load with "
            "map_location=torch.device('cpu') to map your storages to the CPU."
        )
    count = torch.cuda.device_count()
    if index >= count:
        raise CheckpointError(
            f"Attempting to deserialize object on CUDA device {index} but "
            f"torch.cuda.device_count() is {count}. Please use torch.load with map_location to "
            "map your storages to an existing device."
        )
    return index


def _cpu_tag(storage) -> str | None:
    return "cpu" if storage.device.type == "cpu" else None


def _cpu_restore(storage, location) -> UntypedStorage | None:
    return storage.cpu() if location == "cpu" else None


def _cuda_tag(storage) -> str | None:
    return f"cuda:{storage.device.index}" if storage.device.type == "cuda" else None


def _cuda_restore(storage, location) -> UntypedStorage | None:
    if location != "cuda" and not location.startswith("cuda:"):
        return None
    index = validate_cuda_device(location)
    return storage.cuda(torch.device("cuda", index))


def _meta_tag(storage) -> str | None:
    return "meta" if storage.device.type == "meta" else None


def meta_storage(nbytes) -> UntypedStorage:
    """A storage of that size without memory."""
    return torch.empty(nbytes, dtype=torch.uint8, device="meta").untyped_storage()


def _meta_restore(storage, location) -> UntypedStorage | None:
    return meta_storage(storage.nbytes()) if location == "meta" else None


register_package(10, _cpu_tag, _cpu_restore)
register_package(20, _cuda_tag, _cuda_restore)
register_package(22, _meta_tag, _meta_restore)


def _private_kind() -> str:
    return torch.device("privateuseone").type


def _private_tag(storage) -> str | None:
    """Of a device of another package: its module may say it otherwise."""
    kind, device = _private_kind(), storage.device
    if device.type != kind:
        return None
    return kind if device.index is None else f"{kind}:{device.index}"


def _private_restore(storage, location) -> UntypedStorage | None:
    kind = _private_kind()
    if location != kind and not location.startswith(kind + ":"):
        return None
    count = _C._backend_device_count(kind)
    index = torch.device(location).index or 0
    if index >= count:
        raise CheckpointError(
            f"Attempting to deserialize object on {location} but there are {count} devices of "
            f"type {kind}. Please use torch.load with map_location to map your storages to an "
            "existing device."
        )
    return storage.to(device=torch.device(kind, index))


register_package(23, _private_tag, _private_restore)


def location_tag(storage) -> str:
    """The text under which a file keeps the device of a storage."""
    for _, tagger, _ in _packages:
        tag = tagger(storage)
        if tag:
            return tag
    raise RuntimeError("don't know how to determine data location of " + torch.typename(storage))


def default_restore_location(storage, location) -> UntypedStorage:
    """The storage on the device that `location` names."""
    for _, _, deserializer in _packages:
        result = deserializer(storage, location)
        if result is not None:
            return result
    raise CheckpointError(
        f"don't know how to restore data location of {torch.typename(storage)} "
        f"(tagged with {location})"
    )


def _untyped(storage):
    """What a caller's function returned, as bytes; anything else than a storage is refused."""
    if isinstance(storage, TypedStorage):
        return storage.untyped()
    if not isinstance(storage, UntypedStorage):
        raise TypeError(
            f"map_location must return a storage or None, but it returned {type(storage).__name__}"
        )
    return storage


def restore_function(map_location):
    """A function (storage on the CPU, tag) -> storage where `map_location` wants it."""
    if map_location is None:
        return default_restore_location
    if isinstance(map_location, dict):
        return lambda storage, tag: default_restore_location(storage, map_location.get(tag, tag))
    if isinstance(map_location, (str, bytes)):
        target = os.fsdecode(map_location)
        return lambda storage, tag: default_restore_location(storage, target)
    if isinstance(map_location, torch.device):
        target = str(map_location)
        return lambda storage, tag: default_restore_location(storage, target)
    if not callable(map_location):
        raise TypeError(
            "map_location must be a function, torch.device, string, dict or None, not "
            + type(map_location).__name__
        )

    def restore(storage, tag) -> UntypedStorage:
        result = map_location(storage, tag)
        return default_restore_location(storage, tag) if result is None else _untyped(result)

    return restore
