"""No call may end the process: random calls in a child process, which must live to the end."""

import os
import subprocess
import sys

import pytest

import torch

SCRIPT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "fuzz_ops.py")


@pytest.mark.parametrize(("kind", "seed"), [("schema", 1), ("schema", 2), ("junk", 1), ("junk", 2)])
def test_random_calls_raise_or_return(kind, seed, tmp_path):
    log = tmp_path / "last_call"
    root = os.path.dirname(os.path.dirname(torch.__file__))
    env = {**os.environ, "PYTHONPATH": root}
    run = subprocess.run(
        [sys.executable, SCRIPT, kind, str(seed), "6000", str(log)],
        env=env,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert run.returncode == 0, f"after the call: {log.read_text()}\n{run.stdout}\n{run.stderr[-2000:]}"
