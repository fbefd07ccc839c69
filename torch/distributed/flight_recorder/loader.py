"""The files of flight recorders: JSON, as this package writes them, or pickles, as PyTorch does."""

from __future__ import annotations

import glob
import io
import json
import os
import pickle
import re
from typing import Any

__all__ = ["read_dump", "read_dumps"]

_RANK = re.compile(r"(\d+)$")


class _PlainUnpickler(pickle.Unpickler):
    """Dictionaries, lists, texts and numbers: a recording holds nothing else."""

    def find_class(self, module: str, name: str) -> Any:
        raise pickle.UnpicklingError(f"a recording does not hold a {module}.{name}")


def read_dump(path: str) -> dict[str, Any]:
    """One file."""
    with open(path, "rb") as file:
        data = file.read()
    try:
        found = json.loads(data)
    except ValueError:
        try:
            found = _PlainUnpickler(io.BytesIO(data)).load()
        except Exception as error:
            raise ValueError(f"{path} is no recording: {error}") from None
    if not isinstance(found, dict) or not isinstance(found.get("entries", []), list):
        raise ValueError(f"{path} is no recording: it has no entries")
    return found


def read_dumps(place: str, prefix: str = "") -> dict[int, dict[str, Any]]:
    """The files of all ranks, by rank: those of a folder whose names begin with `prefix`, or those
    whose paths begin with `place`. The rank is the number at the end of a name."""
    folder = os.path.isdir(place)
    start = os.path.join(place, prefix) if folder else place
    found = {}
    for path in sorted(glob.glob(glob.escape(start) + "*")):
        rank = _RANK.search(path)
        if rank is not None and os.path.isfile(path):
            found[int(rank.group(1))] = read_dump(path)
    return found
