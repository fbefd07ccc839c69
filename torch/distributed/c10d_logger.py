"""A log of calls of torch.distributed that fail or whose time is asked for, as dicts of texts. It
goes nowhere until a program puts a handler in torch.distributed.logging_handlers._log_handlers or
adds one to the logger."""

from __future__ import annotations

import functools
import logging
import time
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

import torch.distributed as dist
from torch.distributed.logging_handlers import _log_handlers

__all__: list[str] = []

_P = ParamSpec("_P")
_T = TypeVar("_T")

_DEFAULT_DESTINATION = "default"


def _get_or_create_logger(destination: str = _DEFAULT_DESTINATION) -> logging.Logger:
    handler = _log_handlers[destination]
    logger = logging.getLogger(f"c10d-{type(handler).__name__}-{destination}")
    logger.setLevel(logging.DEBUG)
    logger.propagate = False
    if handler not in logger.handlers:
        logger.addHandler(handler)
    return logger


_c10d_logger = _get_or_create_logger()


def _get_msg_dict(func_name: str, *args: Any, **kwargs: Any) -> dict[str, Any]:
    """What a record says of a call: its name and arguments, and the group where there is one."""
    told = {"func_name": func_name, "args": f"{args}, {kwargs}"}
    if dist.is_initialized():
        group = kwargs.get("group") or kwargs.get("process_group")
        told["pg_name"] = str(dist.distributed_c10d._get_process_group_name(group)) if group else ""
        told["backend"] = str(dist.get_backend(group))
        told["world_size"] = str(dist.get_world_size())
        told["group_size"] = str(dist.get_world_size(group))
        told["global_rank"] = str(dist.get_rank())
        told["local_rank"] = str(dist.get_rank(group))
    return told


class _Told:
    """A call that the log hears of when it ends: in an exception, or `timed` with a result."""

    def __init__(self, name: str, args: tuple, kwargs: dict[str, Any], timed: bool) -> None:
        self._call = (name, args, kwargs)
        self._timed = timed

    def __enter__(self) -> None:
        self._began = time.monotonic_ns()

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        spent = time.monotonic_ns() - self._began
        if self._timed == (error is not None) or not isinstance(error, Exception | None):
            return
        name, args, kwargs = self._call
        more = {"time_spent": f"{spent}ns"} if self._timed else {"error": str(error)}
        _c10d_logger.debug(_get_msg_dict(name, *args, **kwargs) | more)


def _logged(func: Callable[_P, _T], timed: bool) -> Callable[_P, _T]:
    @functools.wraps(func)
    def call(*args: _P.args, **kwargs: _P.kwargs) -> _T:
        with _Told(func.__name__, args, kwargs, timed):
            return func(*args, **kwargs)

    return call


def _exception_logger(func: Callable[_P, _T]) -> Callable[_P, _T]:
    """The function, with its exceptions written to the log as they pass."""
    return _logged(func, timed=False)


def _time_logger(func: Callable[_P, _T]) -> Callable[_P, _T]:
    """The function, with the time that each call takes written to the log."""
    return _logged(func, timed=True)
