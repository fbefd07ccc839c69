"""A step that calls a function on each item."""

from torch.utils.data.datapipes.datapipe import MapDataPipe, functional_datapipe

__all__ = ["MapperMapDataPipe", "default_fn"]


def default_fn(data):
    """The item itself."""
    return data


@functional_datapipe("map")
class MapperMapDataPipe(MapDataPipe):
    """fn of each item."""

    def __init__(self, datapipe, fn=default_fn):
        super().__init__()
        self.datapipe = datapipe
        self.fn = fn

    def __len__(self):
        return len(self.datapipe)

    def __getitem__(self, index):
        return self.fn(self.datapipe[index])
