"""Gradients through calls of other processes: not available yet, as torch.distributed says. The
names are there to be imported and asked about; using them raises NotImplementedError."""

from torch import _later

__all__ = ["is_available"]


def is_available() -> bool:
    """Whether gradients can flow between processes: not in this version."""
    return False


globals().update(_later.names(__name__, "DistAutogradContext backward context get_gradients"))
