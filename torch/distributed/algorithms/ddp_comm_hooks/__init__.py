"""Hooks on the exchange of gradients of DistributedDataParallel, by name."""

from __future__ import annotations

from enum import Enum
from functools import partial
from typing import Any

from torch.distributed.algorithms.ddp_comm_hooks import (
    debugging_hooks,
    default_hooks,
    powerSGD_hook,
)

__all__ = ["DDPCommHookType", "register_ddp_comm_hook"]


def _power(batched: bool, rank: int) -> Any:
    """A hook that makes its own state of a process group."""
    hook = powerSGD_hook.batched_powerSGD_hook if batched else powerSGD_hook.powerSGD_hook

    def register(model: Any, state: Any) -> None:
        if not isinstance(state, powerSGD_hook.PowerSGDState):
            state = powerSGD_hook.PowerSGDState(state, matrix_approximation_rank=rank)
        model.register_comm_hook(state, hook)

    return register


def _plain(hook: Any) -> Any:
    return lambda model, state: model.register_comm_hook(state, hook)


def _quantized(how: str) -> Any:
    def refuse(model: Any, state: Any) -> None:
        raise NotImplementedError(f"register_ddp_comm_hook: gradients quantized {how}")

    return refuse


class DDPCommHookType(Enum):
    """The hooks by name; a value registers one on a model."""

    ALLREDUCE = partial(_plain(default_hooks.allreduce_hook))
    FP16_COMPRESS = partial(_plain(default_hooks.fp16_compress_hook))
    BF16_COMPRESS = partial(_plain(default_hooks.bf16_compress_hook))
    QUANTIZE_PER_TENSOR = partial(_quantized("per tensor"))
    QUANTIZE_PER_CHANNEL = partial(_quantized("per channel"))
    POWER_SGD = partial(_power(False, 1))
    POWER_SGD_RANK2 = partial(_power(False, 2))
    BATCHED_POWER_SGD = partial(_power(True, 1))
    BATCHED_POWER_SGD_RANK2 = partial(_power(True, 2))
    NOOP = partial(_plain(debugging_hooks.noop_hook))


def register_ddp_comm_hook(comm_hook_type: DDPCommHookType, model: Any, state: Any = None) -> None:
    """Registers the hook of that name on a DistributedDataParallel model."""
    comm_hook_type.value(model, state)
