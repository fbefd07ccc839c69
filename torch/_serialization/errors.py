"""The exceptions of a file that cannot be loaded. PyTorch raises RuntimeError for a damaged
container and pickle.UnpicklingError for a refused pickle; one class that is both keeps every
existing `except` clause working while callers need to know one name only."""

import pickle

__all__ = ["CheckpointError", "UnsupportedCheckpointError", "container_error", "refused"]


class CheckpointError(pickle.UnpicklingError, RuntimeError):
    """The file is damaged, hostile, or not a checkpoint."""

    __module__ = "torch.serialization"


class UnsupportedCheckpointError(CheckpointError, NotImplementedError):
    """The file is well-formed but holds something that this build has no support for."""

    __module__ = "torch.serialization"


def container_error(reason: str) -> CheckpointError:
    """For a zip archive that breaks a rule of the format."""
    return CheckpointError(
        f"PytorchStreamReader failed reading zip archive: {reason}. The file is damaged, cut "
        "short, or was not written by torch.save."
    )


def refused(reason: str) -> CheckpointError:
    """For a pickle that the safe loader does not execute."""
    return CheckpointError(f"Weights only load failed. WeightsUnpickler error: {reason}")
