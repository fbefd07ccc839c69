"""Datasets: what can be indexed, what can only be iterated, and those made of others."""

from __future__ import annotations

import bisect
import itertools
import math
import types
import warnings
from typing import Any as _Any
from typing import Generic, TypeVar

import torch

__all__ = [
    "Dataset",
    "IterableDataset",
    "TensorDataset",
    "StackDataset",
    "ConcatDataset",
    "ChainDataset",
    "Subset",
    "random_split",
]

_T_co = TypeVar("_T_co", covariant=True)
_T_stack = TypeVar("_T_stack")


class Dataset(Generic[_T_co]):
    """Samples by index: subclasses define `__getitem__` and usually `__len__`. A `__getitems__`
    that takes a list of indices fetches a batch at once."""

    def __getitem__(self, index) -> _Any:
        raise NotImplementedError("Subclasses of Dataset should implement __getitem__.")

    def __add__(self, other) -> _Any:
        return ConcatDataset([self, other])


class IterableDataset(Dataset[_T_co]):
    """Samples in the order of `__iter__`, for data that cannot be indexed."""

    # As collections.abc.Iterable: every subclass takes parameters, whether it declares them or not.
    __class_getitem__ = classmethod(types.GenericAlias)

    def __iter__(self) -> _Any:
        raise NotImplementedError("Subclasses of IterableDataset should implement __iter__.")

    def __add__(self, other) -> _Any:
        return ChainDataset([self, other])


class TensorDataset(Dataset[tuple[torch.Tensor, ...]]):
    """Tensors side by side: sample i holds row i of each."""

    def __init__(self, *tensors) -> None:
        if len({tensor.size(0) for tensor in tensors}) > 1:
            raise AssertionError("Size mismatch between tensors")
        self.tensors = tensors

    def __getitem__(self, index) -> _Any:
        return tuple(tensor[index] for tensor in self.tensors)

    def __len__(self) -> _Any:
        return len(self.tensors[0])


def _fetch_many(dataset, indices):
    """A batch of samples, at once where the dataset can."""
    fetch = getattr(dataset, "__getitems__", None)
    if not callable(fetch):
        return [dataset[index] for index in indices]
    items = fetch(indices)
    if len(items) != len(indices):
        raise ValueError(
            f"Nested dataset's output size mismatch. Expected {len(indices)}, got {len(items)}"
        )
    return items


class StackDataset(Dataset[_T_stack]):
    """Datasets side by side: sample i is a tuple, or with keyword arguments a dict, of samples i
    of each."""

    def __init__(self, *args, **kwargs) -> None:
        if args and kwargs:
            raise ValueError(
                "Supported either ``tuple``- (via ``args``) or"
                "``dict``- (via ``kwargs``) like input/output, but both types are given."
            )
        if not args and not kwargs:
            raise ValueError("At least one dataset should be passed")
        self.datasets = args or kwargs
        members = args or tuple(kwargs.values())
        self._length = len(members[0])
        if any(len(dataset) != self._length for dataset in members):
            raise ValueError("Size mismatch between datasets")

    def _each(self, fetch) -> list[int | list[int]]:
        """What a function gives for each dataset."""
        named = isinstance(self.datasets, dict)
        return [fetch(member) for member in (self.datasets.values() if named else self.datasets)]

    def _sample(self, parts) -> dict[str, int] | tuple[int, int]:
        if isinstance(self.datasets, dict):
            return dict(zip(self.datasets, parts, strict=True))
        return tuple(parts)

    def __getitem__(self, index) -> _Any:
        return self._sample(self._each(lambda dataset: dataset[index]))

    def __getitems__(self, indices) -> _Any:
        columns = self._each(lambda dataset: _fetch_many(dataset, indices))
        return [self._sample(row) for row in zip(*columns, strict=True)]

    def __len__(self) -> _Any:
        return self._length


class ConcatDataset(Dataset[_T_co]):
    """Datasets one after the other."""

    @staticmethod
    def cumsum(sequence) -> _Any:
        """The index at which each dataset ends."""
        return list(itertools.accumulate(len(dataset) for dataset in sequence))

    def __init__(self, datasets) -> None:
        self.datasets = list(datasets)
        if not self.datasets:
            raise AssertionError("datasets should not be an empty iterable")
        if any(isinstance(dataset, IterableDataset) for dataset in self.datasets):
            raise AssertionError("ConcatDataset does not support IterableDataset")
        self.cumulative_sizes = self.cumsum(self.datasets)

    def __len__(self) -> _Any:
        return self.cumulative_sizes[-1]

    @property
    def cummulative_sizes(self):
        """cumulative_sizes, as it was spelt first."""
        warnings.warn(
            "cummulative_sizes attribute is renamed to cumulative_sizes",
            DeprecationWarning,
            stacklevel=2,
        )
        return self.cumulative_sizes

    def __getitem__(self, idx) -> _Any:
        if idx < 0:
            if -idx > len(self):
                raise ValueError("absolute value of index should not exceed dataset length")
            idx += len(self)
        which = bisect.bisect_right(self.cumulative_sizes, idx)
        start = self.cumulative_sizes[which - 1] if which else 0
        return self.datasets[which][idx - start]


class ChainDataset(IterableDataset):
    """Iterable datasets one after the other."""

    def __init__(self, datasets) -> None:
        super().__init__()
        self.datasets = datasets

    def _members(self):
        for dataset in self.datasets:
            if not isinstance(dataset, IterableDataset):
                raise AssertionError("ChainDataset only supports IterableDataset")
            yield dataset

    def __iter__(self) -> _Any:
        for dataset in self._members():
            yield from dataset

    def __len__(self) -> _Any:
        return sum(len(dataset) for dataset in self._members())


class Subset(Dataset[_T_co]):
    """The samples of a dataset at given indices."""

    def __init__(self, dataset, indices) -> None:
        self.dataset = dataset
        self.indices = indices

    def __getitem__(self, idx) -> _Any:
        if isinstance(idx, list):
            return self.dataset[[self.indices[i] for i in idx]]
        return self.dataset[self.indices[idx]]

    def __getitems__(self, indices) -> _Any:
        chosen = [self.indices[i] for i in indices]
        if callable(getattr(self.dataset, "__getitems__", None)):
            return self.dataset.__getitems__(chosen)
        return [self.dataset[index] for index in chosen]

    def __len__(self) -> _Any:
        return len(self.indices)


def _lengths_of_fractions(total, fractions) -> list[int]:
    """Whole lengths; what rounding down leaves goes one by one to the first splits."""
    lengths = []
    for i, fraction in enumerate(fractions):
        if fraction < 0 or fraction > 1:
            raise ValueError(f"Fraction at index {i} is not between 0 and 1")
        lengths.append(math.floor(total * fraction))
    for i in range(total - sum(lengths)):
        lengths[i % len(lengths)] += 1
    for i, length in enumerate(lengths):
        if length == 0:
            warnings.warn(
                f"Length of split at index {i} is 0. This might result in an empty dataset.",
                stacklevel=3,
            )
    return lengths


def random_split(dataset, lengths, generator=None) -> _Any:
    """Subsets of given lengths, or fractions that sum to 1, without overlap, chosen at random."""
    if math.isclose(sum(lengths), 1) and sum(lengths) <= 1:
        lengths = _lengths_of_fractions(len(dataset), lengths)
    if sum(lengths) != len(dataset):
        raise ValueError("Sum of input lengths does not equal the length of the input dataset!")
    order = torch.randperm(sum(lengths), generator=generator).tolist()
    ends = itertools.accumulate(lengths)
    return [
        Subset(dataset, order[end - length : end])
        for end, length in zip(ends, lengths, strict=True)
    ]
