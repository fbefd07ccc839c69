"""Loggers named after the module that asks for one; LOGLEVEL sets their level."""

from __future__ import annotations

import logging
import os
import sys

from torch.distributed.elastic.utils.log_level import get_log_level

__all__ = ["get_logger"]


def get_logger(name: str | None = None) -> logging.Logger:
    """The logger of that name, or of the calling module."""
    logger = logging.getLogger(name or _derive_module_name(depth=2))
    logger.setLevel(os.environ.get("LOGLEVEL", get_log_level()))
    return logger


def _derive_module_name(depth: int = 1) -> str | None:
    """The module of the frame that many calls up."""
    try:
        return sys._getframe(depth).f_globals.get("__name__")
    except ValueError:
        return None
