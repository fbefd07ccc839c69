"""OpenMP, which this library does not use: it has a thread pool of its own."""

__all__ = ["is_available"]


def is_available():
    """Whether OpenMP is used."""
    return False
