"""What the shuffling steps share: a switch, and a seed for each pass."""

from __future__ import annotations

import random

from torch.utils.data._utils.rng import draw_seed
from torch.utils.data.datapipes.datapipe import IterDataPipe


class Shuffling(IterDataPipe):
    """A step that draws from `self._rng` while it is enabled. A pass takes its seed from set_seed,
    or, where that was not called, from torch."""

    def __init__(self) -> None:
        super().__init__()
        self._enabled = True
        self._seed: int | None = None
        self._rng = random.Random()

    def set_shuffle(self, shuffle: bool = True) -> Shuffling:
        """Switches the step on or off."""
        self._enabled = shuffle
        return self

    def set_seed(self, seed: int | None) -> Shuffling:
        """The seed of the next pass; others draw theirs from torch."""
        self._seed = seed
        return self

    def reset(self) -> None:
        """Seeds the pass that begins."""
        if not self._enabled:
            return
        given, self._seed = self._seed, None
        self._rng.seed(draw_seed() if given is None else given)
