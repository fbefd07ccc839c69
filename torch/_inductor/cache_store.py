"""A store of bytes by the hash of what they were made from, shared by processes.

Entries are files with a checksum below the user's cache folder. They are written beside their place
and renamed, so that a reader sees a whole entry or none; whatever cannot be read, is damaged, or
belongs to somebody else is as good as absent; what cannot be written is not kept. No entry is ever
interpreted by a pickle. A folder that others may write to is not used at all."""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import os
import stat
from collections.abc import Iterator

from torch._inductor.runtime.cache_dir_utils import cache_dir

__all__ = ["CacheInfo", "Store", "load_artifacts", "save_artifacts", "store"]

_MAGIC = b"CRESSET-STORE-1\n"
_BUNDLE = b"CRESSET-BUNDLE1\n"
_DIGEST = 32
# Entries larger than this are not ours; older entries go when all of them exceed the limit.
_LARGEST = 1 << 28
_MOST_BYTES = 1 << 30


def _digest(*parts: bytes) -> bytes:
    found = hashlib.sha256()
    for part in parts:
        found.update(len(part).to_bytes(8, "little"))
        found.update(part)
    return found.digest()


@dataclasses.dataclass(frozen=True)
class Entry:
    """One entry: the kind of thing, its key in hexadecimal digits, and its bytes."""

    kind: str
    key: str
    content: bytes


class Store:
    """The entries below one folder."""

    def __init__(self, root: str) -> None:
        self.root = root
        # What this process read or wrote, for save_artifacts.
        self.used: dict[tuple[str, str], bytes] = {}
        self._trimmed = False

    def key(self, *parts: bytes) -> str:
        """The key of what is made from these parts."""
        return _digest(*parts).hex()

    def get(self, kind: str, key: str) -> bytes | None:
        """The bytes of an entry; None where there is none that is whole."""
        path = self._path(kind, key)
        try:
            raw = self._read(path)
        except OSError:
            return None
        content = _unpacked(kind, key, raw)
        if content is None:
            with contextlib.suppress(OSError):
                os.unlink(path)
            return None
        self.used[kind, key] = content
        return content

    def put(self, kind: str, key: str, content: bytes) -> bool:
        """Keeps an entry; False where that is not possible."""
        self.used[kind, key] = content
        if len(content) > _LARGEST // 2 or not self._is_ours():
            return False
        path = self._path(kind, key)
        head = _MAGIC + _digest(kind.encode(), key.encode(), content)
        try:
            os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
            self._write(path, head + content)
        except OSError:
            return False
        self._trim()
        return True

    def forget(self, kind: str, key: str) -> None:
        """Removes an entry."""
        self.used.pop((kind, key), None)
        with contextlib.suppress(OSError):
            os.unlink(self._path(kind, key))

    def clear(self, kind: str) -> None:
        """Removes all entries of a kind."""
        self.used = {known: held for known, held in self.used.items() if known[0] != kind}
        if self._is_ours():
            import shutil

            shutil.rmtree(os.path.join(self.root, kind), ignore_errors=True)

    def _path(self, kind: str, key: str) -> str:
        return os.path.join(self.root, kind, key[:2], key)

    def _is_ours(self) -> bool:
        try:
            found = os.stat(self.root)
        except FileNotFoundError:
            with contextlib.suppress(OSError):
                os.makedirs(self.root, mode=0o700, exist_ok=True)
            return os.path.isdir(self.root)
        except OSError:
            return False
        mode = stat.S_IMODE(found.st_mode)
        return found.st_uid == os.geteuid() and not mode & (stat.S_IWGRP | stat.S_IWOTH)

    def _read(self, path: str) -> bytes:
        if not self._is_ours():
            raise PermissionError(self.root)
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
        with open(handle, "rb") as file:
            found = os.fstat(handle)
            if not stat.S_ISREG(found.st_mode) or found.st_uid != os.geteuid():
                raise PermissionError(path)
            if found.st_size > _LARGEST:
                raise OSError("larger than any entry")
            return file.read(_LARGEST)

    def _write(self, path: str, raw: bytes) -> None:
        import tempfile

        handle, temporary = tempfile.mkstemp(dir=os.path.dirname(path), prefix=".tmp")
        try:
            with open(handle, "wb") as file:
                file.write(raw)
            os.replace(temporary, path)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(temporary)
            raise

    def _files(self) -> Iterator[tuple[float, int, str]]:
        for parent, _, names in os.walk(self.root):
            for name in names:
                path = os.path.join(parent, name)
                with contextlib.suppress(OSError):
                    found = os.lstat(path)
                    yield found.st_mtime, found.st_size, path

    def _trim(self) -> None:
        """Once in a process: removes the oldest entries beyond the limit."""
        if self._trimmed:
            return
        self._trimmed = True
        files = sorted(self._files())
        total = sum(size for _, size, _ in files)
        for _, size, path in files:
            if total <= _MOST_BYTES:
                return
            with contextlib.suppress(OSError):
                os.unlink(path)
                total -= size


def _unpacked(kind: str, key: str, raw: bytes) -> bytes | None:
    start = len(_MAGIC) + _DIGEST
    if len(raw) < start or not raw.startswith(_MAGIC):
        return None
    content = raw[start:]
    if raw[len(_MAGIC) : start] != _digest(kind.encode(), key.encode(), content):
        return None
    return content


_stores: dict[str, Store] = {}


def store() -> Store:
    """The store in the current cache folder."""
    root = os.path.join(cache_dir(), "cresset")
    found = _stores.get(root)
    if found is None:
        found = _stores[root] = Store(root)
    return found


# ---- all entries of a process as one piece --------------------------------------------------


@dataclasses.dataclass
class CacheInfo:
    """The keys of the entries in a bundle, by kind."""

    artifacts: dict[str, list[str]] = dataclasses.field(default_factory=dict)

    @property
    def inductor_artifacts(self) -> list[str]:
        """Compiled kernels, and graphs after their passes."""
        return [*self.artifacts.get("kernel", []), *self.artifacts.get("fxgraph", [])]

    @property
    def aot_autograd_artifacts(self) -> list[str]:
        """What is known of traced functions and their derivatives."""
        return self.artifacts.get("aot_autograd", [])

    @property
    def precompile_artifacts(self) -> list[str]:
        """Functions whose bytecode need not be interpreted again."""
        return self.artifacts.get("region", [])

    @property
    def autotune_artifacts(self) -> list[str]:
        """Choices that were timed; none are kept."""
        return self.artifacts.get("autotune", [])

    @property
    def pgo_artifacts(self) -> list[str]:
        """What was seen of sizes; none are kept."""
        return self.artifacts.get("pgo", [])

    def empty(self) -> bool:
        """Whether there is nothing."""
        return not any(self.artifacts.values())


def _sized(part: bytes) -> bytes:
    return len(part).to_bytes(8, "little") + part


def save_artifacts() -> tuple[bytes, CacheInfo] | None:
    """What this process used of its store, as one piece of bytes, and what that is."""
    used = store().used
    if not used:
        return None
    info = CacheInfo()
    body = b""
    for (kind, key), content in sorted(used.items()):
        info.artifacts.setdefault(kind, []).append(key)
        body += _sized(kind.encode()) + _sized(key.encode()) + _sized(content)
    return _BUNDLE + _digest(body) + body, info


def _entries(raw: bytes) -> list[Entry] | None:
    start = len(_BUNDLE) + _DIGEST
    if not raw.startswith(_BUNDLE) or raw[len(_BUNDLE) : start] != _digest(raw[start:]):
        return None
    parts: list[bytes] = []
    while start < len(raw):
        length = int.from_bytes(raw[start : start + 8], "little")
        start += 8
        if start + length > len(raw):
            return None
        parts.append(raw[start : start + length])
        start += length
    if len(parts) % 3:
        return None
    return [
        Entry(kind.decode("ascii", "replace"), key.decode("ascii", "replace"), content)
        for kind, key, content in zip(parts[::3], parts[1::3], parts[2::3], strict=True)
    ]


def load_artifacts(raw: bytes) -> CacheInfo | None:
    """Puts the entries of a bundle into the store; None where it is damaged."""
    found = _entries(bytes(raw))
    if found is None or not all(_is_plain(e) for e in found):
        return None
    info = CacheInfo()
    for entry in found:
        info.artifacts.setdefault(entry.kind, []).append(entry.key)
        store().put(entry.kind, entry.key, entry.content)
    return info


def _is_plain(entry: Entry) -> bool:
    """Whether kind and key can be names of files."""
    digits = set("0123456789abcdef")
    return entry.kind.isidentifier() and len(entry.key) == 2 * _DIGEST and set(entry.key) <= digits
