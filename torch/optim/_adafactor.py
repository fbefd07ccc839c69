"""Adafactor: squared gradients remembered as one row and one column per matrix."""

from __future__ import annotations

import math
import typing

import torch
from torch.optim._stepwise import Stepwise, check_lr, settings, step_counter

if typing.TYPE_CHECKING:
    from torch.optim.optimizer import ParamsT

__all__ = ["Adafactor", "adafactor"]


class Adafactor(Stepwise):
    """Adafactor (Shazeer and Stern, 2018)."""

    __module__ = "torch.optim"  # where pickled optimisers look for it

    _later_settings = {"foreach": None}

    def __init__(
        self,
        params: ParamsT,
        lr: float | torch.Tensor = 1e-2,
        beta2_decay=-0.8,
        eps=(None, 1e-3),
        d=1.0,
        weight_decay: float = 0.0,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
    ) -> None:
        check_lr(lr, "Learning rate should be >= 0 but is: {}")
        if not beta2_decay <= 0.0:
            raise ValueError(f"beta2_decay should be <= 0 but is: {beta2_decay}")
        if eps[0] is not None and not eps[0] >= 0.0:
            raise ValueError(f"epsilon1 should be >= 0 but is: {eps[0]}")
        if not eps[1] >= 0.0:
            raise ValueError(f"epsilon2 should be >= 0 but is: {eps[1]}")
        if not d >= 1.0:
            raise ValueError(f"Clipping threshold d should be >= 1 but is: {d}")
        if not weight_decay >= 0.0:
            raise ValueError(f"weight_decay should be >= 0 but is: {weight_decay}")
        names = "lr beta2_decay eps d weight_decay foreach maximize"
        super().__init__(params, settings(locals(), names))

    def _check_grad(self, grad) -> None:
        super()._check_grad(grad)
        if grad.is_complex():
            raise RuntimeError("Adafactor does not support complex parameters")

    def _new_state(self, param, group) -> dict[str, torch.Tensor]:
        grad = param.grad
        if grad.dim() > 1:
            return {
                "step": step_counter(),
                "row_var": grad.new_zeros((*grad.shape[:-1], 1)),
                "col_var": grad.new_zeros((*grad.shape[:-2], 1, grad.shape[-1])),
            }
        zeros = torch.zeros_like(grad, memory_format=torch.preserve_format)
        return {"step": step_counter(), "variance": zeros}

    def _update(self, group) -> None:
        params, grads, states = self._collect(group)
        eps1, eps2 = group["eps"]
        adafactor(
            params,
            grads,
            [state.get("row_var") for state in states],
            [state.get("col_var") for state in states],
            [state.get("variance") for state in states],
            [state["step"] for state in states],
            d=group["d"],
            lr=group["lr"],
            beta2_decay=group["beta2_decay"],
            weight_decay=group["weight_decay"],
            eps1=eps1,
            eps2=eps2,
            maximize=group["maximize"],
        )


def _estimate(grad, row_var, col_var, variance, weight, least) -> torch.Tensor:
    """Moves the running mean square towards this gradient's; returns it, as a new tensor."""
    if grad.dim() <= 1:
        variance.lerp_(grad.square(), weight)
        return variance.clone()
    for dim, running in ((-1, row_var), (-2, col_var)):
        length = torch.linalg.vector_norm(grad, dim=dim, keepdim=True)
        running.lerp_(length.square_() / grad.size(dim), weight)
    whole = row_var.mean(-2, keepdim=True).clamp_min(least)
    return (row_var @ col_var).div_(whole)


def adafactor(
    params,
    grads,
    row_vars,
    col_vars,
    variances,
    state_steps,
    foreach: bool | None = None,
    grad_scale=None,
    found_inf=None,
    has_complex: bool = False,
    *,
    d,
    lr: float | torch.Tensor,
    beta2_decay,
    weight_decay,
    eps1,
    eps2,
    maximize,
) -> None:
    """One step on lists of tensors, in place."""
    lr = float(lr)
    rows = zip(params, grads, row_vars, col_vars, variances, state_steps, strict=True)
    for param, grad, row_var, col_var, variance, step_t in rows:
        least = torch.finfo(param.dtype).eps if eps1 is None else eps1
        grad = -grad if maximize else grad
        step_t += 1
        step = step_t.item()
        root = math.sqrt(param.numel())
        size = torch.linalg.vector_norm(param).item() / root
        rate = max(eps2, size) * min(lr, 1 / math.sqrt(step))
        if weight_decay != 0:
            param.mul_(1 - lr * weight_decay)
        mean_square = _estimate(grad, row_var, col_var, variance, step**beta2_decay, least)
        update = mean_square.clamp_(min=least * least).rsqrt_().mul_(grad)
        excess = max(1.0, torch.linalg.vector_norm(update).item() / (root * d))
        param.add_(update, alpha=-rate / excess)
