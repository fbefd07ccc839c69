"""A sampler that goes on where an interrupted epoch stopped."""

from __future__ import annotations

import math
from collections.abc import Iterator

import torch
from torch.utils.data import Dataset
from torch.utils.data.distributed import DistributedSampler

__all__ = ["ElasticDistributedSampler"]


class ElasticDistributedSampler(DistributedSampler):
    """Shares out the items from start_index on, in the epoch's shuffled order."""

    def __init__(
        self,
        dataset: Dataset,
        num_replicas: int | None = None,
        rank: int | None = None,
        start_index: int = 0,
    ) -> None:
        super().__init__(dataset, num_replicas, rank)
        left = len(dataset) - start_index
        if left <= 0:
            raise ValueError(
                f"Start index {start_index} should be less than dataset size {len(dataset)}"
            )
        self.start_index, self.num_samples = start_index, -(-left // self.num_replicas)
        self.total_size = self.num_samples * self.num_replicas

    def __iter__(self) -> Iterator[int]:
        generator = torch.Generator()
        generator.manual_seed(self.epoch)
        order = torch.randperm(len(self.dataset) - self.start_index, generator=generator)
        order = (order + self.start_index).tolist()
        # The first items come once more where the parts would differ in length.
        missing = self.total_size - len(order)
        order += (order * math.ceil(missing / len(order)))[:missing]
        return iter(order[self.rank :: self.num_replicas])

    def __len__(self) -> int:
        return self.num_samples
