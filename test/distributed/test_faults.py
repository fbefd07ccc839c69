"""What goes wrong in training jobs: a rank that is killed, hangs or has another shape, a store that
dies, a port that is taken. The others get an error that names the operation and the rank, in time;
no process and no half checkpoint is left. CRESSET_ROUNDS repeats each fault."""

import json
import os
import signal
import socket
import subprocess
import sys
import textwrap
import threading
import time
from datetime import timedelta
from pathlib import Path

import pytest
from ranks import needs_gloo, run_ranks

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch import nn
from torch.nn.parallel import DistributedDataParallel

ROUNDS = range(int(os.environ.get("CRESSET_ROUNDS", "1")))
LIMIT = timedelta(seconds=20)


def _die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


class _DyingPlanner(dcp.DefaultSavePlanner):
    def resolve_data(self, write_item):
        _die()


def _step(model, rank, dies):
    if rank == 1 and dies == "forward":
        model.module[0].register_forward_hook(lambda *_: _die())
    if rank == 1 and dies == "backward":
        model.module[0].weight.register_hook(lambda grad: _die())
    model(torch.ones(2, 64)).sum().backward()


def _killed(rank, size, folder, dies):
    dist.init_process_group(
        "gloo", init_method=f"file://{folder}/store", rank=rank, world_size=size, timeout=LIMIT
    )
    model = DistributedDataParallel(nn.Sequential(nn.Linear(64, 64), nn.Linear(64, 64)))
    _step(model, rank, "")
    dcp.save({"w": torch.full((5,), 1.0)}, checkpoint_id=f"{folder}/checkpoint")
    begin = time.monotonic()
    try:
        if dies == "collective":
            if rank == 1:
                threading.Timer(0.05, _die).start()
            large = torch.ones(1 << 20)
            while True:
                dist.all_reduce(large)
                large.fill_(1)
        elif dies == "save":
            planner = _DyingPlanner() if rank == 1 else None
            state = {"w": torch.full((5,), 2.0), f"own{rank}": torch.ones(3)}
            dcp.save(state, checkpoint_id=f"{folder}/checkpoint", planner=planner)
        else:
            _step(model, rank, dies)
    except (RuntimeError, dcp.CheckpointException) as error:
        assert time.monotonic() - begin < LIMIT.total_seconds()
        return str(error)
    return "no error"


@needs_gloo
@pytest.mark.parametrize("round", ROUNDS)
@pytest.mark.parametrize("dies", ["forward", "backward", "collective", "save"])
def test_rank_killed_is_reported_by_the_others_in_seconds(dies, round, tmp_path):
    texts = {}
    with pytest.raises(AssertionError) as failure:
        run_ranks(_tell, 3, str(tmp_path), dies, backend="")
    assert "rank 1: no result" in str(failure.value)
    for rank in (0, 2):
        texts[rank] = (tmp_path / f"told{rank}").read_text()
        assert "all_" in texts[rank] or "broadcast" in texts[rank] or "gather" in texts[rank]
    # Whoever waits for the dead rank itself names it; the others lose whoever gave up.
    assert any("rank 1" in text or "losed" in text for text in texts.values()), texts
    loaded = {"w": torch.zeros(5)}
    dcp.load(loaded, checkpoint_id=tmp_path / "checkpoint", no_dist=True)
    assert loaded["w"].tolist() == [1.0] * 5


def _tell(rank, size, folder, dies):
    Path(folder, f"told{rank}").write_text(_killed(rank, size, folder, dies))


def _stays_away(rank, size, folder):
    dist.init_process_group(
        "gloo", init_method=f"file://{folder}/store", rank=rank, world_size=size, timeout=LIMIT
    )
    dist.all_reduce(torch.ones(4))
    # All are there; a busy machine may have needed longer for that than a test should wait.
    dist.distributed_c10d._set_pg_timeout(timedelta(seconds=2))
    if rank == 1:
        # Until the others have given up; a process that hangs answers nothing.
        end = time.monotonic() + LIMIT.total_seconds()
        while len(list(Path(folder).glob("done*"))) < size - 1 and time.monotonic() < end:
            time.sleep(0.05)
        return ""
    begin = time.monotonic()
    with pytest.raises(dist.DistBackendError) as failure:
        dist.all_gather_into_tensor(torch.empty(12), torch.ones(4))
    assert time.monotonic() - begin < LIMIT.total_seconds()
    Path(folder, f"done{rank}").touch()
    return str(failure.value)


@needs_gloo
@pytest.mark.parametrize("round", ROUNDS)
def test_hung_rank_is_named_with_the_operation_after_the_timeout(round, tmp_path):
    texts = run_ranks(_stays_away, 3, str(tmp_path), backend="")
    for text in (texts[0], texts[2]):
        assert "all_gather_into_tensor(input=Float[4], output=Float[12]) number 2" in text
        assert "ranks that did not: 1" in text, text


def _other_shape(rank, size, folder):
    os.environ["TORCH_DISTRIBUTED_DEBUG"] = "DETAIL"
    dist.init_process_group(
        "gloo", init_method=f"file://{folder}/store", rank=rank, world_size=size, timeout=LIMIT
    )
    with pytest.raises(dist.DistBackendError) as failure:
        dist.all_reduce(torch.ones(20, 10 if rank == 0 else 2))
    return str(failure.value)


@needs_gloo
@pytest.mark.parametrize("round", ROUNDS)
def test_rank_with_another_shape_is_named_with_both_shapes(round, tmp_path):
    for rank, text in enumerate(run_ranks(_other_shape, 2, str(tmp_path), backend="")):
        assert f"Rank {rank} is running" in text
        assert "TensorShape=[20, 10]" in text
        assert "TensorShape=[20, 2]" in text


_SERVER = """
    import sys, time
    import torch.distributed as dist
    store = dist.TCPStore("localhost", 0, None, True)
    print(store.port, flush=True)
    time.sleep(100)
"""


def _loses_the_store(rank, size, port, pid):
    store = dist.TCPStore("localhost", port, None, False, timeout=timedelta(seconds=5))
    dist.init_process_group("gloo", store=store, rank=rank, world_size=size, timeout=LIMIT)
    dist.all_reduce(torch.ones(4))
    if rank == 0:
        os.kill(pid, signal.SIGKILL)
    dist.barrier()  # what is connected goes on without the store
    time.sleep(0.2)
    begin = time.monotonic()
    with pytest.raises(dist.DistError) as failure:
        dist.new_group([0, 1])
    assert time.monotonic() - begin < LIMIT.total_seconds()
    return str(failure.value)


@needs_gloo
@pytest.mark.parametrize("round", ROUNDS)
def test_store_that_dies_is_an_error_of_what_needs_it(round):
    command = [sys.executable, "-c", textwrap.dedent(_SERVER)]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        port = int(server.stdout.readline())
        texts = run_ranks(_loses_the_store, 2, port, server.pid, backend="")
    finally:
        server.kill()
        server.wait()
    assert all(str(port) in text or "closed" in text or "reset" in text for text in texts), texts


@pytest.mark.parametrize("round", ROUNDS)
def test_port_that_is_taken_is_named(round):
    with socket.socket() as taken:
        taken.bind(("", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(dist.DistNetworkError, match=str(port)):
            dist.TCPStore("localhost", port, None, True, timedelta(seconds=2))


_TRAINING = """
    import json, os, signal, sys
    from datetime import timedelta
    import torch
    import torch.distributed as dist
    import torch.distributed.checkpoint as dcp
    from torch import nn
    from torch.nn.parallel import DistributedDataParallel

    folder, dies = sys.argv[1], sys.argv[2] == "dies"
    dist.init_process_group("gloo", timeout=timedelta(seconds=20))
    rank = dist.get_rank()
    torch.manual_seed(0)
    model = DistributedDataParallel(nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1)))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    place = os.path.join(folder, "checkpoint")
    state = {"model": model.module.state_dict(), "step": torch.tensor(0)}
    if os.path.exists(os.path.join(place, ".metadata")):
        dcp.load(state, checkpoint_id=place)
        model.module.load_state_dict(state["model"])
    first = int(os.environ["TORCHELASTIC_RESTART_COUNT"]) == 0
    for step in range(int(state["step"]), 6):
        torch.manual_seed(100 + 10 * step + rank)
        x = torch.randn(8, 4)
        loss = (model(x) - x.sum(1, keepdim=True)).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        shown = loss.detach().clone()
        dist.all_reduce(shown)
        if rank == 0:
            with open(os.path.join(folder, "losses"), "a") as file:
                file.write(json.dumps([step, float(shown)]) + "\\n")
        state = {"model": model.module.state_dict(), "step": torch.tensor(step + 1)}
        dcp.save(state, checkpoint_id=place)
        if dies and first and step == 2 and rank == 1:
            os.kill(os.getpid(), signal.SIGKILL)
    dist.destroy_process_group()
"""


@needs_gloo
@pytest.mark.slow
@pytest.mark.parametrize("round", ROUNDS)
def test_elastic_restart_resumes_to_the_same_losses(round, tmp_path):
    script = tmp_path / "train.py"
    script.write_text(textwrap.dedent(_TRAINING))
    curves = {}
    for how in ("lives", "dies"):
        folder = tmp_path / how
        folder.mkdir()
        command = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node=2",
                   "--max-restarts=1", "--rdzv-backend=c10d", "--rdzv-endpoint=localhost:0",
                   str(script), str(folder), how]  # fmt: skip
        subprocess.run(command, check=True, timeout=120, capture_output=True)
        lines = [json.loads(line) for line in (folder / "losses").read_text().splitlines()]
        curves[how] = dict(lines)
    assert list(curves["lives"]) == list(range(6))
    assert curves["dies"] == curves["lives"]
