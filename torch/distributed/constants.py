"""Defaults of process groups."""

from torch._C._distributed_c10d import _DEFAULT_PG_TIMEOUT

__all__ = ["default_pg_nccl_timeout", "default_pg_timeout"]

default_pg_timeout = _DEFAULT_PG_TIMEOUT
default_pg_nccl_timeout = _DEFAULT_PG_TIMEOUT
