"""Averages of a model's weights along its training: equal weights (SWA) or exponential (EMA)."""

from __future__ import annotations

import contextlib
import itertools
import math
from collections.abc import Callable, Iterator
from copy import deepcopy
from typing import Any

import torch
from torch.nn import Module
from torch.nn.modules.batchnorm import _BatchNorm
from torch.optim._lr.base import LRScheduler, check_optimizer, per_group
from torch.optim._lr.cycles import check_strategy

__all__ = [
    "SWALR",
    "AveragedModel",
    "get_ema_avg_fn",
    "get_ema_multi_avg_fn",
    "get_swa_avg_fn",
    "get_swa_multi_avg_fn",
    "update_bn",
]


def _averages_well(tensor) -> bool:
    return tensor.is_floating_point() or tensor.is_complex()


def _check_decay(decay) -> None:
    if decay < 0.0 or decay > 1.0:
        raise ValueError(
            f"Invalid decay value {decay} provided. Please provide a value in [0,1] range."
        )


def get_ema_multi_avg_fn(decay=0.999) -> Callable[..., None]:
    """A function that moves a list of averages towards a list of values."""
    _check_decay(decay)

    @torch.no_grad()
    def ema_update(ema_param_list, current_param_list, _) -> None:
        for average, current in zip(ema_param_list, current_param_list, strict=True):
            if _averages_well(average):
                average.lerp_(current, 1 - decay)
            else:
                average.copy_(average * decay + current * (1 - decay))

    return ema_update


def get_swa_multi_avg_fn() -> Callable[..., None]:
    """A function that takes a list of values into a list of plain means."""

    @torch.no_grad()
    def swa_update(averaged_param_list, current_param_list, num_averaged) -> None:
        for average, current in zip(averaged_param_list, current_param_list, strict=True):
            if _averages_well(average):
                average.lerp_(current, 1 / (float(num_averaged) + 1))
            else:
                average.add_(current.sub(average).div(num_averaged + 1, rounding_mode="floor"))

    return swa_update


def get_ema_avg_fn(decay=0.999) -> Callable[..., torch.Tensor]:
    """A function of (average, value, count) that gives the next exponential average."""
    _check_decay(decay)

    @torch.no_grad()
    def ema_update(ema_param, current_param, num_averaged):
        return decay * ema_param + (1 - decay) * current_param

    return ema_update


def get_swa_avg_fn() -> Callable[..., torch.Tensor]:
    """A function of (average, value, count) that gives the next plain mean."""

    @torch.no_grad()
    def swa_update(averaged_param, current_param, num_averaged):
        return averaged_param + (current_param - averaged_param) / (num_averaged + 1)

    return swa_update


class AveragedModel(Module):
    """A copy of a model that holds the average of the weights it is shown."""

    def __init__(
        self, model, device=None, avg_fn=None, multi_avg_fn=None, use_buffers: bool = False
    ) -> None:
        super().__init__()
        if avg_fn is not None and multi_avg_fn is not None:
            raise AssertionError("Only one of avg_fn and multi_avg_fn should be provided")
        average = deepcopy(model)
        self.module = average if device is None else average.to(device)
        self.register_buffer("n_averaged", torch.zeros((), dtype=torch.long, device=device))
        self.avg_fn = avg_fn
        self.multi_avg_fn = multi_avg_fn
        self.use_buffers = use_buffers

    def forward(self, *args, **kwargs) -> Any:
        """The averaged model's answer."""
        return self.module(*args, **kwargs)

    def _tensors(self, model) -> list[torch.Tensor]:
        buffers = model.buffers() if self.use_buffers else ()
        return [tensor.detach() for tensor in itertools.chain(model.parameters(), buffers)]

    @torch.no_grad()
    def update_parameters(self, model) -> None:
        """Takes the present weights of a model into the average."""
        averages = self._tensors(self.module)
        values = [
            value.to(average.device)
            for value, average in zip(self._tensors(model), averages, strict=True)
        ]
        if self.n_averaged == 0:
            for average, value in zip(averages, values, strict=True):
                average.copy_(value)
        elif self.multi_avg_fn is not None:
            self.multi_avg_fn(averages, values, self.n_averaged)
        elif self.avg_fn is not None:
            for average, value in zip(averages, values, strict=True):
                average.copy_(self.avg_fn(average, value, self.n_averaged))
        else:
            get_swa_multi_avg_fn()(averages, values, self.n_averaged)
        if not self.use_buffers:
            # Statistics are not averaged: they are the ones of the last model seen.
            for average, value in zip(self.module.buffers(), model.buffers(), strict=True):
                average.detach().copy_(value.detach().to(average.device))
        self.n_averaged += 1


@contextlib.contextmanager
def _measuring(model, norms) -> Iterator[None]:
    """In it the norms take the plain mean over all batches; then all is as before, but for what
    they measured."""
    training, momenta = model.training, [norm.momentum for norm in norms]
    model.train()
    for norm in norms:
        norm.reset_running_stats()
        norm.momentum = None  # stands for the plain mean
    try:
        yield
    finally:
        model.train(training)
        for norm, momentum in zip(norms, momenta, strict=True):
            norm.momentum = momentum


@torch.no_grad()
def update_bn(loader, model, device=None) -> None:
    """Measures the statistics of all batch norms anew over the batches of a loader.

    A batch that is a list or tuple passes its first element to the model.
    """
    norms = [module for module in model.modules() if isinstance(module, _BatchNorm)]
    if not norms:
        return
    with _measuring(model, norms):
        for batch in loader:
            inputs = batch[0] if isinstance(batch, (list, tuple)) else batch
            model(inputs if device is None else inputs.to(device))


class SWALR(LRScheduler):
    """Moves the rate to swa_lr in anneal_epochs epochs, then keeps it there."""

    def __init__(
        self, optimizer, swa_lr, anneal_epochs=10, anneal_strategy: str = "cos", last_epoch=-1
    ) -> None:
        check_optimizer(optimizer)
        for rate, group in zip(
            per_group("swa_lr", optimizer, swa_lr), optimizer.param_groups, strict=True
        ):
            group["swa_lr"] = rate
        self._anneal_strategy = check_strategy(anneal_strategy)
        if not isinstance(anneal_epochs, int) or anneal_epochs < 0:
            raise ValueError(f"anneal_epochs must be equal or greater than 0, got {anneal_epochs}")
        self.anneal_epochs = anneal_epochs
        super().__init__(optimizer, last_epoch)

    def _share(self, step) -> float:
        """How much of the way to swa_lr is done after some steps."""
        done = max(0, min(1, step / max(1, self.anneal_epochs)))
        return done if self._anneal_strategy == "linear" else (1 - math.cos(math.pi * done)) / 2

    def get_lr(self) -> list[float | torch.Tensor]:
        """The rates of this step, from the present ones and the share they already contain."""
        self._warn_unless_stepping()
        # The step count, unlike the epoch, also counts schedules that started late.
        step = self._step_count - 1
        if self.anneal_epochs == 0:
            step = max(1, step)
        before, now = self._share(step - 1), self._share(step)
        rates = []
        for group in self.optimizer.param_groups:
            target = group["swa_lr"]
            start = target if before == 1 else (group["lr"] - before * target) / (1 - before)
            rates.append(target * now + start * (1 - now))
        return rates
