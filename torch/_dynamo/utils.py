"""What programs ask the compiler about itself."""

from collections import Counter, defaultdict

# What the compiler counted, by kind and then by name: nothing yet.
counters = defaultdict(Counter)


def is_compile_supported(device_type) -> bool:
    """Whether code for a kind of device can be generated: not yet."""
    return False


def namedtuple_fields(cls: type) -> tuple[str, ...]:
    """Names of the values of a named tuple or of a result with named values."""
    found = getattr(cls, "_fields", None)
    if found is not None:
        return tuple(found)
    import types

    names = [n for n, v in cls.__dict__.items() if isinstance(v, types.MemberDescriptorType)]
    order = {name: i for i, name in enumerate(names)}
    return tuple(sorted(names, key=order.__getitem__))
