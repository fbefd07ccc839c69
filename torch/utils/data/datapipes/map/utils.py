"""A pipe from any sequence."""

from __future__ import annotations

import contextlib
import copy

from torch.utils.data.datapipes.datapipe import MapDataPipe

__all__ = ["SequenceWrapperMapDataPipe"]


class SequenceWrapperMapDataPipe(MapDataPipe):
    """The items of a sequence or a mapping, by default of a copy where it can be copied."""

    def __init__(self, sequence, deepcopy=True) -> None:
        self.sequence = sequence
        if deepcopy:
            with contextlib.suppress(TypeError):
                self.sequence = copy.deepcopy(sequence)

    def __getitem__(self, index) -> int:
        return self.sequence[index]

    def __len__(self) -> int:
        return len(self.sequence)
