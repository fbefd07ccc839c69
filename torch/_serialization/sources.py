"""Random access to the bytes of a file: by path through a descriptor and pread, or through a
seekable Python file object. All reads are bounded by the real size, and a short read raises, so
that no parser above has to think about the end of the file."""

import ctypes
import io
import os

from torch._serialization.errors import CheckpointError

__all__ = ["FileSource", "ObjectSource", "host_bytes"]


def host_bytes(storage):
    """A writable view of a CPU storage's memory. It is valid while the storage lives and is not
    resized: callers use it at once and drop it."""
    count = storage.nbytes()
    if count == 0:
        return memoryview(b"")
    return memoryview((ctypes.c_char * count).from_address(storage.data_ptr())).cast("B")


def _check_range(offset: int, count: int, size: int) -> None:
    if offset < 0 or count < 0 or offset + count > size:
        raise CheckpointError(
            f"unexpected end of file: {count} bytes wanted at offset {offset}, the file has {size}"
        )


class FileSource:
    """A file by path."""

    def __init__(self, path) -> None:
        self.path = os.fspath(path)
        self._fd = os.open(self.path, os.O_RDONLY | getattr(os, "O_CLOEXEC", 0))
        self.size = os.fstat(self._fd).st_size

    def close(self) -> None:
        """Closes the descriptor."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def check_place(self) -> None:
        """Raises if the path leads to another file by now, as after a save by another process: what
        has been opened by it since is not what was read here."""
        try:
            same = os.path.samestat(os.fstat(self._fd), os.stat(self.path))
        except FileNotFoundError:
            same = False
        if not same:
            raise CheckpointError(f"{self.path!r} was replaced while it was loaded; load it again")

    def read_at(self, offset: int, count: int) -> bytes:
        """Exactly `count` bytes from `offset`."""
        _check_range(offset, count, self.size)
        parts = []
        while count > 0:
            part = os.pread(self._fd, min(count, 1 << 30), offset)
            if not part:
                raise CheckpointError(f"{self.path!r} became shorter while it was read")
            parts.append(part)
            offset += len(part)
            count -= len(part)
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def read_into(self, offset: int, target: memoryview) -> None:
        """Fills `target` from `offset`."""
        _check_range(offset, len(target), self.size)
        done = 0
        while done < len(target):
            count = os.preadv(self._fd, [target[done : done + (1 << 30)]], offset + done)
            if count == 0:
                raise CheckpointError(f"{self.path!r} became shorter while it was read")
            done += count


class ObjectSource:
    """A seekable file object; what lies before its position is not part of the data."""

    path = None

    def __init__(self, file) -> None:
        self._file = file
        self._start = file.tell()
        file.seek(0, io.SEEK_END)
        self.size = max(file.tell(), self._start) - self._start
        file.seek(self._start)

    def close(self) -> None:
        """Leaves the object open: it is the caller's."""

    def read_at(self, offset: int, count: int) -> bytes:
        """Exactly `count` bytes from `offset`."""
        _check_range(offset, count, self.size)
        self._file.seek(self._start + offset)
        parts = []
        while count > 0:
            part = self._file.read(count)
            if not part:
                raise CheckpointError(f"unexpected end of file: {count} more bytes wanted")
            parts.append(part)
            count -= len(part)
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def read_into(self, offset: int, target: memoryview) -> None:
        """Fills `target` from `offset`."""
        if hasattr(self._file, "readinto"):
            self._read_into(offset, target)
            return
        step = 1 << 24
        for done in range(0, len(target), step):
            part = self.read_at(offset + done, min(step, len(target) - done))
            target[done : done + len(part)] = part

    def _read_into(self, offset: int, target: memoryview) -> None:
        """The same without a copy in between."""
        _check_range(offset, len(target), self.size)
        self._file.seek(self._start + offset)
        done = 0
        while done < len(target):
            count = self._file.readinto(target[done : done + (1 << 24)])
            if not count or not 0 < count <= len(target) - done:
                raise CheckpointError(
                    f"unexpected end of file: {len(target) - done} more bytes wanted"
                )
            done += count

    def leave_at(self, offset: int) -> None:
        """Puts the position of the file object there, for a caller who reads on."""
        self._file.seek(self._start + offset)
