"""Logging of the compiler's parts: short names for loggers, kinds of output that can be switched
on, TORCH_LOGS, TORCH_TRACE. The loggers are those of the standard library."""

import torch._logging._registrations  # noqa: F401  (registers)
from torch._logging._internal import (
    DEFAULT_LOGGING,
    LazyString,
    _init_logs,
    getArtifactLogger,
    hide_warnings,
    set_logs,
    warning_once,
)
from torch._logging.structured import (
    dtrace_structured,
    get_structured_logging_overhead,
    trace_structured,
    trace_structured_artifact,
)

__all__ = [
    "DEFAULT_LOGGING",
    "LazyString",
    "dtrace_structured",
    "getArtifactLogger",
    "get_structured_logging_overhead",
    "hide_warnings",
    "set_logs",
    "trace_structured",
    "trace_structured_artifact",
    "warning_once",
]

_init_logs()
