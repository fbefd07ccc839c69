"""Weak references and dictionaries by identity: tensors compare element by element, so they cannot
be keys of ordinary ones."""

from __future__ import annotations

import weakref
from collections.abc import MutableMapping

__all__ = ["TensorWeakRef", "WeakIdKeyDictionary", "WeakIdRef", "WeakTensorKeyDictionary"]


class WeakIdRef(weakref.ref):
    """A weak reference that is equal to another while both refer to the same object."""

    __slots__ = ("_id",)

    def __init__(self, key, callback=None) -> None:
        self._id = id(key)
        super().__init__(key, callback)

    def __hash__(self) -> int:
        return self._id

    def __eq__(self, other) -> bool:
        mine, theirs = self(), other()
        if mine is not None and theirs is not None:
            return mine is theirs
        return self is other


def _by_identity(mapping) -> dict[int, int]:
    return {id(key): value for key, value in mapping.items()}


class WeakIdKeyDictionary(MutableMapping):
    """A mapping whose keys are told apart by identity and are not kept alive."""

    def __init__(self, dict=None, ref_type=WeakIdRef) -> None:
        self.data = {}
        self.ref_type = ref_type
        this = weakref.ref(self)

        def forget(ref) -> None:
            owner = this()
            if owner is not None:
                owner.data.pop(ref, None)

        self._remove = forget
        if dict is not None:
            self.update(dict)

    def __getitem__(self, key) -> int | list[int]:
        return self.data[self.ref_type(key)]

    def __setitem__(self, key, value) -> None:
        self.data[self.ref_type(key, self._remove)] = value

    def __delitem__(self, key) -> None:
        del self.data[self.ref_type(key)]

    def __len__(self) -> int:
        return len(self.data)

    def __contains__(self, key) -> bool:
        try:
            return self.ref_type(key) in self.data
        except TypeError:
            return False

    def __iter__(self):
        for ref in list(self.data):
            key = ref()
            if key is not None:
                yield key

    def items(self):
        """Pairs of the keys that are alive."""
        for ref, value in list(self.data.items()):
            key = ref()
            if key is not None:
                yield key, value

    keys = __iter__

    def values(self):
        """The values whose keys are alive."""
        for _, value in self.items():
            yield value

    def keyrefs(self):
        """The weak references; some may be dead by the time they are used."""
        return list(self.data)

    def copy(self) -> WeakIdKeyDictionary:
        """Another mapping of the same keys."""
        new = type(self)(ref_type=self.ref_type)
        for key, value in self.items():
            new[key] = value
        return new

    __copy__ = copy

    def __deepcopy__(self, memo) -> WeakIdKeyDictionary:
        """The same keys, since a copy of a key would be gone at once, with copies of the values."""
        from copy import deepcopy

        new = type(self)(ref_type=self.ref_type)
        for key, value in self.items():
            new[key] = deepcopy(value, memo)
        return new

    def popitem(self):
        """Takes out any pair."""
        while True:
            ref, value = self.data.popitem()
            key = ref()
            if key is not None:
                return key, value

    def __or__(self, other) -> WeakIdKeyDictionary:
        new = self.copy()
        new.update(other)
        return new

    def __ior__(self, other):
        self.update(other)
        return self

    def __eq__(self, other) -> bool:
        by_identity = isinstance(other, MutableMapping)
        return _by_identity(self) == _by_identity(other) if by_identity else NotImplemented

    __hash__ = None

    def __repr__(self) -> str:
        return f"<{type(self).__name__} at {id(self):#x}>"


WeakTensorKeyDictionary = WeakIdKeyDictionary


class TensorWeakRef:
    """A weak reference to a tensor; calling it gives the tensor or None."""

    def __init__(self, tensor) -> None:
        self.ref = weakref.ref(tensor)

    def __call__(self):
        return self.ref()
