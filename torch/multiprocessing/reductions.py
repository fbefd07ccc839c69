"""How tensors and storages are pickled for another process: the memory moves into a memory file and
its descriptor travels. Shared storages of one message stay one storage, through the pickler's
memo."""

from __future__ import annotations

import os
from multiprocessing import context, reduction, resource_sharer

import torch
from torch import _C

__all__ = ["StorageWeakRef", "init_reductions", "reduce_storage", "reduce_tensor"]

strategy = "file_descriptor"

# A fork server takes at most 256 descriptors with a request: the rest is fetched by the child.
_MOST_INHERITED = 200


def _portable_descriptor(descriptor):
    """An object that detaches to a duplicate of the descriptor in the process that unpickles it."""
    popen = context.get_spawning_popen()
    if popen is not None and len(getattr(popen, "_fds", ())) >= _MOST_INHERITED:
        return resource_sharer.DupFd(descriptor)
    return reduction.DupFd(descriptor)


class StorageWeakRef(_C._StorageWeakRef):
    """A reference that does not keep a storage's memory. References to the same storage are equal,
    and stay so when it is gone."""

    __slots__ = ()

    def __hash__(self) -> int:
        return self.cdata

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, _C._StorageWeakRef):
            return NotImplemented
        return self.cdata == other.cdata


class SharedCache(dict[tuple[int, ...], StorageWeakRef]):
    """The shared storages that this process sent or received, by the memory file and the bytes of
    it that they map: memory that comes a second time, or comes back, is the storage it was."""

    # The table is searched for storages that are gone when it has grown to this size.
    limit = 128

    def note(self, descriptor: int, offset: int, storage: torch.UntypedStorage) -> None:
        """Remembers a storage under the file that the descriptor is open for."""
        if len(self) >= self.limit:
            self.free_dead_references()
        self[self._key(descriptor, storage.nbytes(), offset)] = StorageWeakRef(storage)

    def find(self, descriptor: int, size: int, offset: int) -> torch.UntypedStorage | None:
        """The storage that maps these bytes in this process, if there is one."""
        known = self.get(self._key(descriptor, size, offset))
        return None if known is None else known.lock()

    def free_dead_references(self) -> None:
        """Forgets the storages that are gone."""
        for key in [key for key, known in list(self.items()) if known.expired()]:
            self.pop(key, None)
        self.limit = max(128, 2 * len(self))

    @staticmethod
    def _key(descriptor: int, size: int, offset: int) -> tuple[int, ...]:
        status = os.fstat(descriptor)
        return status.st_dev, status.st_ino, size, offset


shared_cache = SharedCache()


def rebuild_storage_empty(cls):
    """A storage of no bytes."""
    return cls()


def rebuild_meta_storage(size):
    """A storage without memory."""
    return torch.UntypedStorage(size, device="meta")


def rebuild_storage_fd(cls, descriptor, size, offset=0, keep=True):
    """Maps memory that another process sent."""
    number = descriptor.detach()
    try:
        storage = shared_cache.find(number, size, offset)
        if storage is None:
            storage = _C._storage_from_descriptor(number, size, offset, keep)
            shared_cache.note(number, offset, storage)
        return storage
    finally:
        os.close(number)


def reduce_storage(storage):
    """A storage by descriptor; from then on it is in shared memory."""
    if storage.device.type == "meta":
        return rebuild_meta_storage, (storage.nbytes(),)
    if storage.device.type != "cpu":
        raise NotImplementedError(
            f"torch.multiprocessing: passing memory of {storage.device} to another process is not "
            "implemented; send a copy on the CPU"
        )
    if storage.nbytes() == 0:
        return rebuild_storage_empty, (type(storage),)
    number, size, offset = _C._storage_share(storage)
    shared_cache.note(number, offset, storage)
    keep = strategy == "file_descriptor"
    return rebuild_storage_fd, (type(storage), _portable_descriptor(number), size, offset, keep)


def rebuild_tensor(storage, dtype, metadata) -> torch.Tensor:
    """A tensor on a storage that was sent."""
    offset, size, stride, requires_grad, flags = metadata
    tensor = torch.empty((0,), dtype=dtype, device=storage.device)
    tensor.set_(storage, offset, size, stride)
    if flags:
        tensor = torch._utils.set_tensor_metadata(tensor, flags)
    tensor.requires_grad = requires_grad
    return tensor


def refuse_graph(tensor) -> None:
    """Gradients do not cross processes, and must not get lost in silence."""
    if tensor.requires_grad and not tensor.is_leaf:
        raise RuntimeError(
            "Cowardly refusing to serialize non-leaf tensor which requires_grad, since autograd "
            "does not support crossing process boundaries. Send tensor.detach() to transfer the "
            "data alone."
        )


def reduce_tensor(tensor):
    """A tensor by the descriptor of its storage."""
    refuse_graph(tensor)
    if tensor.layout is not torch.strided or tensor.is_meta:
        return torch.Tensor.__reduce_ex__(tensor, 2)
    metadata = (
        tensor.storage_offset(),
        tuple(tensor.size()),
        tensor.stride(),
        tensor.requires_grad,
        torch._utils.get_tensor_metadata(tensor),
    )
    return rebuild_tensor, (tensor.untyped_storage(), tensor.dtype, metadata)


def init_reductions() -> None:
    """Teaches multiprocessing's pickler. Parameters and other subclasses of Tensor, and the typed
    storages, reach their memory through one of these two, so that they need no entry."""
    reduction.register(torch.UntypedStorage, reduce_storage)
    reduction.register(torch.Tensor, reduce_tensor)
