"""Steps that change the order of items."""

import random

import torch
from torch.utils.data.datapipes.datapipe import IterDataPipe, functional_datapipe
from torch.utils.data.sampler import SequentialSampler

__all__ = ["SamplerIterDataPipe", "ShufflerIterDataPipe"]


class SamplerIterDataPipe(IterDataPipe):
    """What a sampler gives for the pipe."""

    def __init__(self, datapipe, sampler=SequentialSampler, sampler_args=None, sampler_kwargs=None):
        super().__init__()
        self.datapipe = datapipe
        self.sampler_args = () if sampler_args is None else sampler_args
        self.sampler_kwargs = {} if sampler_kwargs is None else sampler_kwargs
        self.sampler = sampler(datapipe, *self.sampler_args, **self.sampler_kwargs)

    def __iter__(self):
        return iter(self.sampler)

    def __len__(self):
        return len(self.sampler)


@functional_datapipe("shuffle")
class ShufflerIterDataPipe(IterDataPipe):
    """Items drawn at random from a buffer that is kept full."""

    def __init__(self, datapipe, *, buffer_size=10000, unbatch_level=0):
        super().__init__()
        if buffer_size <= 0:
            raise ValueError("buffer_size should be larger than 0")
        self.datapipe = datapipe if unbatch_level == 0 else datapipe.unbatch(unbatch_level)
        self.buffer_size = buffer_size
        self._enabled = True
        self._seed = None
        self._rng = random.Random()

    def set_shuffle(self, shuffle=True):
        """Switches the step on or off."""
        self._enabled = shuffle
        return self

    def set_seed(self, seed):
        """The seed of the next pass; others draw theirs from torch."""
        self._seed = seed
        return self

    def __iter__(self):
        if not self._enabled:
            yield from self.datapipe
            return
        buffer = []
        for item in self.datapipe:
            if len(buffer) == self.buffer_size:
                at = self._rng.randint(0, len(buffer) - 1)
                chosen, buffer[at] = buffer[at], item
                yield chosen
            else:
                buffer.append(item)
        while buffer:
            yield buffer.pop(self._rng.randint(0, len(buffer) - 1))

    def __len__(self):
        return len(self.datapipe)

    def reset(self):
        """Seeds the pass that begins."""
        if self._enabled:
            if self._seed is None:
                self._seed = int(torch.empty((), dtype=torch.int64).random_().item())
            self._rng.seed(self._seed)
            self._seed = None
