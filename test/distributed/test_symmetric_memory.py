"""Memory that ranks share: what one writes the others read, and reductions over it."""

import os

import pytest
from ranks import needs_gloo, run_ranks

import torch
import torch.distributed as dist
import torch.distributed._symmetric_memory as symm_mem


def _everything(rank, size):
    name = dist.group.WORLD.group_name
    data = symm_mem.empty(5, 3)
    data.copy_(torch.arange(15.0).view(5, 3) + 100 * rank)
    total = sum(torch.arange(15.0).view(5, 3) + 100 * r for r in range(size))
    handle = symm_mem.rendezvous(data, name)
    assert handle is symm_mem.rendezvous(data, name)
    assert (handle.rank, handle.world_size, handle.buffer_size) == (rank, size, 60)
    handle.barrier()
    seen = [handle.get_buffer(r, (3,), torch.float32, 3).tolist() for r in range(size)]
    assert seen == [[100.0 * r + 3 + i for i in range(3)] for r in range(size)]
    with pytest.raises(RuntimeError, match="bytes 4 to 64 of a buffer of 60"):
        handle.get_buffer(0, (5, 3), torch.float32, 1)
    one = torch.ops.symm_mem.one_shot_all_reduce(data, "sum", name)
    assert torch.equal(one, total)
    torch.ops.symm_mem.two_shot_all_reduce_(data, "avg", name)
    assert torch.allclose(data, total / size)

    rows = symm_mem.empty(size * 2, 2)
    rows.copy_(torch.full((size * 2, 2), float(rank)))
    splits = symm_mem.empty(size, dtype=torch.int64)
    splits.copy_(torch.tensor([1 + (r + rank) % 2 for r in range(size)]))
    out, places = torch.zeros(size * 2, 2), torch.zeros(2, size, dtype=torch.int64)
    torch.ops.symm_mem.all_to_all_vdev(rows, out, splits, places, name)
    counts = [1 + (r + rank) % 2 for r in range(size)]
    assert places[0].tolist() == counts
    came = [float(r) for r, count in enumerate(counts) for _ in range(count)]
    assert out[: len(came), 0].tolist() == came

    value = symm_mem.empty(2)
    value.fill_(float(rank))
    handle = symm_mem.rendezvous(value)
    if rank == 0:
        symm_mem.put(value, 1)
        handle.put_signal(1, channel=2)
    elif rank == 1:
        handle.wait_signal(0, channel=2)
        assert value.tolist() == [0.0, 0.0]
    handle.barrier()
    symm_mem.get(value, size - 1)
    handle.barrier()
    if rank == 0:
        with pytest.raises(dist.DistBackendError, match="Timed out waiting 200ms for rank 1"):
            handle.wait_signal(1, channel=3, timeout_ms=200)
    return True


@needs_gloo
@pytest.mark.parametrize("size", [2, 3])
def test_what_one_rank_writes_the_others_read(size):
    assert run_ranks(_everything, size) == [True] * size
    assert not [name for name in os.listdir("/dev/shm") if name.startswith("cresset-symm")]


def _other_amount(rank, size):
    with pytest.raises(RuntimeError, match="different amounts"):
        symm_mem.rendezvous(symm_mem.empty(3 + rank))
    return True


@needs_gloo
def test_ranks_with_other_amounts_are_refused():
    assert run_ranks(_other_amount, 2) == [True, True]


def test_tensors_and_devices_without_such_memory_are_refused():
    with pytest.raises(RuntimeError, match="not in symmetric memory"):
        symm_mem._allocation_of(torch.ones(3))
    with pytest.raises(NotImplementedError, match="on device cuda"):
        symm_mem.empty(3, device="cuda")
