"""Kills, hangs and crashes DataLoader workers, and kills their parents, and checks each time that
the error names the worker and its end within two seconds and that no process, descriptor or shared
memory stays. `tools/fuzz/dataloader.py --rounds 50` prints one line per kind and exits with 1 when
a round failed or the process has grown."""

from __future__ import annotations

import argparse
import ctypes
import faulthandler
import gc
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
import warnings

import torch
from torch.utils.data import DataLoader, Dataset, IterableDataset

LIMIT = 2.0
GROWTH = 32 << 20
METHODS = ("fork", "fork", "fork", "spawn", "forkserver")
TIMEOUT = 0.5
DEEDS = {
    "kill": "SIGKILL",
    "terminate": "SIGTERM",
    "bus error": "SIGBUS",
    "crash": "SIGSEGV",
    "abort": "SIGABRT",
    "exit": "exit code 3",
    "hang": "timed out",
    "stop": "timed out",
    "killed from outside": "SIGKILL",
}


def commit(deed) -> None:
    """What a worker does to itself."""
    faulthandler.disable()
    if deed == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    elif deed == "terminate":
        os.kill(os.getpid(), signal.SIGTERM)
    elif deed == "bus error":
        os.kill(os.getpid(), signal.SIGBUS)
    elif deed == "crash":
        ctypes.string_at(0)
    elif deed == "abort":
        os.abort()
    elif deed == "exit":
        os._exit(3)
    elif deed == "hang":
        time.sleep(600)
    elif deed == "stop":
        os.kill(os.getpid(), signal.SIGSTOP)


class Fatal(Dataset):
    """Large samples; at one index the deed, after noting the time."""

    def __init__(self, deed, index, when) -> None:
        self.deed, self.index, self.when = deed, index, when

    def __len__(self) -> int:
        return 200

    def __getitem__(self, i):
        if i == self.index:
            self.when.fill_(time.monotonic())
            commit(self.deed)
        return torch.full((64, 1024), float(i)), f"sample {i}"


class FatalStream(IterableDataset):
    """The same without indices."""

    def __init__(self, items) -> None:
        self.items = items

    def __iter__(self):
        for i in range(len(self.items)):
            yield self.items[i]


def children():
    """The processes whose parent this is, zombies included."""
    found = []
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        try:
            with open(f"/proc/{name}/stat") as file:
                parent = int(file.read().rsplit(")", 1)[1].split()[1])
        except OSError:
            continue
        if parent == os.getpid():
            found.append(int(name))
    return set(found)


def running(pid) -> bool:
    """Whether a process exists and is no zombie."""
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rsplit(")", 1)[1].split()[0] not in "ZX"
    except OSError:
        return False


def held():
    """What must be the same after a round as before it."""
    gc.collect()
    return {
        "descriptors": len(os.listdir("/proc/self/fd")),
        "shared memory": sorted(os.listdir("/dev/shm")),
        "processes": children(),
    }


def resident():
    """Bytes of memory that this process has."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def consume(loader, deed, when):
    """Reads until the error; returns it and the pids of the workers."""
    iterator = iter(loader)
    pids = [member.pid for member in iterator._group.members]
    taken = 0
    try:
        for batch in iterator:
            taken += 1
            if deed == "killed from outside" and taken == 3:
                when.fill_(time.monotonic())
                os.kill(pids[taken % len(pids)], signal.SIGKILL)
            del batch
    except RuntimeError as error:
        return str(error), pids
    return None, pids


def one_round(chance, deed):
    """Returns what was wrong, as a list of sentences, and the seconds to the error."""
    workers = chance.choice([1, 2, 3])
    when = torch.zeros((), dtype=torch.float64).share_memory_()
    data = Fatal(deed, chance.randrange(8), when)
    if chance.random() < 0.3:
        data = FatalStream(data)
    timed = DEEDS[deed] == "timed out"
    before = held()
    loader = DataLoader(
        data,
        batch_size=chance.choice([1, 2, None]),
        num_workers=workers,
        timeout=TIMEOUT if timed else 0,
        persistent_workers=chance.random() < 0.3,
        prefetch_factor=chance.choice([1, 2, 5]),
        in_order=chance.random() < 0.8,
        pin_memory=chance.random() < 0.2,
        # The short timeout would end while the other methods still start their workers.
        multiprocessing_context="fork" if timed else chance.choice(METHODS),
    )
    message, pids = consume(loader, deed, when)
    seconds = time.monotonic() - when.item()
    if timed:
        seconds -= TIMEOUT
    del loader
    wrong = []
    if message is None or DEEDS[deed] not in message:
        wrong.append(f"the error was {message!r}")
    elif not any(str(pid) in message for pid in pids):
        wrong.append(f"no pid of {pids} in {message!r}")
    if seconds > LIMIT:
        wrong.append(f"the error took {seconds:.2f} s")
    after = held()
    for name, value in before.items():
        if after[name] != value:
            wrong.append(f"{name}: {value} before, {after[name]} after")
    wrong += [f"worker {pid} still runs" for pid in pids if running(pid)]
    return wrong, seconds


PARENT = """
import os, signal, sys, time
sys.path[:0] = {path!r}
import torch
from torch.utils.data import DataLoader
class Slow:
    def __len__(self):
        return 100
    def __getitem__(self, i):
        if i >= 4:
            time.sleep(600)
        return torch.zeros(1000, 100)
loader = DataLoader(Slow(), num_workers=2, batch_size=1, multiprocessing_context={method!r})
if __name__ == "__main__":
    iterator = iter(loader)
    next(iterator)
    print(*[member.pid for member in iterator._group.members], flush=True)
    os.kill(os.getpid(), signal.{signal})
"""


def parent_round(chance):
    """Kills the process that has the loader."""
    number = chance.choice(["SIGKILL", "SIGTERM", "SIGSEGV"])
    code = PARENT.format(path=sys.path, method=chance.choice(METHODS), signal=number)
    with tempfile.NamedTemporaryFile("w", suffix=".py") as program:
        program.write(code)
        program.flush()
        command = [sys.executable, program.name]
        out = subprocess.run(command, capture_output=True, text=True)
    start = time.monotonic()
    pids = [int(word) for word in out.stdout.split()]
    wrong = [] if len(pids) == 2 else [f"the program failed: {out.stderr}"]
    while any(running(pid) for pid in pids) and time.monotonic() - start < LIMIT:
        time.sleep(0.01)
    wrong += [f"worker {pid} outlived its parent" for pid in pids if running(pid)]
    return wrong, time.monotonic() - start


def main() -> int:
    """Runs the rounds in turn."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=50)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    chance = random.Random(options.seed)
    kinds = [*DEEDS, "parent killed"]
    slowest, failures = dict.fromkeys(kinds, 0.0), 0
    warnings.filterwarnings("ignore", message="This DataLoader will create")
    warnings.filterwarnings("ignore", message=".*pin_memory.*")
    for method in ("spawn", "forkserver"):
        # The helpers of these methods stay for as long as the process does.
        list(DataLoader(range(4), num_workers=1, multiprocessing_context=method))
    memory = None
    for number in range(options.rounds):
        kind = kinds[number % len(kinds)]
        run = parent_round(chance) if kind == "parent killed" else one_round(chance, kind)
        wrong, seconds = run
        slowest[kind] = max(slowest[kind], seconds)
        failures += bool(wrong)
        if number == min(10, options.rounds - 1):
            memory = resident()
        for sentence in wrong:
            print(f"round {number} ({kind}, seed {options.seed}): {sentence}")
    for kind, seconds in slowest.items():
        print(f"{kind:22s} slowest {seconds:6.3f} s")
    grown = resident() - memory
    print(f"{options.rounds} rounds, {failures} failed; memory grew by {grown / 2**20:.1f} MiB")
    failures += grown > GROWTH
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
