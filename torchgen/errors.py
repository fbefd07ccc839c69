"""The one error the generator raises for a wrong input: where it is and a sentence that says what
to change.

Every check in the generator raises GenError with the line of the yaml entry, so that a mistake in
the operator list reads like a compiler's message and an editor can jump to it.
"""

from __future__ import annotations


class GenError(Exception):
    """A mistake in an input file. Prints as `file:line: sentence`."""

    def __init__(self, message: str, file: str = "", line: int = 0) -> None:
        super().__init__(message)
        self.message = message
        self.file = file
        self.line = line

    def at(self, file: str, line: int) -> GenError:
        """Fills in the place where it is not known yet, and returns the error itself."""
        if not self.file:
            self.file, self.line = file, line
        return self

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.message}" if self.file else self.message
