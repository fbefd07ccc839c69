"""The child that makes the calls. It writes the number and the text of the call it is about to make
into a page shared with the parent, so that the parent knows what was running when the child died or
stood still, at the cost of a copy and no system call."""

from __future__ import annotations

import mmap
import os
import resource
import signal
import struct
import sys
import time
import warnings
from typing import NoReturn

PAGE = 1 << 16
HEADER = struct.Struct("<qdqqqq")  # index, start, returned, raised, interrupted, length of the text
OUTCOMES = ("returned", "raised", "interrupted")
PLANTED_FILE = "written-by-the-self-test"
SOFT_LIMIT = 2.0  # seconds until the call is asked to stop, as Ctrl-C would


class Interrupted(Exception):
    """Raised by the alarm, in a call that takes longer than the soft limit."""


class Log:
    """The shared page: one record, overwritten by each call."""

    def __init__(self, path: str) -> None:
        with open(path, "r+b") as file:
            self.page = mmap.mmap(file.fileno(), PAGE)

    def write(self, index, counts, text: bytes) -> None:
        text = text[: PAGE - HEADER.size]
        self.page[HEADER.size : HEADER.size + len(text)] = text
        HEADER.pack_into(self.page, 0, index, time.monotonic(), *counts, len(text))

    def read(self) -> tuple[int, float, list[int], str]:
        index, start, *counts, length = HEADER.unpack_from(self.page, 0)
        text = self.page[HEADER.size : HEADER.size + length].decode("utf-8", "replace")
        return index, start, counts, text


def limit_resources(memory_gb: float) -> None:
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if memory_gb:
        bytes_ = int(memory_gb * (1 << 30))
        resource.setrlimit(resource.RLIMIT_AS, (bytes_, bytes_))


def on_alarm(signum, frame) -> NoReturn:
    raise Interrupted


def quiet() -> None:
    """Deprecated names warn, prints print: neither is of interest here."""
    warnings.simplefilter("ignore")
    sys.setrecursionlimit(1000)
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 1)
    signal.signal(signal.SIGALRM, on_alarm)


def touch(result, torch, depth=0) -> None:
    """Reads what a call returned, so that a view outside its storage shows here."""
    if isinstance(result, torch.Tensor):
        if result.device.type == "cpu" and result.numel() < 100_000:
            result.clone()
    elif depth < 2 and isinstance(result, (tuple, list)):
        for item in result[:4]:
            touch(item, torch, depth + 1)


def run_text(text: str, names: dict) -> str:
    """Makes one call; says how it ended: returned, raised or interrupted."""
    try:
        signal.setitimer(signal.ITIMER_REAL, SOFT_LIMIT)
        try:
            touch(eval(compile(text, "<call>", "eval"), names), names["torch"])
            return "returned"
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
    except Interrupted:
        return "interrupted"
    except (Exception, SystemExit, KeyboardInterrupt):
        return "raised"


def run_isolated(text: str, names: dict) -> str:
    """As run_text, in a fork; a signal there ends this process too, so that the parent sees it."""
    pid = os.fork()
    if pid == 0:
        outcome = run_text(text, names)
        os._exit(OUTCOMES.index(outcome))
    _, status = os.waitpid(pid, 0)
    if os.WIFSIGNALED(status):
        os.kill(os.getpid(), os.WTERMSIG(status))
        time.sleep(10)
    return OUTCOMES[min(os.WEXITSTATUS(status), 2)]


def plant(kind: str) -> None:
    """For the self-test: a file in the current folder, and the two ends that the parent has to
    notice."""
    if kind == "file":
        open(PLANTED_FILE, "w").close()
        return
    if kind == "crash":
        import ctypes

        ctypes.string_at(0)
    signal.signal(signal.SIGALRM, signal.SIG_IGN)
    while True:
        pass


def settings_restored(torch) -> None:
    torch.set_default_dtype(torch.float32)
    torch._C._set_grad_enabled(True)
    torch.set_num_threads(2)


def work(log: Log, generate, begin: int, end: int, counts: list) -> None:
    """Calls begin .. end - 1 of the sequence that `generate` gives as (text, isolated)."""
    import gc

    from values import namespace

    names = namespace()
    names["plant"] = plant
    for index in range(begin, end):
        text, isolated = generate(index)
        log.write(index, counts, text.encode("utf-8", "surrogatepass"))
        outcome = (run_isolated if isolated else run_text)(text, names)
        counts[OUTCOMES.index(outcome)] += 1
        if index % 2000 == 0:
            settings_restored(names["torch"])
            gc.collect()
    log.write(end, counts, b"")
