"""The logger of this package; silent unless a program gives it handlers."""

from __future__ import annotations

import logging


def _get_or_create_logger() -> logging.Logger:
    """The logger, with a handler that drops what nobody wants."""
    logger = logging.getLogger("sharding-spec-default")
    logger.propagate = False
    if not logger.handlers:
        logger.addHandler(logging.NullHandler())
    return logger
