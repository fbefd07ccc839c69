"""Groups without other processes: one rank, fake ranks, ranks that are threads."""

import pickle
import threading
from datetime import timedelta

import numpy as np
import pytest
from ranks import needs_gloo

import torch
import torch.distributed as dist
from torch._C._distributed_c10d import FakeProcessGroup, ThreadedProcessGroup


@pytest.fixture
def fake_world():
    dist.init_process_group("fake", store=dist.HashStore(), rank=1, world_size=4)
    yield
    dist.destroy_process_group()


def test_questions_without_a_group_raise_and_name_init_process_group():
    assert dist.is_available() and not dist.is_initialized()
    with pytest.raises(ValueError, match="Default process group has not been initialized"):
        dist.get_rank()
    with pytest.raises(ValueError, match="init_process_group"):
        dist.all_reduce(torch.ones(1))


def test_end_of_a_group_that_does_not_exist_is_a_failed_assertion():
    with pytest.raises(AssertionError, match="Process group cannot be None"):
        dist.destroy_process_group()


def test_backend_that_is_not_built_raises_and_names_it():
    assert not dist.is_nccl_available() and dist.Backend("NCCL") == "nccl"
    with pytest.raises(RuntimeError, match="doesn't have NCCL built in"):
        dist.init_process_group("nccl", store=dist.HashStore(), rank=0, world_size=1)
    assert not dist.is_initialized()


def test_fake_group_answers_as_a_rank_of_many(fake_world):
    assert (dist.get_rank(), dist.get_world_size()) == (1, 4)
    assert dist.get_backend() == "fake"
    tensor = torch.ones(3)
    dist.all_reduce(tensor)
    work = dist.all_reduce(tensor, async_op=True)
    assert work.wait() and work.is_completed()
    group = dist.new_group([1, 3])
    assert dist.get_rank(group) == 0 and dist.get_global_rank(group, 1) == 3
    assert dist.new_group([0]) is dist.GroupMember.NON_GROUP_MEMBER


def test_second_default_group_raises(fake_world):
    with pytest.raises(ValueError, match="twice"):
        dist.init_process_group("fake", store=dist.HashStore(), rank=0, world_size=1)


def test_new_group_with_unknown_ranks_raises(fake_world):
    with pytest.raises(ValueError, match="within the world_size"):
        dist.new_group([0, 9])


def test_subgroups_divide_the_world(fake_world):
    mine, groups = dist.new_subgroups(2)
    assert len(groups) == 2 and dist.get_process_group_ranks(mine) == [0, 1]
    part = dist.split_group(split_ranks=[[0, 2], [1, 3]])
    assert dist.get_process_group_ranks(part) == [1, 3]


@needs_gloo
def test_group_of_one_rank_over_gloo_changes_nothing(tmp_path):
    dist.init_process_group("gloo", init_method=f"file://{tmp_path}/s", rank=0, world_size=1)
    try:
        tensor = torch.arange(3.0)
        dist.all_reduce(tensor)
        gathered = [torch.empty(3)]
        dist.all_gather(gathered, tensor)
        assert tensor.tolist() == gathered[0].tolist() == [0, 1, 2]
    finally:
        dist.destroy_process_group()


def test_reduce_op_compares_pickles_and_is_an_instance_of_its_class():
    op = dist.ReduceOp(dist.ReduceOp.MAX)
    assert op == dist.ReduceOp.MAX and op == dist.ReduceOp.MAX and op != dist.ReduceOp.SUM
    assert isinstance(dist.ReduceOp.SUM, dist.ReduceOp)
    assert pickle.loads(pickle.dumps(op)) == op


def test_unknown_backend_raises_and_lists_the_known():
    with pytest.raises(ValueError, match="Unknown backend"):
        dist.init_process_group("nope", store=dist.HashStore(), rank=0, world_size=1)
    assert not dist.is_initialized()


def test_registered_backend_gets_the_calls():
    class Mine(dist.ProcessGroup):
        def __init__(self, rank, size):
            super().__init__(rank, size)
            self.seen = []

        def allreduce(self, tensors, opts=None):
            self.seen.append(("allreduce", tensors[0].tolist()))
            tensors[0].add_(1)
            future = torch.futures.Future()
            future.set_result(tensors)
            return dist._create_work_from_future(future)

    dist.Backend.register_backend("mine", lambda store, rank, size, timeout: Mine(rank, size))
    dist.init_process_group("mine", store=dist.HashStore(), rank=0, world_size=1)
    try:
        tensor = torch.zeros(2)
        dist.all_reduce(tensor)
        assert tensor.tolist() == [1, 1]
        assert dist.group.WORLD.seen == [("allreduce", [0, 0])]
    finally:
        dist.destroy_process_group()
        del dist.Backend._plugins["mine"]


def test_group_that_defines_the_second_name_of_an_operation_is_called_by_it():
    class Other(dist.ProcessGroup):
        def all_gather_single(self, output, input, opts=None):
            output.copy_(input.repeat(self.size()))
            future = torch.futures.Future()
            future.set_result([output])
            return dist._create_work_from_future(future)

    out = torch.zeros(4)
    Other(0, 2)._allgather_base(out, torch.ones(2)).wait()
    assert out.tolist() == [1, 1, 1, 1]


def _threads(size, name, function):
    results, errors = [None] * size, []

    def run(rank):
        try:
            group = ThreadedProcessGroup(rank, size, timedelta(seconds=20), name)
            results[rank] = function(group, rank)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(rank,)) for rank in range(size)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]
    return results


def test_ranks_that_are_threads_reduce_gather_and_scatter():
    def work(group, rank):
        total = torch.full((2,), float(rank))
        group.allreduce([total]).wait()
        flat = torch.empty(4 * 3)
        group._allgather_base(flat, torch.full((3,), float(rank))).wait()
        part = torch.empty(2)
        group._reduce_scatter_base(part, torch.arange(8.0)).wait()
        turned = torch.empty(4)
        group.alltoall_base(turned, torch.arange(4.0) + 10 * rank, [], []).wait()
        message = torch.zeros(1)
        group.send([torch.tensor([float(rank)])], (rank + 1) % 4, 5).wait()
        group.recv([message], (rank + 3) % 4, 5).wait()
        return total.tolist(), flat.tolist(), part.tolist(), turned.tolist(), message.item()

    for rank, found in enumerate(_threads(4, "kinds", work)):
        assert found[0] == [6.0, 6.0]
        assert found[1] == np.repeat([0.0, 1, 2, 3], 3).tolist()
        assert found[2] == [4.0 * (2 * rank), 4.0 * (2 * rank + 1)]
        assert found[3] == [rank + 10.0 * other for other in range(4)]
        assert found[4] == (rank + 3) % 4


def test_threads_that_call_different_operations_are_told_so():
    def work(group, rank):
        tensor = torch.ones(1)
        return (group.allreduce([tensor]) if rank else group.broadcast([tensor])).wait()

    with pytest.raises(RuntimeError, match="mismatch between collectives"):
        _threads(2, "mismatch", work)


def test_backend_that_has_no_rank_zero_of_size_zero_raises():
    with pytest.raises(ValueError, match="is not in a group of size"):
        FakeProcessGroup(3, 2)
