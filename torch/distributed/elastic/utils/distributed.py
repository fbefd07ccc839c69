"""Stores and free ports for launchers."""

from __future__ import annotations

import logging
import os
from contextlib import closing
from datetime import timedelta

import torch
from torch.distributed.elastic.utils.api import get_socket_with_port

__all__ = ["create_c10d_store", "get_free_port", "get_socket_with_port"]

logger = logging.getLogger(__name__)


def create_c10d_store(
    is_server: bool,
    server_addr: str,
    server_port: int = -1,
    world_size: int = 1,
    timeout: float = 60 * 10,
    wait_for_workers: bool = True,
    retries: int = 3,
    use_libuv: bool | None = None,
) -> torch.distributed.TCPStore:
    """A TCPStore. Port -1 lets a server alone in its world choose a free one, and try others
    where that one was taken meanwhile."""
    chooses = server_port == -1
    if chooses and world_size > 1:
        raise ValueError(f"server_port must be specified when world_size > 1, got {server_port}")
    if use_libuv is None:
        use_libuv = os.environ.get("USE_LIBUV", "1") == "1"
    for left in reversed(range(max(retries, 1))):
        try:
            return torch.distributed.TCPStore(
                server_addr,
                get_free_port() if chooses else server_port,
                world_size,
                is_server,
                timedelta(seconds=timeout),
                wait_for_workers=wait_for_workers,
                use_libuv=use_libuv,
            )
        except RuntimeError as error:
            taken = "already in use" in str(error) or "EADDRINUSE" in str(error)
            if not (chooses and taken and left):
                raise
            logger.warning("the port was taken meanwhile; %d attempts left", left)
    raise AssertionError("no attempt returned or raised")


def get_free_port() -> int:
    """A port that was free a moment ago."""
    with closing(get_socket_with_port()) as listener:
        return listener.getsockname()[1]
