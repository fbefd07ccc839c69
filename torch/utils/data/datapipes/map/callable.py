"""A step that calls a function on each item."""

from __future__ import annotations

from torch.utils.data.datapipes.datapipe import MapDataPipe, functional_datapipe
from torch.utils.data.datapipes.utils.common import warn_if_unpicklable

__all__ = ["MapperMapDataPipe", "default_fn"]


def default_fn(data):
    """The item itself."""
    return data


@functional_datapipe("map")
class MapperMapDataPipe(MapDataPipe):
    """fn of each item."""

    def __init__(self, datapipe, fn=default_fn) -> None:
        super().__init__()
        self.datapipe = datapipe
        warn_if_unpicklable(fn)
        self.fn = fn

    def __len__(self) -> int:
        return len(self.datapipe)

    def __getitem__(self, index) -> str:
        return self.fn(self.datapipe[index])
