"""Schedules against closed forms of the epoch, their states, warnings and errors."""

import math
import warnings

import pytest

import torch
from torch.optim import SGD, Adam, lr_scheduler
from torch.optim.swa_utils import SWALR

BASE = 0.2
EPOCHS = 20


def make(**options):
    return SGD([torch.zeros(1, requires_grad=True)], lr=BASE, **options)


def warm_restarts(epoch):
    length = 3
    while epoch >= length:
        epoch -= length
        length *= 2
    return 0.01 + (BASE - 0.01) * (1 + math.cos(math.pi * epoch / length)) / 2


def triangle(epoch):
    cycle, place = divmod(epoch, 7)
    part = place / 3 if place <= 3 else (7 - place) / 4
    return 0.01 + 0.29 * part * 0.5**cycle


def one_cycle(epoch):
    top, low, bottom = 0.5, 0.5 / 25, 0.5 / 25 / 1e4
    rise = 0.3 * 20 - 1
    if epoch <= rise:
        return top + (low - top) * (1 + math.cos(math.pi * epoch / rise)) / 2
    part = (epoch - rise) / (19 - rise)
    return bottom + (top - bottom) * (1 + math.cos(math.pi * part)) / 2


def swa(epoch):
    part = (1 - math.cos(math.pi * min(1, epoch / 4))) / 2
    return 0.05 * part + BASE * (1 - part)


CASES = {
    "lambda": (lambda o: lr_scheduler.LambdaLR(o, lambda e: 1 / (1 + e)), lambda e: BASE / (1 + e)),
    "multiplicative": (
        lambda o: lr_scheduler.MultiplicativeLR(o, lambda e: 0.9),
        lambda e: BASE * 0.9**e,
    ),
    "step": (lambda o: lr_scheduler.StepLR(o, 4, 0.3), lambda e: BASE * 0.3 ** (e // 4)),
    "multi_step": (
        lambda o: lr_scheduler.MultiStepLR(o, [3, 8, 8], 0.5),
        lambda e: BASE * 0.5 ** ((e >= 3) + 2 * (e >= 8)),
    ),
    "constant": (
        lambda o: lr_scheduler.ConstantLR(o, 0.25, 6),
        lambda e: BASE * (0.25 if e < 6 else 1),
    ),
    "linear": (
        lambda o: lr_scheduler.LinearLR(o, 0.2, 0.9, 8),
        lambda e: BASE * (0.2 + 0.7 * min(e, 8) / 8),
    ),
    "exponential": (lambda o: lr_scheduler.ExponentialLR(o, 0.8), lambda e: BASE * 0.8**e),
    "polynomial": (
        lambda o: lr_scheduler.PolynomialLR(o, 10, 1.5),
        lambda e: BASE * (1 - min(e, 10) / 10) ** 1.5,
    ),
    "cosine": (
        lambda o: lr_scheduler.CosineAnnealingLR(o, 7, 0.01),
        lambda e: 0.01 + (BASE - 0.01) * (1 + math.cos(math.pi * e / 7)) / 2,
    ),
    "warm_restarts": (
        lambda o: lr_scheduler.CosineAnnealingWarmRestarts(o, 3, 2, 0.01),
        warm_restarts,
    ),
    "cyclic": (
        lambda o: lr_scheduler.CyclicLR(
            o, 0.01, 0.3, 3, 4, mode="triangular2", cycle_momentum=False
        ),
        triangle,
    ),
    "one_cycle": (
        lambda o: lr_scheduler.OneCycleLR(o, 0.5, total_steps=20, cycle_momentum=False),
        one_cycle,
    ),
    "sequential": (
        lambda o: lr_scheduler.SequentialLR(
            o,
            [lr_scheduler.ConstantLR(o, 0.1, 100), lr_scheduler.ExponentialLR(o, 0.5)],
            [4],
        ),
        lambda e: BASE * (0.1 if e < 4 else 0.5 ** (e - 4)),
    ),
    "chained": (
        lambda o: lr_scheduler.ChainedScheduler(
            [lr_scheduler.ConstantLR(o, 0.5, 3), lr_scheduler.ExponentialLR(o, 0.9)]
        ),
        lambda e: BASE * 0.9**e * (0.5 if e < 3 else 1),
    ),
    "swa": (lambda o: SWALR(o, 0.05, anneal_epochs=4), swa),
}


def rates(optimizer, scheduler, count):
    seen = []
    for _ in range(count):
        seen.append(optimizer.param_groups[0]["lr"])
        assert scheduler.get_last_lr() == [seen[-1]]
        optimizer.step()
        scheduler.step()
    return seen


@pytest.mark.parametrize("name", CASES)
def test_rates_follow_the_closed_form(name):
    build, closed = CASES[name]
    optimizer = make()
    seen = rates(optimizer, build(optimizer), EPOCHS)
    assert seen == pytest.approx([closed(e) for e in range(EPOCHS)], rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("name", CASES)
def test_a_loaded_state_continues(name):
    build, closed = CASES[name]
    optimizer = make()
    scheduler = build(optimizer)
    rates(optimizer, scheduler, 6)
    other = make()
    resumed = build(other)
    other.load_state_dict(optimizer.state_dict())
    resumed.load_state_dict(scheduler.state_dict())
    assert rates(other, resumed, 8) == pytest.approx([closed(e) for e in range(6, 14)], rel=1e-9)


@pytest.mark.parametrize("name", ["step", "multi_step", "linear", "exponential", "cosine"])
def test_step_to_an_epoch_uses_the_closed_form(name):
    build, closed = CASES[name]
    optimizer = make()
    scheduler = build(optimizer)
    optimizer.step()
    with pytest.warns(UserWarning, match="The epoch parameter"):
        scheduler.step(9)
    assert scheduler.get_last_lr() == pytest.approx([closed(9)])


def test_plateau_reduces_after_patience_and_rests_in_cooldown():
    optimizer = make()
    scheduler = lr_scheduler.ReduceLROnPlateau(optimizer, factor=0.5, patience=1, cooldown=2)
    seen = []
    for value in (1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 0.5):
        scheduler.step(torch.tensor(value))
        seen.append(optimizer.param_groups[0]["lr"])
    expected = [1, 1, 0.5, 0.5, 0.5, 0.5, 0.25, 0.25]
    assert seen == pytest.approx([BASE * factor for factor in expected])


def test_cycles_move_momentum_against_the_rate():
    sgd = make(momentum=0.9)
    scheduler = lr_scheduler.CyclicLR(sgd, 0.1, 0.2, step_size_up=2)
    for expected in (0.9, 0.85, 0.8, 0.85, 0.9):
        assert sgd.param_groups[0]["momentum"] == pytest.approx(expected)
        sgd.step()
        scheduler.step()
    adam = Adam([torch.zeros(1, requires_grad=True)])
    lr_scheduler.OneCycleLR(adam, 0.1, total_steps=10)
    assert adam.param_groups[0]["betas"] == (0.95, 0.999)


def test_a_tensor_rate_keeps_its_identity():
    rate = torch.tensor(0.5)
    optimizer = Adam([torch.zeros(1, requires_grad=True)], lr=rate)
    scheduler = lr_scheduler.ExponentialLR(optimizer, 0.5)
    optimizer.step()
    scheduler.step()
    assert optimizer.param_groups[0]["lr"] is rate and rate.item() == 0.25


def test_stepping_before_the_optimizer_warns():
    scheduler = lr_scheduler.StepLR(make(), 3)
    with pytest.warns(UserWarning, match=r"`lr_scheduler.step\(\)` before `optimizer.step\(\)`"):
        scheduler.step()


def test_the_right_order_is_silent():
    optimizer = make()
    scheduler = lr_scheduler.SequentialLR(
        optimizer, [lr_scheduler.ConstantLR(optimizer), lr_scheduler.StepLR(optimizer, 2)], [2]
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        rates(optimizer, scheduler, 5)


def test_get_lr_outside_step_warns():
    with pytest.warns(UserWarning, match="please use `get_last_lr"):
        lr_scheduler.StepLR(make(), 3).get_lr()


@pytest.mark.parametrize(
    ("build", "error", "message"),
    [
        (lambda: lr_scheduler.StepLR(3, 3), TypeError, "int is not an Optimizer"),
        (lambda: lr_scheduler.StepLR(make(), 3, last_epoch=4), KeyError, "initial_lr"),
        (lambda: lr_scheduler.LambdaLR(make(), [1, 2]), ValueError, "Expected 1 lr_lambdas"),
        (lambda: lr_scheduler.ConstantLR(make(), 2.0), ValueError, "between 0 and 1"),
        (lambda: lr_scheduler.LinearLR(make(), 0.0), ValueError, "greater than 0"),
        (lambda: lr_scheduler.SequentialLR(make(), [], []), ValueError, "at least one"),
        (lambda: lr_scheduler.ChainedScheduler([]), ValueError, "at least one"),
        (lambda: lr_scheduler.ReduceLROnPlateau(make(), factor=1.0), ValueError, "< 1.0"),
        (lambda: lr_scheduler.CyclicLR(make(), 0.1, 0.2, mode="x"), ValueError, "mode is invalid"),
        (lambda: lr_scheduler.OneCycleLR(make(), 0.1), ValueError, "either total_steps OR"),
        (lambda: lr_scheduler.CosineAnnealingWarmRestarts(make(), 0), ValueError, "T_0, but got 0"),
        (lambda: SWALR(make(), 0.1, anneal_strategy="x"), ValueError, "instead got x"),
    ],
)
def test_bad_settings_are_refused(build, error, message):
    with pytest.raises(error, match=message):
        build()


def test_one_cycle_refuses_steps_past_its_end():
    optimizer = make()
    scheduler = lr_scheduler.OneCycleLR(optimizer, 0.1, total_steps=2, cycle_momentum=False)
    with pytest.raises(ValueError, match="Tried to step 3 times"):
        rates(optimizer, scheduler, 4)
