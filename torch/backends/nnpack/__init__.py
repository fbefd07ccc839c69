"""NNPACK: not used here."""

__all__ = ["is_available"]


def is_available():
    """Whether NNPACK is used: no."""
    return False
