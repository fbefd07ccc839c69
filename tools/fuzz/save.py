"""Saves over an existing file while the process is killed, the disk is full, or the k-th write,
flush, close or rename fails. Afterwards the file must load and hold exactly the old or the new
content, a save that failed must have raised, and it must have left no other file behind.

    python tools/fuzz/save.py --kills 1000 --full 200 --errors 200
    python tools/fuzz/save.py --self-test      savers with planted faults must be found

Content number k is made from k alone, so that what is in a file can be compared bit for bit. The
full disk is a tmpfs of two megabytes, mounted where only this program sees it; where mounting is
not allowed, a limit on the size of files takes its place, and the summary says so.
"""

from __future__ import annotations

import argparse
import contextlib
import errno
import io
import mmap
import os
import random
import resource
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator

import torch
from torch._serialization import atomic_file
from torch.serialization import load_safetensors, save_safetensors

FORMS = ("zip", "legacy", "safetensors")
DISK = 2 << 20
SIZES = (1, 100, 5_000, 100_000)


def content(number, size):
    """The value that save number `number` writes."""
    generator = torch.Generator().manual_seed(number)
    return {
        "v": torch.randn(size, generator=generator),
        "k": torch.tensor([number, size]),
        "i": torch.randint(0, 1 << 62, (size,), generator=generator),
    }


def save(value, path, form) -> None:
    """Saves in one of the formats."""
    if form == "safetensors":
        save_safetensors(value, path)
    else:
        torch.save(value, path, _use_new_zipfile_serialization=form == "zip")


def number_in(path, form):
    """The number of the content in a file; raises if the file is not exactly that content."""
    found = load_safetensors(path) if form == "safetensors" else torch.load(path)
    number, size = found["k"].tolist()
    expected = content(number, size)
    if set(found) != set(expected):
        raise AssertionError(f"the names are {sorted(found)}")
    for key, value in expected.items():
        if not torch.equal(found[key], value):
            raise AssertionError(f"{key!r} of content {number} has other bits")
    return number


# ---- killed -------------------------------------------------------------------------------------


class Progress:
    """Two numbers that outlive the process which writes them: saves begun and saves finished."""

    def __init__(self) -> None:
        self.page = mmap.mmap(-1, 4096)

    def put(self, place, number) -> None:
        struct.pack_into("<q", self.page, 8 * place, number)

    def get(self):
        return struct.unpack_from("<qq", self.page)


def save_for_ever(path, form, first, progress, chance) -> None:
    """Saves content after content, until killed."""
    number = first
    while True:
        value = content(number, chance.choice(SIZES))
        progress.put(0, number)
        save(value, path, form)
        progress.put(1, number)
        number += 1


def one_kill(folder, chance, first):
    """Returns what was wrong, or None, and the number to go on with."""
    form = chance.choice(FORMS)
    path = os.path.join(folder, f"file.{form}")
    if not os.path.exists(path):
        save(content(first, 100), path, form)
    before = number_in(path, form)
    progress = Progress()
    progress.put(0, before)
    progress.put(1, before)
    pid = os.fork()
    if pid == 0:
        try:
            save_for_ever(path, form, first + 1, progress, chance)
        finally:
            os._exit(3)
    time.sleep(chance.choice((0.002, 0.01, 0.05)) * (1 + chance.random()))
    os.kill(pid, signal.SIGKILL)
    status = os.waitpid(pid, 0)[1]
    begun, finished = progress.get()
    try:
        number = number_in(path, form)
    except Exception as error:
        os.unlink(path)
        return f"{form}: {type(error).__name__}: {error}", max(first, begun)
    if not os.WIFSIGNALED(status):
        return f"{form}: the saving process ended by itself", max(first, begun)
    if not finished <= number <= begun:
        fault = f"{form}: content {number}, but {finished} was saved and {begun} begun"
        return fault, max(first, begun)
    return None, max(first, begun)


def kills(rounds, seed):
    """Kills savers; returns the faults and a line about litter."""
    chance, faults, number = random.Random(seed), [], 0
    with tempfile.TemporaryDirectory(prefix="save-fuzz-") as folder:
        for round_number in range(rounds):
            fault, number = one_kill(folder, chance, number)
            if fault:
                faults.append(f"kill, seed {seed}, round {round_number}: {fault}")
        litter = len(os.listdir(folder)) - len(FORMS)
    print(
        f"{rounds} killed saves over {number} begun, {len(faults)} faults, "
        f"{max(litter, 0)} temporary files left"
    )
    return faults


# ---- a full disk --------------------------------------------------------------------------------


def failing_rounds(rounds, seed, folder, what):
    """Saves that may fail; `what(chance)` is a context in which one is made."""
    chance, faults, failed = random.Random(seed), [], 0
    for round_number in range(rounds):
        form = chance.choice(FORMS)
        path = os.path.join(folder, "file")
        save(content(round_number, 500), path, form)
        new = content(rounds + round_number, chance.choice((20_000, 150_000, 400_000)))
        others = sorted(os.listdir(folder))
        error = None
        try:
            with what(chance):
                save(new, path, form)
        except (OSError, RuntimeError) as caught:
            error, failed = caught, failed + 1
        try:
            number = number_in(path, form)
            wrong = None
            if number != (round_number if error else rounds + round_number):
                # The failure may come after the file has been replaced.
                if not error or number != rounds + round_number:
                    wrong = f"content {number} after {error!r}"
        except Exception as caught:
            wrong = f"{type(caught).__name__}: {caught} after {error!r}"
        if sorted(os.listdir(folder)) != others:
            wrong = f"files {os.listdir(folder)} after {error!r}"
            for name in set(os.listdir(folder)) - set(others):
                os.unlink(os.path.join(folder, name))
        if wrong:
            faults.append(f"seed {seed}, round {round_number}, {form}: {wrong}")
            with contextlib.suppress(OSError):
                os.unlink(path)
    return faults, failed


@contextlib.contextmanager
def limited_size(chance) -> Iterator[None]:
    """Files cannot become larger than a few kilobytes."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    old = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (chance.choice((100, 5_000, 100_000)), before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, old)


@contextlib.contextmanager
def nearly_full(chance, folder=".") -> Iterator[None]:
    """Leaves a random part of the small disk free."""
    ballast = os.path.join(folder, "ballast")
    with open(ballast, "wb") as file:
        file.write(b"\0" * chance.choice((DISK // 2, DISK - 40_000, DISK - 20_000)))
    try:
        yield
    finally:
        os.unlink(ballast)


def on_small_disk(options) -> bool:
    """Runs in a mount namespace of its own, in which a small disk can be mounted."""
    with tempfile.TemporaryDirectory(prefix="save-fuzz-") as folder:
        mount = ["mount", "-t", "tmpfs", "-o", f"size={DISK}", "tmpfs", folder]
        subprocess.run(mount, check=True, capture_output=True)
        try:
            faults, failed = failing_rounds(
                options.full, options.seed, folder, lambda chance: nearly_full(chance, folder)
            )
        finally:
            subprocess.run(["umount", folder], check=True)
    for fault in faults:
        print(f"full disk, {fault}")
    print(
        f"{options.full} saves on a small tmpfs, {failed} failed and raised, {len(faults)} faults"
    )
    return bool(faults)


def full_disk(options):
    """Saves on a full disk; returns the faults."""
    command = ["unshare", "--mount", "--map-root-user", "--user"]
    command = command[:2] if os.getuid() == 0 else command
    command += [sys.executable, os.path.abspath(__file__), "--on-small-disk"]
    command += ["--full", str(options.full), "--seed", str(options.seed)]
    command += ["--plant", options.plant]
    if shutil.which("unshare"):
        done = subprocess.run(command, capture_output=True, text=True)
        if "saves on a small tmpfs" in done.stdout:
            lines = done.stdout.splitlines()
            print(lines[-1])
            return lines[:-1]
    with tempfile.TemporaryDirectory(prefix="save-fuzz-") as folder:
        faults, failed = failing_rounds(options.full, options.seed, folder, limited_size)
    print(
        f"{options.full} saves with a limit on the size of files (no tmpfs could be mounted), "
        f"{failed} failed and raised, {len(faults)} faults"
    )
    return [f"size limit, {fault}" for fault in faults]


# ---- the k-th call fails ------------------------------------------------------------------------


class FailingRaw(io.FileIO):
    """A file whose k-th write or whose close fails, or which writes less than it was given."""

    def __init__(self, descriptor, kind, bytes_before) -> None:
        super().__init__(descriptor, "wb")
        self.kind, self.left, self.done = kind, bytes_before, False

    def write(self, data):
        self.left -= 1
        if self.kind == "write" and self.left < 0:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        if self.kind == "short" and len(data) > 1:
            data = memoryview(data)[: max(1, len(data) // 2)]
        return super().write(data)

    def close(self) -> None:
        was_open = not self.closed
        super().close()
        if self.kind == "close" and was_open:
            raise OSError(errno.EIO, os.strerror(errno.EIO))


def _failing(*arguments, **named):
    raise OSError(errno.EIO, os.strerror(errno.EIO))


@contextlib.contextmanager
def broken_step(chance) -> Iterator[None]:
    """One step of saving fails."""
    kind = chance.choice(("write", "write", "write", "close", "short", "fsync", "rename", "name"))
    bytes_before = chance.choice((0, 1, 2, 3, 5, 8))
    names = {"fsync": "fsync", "rename": "rename", "name": "give_name"}
    target = names.get(kind, "open_for_writing")
    original = getattr(atomic_file, target)

    def open_for_writing(path, flags, mode):
        descriptor = os.open(path, flags | os.O_CLOEXEC, mode)
        return io.BufferedWriter(FailingRaw(descriptor, kind, bytes_before), 4096)

    setattr(atomic_file, target, _failing if kind in names else open_for_writing)
    try:
        yield
    finally:
        setattr(atomic_file, target, original)


def errors(rounds, seed):
    """Saves with a step that fails; returns the faults."""
    with tempfile.TemporaryDirectory(prefix="save-fuzz-") as folder:
        faults, failed = failing_rounds(rounds, seed, folder, broken_step)
    print(f"{rounds} saves with a failing step, {failed} failed and raised, {len(faults)} faults")
    return [f"error, {fault}" for fault in faults]


# ---- planted faults -----------------------------------------------------------------------------


def plant(name) -> None:
    """Replaces the saver by one with a fault."""

    @contextlib.contextmanager
    def in_place(path):
        with atomic_file.open_for_writing(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o666) as f:
            yield f

    original = atomic_file.replacing

    @contextlib.contextmanager
    def silent(path):
        with contextlib.suppress(OSError), original(path) as file:
            yield file

    @contextlib.contextmanager
    def littering(path):
        temporary = f"{path}.{random.random()}"
        with atomic_file.open_for_writing(temporary, os.O_WRONLY | os.O_CREAT, 0o666) as file:
            yield file
        os.replace(temporary, path)

    chosen = {"in place": in_place, "silent": silent, "littering": littering}[name]
    torch.serialization.replacing = chosen
    torch._serialization.safetensors_file.replacing = chosen


def self_test(options):
    """Each planted saver must be found by the part that looks for it."""
    searches = {
        "in place": [lambda: kills(60, 1), lambda: full_disk(options), lambda: errors(40, 1)],
        "silent": [lambda: full_disk(options), lambda: errors(40, 1)],
        "littering": [lambda: full_disk(options), lambda: errors(40, 1)],
    }
    missed, options.full = 0, 30
    before = torch.serialization.replacing
    for name, parts in searches.items():
        options.plant = name
        for search in parts:
            torch.serialization.replacing = before
            plant(name)
            found = len(search())
            print(f"planted {name!r}: {found} faults found")
            missed += not found
    return missed


def main():
    """Runs the command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=1000)
    parser.add_argument("--full", type=int, default=200)
    parser.add_argument("--errors", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--self-test", action="store_true")
    parser.add_argument("--plant", default="", help=argparse.SUPPRESS)
    parser.add_argument("--on-small-disk", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    torch.set_num_threads(1)
    if options.plant:
        plant(options.plant)
    if options.on_small_disk:
        return on_small_disk(options)
    if options.self_test:
        return self_test(options)
    faults = kills(options.kills, options.seed)
    faults += full_disk(options)
    faults += errors(options.errors, options.seed)
    for fault in faults:
        print(fault)
    return bool(faults)


if __name__ == "__main__":
    sys.exit(main())
