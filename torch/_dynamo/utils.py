"""What programs ask the compiler about itself."""

from collections import Counter, defaultdict

# What the compiler counted, by kind and then by name: nothing yet.
counters = defaultdict(Counter)


def is_compile_supported(device_type) -> bool:
    """Whether code for a kind of device can be generated: not yet."""
    return False
