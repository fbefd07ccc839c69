"""SparseAdam: Adam for sparse gradients, whose averages move only where a gradient is given."""

from __future__ import annotations

import math
import typing

import torch
from torch.optim._stepwise import Stepwise, check_betas, zeros

if typing.TYPE_CHECKING:
    from torch.optim.optimizer import ParamsT

__all__ = ["SparseAdam"]


class SparseAdam(Stepwise):
    """Adam that touches only the rows a sparse gradient names."""

    _later_settings = {"maximize": False}

    def __init__(
        self,
        params: ParamsT,
        lr: float | torch.Tensor = 1e-3,
        betas: tuple[float | torch.Tensor, float | torch.Tensor] = (0.9, 0.999),
        eps: float = 1e-8,
        maximize: bool = False,
    ) -> None:
        if isinstance(lr, torch.Tensor) and lr.numel() != 1:
            raise ValueError("Tensor lr must be 1-element")
        if not lr > 0.0:
            raise ValueError(f"Invalid learning rate: {lr}")
        if not eps > 0.0:
            raise ValueError(f"Invalid epsilon value: {eps}")
        check_betas(betas)
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps, "maximize": maximize})
        found = [
            [i, j]
            for i, group in enumerate(self.param_groups)
            for j, param in enumerate(group["params"])
            if param.is_sparse
        ]
        if found:
            raise ValueError(
                f"Sparse params at indices {found}: SparseAdam requires dense parameter tensors"
            )

    def _check_grad(self, grad) -> None:
        if not grad.is_sparse:
            raise RuntimeError(
                "SparseAdam does not support dense gradients, please consider Adam instead"
            )

    def _new_state(self, param, group) -> dict[str, int | torch.Tensor]:
        return {
            "step": 0,
            "exp_avg": zeros(param),
            "exp_avg_sq": zeros(param),
        }

    def _update(self, group) -> None:
        params, grads, states = self._collect(group)
        for param, grad, state in zip(params, grads, states, strict=True):
            state["step"] += 1
            _step(param, -grad if group["maximize"] else grad, state, group)


def _step(param, grad, state, group) -> None:
    beta1, beta2 = group["betas"]
    grad = grad.coalesce()
    values = grad._values()
    if values.numel() == 0:
        return

    def rows(values) -> torch.Tensor:
        return torch._sparse_coo_tensor_unsafe(grad._indices(), values, grad.shape)

    def moved(average, target, decay) -> torch.Tensor:
        # The average at the rows of the gradient, moved towards the target there.
        old = average.sparse_mask(grad)._values()
        change = (target - old).mul_(1 - decay)
        average.add_(rows(change))
        return change.add_(old)

    numerator = moved(state["exp_avg"], values, beta1)
    denominator = moved(state["exp_avg_sq"], values.square(), beta2).sqrt_().add_(group["eps"])
    corrections = 1 - beta1 ** state["step"], 1 - beta2 ** state["step"]
    size = group["lr"] * math.sqrt(corrections[1]) / corrections[0]
    param.add_(rows(numerator.div_(denominator).mul_(-size)))
