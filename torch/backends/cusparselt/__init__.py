"""cuSPARSELt: not used here."""

__all__ = ["is_available"]


def is_available():
    """Whether cuSPARSELt is used: no."""
    return False


def version():
    """Its version: none."""
    return None
