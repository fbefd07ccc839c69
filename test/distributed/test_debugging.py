"""Who is to blame: checks across ranks with TORCH_DISTRIBUTED_DEBUG=DETAIL, errors that name the
operation and the ranks, the flight recorder and its reader."""

import datetime
import json
import os
import pickle
import subprocess
import sys
import time

import pytest
from ranks import needs_gloo, run_ranks

import torch
import torch.distributed as dist
from torch._C._distributed_c10d import _dump_fr_trace, _dump_fr_trace_json, _ProcessGroupWrapper
from torch.distributed.flight_recorder import analyse, read_dumps

SECONDS = datetime.timedelta(seconds=3)


def _with_checks(rank, size, folder, what):
    os.environ["TORCH_DISTRIBUTED_DEBUG"] = "DETAIL"
    dist.init_process_group(
        "gloo", init_method=f"file://{folder}/store", rank=rank, world_size=size, timeout=SECONDS
    )
    backend = dist.distributed_c10d._get_default_group()._get_backend(torch.device("cpu"))
    assert isinstance(backend, _ProcessGroupWrapper)
    value = torch.full((3,), float(rank))
    dist.all_reduce(value)
    assert value.tolist() == [size * (size - 1) / 2] * 3
    begin = time.monotonic()
    try:
        what(rank)
    except dist.DistBackendError as error:
        assert time.monotonic() - begin < 20
        return str(error)
    return ""


def _other_shape(rank):
    dist.all_reduce(torch.ones(20, 10 if rank == 0 else 2))


def _other_operation(rank):
    if rank == 0:
        dist.all_reduce(torch.ones(20))
    else:
        dist.broadcast(torch.ones(20), 0)


def _other_root(rank):
    dist.broadcast(torch.ones(4), rank)


def _other_reduction(rank):
    dist.all_reduce(torch.ones(4), dist.ReduceOp.SUM if rank == 0 else dist.ReduceOp.MAX)


def _other_dtype(rank):
    dist.all_reduce(torch.ones(4, dtype=torch.float32 if rank == 0 else torch.int64))


@needs_gloo
@pytest.mark.parametrize(
    "what, first, second",
    [
        (_other_shape, "TensorShape=[20, 10]", "TensorShape=[20, 2]"),
        (_other_operation, "OpType=ALLREDUCE", "OpType=BROADCAST"),
        (_other_root, "Root=0", "Root=1"),
        (_other_reduction, "ReduceOp=SUM", "ReduceOp=MAX"),
        (_other_dtype, "TensorDtypes=Float", "TensorDtypes=Long"),
    ],
)
def test_ranks_that_differ_get_an_error_that_names_both(what, first, second, tmp_path):
    for rank, text in enumerate(run_ranks(_with_checks, 2, str(tmp_path), what, backend="")):
        assert text.startswith("Detected mismatch between collectives on ranks"), text
        assert first in text and second in text and f"Rank {rank} is running" in text
        assert "Collectives differ in the following aspects" in text


def _stays_away(rank):
    if rank != 1:
        dist.all_reduce(torch.ones(20, 10))


@needs_gloo
def test_rank_that_stays_away_is_named_with_the_operation(tmp_path):
    texts = run_ranks(_with_checks, 3, str(tmp_path), _stays_away, backend="")
    assert texts[1] == ""
    for text in (texts[0], texts[2]):
        assert "Ranks 1 failed to pass monitoredBarrier in 3000 ms" in text
        assert "all_reduce(Float[20, 10], op=SUM)" in text


# ---- the flight recorder -------------------------------------------------------------------------
def _recorded(rank, size):
    dist.all_reduce(torch.ones(2, 3))
    dist.broadcast(torch.ones(4, dtype=torch.int64), 1)
    if rank == 0:
        dist.send(torch.ones(5), 1, tag=3)
    else:
        dist.recv(torch.ones(5), 0, tag=3)
    return _dump_fr_trace_json(), _dump_fr_trace()


@needs_gloo
def test_recorder_keeps_operations_with_their_tensors():
    for rank, (text, pickled) in enumerate(run_ranks(_recorded, 2)):
        found = json.loads(text)
        assert pickle.loads(pickled)["entries"][0]["process_group"] == ("0", "default_pg")
        first, second, third = found["entries"][-3:]
        assert first["profiling_name"] == "gloo:all_reduce" and first["state"] == "completed"
        assert first["input_sizes"] == [] and first["output_sizes"] == [[2, 3]]
        assert second["output_dtypes"] == ["Long"] and second["root"] == 1
        assert second["collective_seq_id"] == first["collective_seq_id"] + 1
        assert third["is_p2p"] and third["tag"] == 3 and third["peer"] == 1 - rank
        assert found["pg_config"]["0"]["ranks"] == "[0, 1]"
        assert found["pg_status"]["0"]["last_completed_collective"] == 2
        times = [first[f"time_{when}_ns"] for when in
                 ("created", "discovered_started", "discovered_completed")]  # fmt: skip
        assert times == sorted(times)


def _hangs(rank, size, folder):
    os.environ["TORCH_FR_DUMP_TEMP_FILE"] = f"{folder}/trace_"
    dist.init_process_group(
        "gloo", init_method=f"file://{folder}/store", rank=rank, world_size=size, timeout=SECONDS
    )
    dist.all_reduce(torch.ones(4))
    if rank == 1:
        # Hung as a program hangs: outside of any operation.
        end = time.monotonic() + 30
        while not os.path.exists(f"{folder}/trace_1") and time.monotonic() < end:
            time.sleep(0.1)
        return ""
    with pytest.raises(dist.DistBackendError) as failure:
        dist.all_gather_into_tensor(torch.empty(12), torch.ones(4))
    return str(failure.value)


@needs_gloo
def test_hung_rank_is_the_culprit_that_the_reader_prints(tmp_path):
    texts = run_ranks(_hangs, 3, str(tmp_path), backend="")
    for text in (texts[0], texts[2]):
        assert "all_gather_into_tensor(input=Float[4], output=Float[12]) number 2" in text
        assert "ranks that did not: 1" in text, text
    found = analyse(read_dumps(f"{tmp_path}/trace_"))
    assert found[0].kind == "missing" and found[0].culprits == [1]
    assert found[0].operation.startswith("all_gather_into_tensor") and found[0].sequence == 2
    command = [sys.executable, "-m", "torch.distributed.flight_recorder.fr_trace"]
    done = subprocess.run([*command, f"{tmp_path}/trace_"], capture_output=True, text=True)
    assert done.returncode == 1 and "CULPRIT: rank 1 never came" in done.stdout
    assert "last did all_reduce(Float[4])" in done.stdout
    os.unlink(tmp_path / "trace_1")
    assert analyse(read_dumps(str(tmp_path), "trace_"))[0].culprits == [1]
    assert subprocess.run([*command, f"{tmp_path}/none"], capture_output=True).returncode == 2


def _entry(number, name="all_reduce", size=4, state="completed", **more):
    return {
        "process_group": ["0", ""], "profiling_name": f"gloo:{name}", "collective_seq_id": number,
        "input_sizes": [], "input_dtypes": [], "output_sizes": [[size]], "output_dtypes": ["Float"],
        "state": state, "is_p2p": False, "time_created_ns": number, **more,
    }  # fmt: skip


def _dump(*entries):
    return {"entries": list(entries), "pg_config": {"0": {"ranks": "[0, 1, 2]"}}}


def test_reader_names_the_minority_and_forgives_a_short_ring():
    same = _dump(_entry(1), _entry(2))
    assert analyse({0: same, 1: same, 2: _dump(_entry(2))}) == []
    other = _dump(_entry(1), _entry(2, size=5, state="failed"))
    (found,) = analyse({0: same, 1: other, 2: same})
    assert found.kind == "mismatch" and found.culprits == [1] and found.sequence == 2


def test_reader_names_the_side_of_a_message_that_never_came():
    send = _entry(1, "send", is_p2p=True, peer=2, tag=7)
    (found,) = analyse({0: _dump(send), 1: _dump(_entry(1)), 2: _dump(_entry(1))})[-1:]
    assert found.kind == "waiting" and found.culprits == [2] and "tag 7" in str(found)


def test_reader_refuses_files_that_are_no_recordings(tmp_path):
    (tmp_path / "trace_0").write_bytes(pickle.dumps({"entries": [os.system]}))
    with pytest.raises(ValueError, match="is no recording"):
        read_dumps(str(tmp_path))
