"""The exceptions of a file that cannot be loaded. PyTorch raises RuntimeError for a damaged
container and pickle.UnpicklingError for a refused pickle; one class that is both keeps every
existing `except` clause working while callers need to know one name only."""

import pickle
import struct

__all__ = [
    "FAULTS",
    "CheckpointError",
    "UnsupportedCheckpointError",
    "brief",
    "container_error",
    "missing_record",
    "refused",
]

# What reading a damaged file may run into. Anything else, such as what the handler of a signal
# raises or an error of the disk, is not about the file and goes on as it is.
FAULTS = (
    ArithmeticError,
    AssertionError,
    AttributeError,
    BufferError,
    EOFError,
    LookupError,
    NameError,
    RuntimeError,
    TypeError,
    ValueError,
    pickle.PickleError,
    struct.error,
)


class CheckpointError(pickle.UnpicklingError, RuntimeError):
    """The file is damaged, hostile, or not a checkpoint."""

    __module__ = "torch.serialization"


class UnsupportedCheckpointError(CheckpointError, NotImplementedError):
    """The file is well-formed but holds something that this build has no support for."""

    __module__ = "torch.serialization"


def _named(name: str) -> type[CheckpointError]:
    """A CheckpointError that reports and logs call as they know it from PyTorch."""
    return type(name, (CheckpointError,), {"__module__": "torch.serialization"})


_DamagedContainer = _named("RuntimeError")
_RefusedPickle = _named("UnpicklingError")


def container_error(reason: str) -> CheckpointError:
    """For a zip archive that breaks a rule of the format."""
    return _DamagedContainer(
        f"PytorchStreamReader failed reading zip archive: {reason}. The file is damaged, cut "
        "short, or was not written by torch.save."
    )


def missing_record(name: str) -> CheckpointError:
    """For a zip archive without a record that every checkpoint has."""
    return _DamagedContainer(f"PytorchStreamReader failed locating file {name}: file not found")


def brief(value) -> str:
    """A value from a file as part of a message. Only plain values are shown: the text of a
    container whose parts repeat can be longer than any memory."""
    kind = type(value)
    if kind is int and value.bit_length() > 128:
        return "an integer of many digits"
    if kind in (int, float, bool, type(None)):
        return repr(value)
    if kind in (str, bytes):
        return repr(value[:40])
    return f"an object of type {getattr(value, '__name__', kind.__name__)[:80]}"


def refused(reason: str) -> CheckpointError:
    """For a pickle that the safe loader does not execute."""
    return _RefusedPickle(f"Weights only load failed. WeightsUnpickler error: {reason}")
