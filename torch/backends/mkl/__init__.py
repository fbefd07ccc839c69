"""Intel's MKL, which this library does not use: its own kernels take its place."""

__all__ = ["is_available"]


def is_available():
    """Whether MKL is used."""
    return False
