"""Schedules that go round: triangles (CyclicLR), one hill (OneCycleLR), cosines that restart."""

from __future__ import annotations

import math
import types

from torch import Tensor
from torch.optim._lr.base import (
    LRScheduler,
    _enable_get_lr_call,
    check_optimizer,
    copied,
    per_group,
    set_value,
)

__all__ = ["CosineAnnealingWarmRestarts", "CyclicLR", "OneCycleLR"]


def annealed(strategy, start, end, part) -> float:
    """Between start and end, `part` of the way, along a line or half a cosine."""
    if strategy == "linear":
        return (end - start) * part + start
    return end + (start - end) / 2.0 * (math.cos(math.pi * part) + 1)


def check_strategy(strategy) -> str:
    """Refuses strategies that `annealed` does not know."""
    if strategy not in ("cos", "linear"):
        raise ValueError(
            f"anneal_strategy must be one of 'cos' or 'linear', instead got {strategy}"
        )
    return strategy


class _CyclesMomentum(LRScheduler):
    """Moves momentum, or Adam's first beta, against the learning rate."""

    def _find_momentum(self) -> None:
        defaults = self.optimizer.defaults
        if "momentum" not in defaults and "betas" not in defaults:
            raise ValueError(
                "optimizer must support momentum or beta1 with `cycle_momentum` option enabled"
            )
        self.use_beta1 = "betas" in defaults

    def _set_momentum(self, group, momentum) -> None:
        if self.use_beta1:
            group["betas"] = (momentum, *group["betas"][1:])
        else:
            group["momentum"] = momentum


class CyclicLR(_CyclesMomentum):
    """Up from base_lr to max_lr in step_size_up steps, down in step_size_down, and again."""

    def __init__(
        self,
        optimizer,
        base_lr,
        max_lr,
        step_size_up=2000,
        step_size_down=None,
        mode: str = "triangular",
        gamma: float = 1.0,
        scale_fn=None,
        scale_mode: str = "cycle",
        cycle_momentum: bool = True,
        base_momentum: float = 0.8,
        max_momentum: float = 0.9,
        last_epoch=-1,
    ) -> None:
        self.optimizer = check_optimizer(optimizer)
        base_lrs = per_group("base_lr", optimizer, base_lr)
        if last_epoch == -1:
            for rate, group in zip(base_lrs, optimizer.param_groups, strict=True):
                set_value(group, "lr", rate)
        self.max_lrs = per_group("max_lr", optimizer, max_lr)
        up = float(step_size_up)
        down = float(step_size_down) if step_size_down is not None else up
        self.total_size = up + down
        self.step_ratio = up / self.total_size
        if mode not in ("triangular", "triangular2", "exp_range") and scale_fn is None:
            raise ValueError("mode is invalid and scale_fn is None")
        self.mode = mode
        self.gamma = gamma
        self._scale_fn_custom = scale_fn
        # exp_range shrinks with every step, the other modes with every cycle.
        by_step = scale_fn is None and mode == "exp_range"
        self.scale_mode = "iterations" if by_step else scale_mode if scale_fn else "cycle"
        self.cycle_momentum = cycle_momentum
        if cycle_momentum:
            self._find_momentum()
            self.base_momentums = per_group("base_momentum", optimizer, base_momentum)
            self.max_momentums = per_group("max_momentum", optimizer, max_momentum)
            rows = zip(self.max_momentums, self.base_momentums, optimizer.param_groups, strict=True)
            for most, least, group in rows:
                if last_epoch == -1:
                    self._set_momentum(group, most)
                group["max_momentum"] = most
                group["base_momentum"] = least
        super().__init__(optimizer, last_epoch)
        self.base_lrs = [copied(rate) for rate in base_lrs]

    def scale_fn(self, x) -> float:
        """The height of cycle (or step) x relative to the first."""
        if self._scale_fn_custom is not None:
            return self._scale_fn_custom(x)
        if self.mode == "triangular2":
            return 1 / (2.0 ** (x - 1))
        return self.gamma**x if self.mode == "exp_range" else 1.0

    def get_lr(self) -> list[float | Tensor]:
        """The rates of this step; sets the momenta on the way."""
        self._warn_unless_stepping()
        cycle = math.floor(1 + self.last_epoch / self.total_size)
        x = 1.0 + self.last_epoch / self.total_size - cycle
        up = x <= self.step_ratio
        height = x / self.step_ratio if up else (x - 1) / (self.step_ratio - 1)
        scale = self.scale_fn(cycle if self.scale_mode == "cycle" else self.last_epoch)
        if self.cycle_momentum:
            rows = zip(
                self.base_momentums, self.max_momentums, self.optimizer.param_groups, strict=True
            )
            for least, most, group in rows:
                self._set_momentum(group, most - (most - least) * height * scale)
        return [
            base + (most - base) * height * scale
            for base, most in zip(self.base_lrs, self.max_lrs, strict=True)
        ]

    def state_dict(self) -> dict:
        """Everything but the optimizer; of scale_fn, only the attributes of a callable object."""
        state = super().state_dict()
        custom = state.pop("_scale_fn_custom")
        plain = custom is None or isinstance(custom, types.FunctionType)
        state["_scale_fn_custom"] = None if plain else dict(custom.__dict__)
        return state

    def load_state_dict(self, state_dict) -> None:
        """Takes over a saved state; scale_fn stays the one this schedule was made with."""
        state = dict(state_dict)
        kept = state.pop("_scale_fn_custom", None)
        super().load_state_dict(state)
        if kept is not None and self._scale_fn_custom is not None:
            self._scale_fn_custom.__dict__.update(kept)


class CosineAnnealingWarmRestarts(LRScheduler):
    """A cosine from the initial rate to eta_min in T_0 epochs, then anew, T_mult times as long."""

    def __init__(self, optimizer, T_0, T_mult=1, eta_min: float = 0.0, last_epoch=-1) -> None:
        if T_0 <= 0 or not isinstance(T_0, int):
            raise ValueError(f"Expected positive integer T_0, but got {T_0}")
        if T_mult < 1 or not isinstance(T_mult, int):
            raise ValueError(f"Expected integer T_mult >= 1, but got {T_mult}")
        if not isinstance(eta_min, (float, int)):
            raise ValueError(
                f"Expected float or int eta_min, but got {eta_min} of type {type(eta_min)}"
            )
        self.T_0 = T_0
        self.T_i = T_0
        self.T_mult = T_mult
        self.eta_min = eta_min
        self.T_cur = last_epoch
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float | Tensor]:
        self._warn_unless_stepping()
        height = (1 + math.cos(math.pi * self.T_cur / self.T_i)) / 2
        return [self.eta_min + (base - self.eta_min) * height for base in self.base_lrs]

    def step(self, epoch=None) -> None:
        """Moves to the next epoch, or to a given one, which may be a fraction."""
        if epoch is None and self.last_epoch < 0:
            epoch = 0
        if epoch is None:
            epoch = self.last_epoch + 1
            self.T_cur += 1
            if self.T_cur >= self.T_i:
                self.T_cur %= self.T_i
                self.T_i *= self.T_mult
        else:
            if epoch < 0:
                raise ValueError(f"Expected non-negative epoch, but got {epoch}")
            self._place(epoch)
        self.last_epoch = math.floor(epoch)
        with _enable_get_lr_call(self):
            rates = self.get_lr()
        self._store(rates)

    def _place(self, epoch) -> None:
        """Finds the cosine that contains an epoch, and where in it."""
        if epoch < self.T_0:
            self.T_i = self.T_0
            self.T_cur = epoch
        elif self.T_mult == 1:
            self.T_i = self.T_0
            self.T_cur = epoch % self.T_0
        else:
            turn = int(math.log(epoch / self.T_0 * (self.T_mult - 1) + 1, self.T_mult))
            self.T_cur = epoch - self.T_0 * (self.T_mult**turn - 1) / (self.T_mult - 1)
            self.T_i = self.T_0 * self.T_mult**turn


def _count_steps(total_steps, epochs, steps_per_epoch):
    """The length of the cycle, from whichever way it was given."""

    def positive(name, value) -> int:
        if value <= 0 or not isinstance(value, int):
            raise ValueError(f"Expected positive integer {name}, but got {value}")
        return value

    if total_steps is not None:
        return positive("total_steps", total_steps)
    if epochs is None or steps_per_epoch is None:
        raise ValueError("You must define either total_steps OR (epochs AND steps_per_epoch)")
    return positive("epochs", epochs) * positive("steps_per_epoch", steps_per_epoch)


def _phase(end_step, rates, momenta) -> dict[str, str | float]:
    return {
        "end_step": end_step,
        "start_lr": rates[0],
        "end_lr": rates[1],
        "start_momentum": momenta[0],
        "end_momentum": momenta[1],
    }


class OneCycleLR(_CyclesMomentum):
    """Up to max_lr in the first pct_start of the steps, then down to almost nothing."""

    def __init__(
        self,
        optimizer,
        max_lr,
        total_steps=None,
        epochs=None,
        steps_per_epoch=None,
        pct_start: float = 0.3,
        anneal_strategy: str = "cos",
        cycle_momentum: bool = True,
        base_momentum: float = 0.85,
        max_momentum: float = 0.95,
        div_factor: float = 25.0,
        final_div_factor: float = 1e4,
        three_phase: bool = False,
        last_epoch=-1,
    ) -> None:
        self.optimizer = check_optimizer(optimizer)
        self.total_steps = _count_steps(total_steps, epochs, steps_per_epoch)
        if pct_start < 0 or pct_start > 1 or not isinstance(pct_start, float):
            raise ValueError(f"Expected float between 0 and 1 pct_start, but got {pct_start}")
        up = ("initial_lr", "max_lr"), ("max_momentum", "base_momentum")
        first = float(pct_start * self.total_steps) - 1
        last = self.total_steps - 1
        if three_phase:
            second = float(2 * pct_start * self.total_steps) - 2
            self._schedule_phases = [
                _phase(first, *up),
                _phase(second, ("max_lr", "initial_lr"), ("base_momentum", "max_momentum")),
                _phase(last, ("initial_lr", "min_lr"), ("max_momentum", "max_momentum")),
            ]
        else:
            down = ("max_lr", "min_lr"), ("base_momentum", "max_momentum")
            self._schedule_phases = [_phase(first, *up), _phase(last, *down)]
        self._anneal_func_type = check_strategy(anneal_strategy)
        max_lrs = per_group("max_lr", optimizer, max_lr)
        if last_epoch == -1:
            for group, most in zip(optimizer.param_groups, max_lrs, strict=True):
                group["initial_lr"] = most / div_factor
                group["max_lr"] = copied(most)
                group["min_lr"] = group["initial_lr"] / final_div_factor
        self.cycle_momentum = cycle_momentum
        if cycle_momentum:
            self._find_momentum()
            highs = per_group("max_momentum", optimizer, max_momentum)
            lows = per_group("base_momentum", optimizer, base_momentum)
            if last_epoch == -1:
                for high, low, group in zip(highs, lows, optimizer.param_groups, strict=True):
                    self._set_momentum(group, high)
                    group["max_momentum"] = copied(high)
                    group["base_momentum"] = copied(low)
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float | Tensor]:
        """The rates of this step; sets the momenta on the way."""
        self._warn_unless_stepping()
        step = self.last_epoch
        if step > self.total_steps:
            raise ValueError(
                f"Tried to step {step} times. The specified number of total steps is "
                f"{self.total_steps}"
            )
        start = 0.0
        for phase in self._schedule_phases[:-1]:
            if step <= phase["end_step"]:
                break
            start = phase["end_step"]
        else:
            phase = self._schedule_phases[-1]
        part = (step - start) / (phase["end_step"] - start)
        rates = []
        for group in self.optimizer.param_groups:
            rates.append(self._between(group, phase, "lr", part))
            if self.cycle_momentum:
                self._set_momentum(group, self._between(group, phase, "momentum", part))
        return rates

    def _between(self, group, phase, what, part) -> float:
        start, end = group[phase["start_" + what]], group[phase["end_" + what]]
        return annealed(self._anneal_func_type, start, end, part)
