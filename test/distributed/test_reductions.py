"""all_reduce and all_gather of several tensors of one rank, and all_reduce of sparse tensors."""

from datetime import timedelta

import numpy as np
import pytest
from ranks import needs_gloo, run_ranks

import torch
import torch.distributed as dist

pytestmark = needs_gloo


def _several(rank, size):
    found = {}
    for name in ("SUM", "AVG", "MAX", "PRODUCT"):
        tensors = [torch.full((2,), 1.0 + rank), torch.full((2,), 3.0 + rank)]
        dist.group.WORLD.allreduce(tensors, getattr(dist.ReduceOp, name)).wait()
        assert torch.equal(*tensors)
        found[name] = tensors[0][0].item()
    apart = [torch.ones(2), torch.full((3,), 2.0)]
    dist.group.WORLD.allreduce_coalesced(apart).wait()
    for second, text in ((torch.ones(2).double(), "type"), (torch.ones(3), "size")):
        with pytest.raises(RuntimeError, match=f"invalid tensor {text} at index 0"):
            dist.group.WORLD.allreduce([torch.ones(2), second])
    return found, [t.tolist() for t in apart]


def test_several_tensors_of_a_rank_are_reduced_among_themselves_too():
    # 1 and 3 on rank 0, 2 and 4 on rank 1; an average divides by the number of ranks.
    for found, apart in run_ranks(_several, 2):
        assert found == {"SUM": 10, "AVG": 5, "MAX": 4, "PRODUCT": 24}
        assert apart == [[2, 2], [4, 4, 4]]


def _sparse(rank, size, blocks):
    values = torch.arange(1.0, rank + 3) * 10**rank
    if blocks:
        values = torch.stack([values, -values], 1)
    indices = torch.tensor([[0, 3], [2, 3, 0]][rank][: len(values)]).view(1, -1)
    tensor = torch.sparse_coo_tensor(indices, values, (5, 2) if blocks else (5,))
    dist.all_reduce(tensor)
    with pytest.raises(RuntimeError, match=r"only works with ReduceOp\.SUM"):
        dist.all_reduce(tensor, dist.ReduceOp.MAX)
    return tensor.is_coalesced(), tensor.to_dense().numpy()


@pytest.mark.parametrize("blocks", [False, True])
def test_sparse_tensors_with_different_numbers_of_elements_add_up(blocks):
    expected = np.array([1.0 + 30, 0, 10, 2 + 20, 0])
    if blocks:
        expected = np.stack([expected, -expected], 1)
    for is_coalesced, found in run_ranks(_sparse, 2, blocks):
        assert is_coalesced
        np.testing.assert_array_equal(found, expected)


def _empty_and_other(rank, size):
    tensor = torch.sparse_coo_tensor(torch.zeros(1, 0), torch.zeros(0), (4,))
    dist.all_reduce(tensor)
    other = torch.sparse_coo_tensor([[0]], [1.0], (4 + rank,))
    with pytest.raises(RuntimeError, match="sparse tensor of size"):
        dist.all_reduce(other)
    return tensor._nnz()


def test_sparse_tensors_without_elements_stay_empty_and_other_sizes_are_named():
    assert run_ranks(_empty_and_other, 2) == [0, 0]


def _gathered(rank, size):
    out = [[torch.zeros(1) for _ in range(4)] for _ in range(2)]
    inputs = [torch.full((1,), 10.0 * rank), torch.full((1,), 10.0 * rank + 1)]
    dist.group.WORLD.allgather(out, inputs).wait()
    with pytest.raises(ValueError, match="2 output lists of 4 tensors, got lists of"):
        dist.group.WORLD.allgather(out[:1], inputs)
    return [[t.item() for t in one] for one in out]


def test_all_gather_of_several_tensors_fills_every_list_rank_by_rank():
    assert run_ranks(_gathered, 2) == [[[0, 1, 10, 11]] * 2] * 2


def test_timeout_of_options_is_a_duration_however_it_was_given():
    options = dist.ProcessGroupGloo._Options()
    options._timeout = 50.0
    assert options._timeout == timedelta(seconds=50)
    group = dist.ProcessGroupGloo(dist.HashStore(), 0, 1, options)
    group._set_default_timeout(timedelta(seconds=23))
    assert group.options._timeout == timedelta(seconds=23)
