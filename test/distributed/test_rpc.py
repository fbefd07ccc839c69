"""Remote calls, references, and collectives over a store."""

import time
from datetime import timedelta

import pytest
from ranks import needs_gloo, run_ranks

import torch
import torch.distributed as dist
from torch.distributed import collective_utils, rpc
from torch.distributed.rpc.functions import async_execution


def _add(a, b):
    return a + b


def _fails():
    raise ValueError("no such key")


def _slow():
    time.sleep(5)


@async_execution
def _later(to, x):
    return rpc.rpc_async(to, _add, (x, 1)).then(lambda future: future.wait() * 10)


class Counter:
    def __init__(self, start):
        self.value = start

    def raise_by(self, n):
        self.value += n
        return self.value


def _calls(rank, size, port):
    options = rpc.TensorPipeRpcBackendOptions(init_method=f"tcp://localhost:{port}")
    rpc.init_rpc(f"w{rank}", rank=rank, world_size=size, rpc_backend_options=options)
    other = f"w{1 - rank}"
    found = {
        "sync": rpc.rpc_sync(other, _add, (torch.ones(3), 2)).tolist(),
        "self": rpc.rpc_sync(f"w{rank}", _add, (1, 2)),
        "many": [f.wait() for f in [rpc.rpc_async(other, _add, (i, i)) for i in range(50)]],
        "later": rpc.rpc_sync(other, _later, (f"w{rank}", 4)),
        "info": (rpc.get_worker_info(other).id, rpc.get_worker_info().name),
    }
    with pytest.raises(ValueError, match=f"On WorkerInfo.name='{other}'"):
        rpc.rpc_sync(other, _fails)
    with pytest.raises(RuntimeError, match="more than set timeout"):
        rpc.rpc_sync(other, _slow, timeout=0.2)
    with pytest.raises(RuntimeError, match="Unknown destination worker nobody"):
        rpc.rpc_sync("nobody", _add, (1, 2))
    counter = rpc.remote(other, Counter, (5,))
    found["method"] = counter.rpc_sync().raise_by(2)
    found["passed"] = rpc.rpc_sync(other, _local, (counter,))
    found["copy"] = counter.to_here().value
    found["owner"] = (counter.owner_name(), counter.is_owner(), rpc.RRef(3).local_value())
    with pytest.raises(RuntimeError, match="cannot call local_value"):
        counter.local_value()
    rpc.shutdown()
    with pytest.raises(RuntimeError, match="has not been initialized"):
        rpc.get_worker_info()
    return found


def _local(rref):
    return rref.local_value().value


@needs_gloo
def test_functions_run_in_the_other_process_and_references_stay_there():
    from torch.distributed.elastic.utils.distributed import get_free_port

    results = run_ranks(_calls, 2, get_free_port())
    for rank, found in enumerate(results):
        other = 1 - rank
        assert found["sync"] == [3.0] * 3 and found["self"] == 3 and found["later"] == 50
        assert found["many"] == [2 * i for i in range(50)]
        assert found["info"] == (other, f"w{rank}")
        assert (found["method"], found["passed"], found["copy"]) == (7, 7, 7)
        assert found["owner"] == (f"w{other}", False, 3)


# ---- small values
def _four(function):
    from multiprocessing.pool import ThreadPool

    store = dist.HashStore()
    with ThreadPool(4) as pool:
        return pool.map(
            lambda rank: function(dist._StoreCollectives(store, rank, 4), rank), range(4)
        )


def test_store_collectives_move_values_between_ranks():
    assert _four(lambda c, rank: c.all_sum("k", rank)) == [6] * 4
    assert _four(lambda c, rank: c.all_gather("k", str(rank)))[3] == [b"0", b"1", b"2", b"3"]
    data = ["a", "b", "c", "d"]
    scattered = _four(
        lambda c, rank: c.scatter_send("k", data) if rank == 1 else c.scatter_recv("k")
    )
    assert scattered == [b"a", b"b", b"c", b"d"]


def test_store_collective_that_times_out_names_the_missing_ranks():
    alone = dist._StoreCollectives(dist.HashStore(), 1, 3)
    with pytest.raises(RuntimeError, match="barrier failed -- missing ranks: 0, 2"):
        alone.barrier("k", timedelta(milliseconds=5))
    with pytest.raises(ValueError, match="Key k has already been used"):
        alone.all_gather("k", "x")


def _utilities(rank, size):
    group = dist.group.WORLD
    calls = []

    def told():
        calls.append(rank)
        return rank * 10

    got = collective_utils.broadcast(told, rank=1, pg=group)
    every = collective_utils.all_gather(told, pg=group)

    def breaks():
        raise OSError("the disk is full")

    with pytest.raises(RuntimeError, match="rank 1 failed in stage s: the disk is full"):
        collective_utils.broadcast(breaks, stage_name="s", rank=1, pg=group)
    return got, every, len(calls)


@needs_gloo
def test_function_of_one_rank_gives_all_ranks_its_value_or_its_error():
    assert run_ranks(_utilities, 2) == [(10, [0, 10], 1), (10, [0, 10], 2)]
