"""Data helpers for programs that are started anew."""

from torch.distributed.elastic.utils.data.cycling_iterator import CyclingIterator
from torch.distributed.elastic.utils.data.elastic_distributed_sampler import (
    ElasticDistributedSampler,
)

__all__ = ["CyclingIterator", "ElasticDistributedSampler"]
