"""Checkpoint files made by hand, right or wrong in one chosen place: a zip writer whose every field
can be overridden, and pickles assembled from opcodes."""

import io
import struct
import zlib

import torch

DESCRIPTOR = 8
UTF8 = 1 << 11


class Entry:
    """One record of an archive; the keyword arguments override single fields of its headers."""

    def __init__(self, name, data, **fields):
        self.name = name if isinstance(name, bytes) else name.encode()
        self.data = data
        self.fields = fields

    def get(self, field, default):
        """An overridden field, or what a true file has."""
        return self.fields.get(field, default)


def archive(entries, **fields):
    """The bytes of a zip archive in the manner of torch.save."""
    out, directory, count = bytearray(fields.get("before", b"")), bytearray(), 0
    for entry in entries:
        flags = entry.get("flags", DESCRIPTOR | UTF8)
        crc = entry.get("crc", zlib.crc32(entry.data))
        size = entry.get("size", len(entry.data))
        header = entry.get("header", len(out))
        later = flags & DESCRIPTOR
        name = entry.get("local_name", entry.name)
        padding = -(len(out) + 30 + len(name) + 4) % 64
        extra = entry.get("local_extra", struct.pack("<HH", 0x4246, padding) + b"Z" * padding)
        out += struct.pack(
            "<4s5H3I2H",
            b"PK\x03\x04",
            0,
            entry.get("local_flags", flags),
            entry.get("local_method", 0),
            0,
            0,
            entry.get("local_crc", 0 if later else crc),
            entry.get("local_size", 0 if later else size),
            entry.get("local_size", 0 if later else size),
            len(name),
            len(extra),
        )
        out += name + extra + entry.data
        if later:
            form = entry.get("descriptor_form", "<4sIII")
            out += struct.pack(form, b"PK\x07\x08", entry.get("descriptor_crc", crc), size, size)
        out += entry.get("after", b"")
        directory += struct.pack(
            "<4s6H3I5H2I",
            b"PK\x01\x02",
            0,
            0,
            flags,
            entry.get("method", 0),
            0,
            0,
            crc,
            entry.get("packed", size),
            size,
            len(entry.name),
            len(entry.get("extra", b"")),
            0,
            0,
            0,
            0,
            header,
        )
        directory += entry.name + entry.get("extra", b"")
        count += 1
    start = fields.get("start", len(out))
    out += directory
    count = fields.get("count", count)
    length = fields.get("length", len(directory))
    out += struct.pack(
        "<4s4H2IH", b"PK\x05\x06", fields.get("disk", 0), 0, count, count, length, start, 0
    )
    return bytes(out + fields.get("behind", b""))


def checkpoint(pickled, storages=None, extra=(), replaced=None, **fields):
    """A checkpoint with that pickle and those records of storages. `replaced` maps the short name
    of a record to the Entry that takes its place, or to None, which leaves it out."""
    records = {
        "data.pkl": pickled,
        ".format_version": b"1",
        ".storage_alignment": b"64",
        "byteorder": b"little",
        **{f"data/{key}": data for key, data in (storages or {}).items()},
        "version": b"3\n",
        ".data/serialization_id": b"0" * 40,
    }
    entries = [Entry("x/" + name, data) for name, data in records.items()]
    for name, entry in (replaced or {}).items():
        index = next(i for i, e in enumerate(entries) if e.name == b"x/" + name.encode())
        entries[index : index + 1] = [] if entry is None else [entry]
    return archive([*entries, *extra], **fields)


# ---- pickles ------------------------------------------------------------------------------------

STOP = b"."
PROTO = b"\x80\x02"


def text(value):
    """BINUNICODE."""
    raw = value.encode()
    return b"X" + struct.pack("<I", len(raw)) + raw


def number(value):
    """An integer of any size."""
    if 0 <= value < 256:
        return b"K" + bytes([value])
    raw = value.to_bytes(value.bit_length() // 8 + 1, "little", signed=True)
    return b"\x8a" + bytes([len(raw)]) + raw


def name(module, attribute):
    """GLOBAL."""
    return f"c{module}\n{attribute}\n".encode()


def tuple_of(*items):
    """MARK ... TUPLE."""
    return b"(" + b"".join(items) + b"t"


def call(function, *args):
    """REDUCE."""
    return function + tuple_of(*args) + b"R"


def pickled(*parts):
    """A whole pickle."""
    return PROTO + b"".join(parts) + STOP


EMPTY_HOOKS = call(name("collections", "OrderedDict"))


def storage(numel, kind=None, key=None, device=None, tag=None):
    """BINPERSID of a storage."""
    return (
        tuple_of(
            text("storage") if tag is None else tag,
            name("torch", "FloatStorage") if kind is None else kind,
            text("0") if key is None else key,
            text("cpu") if device is None else device,
            number(numel),
        )
        + b"Q"
    )


def numbers(values):
    """A tuple of integers."""
    return tuple_of(*(number(value) for value in values))


def tensor(size, stride, offset=0, numel=4, grad=b"\x89", hooks=EMPTY_HOOKS, more=(), store=None):
    """A call of _rebuild_tensor_v2 on storage 0."""
    return call(
        name("torch._utils", "_rebuild_tensor_v2"),
        storage(numel) if store is None else store,
        number(offset),
        numbers(size),
        numbers(stride),
        grad,
        hooks,
        *more,
    )


# Four floats, and the pickle of the 2 x 2 tensor that is made of them.
DATA = {"0": struct.pack("<4f", 1, 2, 3, 4)}
GOOD = pickled(tensor((2, 2), (2, 1)))


def load(data):
    return torch.load(io.BytesIO(data))
