"""Fills modules such as torch.linalg with the operators that torch._C holds for them."""

from __future__ import annotations

from torch import _C


def install(target, owner, prefix) -> list[str]:
    """Puts each operator of torch._C.<owner> into the dictionary `target` without its prefix;
    returns the names."""
    names = []
    source = getattr(_C, owner)
    for name in dir(source):
        if name.startswith("__"):
            continue
        public = name.removeprefix(prefix)
        target[public] = getattr(source, name)
        if not public.startswith("_"):
            names.append(public)
    return sorted(names)
