"""Compiled operators of other packages that this library brings along.

A package's wheel carries its extension compiled for one implementation of torch; loaded beside
another it can only fail. Where the operators are ours, torch.ops.load_library registers them and
leaves the foreign file alone; where not, the error says what the file is. An extension compiled
for this library is loaded as any other."""

import mmap
import os

# A library of the implementation that extensions in binary wheels are linked with.
_FOREIGN = b"libtorch_cpu.so\0"


def _supply_vision() -> None:
    from torch import _supplied_vision

    _supplied_vision.register()


# (folder of the package, name of its extension) -> what defines its operators.
_SUPPLIED = {
    ("torchvision", "_C"): _supply_vision,
    ("torchvision", "_C_stable"): _supply_vision,  # its name since 0.29
}


def is_foreign(path):
    """Whether the shared library at `path` was linked with another implementation of torch."""
    if os.path.exists(os.path.join(os.path.dirname(__file__), "lib", "libtorch_cpu.so")):
        return False
    try:
        with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ) as data:
            return data[:4] == b"\x7fELF" and data.find(_FOREIGN) >= 0
    except (OSError, ValueError):
        return False


def stand_in(path) -> bool:
    """Defines the operators of a foreign library and returns True; False for one to be loaded."""
    if not is_foreign(path):
        return False
    folder, name = os.path.split(path)
    supply = _SUPPLIED.get((os.path.basename(folder), name.partition(".")[0]))
    if supply is None:
        raise OSError(
            f"Could not load this library: {path}. It was compiled for another implementation of "
            "torch (it needs libtorch_cpu.so); install the package from its source instead."
        )
    supply()
    return True
