"""Optimizers that name their state by parameters, and optimizers that step in the backward pass."""

import copy

import pytest

import torch
from torch import nn
from torch.distributed.optim import (
    _apply_optimizer_in_backward,
    _get_in_backward_optimizers,
    _NamedOptimizer,
)


def _model() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2))


def _pass(model: nn.Module) -> None:
    model(torch.linspace(-1, 1, 6).view(2, 3)).square().sum().backward()


def _equal(one: nn.Module, other: nn.Module) -> bool:
    return all(map(torch.equal, one.parameters(), other.parameters()))


def _named(model: nn.Module, **options: float) -> _NamedOptimizer:
    settings = {"lr": 0.1, "momentum": 0.9, **options}
    return _NamedOptimizer(model.named_parameters(), torch.optim.SGD, **settings)


def test_named_optimizer_trains_like_the_one_inside():
    one, other = _model(), _model()
    plain = torch.optim.SGD(one.parameters(), lr=0.1, momentum=0.9)
    named = _named(other)
    for _ in range(3):
        for model, optimizer in ((one, plain), (other, named)):
            optimizer.zero_grad()
            _pass(model)
            optimizer.step()
    assert _equal(one, other)
    expected = plain.state_dict()["state"]
    found = named.state_dict()["state"]
    for number, (name, _) in enumerate(other.named_parameters()):
        buffer = found[name]["momentum_buffer"]
        assert torch.equal(buffer, expected[number]["momentum_buffer"])


def test_state_by_name_moves_to_an_optimizer_of_other_groups():
    model = _model()
    first = _named(model)
    _pass(model)
    first.step()
    groups = [{"params": model[2].parameters()}, {"params": model[0].weight, "lr": 0.5}]
    second = _NamedOptimizer(model.named_parameters(), torch.optim.SGD, groups, lr=1, momentum=0.5)
    with pytest.raises(ValueError, match="initialized before load"):
        second.load_state_dict(first.state_dict())
    second.zero_grad()
    second.init_state()
    second.load_state_dict(first.state_dict())
    wanted, found = first.state_dict()["state"], second.state_dict()["state"]
    assert sorted(found) == ["0.weight", "2.bias", "2.weight"]
    for name, state in found.items():
        assert torch.equal(state["momentum_buffer"], wanted[name]["momentum_buffer"])
    # Groups that the other does not have keep their settings.
    assert [group["lr"] for group in second.param_groups] == [1, 0.5]


def test_init_state_leaves_the_parameters_alone():
    model, before = _model(), _model()
    optimizer = _named(model, weight_decay=0.1)
    optimizer.init_state()
    assert _equal(model, before)
    assert set(optimizer.state_dict()["state"]) == {name for name, _ in model.named_parameters()}
    assert optimizer.param_groups[0]["lr"] == 0.1
    assert optimizer.param_groups[0]["weight_decay"] == 0.1


def test_parameter_of_another_model_is_refused():
    with pytest.raises(ValueError, match="some parameters are not in the module"):
        _named(_model()).add_param_group({"params": [nn.Parameter(torch.ones(5))]})


def test_optimizers_in_the_backward_pass_step_and_drop_gradients():
    model = _model()
    expected = copy.deepcopy(model)
    optimizers = [torch.optim.SGD(expected.parameters(), lr=rate) for rate in (0.1, 0.01)]
    for rate in (0.1, 0.01):
        _apply_optimizer_in_backward(torch.optim.SGD, model.parameters(), {"lr": rate})
    assert len(_get_in_backward_optimizers(model)) == 8
    for _ in range(2):
        _pass(expected)
        for optimizer in optimizers:
            optimizer.step()
        expected.zero_grad()
        _pass(model)
        assert all(p.grad is None for p in model.parameters())
    assert _equal(model, expected)


def test_optimizers_without_hook_wait_for_the_caller():
    model, before = _model(), _model()
    _apply_optimizer_in_backward(torch.optim.SGD, model.parameters(), {"lr": 1.0}, False)
    _pass(model)
    assert _equal(model, before)
    assert all(p.grad is not None for p in model.parameters())
