"""The fuzzer of the store: it passes a server that stands nonsense, and sees one that does not."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tools" / "fuzz"))


def test_server_stands_mutated_messages_and_serves_its_clients():
    command = [sys.executable, str(ROOT / "tools" / "fuzz" / "store.py")]
    done = subprocess.run(
        [*command, "--messages", "300", "--clients", "20"], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "20 clients served" in done.stdout


def test_fuzzer_sees_a_server_that_grows(monkeypatch, capsys):
    import store

    monkeypatch.setattr(store, "GROWTH", -(1 << 40))
    monkeypatch.setattr(sys, "argv", ["store.py", "--messages", "10", "--clients", "2"])
    assert store.main() == 1
    assert "FAILED" in capsys.readouterr().out


def test_fuzzer_sees_a_server_that_ends(monkeypatch):
    import store

    dying = store._SERVER.replace("sys.stdin.read()", "import time; time.sleep(0.5)")
    monkeypatch.setattr(store, "_SERVER", dying)
    with pytest.raises((OSError, RuntimeError)):
        store.run(100_000, 2, 0)
