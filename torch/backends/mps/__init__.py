"""Apple's Metal, which this library does not use."""

__all__ = ["is_available", "is_built", "is_macos13_or_newer", "is_macos_or_newer"]


def is_built():
    """Whether the library was built for Metal."""
    return False


def is_available():
    """Whether Metal can be used."""
    return False


def is_macos_or_newer(major, minor):
    """Whether the system is at least that version of macOS."""
    return False


def is_macos13_or_newer(minor=0):
    """Whether the system is macOS 13 or newer."""
    return False
