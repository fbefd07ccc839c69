"""A step that reads open files."""

from torch.utils.data.datapipes.datapipe import IterDataPipe, functional_datapipe

__all__ = ["StreamReaderIterDataPipe"]


@functional_datapipe("read_from_stream")
class StreamReaderIterDataPipe(IterDataPipe):
    """(name, content) of (name, file), in pieces of `chunk`."""

    def __init__(self, datapipe, chunk=None) -> None:
        self.datapipe = datapipe
        self.chunk = chunk

    def __iter__(self):
        for name, stream in self.datapipe:
            with stream:
                while piece := stream.read(self.chunk if self.chunk is not None else -1):
                    yield name, piece
