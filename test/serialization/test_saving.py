"""torch.save when it fails or is interrupted: the old file stays, nothing else does, and the caller
is told."""

import errno
import os
import pickle
import subprocess
import sys

import pytest

import torch
from torch._serialization import atomic_file


class FailingFile:
    """A file whose k-th write fails as on a full disk."""

    def __init__(self, file, allowed):
        self._file, self._allowed = file, allowed

    def write(self, data):
        """Writes, or raises when the allowance is used up."""
        self._allowed -= 1
        if self._allowed < 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return self._file.write(data)

    def __enter__(self):
        return self

    def __exit__(self, *exc_info):
        self._file.close()

    def __getattr__(self, name):
        return getattr(self._file, name)


@pytest.mark.parametrize("zipped", [True, False], ids=["zip", "legacy"])
def test_failing_write_leaves_the_old_file(zipped, tmp_path, monkeypatch):
    path = tmp_path / "x.pt"
    torch.save({"v": torch.zeros(100)}, path)
    original = atomic_file.open_for_writing
    failures = 0
    for allowed in range(60):
        monkeypatch.setattr(
            atomic_file,
            "open_for_writing",
            lambda *args, allowed=allowed: FailingFile(original(*args), allowed),
        )
        try:
            torch.save({"v": torch.ones(100)}, path, _use_new_zipfile_serialization=zipped)
        except OSError:
            failures += 1
            assert torch.load(path)["v"].sum() == 0
            assert os.listdir(tmp_path) == ["x.pt"]
        else:
            break
    assert failures >= 6
    assert torch.load(path)["v"].sum() == 100


@pytest.mark.parametrize("step", ["fsync", "rename"])
def test_failing_flush_or_rename_leaves_the_old_file(step, tmp_path, monkeypatch):
    path = tmp_path / "x.pt"
    torch.save(torch.zeros(3), path)

    def fail(*args):
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(atomic_file, step, fail)
    with pytest.raises(OSError, match="Input/output"):
        torch.save(torch.ones(3), path)
    assert torch.load(path).tolist() == [0, 0, 0]
    assert os.listdir(tmp_path) == ["x.pt"]


def test_saving_where_files_need_a_name_from_the_start(tmp_path, monkeypatch):
    def refuse(*args):
        raise OSError(errno.EXDEV, os.strerror(errno.EXDEV))

    monkeypatch.setattr(atomic_file, "give_name", refuse)
    monkeypatch.setattr(atomic_file, "_naming", {})
    path = tmp_path / "x.pt"
    for value in (1, 2):
        torch.save(value, path)
        assert torch.load(path) == value
    assert os.listdir(tmp_path) == ["x.pt"]
    assert list(atomic_file._naming.values()) == [False]


def test_name_that_is_not_text(tmp_path):
    path = os.fsencode(tmp_path) + b"/\xff\xfe.pt"
    torch.save(3, os.fsdecode(path))
    assert os.listdir(os.fsencode(tmp_path)) == [b"\xff\xfe.pt"]
    assert torch.load(os.fsdecode(path)) == 3


def test_object_that_cannot_be_pickled_touches_nothing(tmp_path):
    path = tmp_path / "x.pt"
    torch.save(torch.zeros(3), path)
    before = path.stat()
    with pytest.raises((AttributeError, pickle.PicklingError)):
        torch.save([torch.ones(3), lambda: 1], path)
    assert path.stat().st_mtime_ns == before.st_mtime_ns
    assert os.listdir(tmp_path) == ["x.pt"]


def test_link_is_followed_and_permissions_stay(tmp_path):
    target = tmp_path / "target.pt"
    torch.save(1, target)
    os.chmod(target, 0o640)
    link = tmp_path / "link.pt"
    link.symlink_to(target)
    torch.save(2, link)
    assert link.is_symlink()
    assert torch.load(target) == 2
    assert target.stat().st_mode & 0o777 == 0o640


KILLED = """
import sys, torch
value = torch.full((200_000,), 1.0)
print("ready", flush=True)
while True:
    value += 1
    torch.save({"v": value, "sum": float(value[0])}, sys.argv[1])
"""


@pytest.mark.slow
def test_killed_saves_leave_a_file_that_loads(tmp_path):
    path = tmp_path / "x.pt"
    torch.save({"v": torch.ones(200_000), "sum": 1.0}, path)
    for round_number in range(12):
        process = subprocess.Popen(
            [sys.executable, "-c", KILLED, str(path)], stdout=subprocess.PIPE, text=True
        )
        process.stdout.readline()
        try:
            process.wait(0.02 + 0.017 * round_number)
        except subprocess.TimeoutExpired:
            process.kill()
        process.wait()
        process.stdout.close()
        found = torch.load(path)
        assert bool((found["v"] == found["sum"]).all())
