"""A strict reader of the one kind of zip archive that torch.save writes: stored records, an
optional data descriptor after each, padding in an 'FB' extra field, zip64 where sizes ask for it.
Records that something has deflated since are read too, as long as they do not swell beyond bounds.

The central directory is the authority and every local header and descriptor must agree with it.
Records must follow each other without gap or overlap from the first byte of the file to the
directory, so that two readers of the same file cannot see two different contents."""

from __future__ import annotations

import struct
import zlib

from torch._serialization.errors import container_error, missing_record

__all__ = ["Record", "ZipArchive", "MAGIC"]

MAGIC = b"PK\x03\x04"
_END = struct.Struct("<4s4H2IH")
_END64 = struct.Struct("<4sQ2H2I4Q")
_LOCATOR64 = struct.Struct("<4sIQI")
_CENTRAL = struct.Struct("<4s6H3I5H2I")
_LOCAL = struct.Struct("<4s5H3I2H")
_MAX16, _MAX32 = 0xFFFF, 0xFFFFFFFF
_MAX_ENTRIES = 1 << 22
_HAS_DESCRIPTOR, _UTF8 = 1 << 3, 1 << 11
_ZIP64_FIELD, _PADDING_FIELD = 0x0001, 0x4246
_CHUNK = 1 << 24
_STORED, _DEFLATED = 0, 8
_SWELL = 32 << 20


class Record:
    """Where one record lies."""

    __slots__ = ("crc", "flags", "header", "method", "name", "offset", "packed", "size")

    def __init__(self, name, header, size, crc, flags, method, packed) -> None:
        self.name, self.header, self.size, self.crc, self.flags = name, header, size, crc, flags
        self.method, self.packed = method, packed
        self.offset = -1


def _extra_fields(extra: bytes, name: str) -> dict:
    fields, offset = {}, 0
    while offset < len(extra):
        if offset + 4 > len(extra):
            raise container_error(f"the extra field of {name!r} is cut short")
        kind, length = struct.unpack_from("<HH", extra, offset)
        offset += 4
        if kind not in (_ZIP64_FIELD, _PADDING_FIELD) or kind in fields:
            raise container_error(f"{name!r} has an extra field of unknown kind {kind:#06x}")
        if offset + length > len(extra):
            raise container_error(f"the extra field of {name!r} is cut short")
        fields[kind] = extra[offset : offset + length]
        offset += length
    return fields


def _checked_name(raw: bytes) -> str:
    try:
        name = raw.decode("utf-8")
    except UnicodeDecodeError:
        raise container_error(f"the name of a record is not text: {raw[:40]!r}") from None
    parts = name.split("/")
    if not name or "\0" in name or "\\" in name or ".." in parts or "" in parts:
        raise container_error(f"the name of a record is not acceptable: {name[:80]!r}")
    return name


class ZipArchive:
    """The records of an archive by name, without the folder that all of them are in."""

    def __init__(self, source) -> None:
        self._source = source
        if source.size < _END.size:
            raise container_error(
                f"failed finding central directory: the file has {source.size} bytes"
            )
        start, size, count = self._find_directory()
        entries = self._read_directory(start, size, count)
        if sum(e.size for e in entries if e.method) > 2 * source.size + _SWELL:
            raise container_error("its compressed records are far larger than the file")
        self._check_layout(entries, start)
        self.root = self._common_root(entries)
        self.records = {entry.name[len(self.root) + 1 :]: entry for entry in entries}
        # A writer may be told not to compute checksums; then every one of them is zero.
        self.checked = any(entry.crc for entry in entries)

    # ---- the directory ------------------------------------------------------------------------

    def _find_directory(self) -> tuple[int, int, int]:
        end_at = self._source.size - _END.size
        end = _END.unpack(self._source.read_at(end_at, _END.size))
        if end[0] != b"PK\x05\x06" or end[7] != 0:
            raise container_error("failed finding central directory")
        _, disk, first_disk, here, count, size, start, _ = end
        if disk or first_disk or here != count:
            raise container_error("it is a part of an archive of several parts")
        limit = end_at
        tail = b""
        if end_at >= _LOCATOR64.size:
            tail = self._source.read_at(end_at - _LOCATOR64.size, _LOCATOR64.size)
        if tail[:4] == b"PK\x06\x07":
            limit, wide = self._read_end64(tail, end_at)
            for narrow, full, mark in zip(
                (count, size, start), wide, (_MAX16, _MAX32, _MAX32), strict=True
            ):
                if narrow != full and narrow != mark:
                    raise container_error("its two end records disagree")
            count, size, start = wide
        elif count == _MAX16 or size == _MAX32 or start == _MAX32:
            raise container_error("its 64-bit end record is missing")
        if start + size != limit:
            raise container_error("the central directory does not end where it should")
        if count > _MAX_ENTRIES or count * _CENTRAL.size > size:
            raise container_error(f"too many files: {count} in a directory of {size} bytes")
        return start, size, count

    def _read_end64(self, tail, end_at) -> tuple[int, tuple[int, int, int]]:
        _, disk, offset, disks = _LOCATOR64.unpack(tail)
        if disk or disks != 1 or offset + _END64.size + _LOCATOR64.size != end_at:
            raise container_error("its 64-bit end record is not where it should be")
        end = _END64.unpack(self._source.read_at(offset, _END64.size))
        magic, length, _, _, disk, first_disk, here, count, size, start = end
        if magic != b"PK\x06\x06" or length != _END64.size - 12:
            raise container_error("its 64-bit end record is damaged")
        if disk or first_disk or here != count:
            raise container_error("it is a part of an archive of several parts")
        return offset, (count, size, start)

    def _read_directory(self, start, size, count) -> list[Record]:
        raw = self._source.read_at(start, size)
        entries, seen, offset = [], set(), 0
        for _ in range(count):
            if offset + _CENTRAL.size > size:
                raise container_error("the central directory is cut short")
            entry, offset = self._parse_central(raw, offset)
            if entry.name in seen:
                raise container_error(f"{entry.name!r} is there twice")
            seen.add(entry.name)
            entries.append(entry)
        if offset != size:
            raise container_error("bytes are left over in the central directory")
        if not entries:
            raise container_error("it is empty")
        return entries

    @staticmethod
    def _parse_central(raw, offset) -> tuple[Record, int]:
        fields = _CENTRAL.unpack_from(raw, offset)
        magic, _, _, flags, method, _, _, crc, packed, size = fields[:10]
        name_len, extra_len, comment_len, disk, _, _, header = fields[10:]
        if magic != b"PK\x01\x02":
            raise container_error("the central directory is damaged")
        offset += _CENTRAL.size
        if offset + name_len + extra_len > len(raw) or comment_len or disk not in (0, _MAX16):
            raise container_error("the central directory is damaged")
        name = _checked_name(raw[offset : offset + name_len])
        extra = _extra_fields(raw[offset + name_len : offset + name_len + extra_len], name)
        if flags & ~(_HAS_DESCRIPTOR | _UTF8):
            raise container_error(f"{name!r} is encrypted or has unknown flags {flags:#06x}")
        if method not in (_STORED, _DEFLATED):
            raise container_error(f"{name!r} is compressed in an unknown way (method {method})")
        wide, used = extra.get(_ZIP64_FIELD, b""), 0
        values = []
        for value in (size, packed, header):
            if value == _MAX32:
                if used + 8 > len(wide):
                    raise container_error(f"the 64-bit sizes of {name!r} are missing")
                value = struct.unpack_from("<Q", wide, used)[0]
                used += 8
            values.append(value)
        size, packed, header = values
        if packed != size and method == _STORED:
            raise container_error(f"the two sizes of {name!r} differ: {packed} and {size}")
        record = Record(name, header, size, crc, flags, method, packed)
        return record, offset + name_len + extra_len

    # ---- the records --------------------------------------------------------------------------

    def _check_layout(self, entries, directory) -> None:
        """Each local header agrees with the directory, and the records tile the file."""
        offset = 0
        for entry in sorted(entries, key=lambda e: e.header):
            if entry.header != offset:
                raise container_error(
                    f"{entry.name!r} begins at byte {entry.header} instead of {offset}: records "
                    "overlap or bytes lie between them"
                )
            offset = self._check_local(entry, directory)
        if offset != directory:
            raise container_error("bytes lie between the last record and the central directory")

    def _check_local(self, entry, directory) -> int:
        def disagree(what):
            return container_error(f"the header of {entry.name!r} and the directory differ: {what}")

        raw_name = entry.name.encode("utf-8")
        body = entry.header + _LOCAL.size
        if body + len(raw_name) > directory:
            raise container_error(f"{entry.name!r} lies outside of the file")
        local = _LOCAL.unpack(self._source.read_at(entry.header, _LOCAL.size))
        magic, _, flags, method, _, _, crc, packed, size, name_len, extra_len = local
        if magic != MAGIC:
            raise container_error(f"{entry.name!r} has no header at byte {entry.header}")
        if flags != entry.flags or method != entry.method:
            raise disagree("flags or method")
        entry.offset = body + name_len + extra_len
        end = entry.offset + entry.packed
        if name_len != len(raw_name) or end > directory:
            raise container_error(f"{entry.name!r} lies outside of the file")
        rest = self._source.read_at(body, name_len + extra_len)
        if rest[:name_len] != raw_name:
            raise disagree("names")
        extra = _extra_fields(rest[name_len:], entry.name)
        later = bool(flags & _HAS_DESCRIPTOR)
        if (crc or not later) and crc != entry.crc:
            raise disagree("CRC")
        self._check_local_sizes(entry, packed, size, extra, later, disagree)
        return self._check_descriptor(entry, end, directory) if later else end

    @staticmethod
    def _check_local_sizes(entry, packed, size, extra, later, disagree) -> None:
        # PyTorch's writer puts the size, a zero or the place of the record here, by need.
        wide = extra.get(_ZIP64_FIELD, b"")
        if len(wide) % 8 or len(wide) > 24:
            raise disagree("sizes")
        full = struct.unpack(f"<{len(wide) // 8}Q", wide)
        if any(value not in (entry.size, entry.packed, entry.header, 0) for value in full):
            raise disagree("sizes")
        if len(full) >= 2:
            size = full[0] if size == _MAX32 else size
            packed = full[1] if packed == _MAX32 else packed
        for found, told in ((size, entry.size), (packed, entry.packed)):
            if found != told and not (later and found == 0):
                raise disagree("sizes")

    def _check_descriptor(self, entry, offset, directory) -> int:
        """The copy of checksum and sizes behind the data, in 32 or 64 bits."""
        for form in ("<4sIII", "<4sIQQ"):
            length = struct.calcsize(form)
            if offset + length > directory:
                continue
            found = struct.unpack(form, self._source.read_at(offset, length))
            if found == (b"PK\x07\x08", entry.crc, entry.packed, entry.size):
                return offset + length
        raise container_error(f"the descriptor behind {entry.name!r} and the directory differ")

    @staticmethod
    def _common_root(entries) -> str:
        root = entries[0].name.split("/", 1)[0]
        for entry in entries:
            if not entry.name.startswith(root + "/"):
                raise container_error(f"{entry.name!r} is not in the folder {root!r}")
        return root

    # ---- contents -----------------------------------------------------------------------------

    def record(self, name: str) -> Record:
        """The place of a record; raises if there is none of that name."""
        found = self.records.get(name)
        if found is None:
            raise missing_record(name)
        return found

    def read(self, name: str) -> bytes:
        """The content of a record, its checksum verified."""
        record = self.record(name)
        if record.method == _DEFLATED:
            data = bytearray(record.size)
            self.read_into(name, memoryview(data))
            return bytes(data)
        data = self._source.read_at(record.offset, record.size)
        self._verify(record, zlib.crc32(data))
        return data

    def read_into(self, name: str, target: memoryview) -> None:
        """The content of a record straight into memory, its checksum verified."""
        record = self.record(name)
        if record.method == _DEFLATED:
            self._inflate_into(record, target)
            return
        crc = 0
        for done in range(0, record.size, _CHUNK):
            part = target[done : done + _CHUNK]
            self._source.read_into(record.offset + done, part)
            crc = zlib.crc32(part, crc)
        self._verify(record, crc)

    def _inflate_into(self, record, target) -> None:
        machine, crc, done, offset = zlib.decompressobj(-15), 0, 0, record.offset
        end = record.offset + record.packed
        while offset < end and not machine.eof:
            data = self._source.read_at(offset, min(_CHUNK, end - offset))
            offset += len(data)
            while data:
                try:
                    # One byte more than there is room for shows a record that is too long.
                    part = machine.decompress(data, min(_CHUNK, record.size - done + 1))
                except zlib.error as error:
                    raise container_error(f"{record.name!r} cannot be inflated: {error}") from None
                if done + len(part) > record.size:
                    raise container_error(f"{record.name!r} is longer than the directory says")
                target[done : done + len(part)] = part
                crc = zlib.crc32(part, crc)
                done += len(part)
                data = machine.unconsumed_tail
        if done != record.size or not machine.eof or machine.unused_data or offset != end:
            raise container_error(f"{record.name!r} does not end where the directory says")
        self._verify(record, crc)

    def _verify(self, record, crc) -> None:
        if self.checked and crc != record.crc:
            raise container_error(
                f"the checksum of {record.name!r} is {crc:08x}, the directory says "
                f"{record.crc:08x}: its bytes have changed since they were written"
            )
