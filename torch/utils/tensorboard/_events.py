"""The format of event files: records with checksums around protocol buffer messages, of which only
the handful of fields that are written here are known."""

from __future__ import annotations

import os
import socket
import struct
import threading
import time

__all__ = ["EventFile"]

# ---- checksums: CRC-32C, masked as TFRecord files have it


def _crc_table() -> list[int]:
    table = []
    for byte in range(256):
        for _ in range(8):
            byte = byte >> 1 ^ (0x82F63B78 if byte & 1 else 0)
        table.append(byte)
    return table


_TABLE = _crc_table()


def masked_crc(data) -> int:
    """The checksum of some bytes."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc = _TABLE[(crc ^ byte) & 0xFF] ^ crc >> 8
    crc ^= 0xFFFFFFFF
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


# ---- protocol buffers


def _varint(value) -> bytes:
    out = bytearray()
    value &= 0xFFFFFFFFFFFFFFFF
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


def integer(field, value) -> bytes:
    """An integer field."""
    return _varint(field << 3) + _varint(int(value))


def double(field, value) -> bytes:
    """A double field."""
    return _varint(field << 3 | 1) + struct.pack("<d", value)


def single(field, value) -> bytes:
    """A float field."""
    return _varint(field << 3 | 5) + struct.pack("<f", value)


def chunk(field, value) -> bytes:
    """A field of bytes, text or a message."""
    value = value.encode() if isinstance(value, str) else value
    return _varint(field << 3 | 2) + _varint(len(value)) + value


def doubles(field, values) -> bytes:
    """A packed list of doubles."""
    return chunk(field, struct.pack(f"<{len(values)}d", *values))


# ---- messages of TensorBoard


def _metadata(plugin) -> bytes:
    return chunk(9, chunk(1, chunk(1, plugin)))


def scalar(tag, value) -> bytes:
    """A number."""
    return chunk(1, chunk(1, tag) + single(2, value))


def image(tag, height, width, channels, png) -> bytes:
    """An image, encoded as PNG."""
    body = integer(1, height) + integer(2, width) + integer(3, channels) + chunk(4, png)
    return chunk(1, chunk(1, tag) + chunk(4, body))


def histogram(tag, low, high, count, total, squares, limits, buckets) -> bytes:
    """Counts in buckets."""
    body = double(1, low) + double(2, high) + double(3, count) + double(4, total)
    body += double(5, squares) + doubles(6, limits) + doubles(7, buckets)
    return chunk(1, chunk(1, tag) + chunk(5, body))


def text(tag, value) -> bytes:
    """A text, as a tensor of one string."""
    shape = chunk(2, chunk(2, integer(1, 1)))
    tensor = integer(1, 7) + shape + chunk(8, value)
    return chunk(1, chunk(1, tag + "/text_summary") + chunk(8, tensor) + _metadata("text"))


def inside(name) -> str:
    """A tag as a path below the folder of a run, whatever it says."""
    parts = [p.replace(".", "%2e") if p in (".", "..") else p for p in name.split("/") if p]
    return "/".join(parts) or "%2e"


class EventFile:
    """One event file; messages are appended and complete as soon as they are flushed."""

    def __init__(self, folder, suffix="") -> None:
        os.makedirs(folder, exist_ok=True)
        stamp = f"{int(time.time()):010d}.{socket.gethostname()}.{os.getpid()}"
        number = 0
        while os.path.exists(
            path := os.path.join(folder, f"events.out.tfevents.{stamp}.{number}{suffix}")
        ):
            number += 1
        self.path = path
        self._file = open(path, "ab")  # noqa: SIM115
        self._lock = threading.Lock()
        self._write(double(1, time.time()) + chunk(3, "brain.Event:2"))
        self.flush()

    def _write(self, message) -> None:
        head = struct.pack("<Q", len(message))
        record = head + struct.pack("<I", masked_crc(head)) + message
        with self._lock:
            self._file.write(record + struct.pack("<I", masked_crc(message)))

    def add_graph(self, message, walltime=None) -> None:
        """Appends the graph of a model."""
        moment = time.time() if walltime is None else walltime
        self._write(double(1, moment) + chunk(4, message))

    def add(self, values, step=None, walltime=None) -> None:
        """Appends values made by the functions above."""
        message = double(1, time.time() if walltime is None else walltime)
        if step is not None:
            message += integer(2, int(step))
        self._write(message + chunk(5, values))

    def flush(self) -> None:
        """Gives what was written to the system."""
        with self._lock:
            self._file.flush()

    def close(self) -> None:
        """Flushes and closes."""
        with self._lock:
            self._file.close()
