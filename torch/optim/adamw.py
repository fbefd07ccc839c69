"""AdamW under the module name that programs import it from, and its step as a function."""

from __future__ import annotations

import torch
from torch.optim.adam import AdamW, adam

__all__ = ["AdamW", "adamw"]


def adamw(
    params,
    grads,
    exp_avgs,
    exp_avg_sqs,
    max_exp_avg_sqs,
    state_steps,
    foreach: bool | None = None,
    capturable: bool = False,
    differentiable: bool = False,
    fused: bool | None = None,
    grad_scale=None,
    found_inf=None,
    has_complex: bool = False,
    *,
    amsgrad,
    beta1,
    beta2,
    lr: float | torch.Tensor,
    weight_decay,
    eps,
    maximize,
) -> None:
    """One step on lists of tensors, in place."""
    adam(
        params,
        grads,
        exp_avgs,
        exp_avg_sqs,
        max_exp_avg_sqs,
        state_steps,
        foreach=foreach,
        capturable=capturable,
        differentiable=differentiable,
        fused=fused,
        grad_scale=grad_scale,
        found_inf=found_inf,
        has_complex=has_complex,
        decoupled_weight_decay=True,
        amsgrad=amsgrad,
        beta1=beta1,
        beta2=beta2,
        lr=lr,
        weight_decay=weight_decay,
        eps=eps,
        maximize=maximize,
    )
