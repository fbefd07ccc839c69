"""Collectives as functions: results that are waited for when they are read."""

import numpy as np
import pytest
from ranks import needs_gloo, run_ranks

import torch
import torch.distributed as dist
from torch.distributed import _functional_collectives as functional
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import Replicate, Shard, distribute_tensor
from torch.distributed.tensor.experimental import local_map
from torch.fx.experimental.proxy_tensor import make_fx

pytestmark = needs_gloo
Promise = functional.AsyncCollectiveTensor


def _promises(rank, size):
    x = torch.arange(6.0).view(2, 3) * (rank + 1)
    found = functional.all_reduce(x, "sum", [0, 1])
    assert type(found) is Promise
    view = found.view(-1)[1:]
    assert type(view) is Promise
    assert not found.completed
    more = view + 1
    assert type(more) is torch.Tensor
    assert found.completed
    assert view.completed
    assert type(found.wait()) is torch.Tensor
    # Several at a time, read in another order than they were started in.
    others = [functional.all_gather_tensor(x + i, 0, [0, 1]) for i in range(4)]
    gathered = [one.tolist() for one in reversed(others)][::-1]
    first = functional.broadcast(x, 1, [0, 1])[0, 2].item()
    parts = functional.reduce_scatter_tensor(x, "sum", 0, [0, 1]).numpy()
    return more.numpy(), np.array(gathered), first, parts


def test_result_is_waited_for_on_first_use_and_its_views_are_not():
    whole = np.arange(6.0).reshape(2, 3)
    for rank, (more, gathered, first, parts) in enumerate(run_ranks(_promises, 2)):
        np.testing.assert_array_equal(more, (3 * whole).ravel()[1:] + 1)
        np.testing.assert_array_equal(parts, 3 * whole[rank : rank + 1])
        assert first == 4.0
        for i, one in enumerate(gathered):
            np.testing.assert_array_equal(one, np.concatenate([whole + i, 2 * whole + i]))


def _dropped(rank, size):
    for _ in range(50):
        functional.all_reduce(torch.ones(1000), "sum", [0, 1])
    dist.barrier()
    return len(functional._pending)


def test_results_that_nobody_reads_are_not_kept():
    assert run_ranks(_dropped, 2) == [0, 0]


def _traced(rank, size):
    graph = make_fx(lambda x: functional.all_reduce(x, "sum", [0, 1]) + 1)(torch.ones(2))
    return [str(node.target) for node in graph.graph.nodes if node.op == "call_function"]


def test_graph_holds_the_wait_as_an_operator():
    for names in run_ranks(_traced, 2):
        assert names == [
            "_c10d_functional.all_reduce.default",
            "_c10d_functional.wait_tensor.default",
            "aten.add.Tensor",
        ]


def _redistributed(rank, size):
    mesh = init_device_mesh("cpu", (2,))
    x = torch.arange(8.0).view(4, 2)
    cut = distribute_tensor(x, mesh, [Shard(0)])
    assert type(cut.redistribute(mesh, [Replicate()]).to_local()) is torch.Tensor
    local = cut.redistribute(mesh, [Replicate()], async_op=True).to_local()
    assert type(local) is Promise
    assert not local.completed
    return torch.equal(local + 0, x)


def test_async_redistribution_gives_a_part_that_is_waited_for_when_read():
    assert run_ranks(_redistributed, 2) == [True, True]


def test_local_map_without_distributed_arguments_is_the_function():
    mapped = local_map(torch.add, out_placements=[Shard(0)], in_placements=([Shard(0)], [Shard(0)]))
    assert mapped(torch.ones(2), torch.ones(2)).tolist() == [2, 2]
    with pytest.raises(AssertionError, match="in_placements length 2"):
        mapped(torch.ones(2))
