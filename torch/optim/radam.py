"""RAdam: Adam that steps without scaling until its mean square is worth trusting."""

import torch
from torch.optim._stepwise import (
    Stepwise,
    check_betas,
    check_lr,
    check_not_negative,
    decayed,
    real,
    step_counter,
)

__all__ = ["RAdam", "radam"]


class RAdam(Stepwise):
    """RAdam (Liu et al., 2020); with decoupled_weight_decay, RAdamW."""

    _later_settings = {**Stepwise._later_settings, "decoupled_weight_decay": False}

    def __init__(
        self,
        params,
        lr=1e-3,
        betas=(0.9, 0.999),
        eps=1e-8,
        weight_decay=0,
        decoupled_weight_decay=False,
        *,
        foreach=None,
        maximize=False,
        capturable=False,
        differentiable=False,
    ):
        check_lr(lr)
        check_not_negative(epsilon=eps)
        check_betas(betas)
        check_not_negative(weight_decay=weight_decay)
        defaults = {
            "lr": lr,
            "betas": betas,
            "eps": eps,
            "weight_decay": weight_decay,
            "maximize": maximize,
            "foreach": foreach,
            "capturable": capturable,
            "decoupled_weight_decay": decoupled_weight_decay,
            "differentiable": differentiable,
        }
        super().__init__(params, defaults)

    def _new_state(self, param, group):
        return {
            "step": step_counter(),
            "exp_avg": torch.zeros_like(param, memory_format=torch.preserve_format),
            "exp_avg_sq": torch.zeros_like(param, memory_format=torch.preserve_format),
        }

    def _update(self, group):
        params, grads, states = self._collect(group)
        beta1, beta2 = group["betas"]
        radam(
            params,
            grads,
            [state["exp_avg"] for state in states],
            [state["exp_avg_sq"] for state in states],
            [state["step"] for state in states],
            decoupled_weight_decay=group["decoupled_weight_decay"],
            maximize=group["maximize"],
            beta1=beta1,
            beta2=beta2,
            lr=group["lr"],
            weight_decay=group["weight_decay"],
            eps=group["eps"],
        )


def _rectification(step, beta2):
    """How far to trust the mean square after some steps; None while its variance is unbounded."""
    longest = 2 / (1 - beta2) - 1
    length = longest - 2 * step * beta2**step / (1 - beta2**step)
    if length <= 5.0:
        return None
    ratio = (length - 4) * (length - 2) * longest / ((longest - 4) * (longest - 2) * length)
    return ratio**0.5


def radam(
    params,
    grads,
    exp_avgs,
    exp_avg_sqs,
    state_steps,
    decoupled_weight_decay=False,
    foreach=None,
    differentiable=False,
    capturable=False,
    has_complex=False,
    maximize=False,
    *,
    beta1,
    beta2,
    lr,
    weight_decay,
    eps,
):
    """One step on lists of tensors, in place."""
    lr = float(lr)
    rows = zip(params, grads, exp_avgs, exp_avg_sqs, state_steps, strict=True)
    for param, grad, exp_avg, exp_avg_sq, step_t in rows:
        step_t += 1
        step = step_t.item()
        param, exp_avg, exp_avg_sq = real(param), real(exp_avg), real(exp_avg_sq)
        coupled = 0 if decoupled_weight_decay else weight_decay
        grad = decayed(real(grad), param, coupled, maximize)
        if decoupled_weight_decay and weight_decay != 0:
            param.mul_(1 - lr * weight_decay)
        exp_avg.lerp_(grad, 1 - beta1)
        exp_avg_sq.mul_(beta2).addcmul_(grad, grad, value=1 - beta2)
        update = exp_avg.div(1 - beta1**step).mul_(lr)
        trust = _rectification(step, beta2)
        if trust is not None:
            root = exp_avg_sq.sqrt().add_(eps)
            update.mul_(root.reciprocal_().mul_((1 - beta2**step) ** 0.5)).mul_(trust)
        param.sub_(update)
