"""torch.__version__: a string that compares by version number rather than by letter, with strings
and tuples."""

import re

from torch.version import __version__ as internal_version

__all__ = ["TorchVersion"]

_PRE = {"dev": -4, "a": -3, "alpha": -3, "b": -2, "beta": -2, "c": -1, "rc": -1, "": 0, "post": 1}


def _key(value):
    """A tuple that sorts as versions do: release numbers without trailing zeros, then stage, then
    local part."""
    if isinstance(value, (tuple, list)):
        value = ".".join(str(part) for part in value)
    public, _, local = str(value).strip().lower().lstrip("v").partition("+")
    match = re.match(r"(\d+(?:\.\d+)*)[._-]?([a-z]*)[._-]?(\d*)", public)
    if match is None:
        raise ValueError(f"Invalid version: '{value}'")
    release = [int(part) for part in match[1].split(".")]
    while release and release[-1] == 0:
        release.pop()
    local_key = tuple(
        (1, int(p), "") if p.isdigit() else (0, 0, p) for p in re.split(r"[._-]", local) if p
    )
    return tuple(release), _PRE.get(match[2], 0), int(match[3] or 0), local_key


class TorchVersion(str):
    """A version string with numeric comparison: TorchVersion("2.10.0") > "2.9", > (2, 9)."""

    __slots__ = ()

    def _compare(self, other, operation):
        try:
            return operation(_key(str(self)), _key(other))
        except ValueError:
            return NotImplemented

    def __lt__(self, other):
        return self._compare(other, lambda a, b: a < b)

    def __le__(self, other):
        return self._compare(other, lambda a, b: a <= b)

    def __gt__(self, other):
        return self._compare(other, lambda a, b: a > b)

    def __ge__(self, other):
        return self._compare(other, lambda a, b: a >= b)

    def __eq__(self, other):
        equal = self._compare(other, lambda a, b: a == b)
        return False if equal is NotImplemented else equal

    def __ne__(self, other) -> bool:
        return not self == other

    __hash__ = str.__hash__


__version__ = TorchVersion(internal_version)
