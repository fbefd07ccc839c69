"""cuSPARSELt: not used here."""

__all__ = ["is_available"]


def is_available():
    """Whether cuSPARSELt is used: no."""
    return False


def version():
    """Its version, or None where it is not used."""
    return 0 if is_available() else None
