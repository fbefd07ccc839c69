"""torchrun: workers are started, restarted and reported on."""

import json
import os
import subprocess
import sys

import pytest
from ranks import needs_gloo

from torch.distributed import run as torchrun
from torch.distributed.elastic.multiprocessing.errors import ChildFailedError, record
from torch.distributed.launcher.api import LaunchConfig, elastic_launch


def _launch(tmp_path, script: str, *options: str) -> subprocess.CompletedProcess:
    file = tmp_path / "script.py"
    file.write_text(script)
    command = [sys.executable, "-m", "torch.distributed.run", *options, str(file), str(tmp_path)]
    env = {key: value for key, value in os.environ.items() if "RANK" not in key}
    return subprocess.run(command, capture_output=True, text=True, timeout=120, env=env)


@needs_gloo
def test_workers_form_a_group_by_the_environment(tmp_path):
    script = """
import sys, torch, torch.distributed as dist
dist.init_process_group("gloo")
t = torch.tensor([float(dist.get_rank() + 1)])
dist.all_reduce(t)
open(f"{sys.argv[1]}/out{dist.get_rank()}", "w").write(str(t.item()))
dist.destroy_process_group()
"""
    done = _launch(tmp_path, script, "--standalone", "--nproc-per-node=2")
    assert done.returncode == 0, done.stderr
    assert [(tmp_path / f"out{rank}").read_text() for rank in (0, 1)] == ["3.0", "3.0"]


def test_worker_that_fails_once_is_restarted_with_the_others(tmp_path):
    script = """
import os, sys, pathlib
attempt, rank = os.environ["TORCHELASTIC_RESTART_COUNT"], os.environ["RANK"]
pathlib.Path(f"{sys.argv[1]}/ran_{attempt}_{rank}").touch()
sys.exit(3 if attempt == "0" and rank == "1" else 0)
"""
    done = _launch(tmp_path, script, "--standalone", "--nproc_per_node=2", "--max-restarts=1")
    assert done.returncode == 0, done.stderr
    assert {f.name for f in tmp_path.glob("ran_*")} >= {"ran_0_1", "ran_1_0", "ran_1_1"}


def test_failure_report_shows_the_first_failing_rank_and_its_traceback(tmp_path):
    script = """
import os, time
from torch.distributed.elastic.multiprocessing.errors import record
@record
def main():
    if os.environ["RANK"] == "1":
        raise ValueError("the disk is full")
    time.sleep(60)
main()
"""
    done = _launch(tmp_path, script, "--standalone", "--nproc-per-node", "2")
    assert done.returncode == 1
    report = done.stderr[done.stderr.index("Root Cause") :]
    assert "rank      : 1 (local_rank: 1)" in report
    assert "exitcode  : 1" in report and "ValueError: the disk is full" in report


def test_two_nodes_on_one_machine_agree_on_ranks(tmp_path):
    script = """
import os, sys
names = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "GROUP_RANK")
open(f"{sys.argv[1]}/node" + os.environ["RANK"], "w").write(
    " ".join(os.environ[name] for name in names))
"""
    file = tmp_path / "script.py"
    file.write_text(script)
    import socket

    with socket.socket() as free:
        free.bind(("localhost", 0))
        port = free.getsockname()[1]
    command = [
        sys.executable, "-m", "torch.distributed.run", "--nnodes=2", "--rdzv-backend=c10d",
        f"--rdzv-endpoint=localhost:{port}", "--rdzv-id=job", str(file), str(tmp_path),
    ]  # fmt: skip
    nodes = [subprocess.Popen(command, stderr=subprocess.PIPE, text=True) for _ in range(2)]
    errors = [node.communicate(timeout=120)[1] for node in nodes]
    assert [node.returncode for node in nodes] == [0, 0], errors
    assert (tmp_path / "node0").read_text() == "0 2 0 0"
    assert (tmp_path / "node1").read_text() == "1 2 0 1"


def _square(x: int) -> int:
    return x * x + int(os.environ["RANK"])


def _fail() -> None:
    raise KeyError("no such thing")


def _config(count: int) -> LaunchConfig:
    return LaunchConfig(1, 1, count, max_restarts=0, start_method="forkserver")


def test_function_that_is_launched_returns_by_rank():
    assert elastic_launch(_config(2), _square)(4) == {0: 16, 1: 17}


def test_function_that_raises_gives_child_failed_error_with_its_traceback():
    with pytest.raises(ChildFailedError) as caught:
        elastic_launch(_config(1), _fail)()
    rank, failure = caught.value.get_first_failure()
    assert rank == 0 and "no such thing" in failure.message


def test_record_writes_what_was_raised_to_the_file(tmp_path, monkeypatch):
    monkeypatch.setenv("TORCHELASTIC_ERROR_FILE", str(tmp_path / "error.json"))
    with pytest.raises(KeyError):
        record(_fail)()
    told = json.loads((tmp_path / "error.json").read_text())["message"]
    assert "no such thing" in told["message"] and "_fail" in told["extraInfo"]["py_callstack"]


def test_command_line_says_how_to_run():
    args = torchrun.parse_args(
        ["--nnodes=1:3", "--nproc_per_node", "4", "--rdzv_conf", "a=1,b=2", "x.py", "--flag"]
    )
    config, _, words = torchrun.config_from_args(args)
    assert (config.min_nodes, config.max_nodes, config.nproc_per_node) == (1, 3, 4)
    assert config.rdzv_configs["a"] == "1" and words == ["-u", "x.py", "--flag"]
    with pytest.raises(ValueError, match="nproc_per_node"):
        torchrun.determine_local_world_size("many")
