"""What goes wrong with a checkpoint, by rank."""

from __future__ import annotations

import traceback

__all__ = ["CheckpointException"]


class CheckpointException(BaseException):
    """Saving or loading failed on some ranks; `failures` has what each raised."""

    def __init__(self, msg: str, failures: dict[int, tuple[BaseException, str]]) -> None:
        super().__init__(msg, failures)
        self._failures = failures

    @property
    def failures(self) -> dict[int, tuple[BaseException, str]]:
        """By rank, the error and its traceback."""
        return self._failures

    def __str__(self) -> str:
        text = f"CheckpointException ranks:{self._failures.keys()}\n"
        for rank, (error, trace) in self._failures.items():
            text += f"Traceback (most recent call last): (RANK {rank})\n{trace}{error!r}\n"
        return text


def described(error: BaseException) -> tuple[BaseException, str]:
    """An error and its traceback, as one rank sends it to another."""
    return error, "".join(traceback.format_tb(error.__traceback__))
