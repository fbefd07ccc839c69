"""A gradient scaler whose processes agree on whether a step had infinities: each sees its part."""

from __future__ import annotations

from typing import Any

import torch
from torch.amp import GradScaler
from torch.distributed import distributed_c10d as _core

__all__ = ["ShardedGradScaler"]


class ShardedGradScaler(GradScaler):
    """GradScaler for sharded gradients."""

    def __init__(
        self,
        device: str = "cuda",
        init_scale: float = 2.0**16,
        backoff_factor: float = 0.5,
        growth_factor: float = 2.0,
        growth_interval: int = 2000,
        enabled: bool = True,
        process_group: _core.ProcessGroup | None = None,
    ) -> None:
        super().__init__(
            device,
            init_scale=init_scale,
            backoff_factor=backoff_factor,
            growth_factor=growth_factor,
            growth_interval=growth_interval,
            enabled=enabled,
        )
        self.process_group = process_group

    def scale(self, outputs: Any) -> Any:
        """Outputs times the scale."""
        return super().scale(outputs)

    def unscale_(self, optimizer: torch.optim.Optimizer) -> None:
        """Divides gradients by the scale; infinities of any process count for all."""
        super().unscale_(optimizer)
        if not self._enabled:
            return
        found = self._per_optimizer_states[id(optimizer)]["found_inf_per_device"]
        for flag in found.values():
            _core.all_reduce(flag, op=_core.ReduceOp.MAX, group=self.process_group)

    def update(self, new_scale: float | torch.Tensor | None = None) -> None:
        """Chooses the next scale."""
        super().update(new_scale)
