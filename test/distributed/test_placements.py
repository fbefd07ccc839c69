"""Placements of tensors on meshes are plain values."""

import pytest

import torch
from torch.distributed.tensor import Partial, Placement, Replicate, Shard


def test_placements_are_compared_by_value():
    assert Shard(1) == Shard(1) and Shard(0) != Shard(1)
    assert Replicate() == Replicate() and Partial("max") != Partial()
    assert len({Shard(0), Shard(0), Replicate()}) == 2


def test_placements_say_what_they_are():
    assert Shard(2).is_shard() and Shard(2).is_shard(2) and not Shard(2).is_shard(1)
    assert Replicate().is_replicate() and not Replicate().is_shard()
    assert Partial("avg").is_partial("avg") and isinstance(Partial(), Placement)


def test_a_tensor_over_a_mesh_says_that_it_is_not_there_yet():
    from torch.distributed.tensor import DTensor

    assert not isinstance(torch.ones(1), DTensor)
    with pytest.raises(NotImplementedError, match="DTensor"):
        DTensor(torch.ones(1))
