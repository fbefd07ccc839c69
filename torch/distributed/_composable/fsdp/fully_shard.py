"""The former name of torch.distributed.fsdp.fully_shard."""

from torch.distributed.fsdp._fully_shard import (  # noqa: F401
    FSDPModule,
    UnshardHandle,
    fully_shard,
    register_fsdp_forward_method,
)
