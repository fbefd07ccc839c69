"""KleidiAI: not used here."""

__all__ = ["is_available"]


def is_available():
    """Whether KleidiAI is used: no."""
    return False
