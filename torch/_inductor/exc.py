"""Errors that programs catch around compiled functions."""


class InductorError(RuntimeError):
    """The kernel generator failed."""
