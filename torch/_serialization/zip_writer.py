"""The writer of torch.save's zip archives, byte for byte in the manner of PyTorch: stored records
whose data begins at multiples of 64 (so that a file can be mapped), checksum and sizes in a
descriptor behind the data, and 64-bit end records always. It only appends, so any object with a
`write` method will do."""

from __future__ import annotations

import struct
import zlib

__all__ = ["ZipWriter", "checked_alignment"]

_MAX_ALIGNMENT = 1 << 15
_FLAGS = (1 << 3) | (1 << 11)
_MAX16, _MAX32 = 0xFFFF, 0xFFFFFFFF
_CHUNK = 1 << 24


def checked_alignment(value) -> int:
    """An alignment that padding in a header of 16-bit length can reach."""
    if type(value) is not int or not 1 <= value <= _MAX_ALIGNMENT or value & (value - 1):
        raise ValueError(
            f"the alignment of storages must be a power of two up to {_MAX_ALIGNMENT}, "
            f"got {value!r}"
        )
    return value


class ZipWriter:
    """Writes records into `file`, all of them in the folder `root`."""

    def __init__(self, file, root: str, checksums: bool = True, alignment: int = 64) -> None:
        self._file = file
        self.alignment = alignment
        self._root = root
        self._checksums = checksums
        self._at = 0
        self._directory = []
        self._digest = 0

    def _write(self, data) -> None:
        written = self._file.write(data)
        if written is not None and written != len(data):
            raise OSError(f"only {written} of {len(data)} bytes could be written")
        self._at += len(data)

    def add(self, name: str, data) -> None:
        """Writes a record; `data` is anything with the buffer interface of bytes."""
        full = f"{self._root}/{name}".encode()
        view = memoryview(data)
        header = self._at
        padding = -(header + 30 + len(full) + 4) % self.alignment
        extra = struct.pack("<HH", 0x4246, padding) + b"Z" * padding
        self._write(
            struct.pack(
                "<4s5H3I2H", b"PK\x03\x04", 0, _FLAGS, 0, 0, 0, 0, 0, 0, len(full), len(extra)
            )
            + full
            + extra
        )
        crc = 0
        for done in range(0, len(view), _CHUNK):
            part = view[done : done + _CHUNK]
            if self._checksums:
                crc = zlib.crc32(part, crc)
            self._write(part)
        size = len(view)
        form = "<4sIII" if size < _MAX32 else "<4sIQQ"
        self._write(struct.pack(form, b"PK\x07\x08", crc, size, size))
        self._digest = zlib.crc32(struct.pack("<QI", size, crc), self._digest)
        self._directory.append(self._central(full, header, size, crc))

    @staticmethod
    def _central(full, header, size, crc) -> bytes:
        wide = b""
        if size >= _MAX32:
            wide += struct.pack("<QQ", size, size)
        if header >= _MAX32:
            wide += struct.pack("<Q", header)
        extra = struct.pack("<HH", 1, len(wide)) + wide if wide else b""
        narrow_size, narrow_header = min(size, _MAX32), min(header, _MAX32)
        fields = (b"PK\x01\x02", 0, 0, _FLAGS, 0, 0, 0, crc, narrow_size, narrow_size)
        rest = (len(full), len(extra), 0, 0, 0, 0, narrow_header)
        return struct.pack("<4s6H3I5H2I", *fields, *rest) + full + extra

    def serialization_id(self) -> bytes:
        """Forty digits that depend on what has been written so far and on nothing else, so that
        saving the same content twice gives the same file."""
        names = zlib.crc32(b"".join(self._directory))
        return b"%020d%020d" % (names, self._digest)

    def finish(self) -> None:
        """Writes the directory and the end records."""
        start, count = self._at, len(self._directory)
        for central in self._directory:
            self._write(central)
        size, end64 = self._at - start, self._at
        counts = (count, count, size, start)
        self._write(
            struct.pack("<4sQ2H2I4Q", b"PK\x06\x06", 44, 0x031E, 45, 0, 0, *counts)
            + struct.pack("<4sIQI", b"PK\x06\x07", 0, end64, 1)
        )
        narrow = (min(count, _MAX16),) * 2 + (min(size, _MAX32), min(start, _MAX32))
        self._write(struct.pack("<4s4H2IH", b"PK\x05\x06", 0, 0, *narrow, 0))
