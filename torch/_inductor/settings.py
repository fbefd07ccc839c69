"""Which settings of torch._inductor.config decide something. The file of the settings says so by
its order; whoever asks for one that changes nothing is told once."""

from __future__ import annotations

import functools
import logging
import pathlib
import re
from collections.abc import Iterable

from torch._inductor import config

__all__ = ["tell", "without_effect"]

log = logging.getLogger("torch._inductor")
_SETTING = re.compile(r"( *)(\w+): [^=]+ = ")
_told: set[str] = set()


@functools.cache
def without_effect() -> frozenset[str]:
    """Names of settings that are accepted and change nothing."""
    found: set[str] = set()
    owner, accepted = "", False
    for line in pathlib.Path(config.__file__).read_text().splitlines():
        if line.startswith("class "):
            owner, accepted = line[6:].partition(":")[0] + ".", False
        elif line.strip().startswith("# ----"):
            owner = owner if line.startswith(" ") else ""
            accepted = line.strip() == "# ---- accepted"
        setting = _SETTING.match(line)
        if setting and accepted:
            found.add(owner + setting[2])
    return frozenset(found)


def tell(names: Iterable[str]) -> None:
    """Says in the log which of these settings change nothing."""
    new = sorted((without_effect() & set(names)) - _told)
    if new:
        _told.update(new)
        log.warning("these settings are accepted and change nothing here: %s", ", ".join(new))
