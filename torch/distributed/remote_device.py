"""A device of a process: a rank or a worker's name, and the device there."""

from __future__ import annotations

import torch


class _remote_device:
    """Read from "rank:1/cuda:1", "worker/cpu", "rank:1" (the CPU there), "cuda:0" (of this
    process), or made of a device."""

    def __init__(self, remote_device: str | torch.device) -> None:
        self._rank: int | None = None
        self._worker_name: str | None = None
        if isinstance(remote_device, torch.device):
            self._device = remote_device
            return
        if not isinstance(remote_device, str):
            raise TypeError(f"Invalid type for remote_device: {type(remote_device)}")
        parts = remote_device.split("/")
        if len(parts) == 2 and all(parts):
            self._set_process(parts[0], remote_device)
            self._device = torch.device(parts[1])
        elif len(parts) == 1 and parts[0].startswith("rank:"):
            self._set_process(parts[0], remote_device)
            self._device = torch.device("cpu")
        elif len(parts) == 1:
            self._device = self._parse(parts[0], remote_device)
        else:
            self._fail(remote_device)

    def _set_process(self, word: str, whole: str) -> None:
        if not word.startswith("rank:"):
            self._worker_name = word
        elif word[5:].isdigit():
            self._rank = int(word[5:])
        else:
            self._fail(whole)

    def _parse(self, word: str, whole: str) -> torch.device:
        try:
            return torch.device(word)
        except RuntimeError:
            self._fail(whole)

    @staticmethod
    def _fail(text: str) -> None:
        raise ValueError(
            f"Could not parse remote_device: {text}. The valid format is "
            '"<workername>/<device>", "rank:<rank>/<device>" or "<device>"'
        )

    def worker_name(self) -> str | None:
        """The name of the process, where it was given by name."""
        return self._worker_name

    def rank(self) -> int | None:
        """The rank of the process, where it was given by rank."""
        return self._rank

    def device(self) -> torch.device:
        """The device there."""
        return self._device

    def __repr__(self) -> str:
        if self._rank is not None:
            return f"rank:{self._rank}/{self._device}"
        return f"{self._worker_name}/{self._device}" if self._worker_name else str(self._device)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _remote_device) and repr(self) == repr(other)

    def __hash__(self) -> int:
        return hash(repr(self))
