"""Steps of optimizers inside of compiled functions: one graph, parameters near those of eager
steps. Numbers that are kept as tensors (counts of steps, learning rates) stay tensors there."""

from __future__ import annotations

import pytest

import torch
from torch import nn, optim
from torch._dynamo.testing import CompileCounter, CompileCounterWithBackend

CASES = [
    (optim.SGD, {"lr": 0.1, "momentum": 0.9}),
    (optim.SGD, {"lr": torch.tensor(0.1), "momentum": 0.9}),
    (optim.Adam, {"lr": 0.1}),
    (optim.Adam, {"lr": torch.tensor(0.1)}),
    (optim.AdamW, {"foreach": True}),
    (optim.NAdam, {"weight_decay": 0.01}),
    (optim.RAdam, {}),
    (optim.Adagrad, {"lr": torch.tensor(0.1), "lr_decay": 0.1}),
    (optim.ASGD, {"t0": 1}),
    (optim.Adamax, {}),
    (optim.RMSprop, {"lr": torch.tensor(0.01)}),
    (optim.Adadelta, {"lr": torch.tensor(0.5)}),
]


def _trained(cls: type, settings: dict, compiled: bool) -> list[torch.Tensor]:
    torch.manual_seed(0)
    torch._dynamo.reset()
    layer = nn.Linear(6, 5)
    settings = {k: v.clone() if isinstance(v, torch.Tensor) else v for k, v in settings.items()}
    optimizer = cls(layer.parameters(), **settings)

    def step() -> None:
        optimizer.step()

    run = torch.compile(step, fullgraph=True) if compiled else step
    for _ in range(7):
        optimizer.zero_grad()
        layer(torch.ones(2, 6)).square().sum().backward()
        run()
        if isinstance(settings.get("lr"), torch.Tensor):
            optimizer.param_groups[0]["lr"].mul_(0.9)
    return [p.detach() for p in layer.parameters()]


@pytest.mark.parametrize(("cls", "settings"), CASES)
def test_compiled_step_is_one_graph_and_near_the_eager_step(cls: type, settings: dict) -> None:
    want = _trained(cls, settings, compiled=False)
    got = _trained(cls, settings, compiled=True)
    torch.testing.assert_close(got, want, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("cls", [optim.SGD, optim.AdamW])
def test_step_is_compiled_for_the_empty_and_the_filled_state_and_never_again(cls: type) -> None:
    torch._dynamo.reset()
    counter = CompileCounter()
    model = nn.Sequential(nn.Linear(6, 5), nn.Linear(5, 2))
    optimizer = cls(model.parameters(), lr=0.1)
    step = torch.compile(optimizer.step, backend=counter)
    for _ in range(6):
        # The Python objects of new gradients live no longer than the guard that reads them.
        optimizer.zero_grad()
        model(torch.ones(2, 6)).sum().backward()
        step()
    assert counter.frame_count <= 2


@pytest.mark.parametrize("backend", ["eager", "inductor"])
@pytest.mark.parametrize("cls", [optim.SGD, optim.AdamW])
def test_learning_rate_that_a_schedule_changes_is_no_reason_to_compile_again(
    cls: type, backend: str
) -> None:
    torch._dynamo.reset()
    counter = CompileCounterWithBackend(backend)
    models = [nn.Linear(6, 5), nn.Linear(6, 5)]
    models[1].load_state_dict(models[0].state_dict())
    optimizers = [cls(model.parameters(), lr=0.1) for model in models]
    schedules = [optim.lr_scheduler.ExponentialLR(one, 0.7) for one in optimizers]
    steps = [torch.compile(optimizers[0].step, backend=counter), optimizers[1].step]
    for _ in range(6):
        for model, optimizer, step, schedule in zip(
            models, optimizers, steps, schedules, strict=True
        ):
            optimizer.zero_grad()
            model(torch.ones(2, 6)).square().sum().backward()
            step()
            schedule.step()
    assert counter.frame_count <= 2
    torch.testing.assert_close(models[0].weight, models[1].weight, rtol=1e-4, atol=1e-5)
