"""A step that changes the order of items: its result can only be iterated."""

from torch.utils.data.datapipes._shuffling import Shuffling
from torch.utils.data.datapipes.datapipe import MapDataPipe

__all__ = ["ShufflerIterDataPipe"]


class ShufflerIterDataPipe(Shuffling):
    """The items of a MapDataPipe at random."""

    def __init__(self, datapipe, *, indices=None) -> None:
        super().__init__()
        self.datapipe = datapipe
        self.indices = list(range(len(datapipe))) if indices is None else indices

    def __iter__(self):
        order = list(self.indices)
        if self._enabled:
            self._rng.shuffle(order)
        for index in order:
            yield self.datapipe[index]

    def __len__(self) -> int:
        return len(self.datapipe)


MapDataPipe.register_datapipe_as_function("shuffle", ShufflerIterDataPipe)
