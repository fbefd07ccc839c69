"""Whether memory that operators leave unset is filled, so that a program that reads it gets the
same each time."""

import sys
import types

from torch import _C


class _Deterministic(types.ModuleType):
    @property
    def fill_uninitialized_memory(self):
        """Whether torch.empty and its like fill while deterministic algorithms are in use."""
        return _C._get_deterministic_fill_uninitialized_memory()

    @fill_uninitialized_memory.setter
    def fill_uninitialized_memory(self, mode) -> None:
        _C._set_deterministic_fill_uninitialized_memory(mode)


sys.modules[__name__].__class__ = _Deterministic
