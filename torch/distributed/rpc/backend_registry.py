"""The ways remote calls can travel: one, under the name that programs know."""

from enum import Enum

__all__ = ["BackendType"]


class BackendType(Enum):
    """How calls travel. TENSORPIPE stands for our own connections over TCP."""

    TENSORPIPE = "TENSORPIPE"
