"""The NCCL backend between several processes, on a library that stands for NCCL: the calls that
each operation makes, and the values that come out. What NCCL itself does is tested on GPUs."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from ranks import run_ranks

import torch
import torch.distributed as dist

HERE = Path(__file__).parent

pytestmark = pytest.mark.skipif(
    shutil.which("g++") is None,
    reason="the emulated NCCL is compiled here, and a machine with a wheel alone has no compiler",
)


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    path = tmp_path_factory.mktemp("nccl") / "libnccl.so.2"
    source = str(HERE / "nccl_emulation.cpp")
    subprocess.run(
        ["g++", "-std=c++17", "-O1", "-shared", "-fPIC", "-pthread", source, "-o", str(path)],
        check=True,
    )
    return str(path)


def _start(rank, size, library, folder):
    os.environ["CRESSET_NCCL_LIBRARY"] = library
    os.environ["CRESSET_NCCL_LOG"] = f"{folder}/log"
    dist.init_process_group(
        "cpu:nccl", init_method=f"file://{folder}/store", rank=rank, world_size=size
    )


def _all(rank, size, library, folder):
    _start(rank, size, library, folder)
    assert dist.is_nccl_available()
    found = {}
    mine = torch.arange(4.0) + 10 * rank
    for op in ("SUM", "AVG", "PRODUCT", "MIN", "MAX"):
        value = mine.clone()
        dist.all_reduce(value, getattr(dist.ReduceOp, op))
        found[op] = value
    scaled = mine.clone()
    dist.all_reduce(scaled, dist._make_nccl_premul_sum(2.0))
    found["premul"] = scaled
    flags = torch.tensor([rank == 0, True, False])
    dist.all_reduce(flags, dist.ReduceOp.BOR)
    found["flags"] = flags
    complexes = torch.complex(mine, -mine)
    dist.all_reduce(complexes)
    found["complex"] = complexes.real
    sent = mine.clone()
    dist.broadcast(sent, size - 1)
    found["broadcast"] = sent
    root = mine.clone()
    dist.reduce(root, 0)
    found["reduce"] = root if rank == 0 else None
    parts = [torch.empty(4) for _ in range(size)]
    dist.all_gather(parts, mine)
    found["all_gather"] = torch.stack(parts)
    flat = torch.empty(4 * size)
    dist.all_gather_into_tensor(flat, mine)
    found["into_tensor"] = flat
    out = torch.empty(4)
    dist.reduce_scatter(out, [mine + i for i in range(size)])
    found["reduce_scatter"] = out.clone()
    dist.reduce_scatter_tensor(out, torch.cat([mine + i for i in range(size)]))
    found["scatter_tensor"] = out
    parts = [torch.empty(4) for _ in range(size)] if rank == 1 else None
    dist.gather(mine, parts, 1)
    found["gather"] = torch.stack(parts) if rank == 1 else None
    part = torch.empty(4)
    dist.scatter(part, [mine + i for i in range(size)] if rank == 0 else None, 0)
    found["scatter"] = part
    swapped = torch.empty(size)
    dist.all_to_all_single(swapped, torch.arange(float(size)) + 100 * rank)
    found["all_to_all"] = swapped
    uneven = torch.empty(size * (rank + 1))
    dist.all_to_all_single(
        uneven, torch.full((sum(range(size + 1)),), float(rank)),
        [rank + 1] * size, list(range(1, size + 1)),
    )  # fmt: skip
    found["uneven"] = uneven
    if rank == 0:
        dist.send(mine, 1)
    elif rank == 1:
        message = torch.empty(4)
        dist.recv(message, 0)
        found["recv"] = message
    dist.barrier()
    for refused in (dist.ReduceOp.BAND, dist.ReduceOp.BXOR):
        with pytest.raises(ValueError, match="with NCCL"):
            dist.all_reduce(mine.clone(), refused)
    with pytest.raises(ValueError, match="contiguous"):
        dist.all_reduce(torch.ones(4, 4).t())
    dist.destroy_process_group()
    return {name: None if t is None else t.numpy() for name, t in found.items()}


@pytest.mark.parametrize("size", [2, 3])
def test_operations_give_the_values_of_all_ranks(size, library, tmp_path):
    results = run_ranks(_all, size, library, str(tmp_path), backend="")
    mine = [torch.arange(4.0) + 10 * rank for rank in range(size)]
    stacked = torch.stack(mine)
    for rank, found in enumerate(results):
        expected = {
            "SUM": stacked.sum(0), "AVG": stacked.mean(0), "PRODUCT": stacked.prod(0),
            "MIN": stacked.min(0).values, "MAX": stacked.max(0).values,
            "premul": 2 * stacked.sum(0), "flags": torch.tensor([True, True, False]),
            "complex": stacked.sum(0), "broadcast": mine[-1],
            "reduce": stacked.sum(0) if rank == 0 else None,
            "all_gather": stacked, "into_tensor": stacked.flatten(),
            "reduce_scatter": (stacked + rank).sum(0), "scatter_tensor": (stacked + rank).sum(0),
            "gather": stacked if rank == 1 else None, "scatter": mine[0] + rank,
            "all_to_all": torch.tensor([100.0 * i + rank for i in range(size)]),
            "uneven": torch.arange(float(size)).repeat_interleave(rank + 1),
        }  # fmt: skip
        for name, value in expected.items():
            if value is None:
                assert found[name] is None
            else:
                assert torch.allclose(torch.from_numpy(found[name]), value), (rank, name)


def test_calls_of_each_operation_are_those_of_the_interface(library, tmp_path):
    run_ranks(_all, 2, library, str(tmp_path), backend="")
    lines = (tmp_path / "log0").read_text().splitlines()
    assert lines[:2] == ["ncclGetUniqueId", "ncclCommInitRank size=2 rank=0"]
    assert lines[-2:] == ["ncclCommFinalize", "ncclCommDestroy"]
    sums = [f"ncclAllReduce count=4 type=7 op={op} group=0" for op in (0, 4, 1, 3, 2)]
    assert lines[2:7] == sums
    assert lines[7:10] == [
        "ncclRedOpCreatePreMulSum type=7 residence=1",
        "ncclAllReduce count=4 type=7 op=100 group=0",
        "ncclRedOpDestroy",
    ]
    assert lines[10] == "ncclAllReduce count=3 type=1 op=2 group=0"  # bool: the maximum of bytes
    assert lines[11] == "ncclAllReduce count=8 type=7 op=0 group=0"  # complex: twice as many
    assert lines[12] == "ncclBroadcast count=4 type=7 root=1 group=0"
    assert lines[13] == "ncclReduce count=4 type=7 op=0 root=0 group=0"
    assert lines[14:16] == [f"ncclBroadcast count=4 type=7 root={i} group=1" for i in range(2)]
    assert lines[16] == "ncclAllGather count=4 type=7 group=0"
    assert lines[17:19] == [f"ncclReduce count=4 type=7 op=0 root={i} group=1" for i in range(2)]
    assert lines[19] == "ncclReduceScatter count=4 type=7 op=0 group=0"
    assert lines[20] == "ncclSend count=4 type=7 peer=1 group=1"  # gather, to the root
    assert lines[21:24] == [
        "ncclRecv count=4 type=7 peer=0 group=1",
        "ncclSend count=4 type=7 peer=0 group=1",
        "ncclSend count=4 type=7 peer=1 group=1",
    ]
    exchange = [f"nccl{what} count=1 type=7 peer={i} group=1"
                for i in range(2) for what in ("Send", "Recv")]  # fmt: skip
    assert lines[24:28] == exchange


def _swap(rank, size, library, folder):
    _start(rank, size, library, folder)
    other = 1 - rank
    sent, got = torch.full((1 << 20,), float(rank)), torch.empty(1 << 20)
    ops = [dist.P2POp(dist.isend, sent, other), dist.P2POp(dist.irecv, got, other)]
    for work in dist.batch_isend_irecv(ops):
        work.wait()
    with pytest.raises(RuntimeError, match="no batch"):
        dist.group.WORLD._end_coalescing(torch.device("cpu"))
    dist.destroy_process_group()
    return got.unique().tolist()


def test_transfers_of_a_batch_are_started_as_one(library, tmp_path):
    assert run_ranks(_swap, 2, library, str(tmp_path), backend="") == [[1.0], [0.0]]
    lines = (tmp_path / "log0").read_text().splitlines()
    assert lines[2:4] == [
        f"nccl{what} count={1 << 20} type=7 peer=1 group=1" for what in ("Send", "Recv")
    ]


def _register(rank, size, library, folder):
    _start(rank, size, library, folder)
    backend = dist.group.WORLD._get_backend(torch.device("cpu"))
    memory, other = torch.ones(16), torch.ones(4)
    backend._register_memory(-1, memory.data_ptr(), 64)
    with pytest.raises(RuntimeError, match="registered already"):
        backend._register_memory(-1, memory.data_ptr(), 64)
    dist.all_reduce(memory)
    backend._deregister_memory(memory.data_ptr())
    with pytest.raises(RuntimeError, match="not registered"):
        backend._deregister_memory(memory.data_ptr())
    with pytest.raises(ValueError, match="cuda:0 is no device of NCCL"):
        backend._register_memory(0, memory.data_ptr(), 64)
    backend._register_memory(-1, other.data_ptr(), 16)  # taken back with the group
    dist.destroy_process_group()
    return memory[0].item()


def test_registered_memory_is_given_back_before_the_communicator(library, tmp_path):
    assert run_ranks(_register, 2, library, str(tmp_path), backend="") == [2.0, 2.0]
    lines = (tmp_path / "log1").read_text().splitlines()
    assert lines == [
        "ncclCommInitRank size=2 rank=1",
        "ncclCommRegister bytes=64",
        "ncclAllReduce count=16 type=7 op=0 group=0",
        "ncclCommDeregister",
        "ncclCommRegister bytes=16",
        "ncclCommDeregister",
        "ncclCommFinalize",
        "ncclCommDestroy",
    ]


class _Pool:
    id = (0, 7)

    def __init__(self, blocks):
        self._blocks = [{"address": at, "size": size} for at, size in blocks]

    def snapshot(self):
        return [{"device": -1, "blocks": self._blocks}]


def _pool(rank, size, library, folder):
    _start(rank, size, library, folder)
    backend = dist.group.WORLD._get_backend(torch.device("cpu"))
    at = torch.empty(64).data_ptr()
    pool = _Pool([(at, 32), (at + 32, 16), (at + 128, 64)])
    backend.register_mem_pool(pool)
    with pytest.raises(RuntimeError, match="already"):
        backend.register_mem_pool(pool)
    backend.deregister_mem_pool(pool)
    with pytest.raises(RuntimeError, match="not registered"):
        backend.deregister_mem_pool(pool)
    dist.destroy_process_group()


def test_a_pool_is_registered_without_its_holes(library, tmp_path):
    run_ranks(_pool, 1, library, str(tmp_path), backend="")
    lines = (tmp_path / "log0").read_text().splitlines()
    assert [line for line in lines if "egister" in line] == [
        "ncclCommRegister bytes=48",
        "ncclCommRegister bytes=64",
        "ncclCommDeregister",
        "ncclCommDeregister",
    ]


def _unregistered(rank, size, folder):
    with pytest.raises(NotImplementedError, match="Backend gloo does not register memory"):
        dist.group.WORLD._get_backend(torch.device("cpu"))._register_memory(-1, 4096, 64)


def test_backends_without_registration_say_so(tmp_path):
    run_ranks(_unregistered, 1, str(tmp_path))


def test_without_the_library_the_error_says_what_is_missing(tmp_path):
    run_ranks(_missing, 1, str(tmp_path), backend="")


def _missing(rank, size, folder):
    os.environ["CRESSET_NCCL_LIBRARY"] = f"{folder}/none.so"
    assert not dist.is_nccl_available()
    with pytest.raises(RuntimeError, match=r"doesn't have NCCL built in: .*none\.so"):
        _start(rank, size, f"{folder}/none.so", folder)
