"""Collectives between processes of one machine go through memory that they share. They give what
those of Gloo give, and their errors say who is to blame."""

import datetime
import os
import signal
import time

import pytest
from ranks import needs_gloo, run_ranks

import torch
import torch.distributed as dist

LARGE = 300_001  # elements: several slots, the last one not full


def _values(rank, count=LARGE):
    return torch.arange(count, dtype=torch.float32) % 97 + 1000 * rank


def _all(rank, size):
    mine = _values(rank)
    total = mine.clone()
    dist.all_reduce(total)
    highest = mine.clone()
    dist.all_reduce(highest, dist.ReduceOp.MAX)
    half = torch.full((LARGE,), float(rank), dtype=torch.bfloat16)
    dist.all_reduce(half, dist.ReduceOp.AVG)
    sent = mine.clone()
    dist.broadcast(sent, src=size - 1)
    gathered = mine.new_empty(size * LARGE)
    dist.all_gather_into_tensor(gathered, mine)
    parts = torch.cat([_values(rank + 10 * i) for i in range(size)])
    scattered = mine.new_empty(LARGE)
    dist.reduce_scatter_tensor(scattered, parts)
    # Several at the same time, of different sizes, waited for from the last.
    many = [torch.full((LARGE // (i + 1),), float(rank + i)) for i in range(4)]
    works = [dist.all_reduce(t, async_op=True) for t in many]
    for work in reversed(works):
        work.wait()
    columns = _values(rank, 40_000).view(200, 200).t()
    dist.all_reduce(columns)
    return [
        torch.equal(total, sum(_values(r) for r in range(size))),
        torch.equal(highest, _values(size - 1)),
        half.unique().tolist() == [(size - 1) / 2],
        torch.equal(sent, _values(size - 1)),
        torch.equal(gathered, torch.cat([_values(r) for r in range(size)])),
        torch.equal(scattered, sum(_values(r + 10 * rank) for r in range(size))),
        [t.unique().tolist() for t in many]
        == [[float(sum(r + i for r in range(size)))] for i in range(4)],
        torch.equal(columns, sum(_values(r, 40_000) for r in range(size)).view(200, 200).t()),
    ]


@needs_gloo
@pytest.mark.parametrize("size", [2, 3])
def test_large_collectives_give_the_values_of_all_ranks(size):
    assert run_ranks(_all, size) == [[True] * 8] * size


def _without(rank, size):
    os.environ["CRESSET_SHARED_MEMORY"] = "0"
    return _all(rank, size)


@needs_gloo
def test_large_collectives_work_without_shared_memory():
    assert run_ranks(_without, 2) == [[True] * 8] * 2


def _other_size(rank, size):
    try:
        dist.all_reduce(torch.ones(LARGE + rank))
    except dist.DistBackendError as error:
        return str(error)
    return ""


@needs_gloo
def test_ranks_with_other_sizes_raise_and_name_both():
    texts = run_ranks(_other_size, 2)
    assert any(f"{4 * LARGE} bytes" in text and f"{4 * LARGE + 4}" in text for text in texts)


def _dies(rank, size):
    dist.all_reduce(torch.ones(LARGE))
    if rank == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    begin = time.monotonic()
    try:
        dist.all_reduce(torch.ones(LARGE))
    except dist.DistBackendError as error:
        assert "rank 1" in str(error) and "gone" in str(error), error
        assert time.monotonic() - begin < 30
        return
    raise AssertionError("no error")


@needs_gloo
def test_rank_that_was_killed_raises_on_the_others():
    with pytest.raises(AssertionError) as failure:
        run_ranks(_dies, 2)
    text = str(failure.value)
    assert "rank 1: no result" in text and "rank 0:" not in text


def _late(rank, size):
    dist.all_reduce(torch.ones(LARGE))
    if rank == 1:
        time.sleep(6)
        return "late"
    try:
        group = dist.distributed_c10d._get_default_group()
        group.set_timeout(datetime.timedelta(seconds=1))
        dist.all_reduce(torch.ones(LARGE))
    except dist.DistBackendError as error:
        return str(error)
    return ""


@needs_gloo
def test_rank_that_does_not_come_raises_after_the_timeout():
    texts = run_ranks(_late, 2)
    assert "Timed out" in texts[0] and "rank 1" in texts[0]


def test_no_file_is_left_behind():
    assert not [name for name in os.listdir("/dev/shm") if name.startswith("cresset-")]
