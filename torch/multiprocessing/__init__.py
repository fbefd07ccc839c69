"""multiprocessing, with tensors that travel by file descriptor: what is put on a queue or given to
a process is shared between both, not copied. Importing this module teaches the pickler of the
standard module, so that its queues, pools and processes do the same."""

from __future__ import annotations

import multiprocessing
from multiprocessing import *  # noqa: F403

from torch.multiprocessing import reductions as _reductions
from torch.multiprocessing.reductions import init_reductions
from torch.multiprocessing.spawn import (
    ENV_VAR_PARALLEL_START,
    ProcessContext,
    ProcessExitedException,
    ProcessRaisedException,
    SpawnContext,
    spawn,
    start_processes,
)

__all__ = ["get_all_sharing_strategies", "get_sharing_strategy", "set_sharing_strategy"]
__all__ += multiprocessing.__all__

__all__ += ["ProcessContext", "ProcessExitedException", "ProcessRaisedException", "SpawnContext"]
__all__ += ["ENV_VAR_PARALLEL_START", "init_reductions", "spawn", "start_processes"]


def set_sharing_strategy(new_strategy) -> None:
    """How tensors are shared: "file_descriptor" keeps a descriptor open for as long as memory is
    shared; "file_system" closes it in the receiving process, which can then pass the tensor on only
    as a copy. Neither gives the memory a name, so that nothing can be left behind."""
    known = get_all_sharing_strategies()
    if new_strategy not in known:
        raise AssertionError(
            f"invalid sharing strategy {new_strategy!r}, expected one of {sorted(known)}"
        )
    _reductions.strategy = new_strategy


def get_sharing_strategy() -> str:
    """The strategy in force."""
    return _reductions.strategy


def get_all_sharing_strategies() -> set[str]:
    """The strategies there are."""
    return {"file_descriptor", "file_system"}


init_reductions()


def _set_thread_name(name) -> None:
    """Names the calling thread for debuggers and process lists, which keep 15 bytes of it."""
    with open("/proc/thread-self/comm", "w") as file:
        file.write(name.encode()[:15].decode(errors="ignore"))


def _get_thread_name():
    """The calling thread's name as process lists show it."""
    with open("/proc/thread-self/comm") as file:
        return file.read().rstrip("\n")
