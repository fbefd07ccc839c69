"""Starting the workers of one machine, functions or commands, and where their output goes."""

from __future__ import annotations

from collections.abc import Callable

from torch.distributed.elastic.multiprocessing.api import (
    DefaultLogsSpecs,
    LogsDest,
    LogsSpecs,
    MultiprocessContext,
    PContext,
    ProcessFailure,
    RunProcsResult,
    SignalException,
    Std,
    SubprocessContext,
    _validate_full_rank,
    to_map,
)

__all__ = [
    "DefaultLogsSpecs",
    "LogsDest",
    "LogsSpecs",
    "MultiprocessContext",
    "PContext",
    "ProcessFailure",
    "RunProcsResult",
    "SignalException",
    "Std",
    "SubprocessContext",
    "start_processes",
    "to_map",
]


def start_processes(
    name: str,
    entrypoint: Callable | str,
    args: dict[int, tuple],
    envs: dict[int, dict[str, str]],
    logs_specs: LogsSpecs,
    log_line_prefixes: dict[int, str] | None = None,
    start_method: str = "spawn",
    numa_options: object = None,
    duplicate_stdout_filters: list[str] | None = None,
    duplicate_stderr_filters: list[str] | None = None,
) -> PContext:
    """Starts one process per local rank: a command when entrypoint is text, else a function. args
    and envs are by local rank."""
    if numa_options is not None:
        raise NotImplementedError("start_processes: numa_options is not implemented")
    for what, by_rank in (("args", args), ("envs", envs)):
        _validate_full_rank(by_rank, len(args), what)
    filters = {
        "duplicate_stdout_filters": duplicate_stdout_filters,
        "duplicate_stderr_filters": duplicate_stderr_filters,
    }
    if isinstance(entrypoint, str):
        context: PContext = SubprocessContext(
            name, entrypoint, args, envs, logs_specs, log_line_prefixes, **filters
        )
    else:
        context = MultiprocessContext(
            name, entrypoint, args, envs, start_method, logs_specs, log_line_prefixes, **filters
        )
    try:
        context.start()
    except Exception:
        context.close()
        raise
    return context
