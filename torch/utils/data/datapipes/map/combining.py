"""Steps that join pipes."""

from __future__ import annotations

from torch.utils.data.datapipes.datapipe import MapDataPipe, functional_datapipe

__all__ = ["ConcaterMapDataPipe", "ZipperMapDataPipe"]


def _check_pipes(datapipes) -> None:
    if not datapipes:
        raise ValueError("Expected at least one DataPipe, but got nothing")
    if not all(isinstance(pipe, MapDataPipe) for pipe in datapipes):
        raise TypeError("Expected all inputs to be `MapDataPipe`")


@functional_datapipe("concat")
class ConcaterMapDataPipe(MapDataPipe):
    """Pipes one after the other."""

    def __init__(self, *datapipes) -> None:
        _check_pipes(datapipes)
        self.datapipes = datapipes

    def __getitem__(self, index) -> int:
        offset = 0
        for pipe in self.datapipes:
            if index - offset < len(pipe):
                return pipe[index - offset]
            offset += len(pipe)
        raise IndexError(f"Index {index} is out of range.")

    def __len__(self) -> int:
        return sum(len(pipe) for pipe in self.datapipes)


@functional_datapipe("zip")
class ZipperMapDataPipe(MapDataPipe):
    """Tuples of the items of each pipe at one index."""

    def __init__(self, *datapipes) -> None:
        _check_pipes(datapipes)
        self.datapipes = datapipes

    def __getitem__(self, index) -> tuple[int, int]:
        return tuple(pipe[index] for pipe in self.datapipes)

    def __len__(self):
        return min(len(pipe) for pipe in self.datapipes)
