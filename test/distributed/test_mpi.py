"""The MPI backend in processes that mpirun starts."""

import json
import os
import shutil
import subprocess
import sys
import textwrap

import pytest

import torch.distributed as dist

pytestmark = pytest.mark.skipif(
    not dist.is_mpi_available() or shutil.which("mpirun") is None,
    reason="built without MPI (libopenmpi-dev was not installed)",
)

_PROGRAM = """
    import json, os, sys
    from datetime import timedelta
    import pytest
    import torch
    import torch.distributed as dist

    dist.init_process_group("mpi", timeout=timedelta(seconds=30))
    rank, size = dist.get_rank(), dist.get_world_size()
    mine = torch.arange(4.0) + 10 * rank
    found = {}
    for op in ("SUM", "AVG", "PRODUCT", "MIN", "MAX"):
        value = mine.clone()
        dist.all_reduce(value, getattr(dist.ReduceOp, op))
        found[op] = value.tolist()
    columns = torch.arange(4.0).view(2, 2).t() + rank
    dist.all_reduce(columns)
    found["strided"] = columns.tolist()
    sent = mine.to(torch.bfloat16)
    dist.broadcast(sent, 1)
    found["broadcast"] = sent.tolist()
    root = mine.clone()
    dist.reduce(root, 0)
    found["reduce"] = root.tolist()
    parts = [torch.empty(4) for _ in range(size)]
    dist.all_gather(parts, mine)
    found["all_gather"] = [p.tolist() for p in parts]
    out = torch.empty(4)
    dist.reduce_scatter_tensor(out, torch.cat([mine + i for i in range(size)]))
    found["reduce_scatter"] = out.tolist()
    parts = [torch.empty(4) for _ in range(size)] if rank == 1 else None
    dist.gather(mine, parts, 1)
    found["gather"] = [p.tolist() for p in parts] if parts else None
    dist.scatter(out, [mine + i for i in range(size)] if rank == 0 else None, 0)
    found["scatter"] = out.tolist()
    swapped = torch.empty(size)
    dist.all_to_all_single(swapped, torch.arange(float(size)) + 100 * rank)
    found["all_to_all"] = swapped.tolist()
    if rank == 0:
        dist.send(mine, 1, tag=4)
    elif rank == 1:
        print(dist.recv(out, tag=4), file=sys.stderr)
        found["recv"] = out.tolist()
    works = [dist.all_reduce(torch.ones(2), async_op=True) for _ in range(3)]
    for work in works:
        work.wait()
    pair = dist.new_group([0, 1])
    if rank < 2:
        both = torch.ones(1)
        dist.all_reduce(both, group=pair)
        found["pair"] = both.tolist()
    with pytest.raises(NotImplementedError, match="mpi for dtype BFloat16"):
        dist.all_reduce(torch.ones(2, dtype=torch.bfloat16))
    dist.barrier()
    with open(os.path.join(sys.argv[1], f"rank{rank}"), "w") as file:
        json.dump(found, file)
    dist.destroy_process_group()
"""


def _run(program, size, *args):
    command = ["mpirun", "--oversubscribe", "--bind-to", "none", "-np", str(size)]
    environment = os.environ | {
        "OMPI_ALLOW_RUN_AS_ROOT": "1",
        "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
        "OMPI_MCA_btl_vader_single_copy_mechanism": "none",
    }
    return subprocess.run(
        [*command, sys.executable, "-c", textwrap.dedent(program), *args],
        env=environment, capture_output=True, text=True, timeout=100,
    )  # fmt: skip


@pytest.mark.slow
def test_operations_give_the_values_of_all_ranks(tmp_path):
    size = 3
    done = _run(_PROGRAM, size, str(tmp_path))
    assert done.returncode == 0, done.stderr[-3000:]
    rows = [[10.0 * rank + i for i in range(4)] for rank in range(size)]
    columns = list(zip(*rows, strict=True))
    for rank in range(size):
        found = json.loads((tmp_path / f"rank{rank}").read_text())
        assert found["SUM"] == [sum(c) for c in columns]
        assert found["AVG"] == [sum(c) / size for c in columns]
        assert found["PRODUCT"] == [c[0] * c[1] * c[2] for c in columns]
        assert found["MIN"] == rows[0] and found["MAX"] == rows[-1]
        assert found["strided"] == [[3.0, 9.0], [6.0, 12.0]]
        assert found["broadcast"] == rows[1]
        assert found["reduce"] == ([sum(c) for c in columns] if rank == 0 else rows[rank])
        assert found["all_gather"] == rows
        assert found["reduce_scatter"] == [sum(c) + rank * size for c in columns]
        assert found["gather"] == (rows if rank == 1 else None)
        assert found["scatter"] == [value + rank for value in rows[0]]
        assert found["all_to_all"] == [100.0 * i + rank for i in range(size)]
        assert rank != 1 or found["recv"] == rows[0]
        assert rank > 1 or found["pair"] == [2.0]


_LATE = """
    import sys, time
    from datetime import timedelta
    import torch
    import torch.distributed as dist

    dist.init_process_group("mpi", timeout=timedelta(seconds=2))
    if dist.get_rank() == 0:
        try:
            dist.all_reduce(torch.ones(3))
        except dist.DistBackendError as error:
            print(str(error).replace(chr(10), " "), flush=True)
    else:
        time.sleep(5)
    import os
    os._exit(0)
"""


@pytest.mark.slow
def test_rank_that_does_not_come_raises_after_the_timeout():
    done = _run(_LATE, 2)
    assert "Timed out waiting 2000ms" in done.stdout, (done.stdout, done.stderr[-2000:])
    assert "all_reduce(Float[3], op=SUM) number 1 of rank 0 of 2" in done.stdout


def test_processes_of_another_launcher_are_no_world_of_mpi(monkeypatch):
    assert dist.is_mpi_available()
    monkeypatch.setenv("WORLD_SIZE", "2")
    for name in ("OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "PMIX_RANK"):
        monkeypatch.delenv(name, raising=False)
    assert not dist.is_mpi_available()
    monkeypatch.setenv("OMPI_COMM_WORLD_SIZE", "2")
    assert dist.is_mpi_available()
