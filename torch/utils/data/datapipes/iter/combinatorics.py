"""Steps that change the order of items."""

from __future__ import annotations

from collections.abc import Sized

from torch.utils.data.datapipes._shuffling import Shuffling
from torch.utils.data.datapipes.datapipe import IterDataPipe, functional_datapipe, length_of
from torch.utils.data.sampler import SequentialSampler

__all__ = ["SamplerIterDataPipe", "ShufflerIterDataPipe"]


class SamplerIterDataPipe(IterDataPipe):
    """What a sampler gives for the pipe."""

    def __init__(
        self, datapipe, sampler=SequentialSampler, sampler_args=None, sampler_kwargs=None
    ) -> None:
        super().__init__()
        if not isinstance(datapipe, Sized):
            raise AssertionError("Sampler class requires input datapipe implemented `__len__`")
        args, kwargs = sampler_args or (), sampler_kwargs or {}
        self.datapipe, self.sampler = datapipe, sampler(datapipe, *args, **kwargs)
        self.sampler_args, self.sampler_kwargs = args, kwargs

    def __iter__(self):
        return iter(self.sampler)

    def __len__(self) -> int:
        return len(self.sampler)


@functional_datapipe("shuffle")
class ShufflerIterDataPipe(Shuffling):
    """Items drawn at random from a buffer that is kept full."""

    def __init__(self, datapipe, *, buffer_size=10000, unbatch_level=0) -> None:
        super().__init__()
        if buffer_size <= 0:
            raise ValueError("buffer_size should be larger than 0")
        self.datapipe = datapipe if unbatch_level == 0 else datapipe.unbatch(unbatch_level)
        self.buffer_size = buffer_size

    def __iter__(self):
        if not self._enabled:
            yield from self.datapipe
            return
        buffer = []
        for item in self.datapipe:
            if len(buffer) == self.buffer_size:
                index = self._rng.randint(0, len(buffer) - 1)
                chosen, buffer[index] = buffer[index], item
                yield chosen
            else:
                buffer.append(item)
        while buffer:
            yield buffer.pop(self._rng.randint(0, len(buffer) - 1))

    def __len__(self) -> int:
        return length_of(self, self.datapipe)
