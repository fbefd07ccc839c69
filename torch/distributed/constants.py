"""Defaults of process groups."""

from torch.distributed import default_pg_timeout

default_pg_nccl_timeout = default_pg_timeout

__all__ = ["default_pg_nccl_timeout", "default_pg_timeout"]
