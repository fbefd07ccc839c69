"""A step that changes the order of items: its result can only be iterated."""

import random

import torch
from torch.utils.data.datapipes.datapipe import IterDataPipe, MapDataPipe

__all__ = ["ShufflerIterDataPipe"]


class ShufflerIterDataPipe(IterDataPipe):
    """The items of a MapDataPipe at random."""

    def __init__(self, datapipe, *, indices=None):
        super().__init__()
        self.datapipe = datapipe
        self.indices = list(range(len(datapipe))) if indices is None else indices
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
        order = list(self.indices)
        if self._enabled:
            self._rng.shuffle(order)
        for index in order:
            yield self.datapipe[index]

    def reset(self):
        """Seeds the pass that begins."""
        if self._enabled:
            if self._seed is None:
                self._seed = int(torch.empty((), dtype=torch.int64).random_().item())
            self._rng.seed(self._seed)
            self._seed = None

    def __len__(self):
        return len(self.datapipe)


MapDataPipe.register_datapipe_as_function("shuffle", ShufflerIterDataPipe)
