"""Environment variables that must be there, free ports, and the macros of worker arguments."""

from __future__ import annotations

import os
import socket
from string import Template

__all__ = ["get_env_variable_or_raise", "get_socket_with_port", "macros"]


def get_env_variable_or_raise(env_name: str) -> str:
    """The value of the variable; ValueError where it is not set."""
    value = os.environ.get(env_name)
    if value is None:
        raise ValueError(f"Environment variable {env_name} expected, but not set")
    return value


def get_socket_with_port() -> socket.socket:
    """A listening socket on a free port of localhost. The caller closes it."""
    problem: OSError | None = None
    for family, kind, protocol, _, address in socket.getaddrinfo(
        "localhost", None, type=socket.SOCK_STREAM
    ):
        listener = socket.socket(family, kind, protocol)
        try:
            listener.bind((address[0], 0))
            listener.listen(0)
        except OSError as error:
            listener.close()
            problem = error
            continue
        return listener
    raise RuntimeError("Failed to create a socket") from problem


class macros:
    """Names that stand for a worker's own values in the arguments of a command."""

    local_rank = "${local_rank}"

    @staticmethod
    def substitute(args: list[object], local_rank: str) -> list[object]:
        """The arguments with the macros of text replaced; others as they are."""
        values = {"local_rank": local_rank}
        return [
            Template(word).safe_substitute(values) if isinstance(word, str) else word
            for word in args
        ]
