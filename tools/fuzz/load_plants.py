"""Faults planted in the loader, one for each thing that the fuzzer of files must notice. Most are
bugs that loaders have really had; each replaces a function of the package in the child process."""

from __future__ import annotations

import ctypes
import importlib
import os
import time

# name -> (the first word of the report, the formats in which it can show, files that suffice)
EXPECTED = {
    "crash": ("crash", "zip", 60),
    "hang": ("hang", "zip", 40),
    "slow": ("slow", "legacy", 100),
    "leaked": ("exception", "zip", 300),
    "key error": ("exception", "safetensors", 50),
    "import": ("audit", "zip", 600),
    "write": ("audit", "zip", 50),
    "process": ("audit", "legacy", 100),
    "memory": ("memory", "zip", 400),
    "outside": ("unsound", "zip", 300),
}


def _in_dangling_memo(action) -> None:
    """Lets a reference to an empty place of the memo do something."""
    from torch._serialization import safe_unpickler

    original = safe_unpickler.SafeUnpickler._get

    def get(self, index):
        if index not in self._memo:
            action()
        return original(self, index)

    safe_unpickler.SafeUnpickler._get = get


def _hang() -> None:
    while True:
        time.sleep(1)


def _burn() -> None:
    until = time.process_time() + 1.2
    while time.process_time() < until:
        pass


def _leak_exceptions() -> None:
    from torch._serialization.safe_unpickler import SafeUnpickler

    SafeUnpickler.load = SafeUnpickler._run


def _trust_headers() -> None:
    from torch._serialization import safetensors_file

    def checked_entry(name, entry):
        dtype = safetensors_file._DTYPES[entry["dtype"]]
        return dtype, entry["shape"], *entry["data_offsets"]

    safetensors_file._checked_entry = checked_entry


def _import_names() -> None:
    from torch._serialization.safe_table import SafeTable

    original = SafeTable.find

    def find(self, module, name):
        try:
            return original(self, module, name)
        except Exception:
            return getattr(importlib.import_module(module), name)

    SafeTable.find = find


def _write_log() -> None:
    from torch._serialization import zip_reader

    original = zip_reader.container_error

    def container_error(reason):
        with open(os.devnull, "w") as file:
            file.write(reason)
        return original(reason)

    zip_reader.container_error = container_error


def _trust_sizes() -> None:
    from torch._serialization.storages import ZipStorages, check_persistent_id
    from torch.storage import UntypedStorage

    original = ZipStorages.load

    def load(self, pid):
        nbytes = check_persistent_id(pid, 5)[3]
        UntypedStorage(min(nbytes, 200 << 20)).fill_(1)
        return original(self, pid)

    ZipStorages.load = load


def _shrink_storages() -> None:
    from torch._serialization import safe_table

    original = safe_table._strided

    def strided(*args):
        tensor = original(*args)
        if tensor.dim() == 2:
            tensor.untyped_storage().resize_(1)
        return tensor

    safe_table._strided = strided


_PLANTS = {
    "crash": lambda: _in_dangling_memo(lambda: ctypes.string_at(0)),
    "hang": lambda: _in_dangling_memo(_hang),
    "slow": lambda: _in_dangling_memo(_burn),
    "leaked": _leak_exceptions,
    "key error": _trust_headers,
    "import": _import_names,
    "write": _write_log,
    "process": lambda: _in_dangling_memo(lambda: os.system("true")),
    "memory": _trust_sizes,
    "outside": _shrink_storages,
}


def plant(name: str) -> None:
    """Puts the fault of that name into the loader of this process."""
    _PLANTS[name]()
