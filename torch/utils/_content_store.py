"""A name for the content of a storage, equal for equal bytes."""

from __future__ import annotations

import hashlib

import torch

__all__ = ["hash_storage"]


def hash_storage(storage: torch.UntypedStorage, *, stable_hash: bool = False) -> str:
    """The SHA-1 of the bytes, in hexadecimal. It depends on nothing else: `stable_hash`, which asks
    for that, changes nothing."""
    numbers = torch.empty(0, dtype=torch.uint8, device=storage.device).set_(storage)
    return hashlib.sha1(numbers.cpu().numpy().tobytes(), usedforsecurity=False).hexdigest()
