"""Muon: momentum whose matrix is made nearly orthogonal before each step."""

from __future__ import annotations

import math
import typing

import torch
from torch.optim._stepwise import Stepwise, check_lr, settings

if typing.TYPE_CHECKING:
    from torch.optim.optimizer import ParamsT

__all__ = ["Muon"]

_COEFFICIENTS = (3.4445, -4.7750, 2.0315)


class Muon(Stepwise):
    """Muon (Jordan et al., 2024), for matrices; other parameters want another optimizer."""

    __module__ = "torch.optim"  # where pickled optimisers look for it

    _later_settings = {}

    def __init__(
        self,
        params: ParamsT,
        lr: float | torch.Tensor = 1e-3,
        weight_decay: float = 0.1,
        momentum: float = 0.95,
        nesterov: bool = True,
        ns_coefficients=_COEFFICIENTS,
        eps: float = 1e-7,
        ns_steps=5,
        adjust_lr_fn=None,
    ) -> None:
        check_lr(lr, "Learning rate should be >= 0 but is: {}")
        if not momentum >= 0.0:
            raise ValueError(f"momentum should be >= 0 but is: {momentum}")
        if not weight_decay >= 0.0:
            raise ValueError(f"weight decay should be >= 0 but is: {weight_decay}")
        if adjust_lr_fn not in (None, "original", "match_rms_adamw"):
            raise ValueError(f"Adjust learning rate function {adjust_lr_fn} is not supported")
        names = "lr weight_decay momentum nesterov ns_coefficients eps ns_steps adjust_lr_fn"
        super().__init__(params, settings(locals(), names))
        for group in self.param_groups:
            for param in group["params"]:
                if param.dim() != 2:
                    raise ValueError(
                        "Muon only supports 2D parameters whereas we found a parameter with size: "
                        f"{param.size()}"
                    )

    def _check_grad(self, grad) -> None:
        super()._check_grad(grad)
        if grad.is_complex():
            raise RuntimeError("Muon does not support complex parameters")

    def _new_state(self, param, group) -> dict[str, torch.Tensor]:
        zeros = torch.zeros_like(param.grad, memory_format=torch.preserve_format)
        return {"momentum_buffer": zeros}

    def _update(self, group) -> None:
        lr = float(group["lr"])
        momentum = group["momentum"]
        for param, grad, state in zip(*self._collect(group), strict=True):
            buffer = state["momentum_buffer"]
            buffer.lerp_(grad, 1 - momentum)
            update = grad.lerp(buffer, momentum) if group["nesterov"] else buffer
            update = _orthogonalized(
                update, group["ns_coefficients"], group["ns_steps"], group["eps"]
            )
            param.mul_(1 - lr * group["weight_decay"])
            rate = lr * _scale(group["adjust_lr_fn"], param)
            param.add_(update.to(param.dtype), alpha=-rate)


def _scale(adjust_lr_fn, param):
    """The factor on the rate that makes steps of different shapes comparable."""
    rows, columns = param.shape
    if adjust_lr_fn == "match_rms_adamw":
        return 0.2 * math.sqrt(max(rows, columns))
    return math.sqrt(max(1, rows / columns))


def _orthogonalized(matrix, coefficients, steps, eps) -> torch.Tensor:
    """Drives all singular values towards one by a quintic Newton-Schulz iteration in bfloat16."""
    if steps >= 100:
        raise ValueError("Number of steps must be less than 100 for computational efficiency")
    if len(coefficients) != 3:
        raise ValueError("Coefficients must be a tuple of exactly 3 values")
    a, b, c = coefficients
    tall = matrix.size(0) > matrix.size(1)
    x = matrix.to(torch.bfloat16)
    # The Gram matrix is the smaller one when the rows are the shorter side.
    x = x.T if tall else x
    x = x / torch.linalg.vector_norm(x).clamp_(min=eps)
    for _ in range(steps):
        gram = x @ x.T
        polynomial = torch.addmm(gram, gram, gram, beta=b, alpha=c)
        x = torch.addmm(x, polynomial, x, beta=a)
    return x.T if tall else x
