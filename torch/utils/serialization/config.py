"""The settings of torch.save and torch.load as attributes of two groups.

load.mmap: whether torch.load maps files when it is not told.
load.mmap_flags: MAP_PRIVATE or MAP_SHARED, for mapped files.
load.endianness: the byte order of files that do not say theirs.
load.calculate_storage_offsets: a hint of PyTorch's reader; ours looks places up at no cost.
save.compute_crc32: whether records get a checksum.
save.storage_alignment: the bytes to whose multiples storages are aligned in the file.
save.use_pinned_memory_for_d2h: a hint for copies from a GPU; it changes no result.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from torch._serialization.settings import settings

__all__ = ["load", "save", "patch"]


class _Group:
    def __init__(self, prefix) -> None:
        object.__setattr__(self, "_prefix", prefix)

    def _key(self, name):
        key = f"{self._prefix}.{name}"
        if key not in settings:
            raise AttributeError(f"torch.utils.serialization.config.{key} does not exist")
        return key

    def __getattr__(self, name):
        return settings[self._key(name)]

    def __setattr__(self, name, value) -> None:
        settings[self._key(name)] = value

    def __dir__(self):
        return [key.split(".")[1] for key in settings if key.startswith(self._prefix + ".")]


load = _Group("load")
save = _Group("save")


@contextlib.contextmanager
def patch(changes, value=None) -> Iterator[None]:
    """Other values for the length of a `with` block or a decorated function: a dict by dotted
    names, or one name and its value."""
    changes = {changes: value} if isinstance(changes, str) else dict(changes)
    for key in changes:
        if key not in settings or "." not in key:
            raise AttributeError(f"torch.utils.serialization.config.{key} does not exist")
    before = {key: settings[key] for key in changes}
    settings.update(changes)
    try:
        yield
    finally:
        settings.update(before)
