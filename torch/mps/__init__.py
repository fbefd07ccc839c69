"""Apple GPUs: this build has no support for them."""

__all__ = [
    "current_allocated_memory",
    "device_count",
    "driver_allocated_memory",
    "empty_cache",
    "get_rng_state",
    "is_available",
    "manual_seed",
    "recommended_max_memory",
    "seed",
    "set_per_process_memory_fraction",
    "set_rng_state",
    "synchronize",
]


def _refuse(what):
    raise RuntimeError(f"Cannot execute {what}() without MPS backend.")


def is_available() -> bool:
    """Whether there is such a device: no."""
    return False


def device_count() -> int:
    """How many such devices there are: none."""
    return 0


def manual_seed(seed) -> None:
    """Sets the seed, as for a device: refused unless it is a number; there is none to seed."""
    int(seed)


def seed() -> None:
    """Sets a random seed."""
    _refuse("getDefaultGenerator")


def synchronize() -> None:
    """Waits for the device."""
    _refuse("deviceSynchronize")


def empty_cache() -> None:
    """Gives cached memory back."""
    _refuse("emptyCache")


def current_allocated_memory() -> None:
    """Bytes that tensors use."""
    _refuse("getCurrentAllocatedMemory")


def driver_allocated_memory() -> None:
    """Bytes that the driver holds."""
    _refuse("getDriverAllocatedMemory")


def recommended_max_memory() -> None:
    """Bytes that should not be exceeded."""
    _refuse("getRecommendedMaxMemory")


def set_per_process_memory_fraction(fraction) -> None:
    """Limits the memory in use."""
    _refuse("setMemoryFraction")


def get_rng_state(device="mps") -> None:
    """The state of the generator."""
    _refuse("getDefaultGenerator")


def set_rng_state(new_state, device="mps") -> None:
    """Sets the state of the generator."""
    _refuse("getDefaultGenerator")
