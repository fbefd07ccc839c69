"""The former name of torch.distributed.fsdp.fully_shard."""

from torch.distributed.fsdp._fully_shard import *  # noqa: F403
