"""NAdam: Adam with Nesterov's look ahead, its momentum warmed up."""

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

__all__ = ["NAdam", "nadam"]


class NAdam(Stepwise):
    """NAdam (Dozat, 2016); with decoupled_weight_decay, NAdamW."""

    _later_settings = {**Stepwise._later_settings, "decoupled_weight_decay": False}
    _scalars = ("step", "mu_product")

    def __init__(
        self,
        params,
        lr=2e-3,
        betas=(0.9, 0.999),
        eps=1e-8,
        weight_decay=0,
        momentum_decay=4e-3,
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
        check_not_negative(weight_decay=weight_decay, momentum_decay=momentum_decay)
        defaults = {
            "lr": lr,
            "betas": betas,
            "eps": eps,
            "weight_decay": weight_decay,
            "momentum_decay": momentum_decay,
            "decoupled_weight_decay": decoupled_weight_decay,
            "maximize": maximize,
            "foreach": foreach,
            "capturable": capturable,
            "differentiable": differentiable,
        }
        super().__init__(params, defaults)

    def _new_state(self, param, group):
        return {
            "step": step_counter(),
            "mu_product": step_counter(1.0),
            "exp_avg": torch.zeros_like(param, memory_format=torch.preserve_format),
            "exp_avg_sq": torch.zeros_like(param, memory_format=torch.preserve_format),
        }

    def _update(self, group):
        params, grads, states = self._collect(group)
        beta1, beta2 = group["betas"]
        nadam(
            params,
            grads,
            [state["exp_avg"] for state in states],
            [state["exp_avg_sq"] for state in states],
            [state["mu_product"] for state in states],
            [state["step"] for state in states],
            decoupled_weight_decay=group["decoupled_weight_decay"],
            maximize=group["maximize"],
            beta1=beta1,
            beta2=beta2,
            lr=group["lr"],
            weight_decay=group["weight_decay"],
            momentum_decay=group["momentum_decay"],
            eps=group["eps"],
        )


def nadam(
    params,
    grads,
    exp_avgs,
    exp_avg_sqs,
    mu_products,
    state_steps,
    decoupled_weight_decay=False,
    foreach=None,
    capturable=False,
    differentiable=False,
    has_complex=False,
    maximize=False,
    *,
    beta1,
    beta2,
    lr,
    weight_decay,
    momentum_decay,
    eps,
):
    """One step on lists of tensors, in place."""
    lr = float(lr)
    rows = zip(params, grads, exp_avgs, exp_avg_sqs, mu_products, state_steps, strict=True)
    for param, grad, exp_avg, exp_avg_sq, product, step_t in rows:
        step_t += 1
        step = step_t.item()
        param, exp_avg, exp_avg_sq = real(param), real(exp_avg), real(exp_avg_sq)
        coupled = 0 if decoupled_weight_decay else weight_decay
        grad = decayed(real(grad), param, coupled, maximize)
        if decoupled_weight_decay and weight_decay != 0:
            param.mul_(1 - lr * weight_decay)
        mu = beta1 * (1.0 - 0.5 * 0.96 ** (step * momentum_decay))
        mu_next = beta1 * (1.0 - 0.5 * 0.96 ** ((step + 1) * momentum_decay))
        product *= mu
        so_far = product.item()
        exp_avg.lerp_(grad, 1 - beta1)
        exp_avg_sq.mul_(beta2).addcmul_(grad, grad, value=1 - beta2)
        denom = exp_avg_sq.div(1 - beta2**step).sqrt_().add_(eps)
        param.addcdiv_(grad, denom, value=-lr * (1.0 - mu) / (1.0 - so_far))
        param.addcdiv_(exp_avg, denom, value=-lr * mu_next / (1.0 - so_far * mu_next))
