"""Reports of workers that failed."""

from torch import _later


def record(fn, error_handler=None):
    """Marks the entry point of a worker; without a launcher to report to, fn itself."""
    return fn


globals().update(
    _later.names(__name__, "ChildFailedError ErrorHandler ProcessFailure get_error_handler")
)
