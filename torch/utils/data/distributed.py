"""DistributedSampler: the part of a dataset that one of several processes reads."""

from __future__ import annotations

import math
from typing import Any as _Any
from typing import TypeVar

import torch
from torch.utils.data.dataset import Dataset
from torch.utils.data.sampler import Sampler

__all__ = ["DistributedSampler"]

_T_co = TypeVar("_T_co", covariant=True)


class DistributedSampler(Sampler[_T_co]):
    """Every num_replicas-th index from rank on, of an order all processes share. Without drop_last
    the order is repeated from its start until all parts have one length."""

    def __init__(
        self,
        dataset: Dataset[_T_co],
        num_replicas=None,
        rank=None,
        shuffle=True,
        seed=0,
        drop_last=False,
    ) -> None:
        if num_replicas is None or rank is None:
            distributed = getattr(torch, "distributed", None)
            if distributed is None or not distributed.is_available():
                raise RuntimeError("Requires distributed package to be available")
            num_replicas = distributed.get_world_size() if num_replicas is None else num_replicas
            rank = distributed.get_rank() if rank is None else rank
        if rank >= num_replicas or rank < 0:
            raise ValueError(
                f"Invalid rank {rank}, rank should be in the interval [0, {num_replicas - 1}]"
            )
        self.dataset = dataset
        self.num_replicas = num_replicas
        self.rank = rank
        self.epoch = 0
        self.drop_last = drop_last
        count = len(dataset)
        if drop_last and count % num_replicas != 0:
            self.num_samples = math.ceil((count - num_replicas) / num_replicas)
        else:
            self.num_samples = math.ceil(count / num_replicas)
        self.total_size = self.num_samples * num_replicas
        self.shuffle = shuffle
        self.seed = seed

    def __iter__(self) -> _Any:
        count = len(self.dataset)
        if self.shuffle:
            generator = torch.Generator()
            generator.manual_seed(self.seed + self.epoch)
            indices = torch.randperm(count, generator=generator).tolist()
        else:
            indices = list(range(count))
        missing = self.total_size - len(indices)
        if missing > 0 and indices:
            repeats = math.ceil(missing / len(indices))
            indices += (indices * repeats)[:missing]
        return iter(indices[self.rank : self.total_size : self.num_replicas])

    def __len__(self) -> _Any:
        return self.num_samples

    def set_epoch(self, epoch) -> _Any:
        """Another order in each epoch, the same in all processes."""
        self.epoch = epoch
