"""Placements of tensors on meshes are plain values."""

from torch.distributed.tensor import Partial, Placement, Replicate, Shard


def test_placements_are_compared_by_value():
    assert Shard(1) == Shard(1) and Shard(0) != Shard(1)
    assert Replicate() == Replicate() and Partial("max") != Partial()
    assert len({Shard(0), Shard(0), Replicate()}) == 2


def test_placements_say_what_they_are():
    assert Shard(2).is_shard() and Shard(2).is_shard(2) and not Shard(2).is_shard(1)
    assert Replicate().is_replicate() and not Replicate().is_shard()
    assert Partial("avg").is_partial("avg") and isinstance(Partial(), Placement)
