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


def _exception_logger(func: Callable[_P, _T]) -> Callable[_P, _T]:
    """The function, with its exceptions written to the log as they pass."""

    @functools.wraps(func)
    def wrapper(*args: _P.args, **kwargs: _P.kwargs) -> _T:
        try:
            return func(*args, **kwargs)
        except Exception as error:
            told = _get_msg_dict(func.__name__, *args, **kwargs)
            told["error"] = f"{error}"
            _c10d_logger.debug(told)
            raise

    return wrapper


def _time_logger(func: Callable[_P, _T]) -> Callable[_P, _T]:
    """The function, with the time that each call takes written to the log."""

    @functools.wraps(func)
    def wrapper(*args: _P.args, **kwargs: _P.kwargs) -> _T:
        began = time.monotonic_ns()
        result = func(*args, **kwargs)
        told = _get_msg_dict(func.__name__, *args, **kwargs)
        told["time_spent"] = f"{time.monotonic_ns() - began}ns"
        _c10d_logger.debug(told)
        return result

    return wrapper
