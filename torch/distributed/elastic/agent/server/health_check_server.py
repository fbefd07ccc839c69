"""A server that tells whether an agent is alive. This one only logs; launchers bring their own."""

from __future__ import annotations

import logging
from collections.abc import Callable

__all__ = ["HealthCheckServer", "create_healthcheck_server"]

logger = logging.getLogger(__name__)


class HealthCheckServer:
    """Tells on a port when the agent last made progress. `alive_callback` returns that time."""

    def __init__(self, alive_callback: Callable[[], int], port: int, timeout: int) -> None:
        self._alive_callback, self._port, self._timeout = alive_callback, port, timeout

    def start(self) -> None:
        """Called when workers are started."""
        logger.warning("no health check server is installed; port %d stays closed", self._port)

    def stop(self) -> None:
        """Called when the agent ends."""
        logger.info("stopping the health check of port %d", self._port)


def create_healthcheck_server(
    alive_callback: Callable[[], int], port: int, timeout: int
) -> HealthCheckServer:
    """The server of an agent."""
    return HealthCheckServer(alive_callback, port, timeout)
