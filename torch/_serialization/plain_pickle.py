"""Python's own pickle with storages kept outside of the stream: how torch.save writes, and how
torch.load reads when the caller explicitly asks for weights_only=False. Reading this way executes
what the file says."""

import inspect

import torch
from torch._serialization.locations import location_tag
from torch._serialization.safe_table import STORAGE_DTYPES
from torch.storage import _DTYPE_TO_STORAGE, TypedStorage, UntypedStorage

__all__ = ["StorageCollector", "make_pickler", "make_unpickler"]


class StorageCollector:
    """Gives each storage that a pickle meets a key. `by_key` holds them until they are written,
    which also keeps their identities from being reused."""

    def __init__(self, legacy=False) -> None:
        self.by_key = {}
        self._legacy = legacy
        self._keys = {}
        self._dtypes = {}
        self._classes = set()

    def persistent_id(self, obj):
        """The persistent id of a storage; None for anything else, which is then pickled."""
        if isinstance(obj, TypedStorage):
            untyped, dtype = obj.untyped(), obj.dtype
            cls = _DTYPE_TO_STORAGE.get(dtype)
            if cls is None:
                raise RuntimeError(
                    f"torch.save: a TypedStorage of {dtype} has no class in the file format; "
                    "save a tensor instead"
                )
        elif isinstance(obj, UntypedStorage):
            untyped, dtype, cls = obj, torch.uint8, UntypedStorage
        elif self._legacy and isinstance(obj, type) and issubclass(obj, torch.nn.Module):
            return self._module_id(obj)
        else:
            return None
        address = untyped.data_ptr()
        if address and self._dtypes.setdefault(address, dtype) != dtype:
            raise RuntimeError(
                "Cannot save multiple tensors or storages that view the same data as different "
                f"types: {self._dtypes[address]} and {dtype}"
            )
        key = self._keys.get(untyped._cdata)
        if key is None:
            key = str(len(self._keys))
            self._keys[untyped._cdata] = key
            self.by_key[key] = (untyped, dtype)
        pid = ("storage", cls, key, location_tag(untyped), untyped.nbytes() // dtype.itemsize)
        return (*pid, None) if self._legacy else pid

    def _module_id(self, cls):
        """A module's class with its source, so that a reader can tell whether it has changed; the
        second time, as within that id, the class alone."""
        if cls in self._classes or cls.__module__.split(".")[0] == "torch":
            return None
        self._classes.add(cls)
        try:
            return ("module", cls, inspect.getsourcefile(cls), inspect.getsource(cls))
        except (OSError, TypeError):
            return None


def make_pickler(pickle_module, file, protocol, collector):
    """A pickler of `pickle_module` that leaves storages to `collector`."""

    class Pickler(pickle_module.Pickler):
        def persistent_id(self, obj):
            return collector.persistent_id(obj)

    return Pickler(file, protocol=protocol)


_STORAGE_NAMES = {cls.__name__: cls for cls in STORAGE_DTYPES}


def make_unpickler(pickle_module, file, persistent_load, **arguments):
    """An unpickler of `pickle_module` that asks `persistent_load` for storages."""

    class Unpickler(pickle_module.Unpickler):
        def find_class(self, module, name):
            # Files written on a machine with a GPU may name the classes of storages on it.
            if name in _STORAGE_NAMES and module in ("torch", "torch.cuda", "torch.storage"):
                return _STORAGE_NAMES[name]
            return super().find_class(module, name)

        def persistent_load(self, pid):
            return persistent_load(pid)

    return Unpickler(file, **arguments)
