"""Samplers: the order in which a DataLoader asks for samples. The draws each makes are part of its
contract, since a seed has to give the same order everywhere."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from typing import Any as _Any
from typing import Generic, TypeVar

import torch
from torch.utils.data._utils.rng import draw_seed

__all__ = [
    "BatchSampler",
    "RandomSampler",
    "Sampler",
    "SequentialSampler",
    "SubsetRandomSampler",
    "WeightedRandomSampler",
]

_T_co = TypeVar("_T_co", covariant=True)


class Sampler(Generic[_T_co]):
    """An iterable of indices, or of lists of them; `__len__` is wanted but not required."""

    def __iter__(self) -> _Any:
        raise NotImplementedError(f"{type(self).__name__} does not define __iter__")


def _is_count(value) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value > 0


class SequentialSampler(Sampler[int]):
    """0, 1, 2, ..."""

    def __init__(self, data_source) -> None:
        self.data_source = data_source

    def __iter__(self) -> _Any:
        return iter(range(len(self.data_source)))

    def __len__(self) -> _Any:
        return len(self.data_source)


class RandomSampler(Sampler[int]):
    """Indices at random: permutations, or with replacement independent draws."""

    def __init__(self, data_source, replacement=False, num_samples=None, generator=None) -> None:
        self.data_source = data_source
        self.replacement = replacement
        self._num_samples = num_samples
        self.generator = generator
        if not isinstance(replacement, bool):
            raise TypeError(
                f"replacement should be a boolean value, but got replacement={replacement}"
            )
        if not _is_count(self.num_samples):
            raise ValueError(
                "num_samples should be a positive integer value, but got "
                f"num_samples={self.num_samples}"
            )

    @property
    def num_samples(self) -> int:
        """How many indices one pass gives; the dataset may grow between passes."""
        return len(self.data_source) if self._num_samples is None else self._num_samples

    def __iter__(self) -> _Any:
        n = len(self.data_source)
        generator = self.generator
        if generator is None:
            generator = torch.Generator().manual_seed(draw_seed())
        if self.replacement:
            # In blocks of 32, so that an early end has not drawn for all.
            whole, rest = divmod(self.num_samples, 32)
            for size in itertools.chain(itertools.repeat(32, whole), (rest,)):
                drawn = torch.randint(high=n, size=(size,), dtype=torch.int64, generator=generator)
                yield from drawn.tolist()
            return
        whole, rest = divmod(self.num_samples, n)
        for _ in range(whole):
            yield from torch.randperm(n, generator=generator).tolist()
        # Drawn even when nothing of it is used: the generator's state afterwards depends on it.
        yield from torch.randperm(n, generator=generator).tolist()[:rest]

    def __len__(self) -> _Any:
        return self.num_samples


class SubsetRandomSampler(Sampler[int]):
    """Given indices in random order."""

    def __init__(self, indices, generator=None) -> None:
        self.indices = indices
        self.generator = generator

    def __iter__(self) -> _Any:
        for i in torch.randperm(len(self.indices), generator=self.generator).tolist():
            yield self.indices[i]

    def __len__(self) -> _Any:
        return len(self.indices)


class WeightedRandomSampler(Sampler[int]):
    """Indices drawn with given weights, which need not sum to 1."""

    def __init__(self, weights, num_samples, replacement=True, generator=None) -> None:
        if not _is_count(num_samples):
            raise ValueError(
                f"num_samples should be a positive integer value, but got num_samples={num_samples}"
            )
        if not isinstance(replacement, bool):
            raise ValueError(
                f"replacement should be a boolean value, but got replacement={replacement}"
            )
        weights = torch.as_tensor(weights, dtype=torch.double)
        if weights.dim() != 1:
            raise ValueError(
                "weights should be a 1d sequence but given weights have shape "
                f"{tuple(weights.shape)}"
            )
        self.weights = weights
        self.num_samples = num_samples
        self.replacement = replacement
        self.generator = generator

    def __iter__(self) -> _Any:
        drawn = torch.multinomial(
            self.weights, self.num_samples, self.replacement, generator=self.generator
        )
        yield from drawn.tolist()

    def __len__(self) -> _Any:
        return self.num_samples


class BatchSampler(Sampler[list[int]]):
    """The indices of another sampler in lists of batch_size."""

    def __init__(self, sampler, batch_size, drop_last) -> None:
        if not _is_count(batch_size):
            raise ValueError(
                f"batch_size should be a positive integer value, but got batch_size={batch_size}"
            )
        if not isinstance(drop_last, bool):
            raise ValueError(f"drop_last should be a boolean value, but got drop_last={drop_last}")
        if not isinstance(sampler, Iterable) and not hasattr(sampler, "__getitem__"):
            raise TypeError(f"sampler should be iterable, but got {type(sampler)}")
        self.sampler = sampler
        self.batch_size = batch_size
        self.drop_last = drop_last

    def __iter__(self) -> _Any:
        indices = iter(self.sampler)
        while batch := list(itertools.islice(indices, self.batch_size)):
            if len(batch) < self.batch_size and self.drop_last:
                return
            yield batch

    def __len__(self) -> _Any:
        whole, rest = divmod(len(self.sampler), self.batch_size)
        return whole if self.drop_last or rest == 0 else whole + 1
