"""How batches travel between a DataLoader and its workers: one packet per message over a socket
pair. Memory goes beside it in an anonymous memory file whose descriptor the packet carries, so that
tensors are never pickled, nothing depends on /dev/shm and a killed process leaves nothing behind.
Long pickles go there too: packets stay small, and a sender does not wait for its reader."""

from __future__ import annotations

import io
import os
import pickle
import socket
import struct
import threading
from array import array
from multiprocessing.reduction import ForkingPickler

import torch
from torch import _C

__all__ = ["Channel", "Closed", "channel_pair", "pack", "unpack"]

_HEADER = struct.Struct("=QQ")  # bytes of the pickle, bytes of memory
_INLINE = 16384  # up to here a copy through the socket is cheaper than a file
_LARGEST_PACKET = _HEADER.size + _INLINE
_ALIGNMENT = 64
_receiving = threading.local()


class Closed(Exception):
    """The other end is gone."""


def _aligned(position) -> int:
    return -(-position // _ALIGNMENT) * _ALIGNMENT


def _take_memory(start, size):
    """The part of the message's memory that was a storage."""
    return _receiving.memory[start : start + size]


def _rebuild(storage, dtype, offset, size, stride, requires_grad, flags) -> torch.Tensor:
    tensor = torch.empty((0,), dtype=dtype).set_(storage, offset, size, stride)
    if flags:
        tensor = torch._utils.set_tensor_metadata(tensor, flags)
    if requires_grad:
        tensor.requires_grad = True
    return tensor


class _Packer(ForkingPickler):
    """Collects the storages it meets and writes their places."""

    def __init__(self, file) -> None:
        super().__init__(file, pickle.HIGHEST_PROTOCOL)
        self.storages = []
        self.total = 0

    def reducer_override(self, obj):
        """Storages and plain tensors; all other classes do as for any pickler."""
        if type(obj) is torch.UntypedStorage:
            return self._reduce_storage(obj)
        if type(obj) is torch.Tensor and obj.layout is torch.strided and not obj.is_meta:
            return self._reduce_tensor(obj)
        return NotImplemented

    def _reduce_storage(self, storage):
        if storage.device.type != "cpu":
            raise NotImplementedError(
                f"DataLoader: passing memory of {storage.device} between processes is not "
                "implemented; let the dataset return tensors on the CPU"
            )
        start, size = _aligned(self.total), storage.nbytes()
        if size == 0:
            return torch.UntypedStorage, (0,)
        self.storages.append((start, size, storage))
        self.total = start + size
        return _take_memory, (start, size)

    def _reduce_tensor(self, tensor):
        if tensor.requires_grad and not tensor.is_leaf:
            torch.multiprocessing.reductions.refuse_graph(tensor)
        storage = tensor.untyped_storage()
        flags = torch._utils.get_tensor_metadata(tensor)
        requires_grad = tensor.requires_grad
        if storage.nbytes() > 2 * tensor.nbytes + _ALIGNMENT:
            # A small view of something large: only what is seen travels.
            tensor = _compact(tensor)
            storage = tensor.untyped_storage()
        place = tensor.storage_offset(), tuple(tensor.size()), tensor.stride()
        return _rebuild, (storage, tensor.dtype, *place, requires_grad, flags)


def _compact(tensor):
    with torch.no_grad():
        return tensor.detach().clone(memory_format=torch.contiguous_format)


def _write_all(descriptor, data, position) -> None:
    data = memoryview(data)
    while data:
        written = os.pwrite(descriptor, data, position)
        data, position = data[written:], position + written


def pack(obj) -> tuple[bytes, int | None]:
    """A packet and, for long messages, the descriptor of the memory file that goes with it."""
    file = io.BytesIO()
    packer = _Packer(file)
    packer.dump(obj)
    pickled = file.getbuffer()
    header = _HEADER.pack(len(pickled), packer.total)
    start = _aligned(len(pickled))
    if start + packer.total <= _INLINE:
        body = bytearray(start + packer.total if packer.total else len(pickled))
        body[: len(pickled)] = pickled
        for offset, size, storage in packer.storages:
            body[start + offset : start + offset + size] = _C._storage_bytes(storage)
        return header + body, None
    descriptor = os.memfd_create("torch-batch", os.MFD_CLOEXEC)
    try:
        _write_all(descriptor, pickled, 0)
        for offset, size, storage in packer.storages:
            _C._storage_write(storage, 0, size, descriptor, start + offset)
    except BaseException:
        os.close(descriptor)
        raise
    return header, descriptor


def unpack(packet, descriptor):
    """The object of a packet; the caller closes the descriptor, which may be None."""
    length, total = _HEADER.unpack_from(packet)
    start = _aligned(length)
    if descriptor is None:
        pickled = memoryview(packet)[_HEADER.size : _HEADER.size + length]
        memory = bytearray(memoryview(packet)[_HEADER.size + start :]) if total else None
        memory = torch.frombuffer(memory, dtype=torch.uint8).untyped_storage() if total else None
    else:
        pickled = os.pread(descriptor, length, 0)
        memory = None
        if total:
            memory = _C._storage_from_descriptor(descriptor, total, start, False)
    before = getattr(_receiving, "memory", None)
    _receiving.memory = memory
    try:
        return pickle.loads(pickled)
    finally:
        _receiving.memory = before


class Channel:
    """One end of a socket pair. It works for one thread at a time."""

    def __init__(self, sock) -> None:
        self.socket = sock
        self._waiting = []  # packets that did not fit yet

    def fileno(self) -> int:
        """The descriptor to poll."""
        return self.socket.fileno()

    def close(self) -> None:
        """Closes this end and what was not sent."""
        for _, descriptor in self._waiting:
            if descriptor is not None:
                os.close(descriptor)
        self._waiting = []
        self.socket.close()

    def send(self, obj) -> bool:
        """Sends at once, or as far as the other end has room (see flush)."""
        self._waiting.append(pack(obj))
        return self.flush()

    def flush(self) -> bool:
        """Sends what waits; False when the other end has no room now. Raises Closed."""
        while self._waiting:
            packet, descriptor = self._waiting[0]
            rights = []
            if descriptor is not None:
                rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array("i", [descriptor]))]
            try:
                self.socket.sendmsg([packet], rights, socket.MSG_NOSIGNAL)
            except BlockingIOError:
                return False
            except OSError as error:
                raise Closed(str(error)) from None
            del self._waiting[0]
            if descriptor is not None:
                os.close(descriptor)
        return True

    def receive(self):
        """The next object. A channel that does not block raises BlockingIOError when there is none;
        Closed when the other end is gone."""
        try:
            packet, rights, _, _ = self.socket.recvmsg(
                _LARGEST_PACKET, socket.CMSG_SPACE(4), socket.MSG_CMSG_CLOEXEC
            )
        except BlockingIOError:
            raise
        except OSError as error:
            raise Closed(str(error)) from None
        descriptors = array("i")
        for _, _, data in rights:
            descriptors.frombytes(data[: len(data) - len(data) % 4])
        if not packet:
            raise Closed("end of file")
        try:
            return unpack(packet, descriptors[0] if descriptors else None)
        finally:
            for descriptor in descriptors:
                os.close(descriptor)


def channel_pair() -> tuple[socket.socket, socket.socket]:
    """Two connected sockets: that of the loader does not block, that of the worker does."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    ours.setblocking(False)
    theirs.setblocking(True)
    return ours, theirs
