"""Checkpoints of several processes: not available yet, as torch.distributed says. What one process
needs alone is in state_dict; the other names raise NotImplementedError when used."""

import importlib

from torch import _later
from torch.distributed import _CHECKPOINT

globals().update(_later.names(__name__, _CHECKPOINT))


def __getattr__(name):
    if not name.startswith("__"):
        try:
            return importlib.import_module(f"{__name__}.{name}")
        except ModuleNotFoundError:
            pass
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
