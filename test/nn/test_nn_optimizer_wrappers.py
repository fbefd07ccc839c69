"""Optimizers that other packages wrap without calling __init__, and the names they import."""

import warnings
from collections import OrderedDict

import pytest

import torch
from torch import nn


def test_optimizer_wrapper_without_init():
    class Wrapper(torch.optim.Optimizer):
        def __init__(self, inner):
            self.inner = inner

        def step(self, closure=None):
            return self.inner.step(closure)

    parameter = nn.Parameter(torch.ones(1))
    inner = torch.optim.SGD([parameter], lr=0.5)
    parameter.grad = torch.ones(1)
    seen = []
    handle = torch.optim.optimizer.register_optimizer_step_post_hook(
        lambda optimizer, args, kwargs: seen.append(optimizer)
    )
    try:
        Wrapper(inner).step()
    finally:
        handle.remove()
    assert parameter.item() == 0.5
    assert seen == [inner]


def test_optimizer_without_init_patches_its_step():
    class Wrapper(torch.optim.Optimizer):
        def __init__(self, inner):
            self.inner = inner
            self._optimizer_step_pre_hooks = OrderedDict()
            self._optimizer_step_post_hooks = OrderedDict()
            self._patch_step_function()

        def step(self, closure=None):
            return self.inner.step(closure)

    p = torch.nn.Parameter(torch.ones(2))
    p.grad = torch.ones(2)
    wrapper, seen = Wrapper(torch.optim.SGD([p], lr=1.0)), []
    wrapper.register_step_post_hook(lambda *args: seen.append("post"))
    wrapper.step()
    assert seen == ["post"] and p.tolist() == [0.0, 0.0]


def test_names_that_optimizers_import():
    from torch.optim.optimizer import (
        _default_to_fused_or_foreach,
        _get_value,
        _use_grad_for_differentiable,
        _view_as_real,
    )

    class Own(torch.optim.Optimizer):
        @_use_grad_for_differentiable
        def step(self, closure=None):
            return torch.is_grad_enabled()

    own = Own([torch.nn.Parameter(torch.ones(1))], {"differentiable": False})
    assert own.step() is False
    assert _get_value(torch.tensor(2.0)) == 2.0 and _get_value(3) == 3
    assert _default_to_fused_or_foreach([torch.ones(1)], True) == (False, False)
    lists = [torch.ones(1, dtype=torch.complex64)], [torch.ones(1, dtype=torch.complex64)]
    _view_as_real(*lists)
    assert [one[0].shape for one in lists] == [(1, 2), (1, 2)]


def test_get_lr_may_be_called_where_a_schedule_says_so():
    from torch.optim.lr_scheduler import StepLR, _enable_get_lr_call

    schedule = StepLR(torch.optim.SGD([torch.ones(1, requires_grad=True)], 0.5), 2)
    with warnings.catch_warnings(), _enable_get_lr_call(schedule):
        warnings.simplefilter("error")
        assert schedule.get_lr() == [0.5]
    with pytest.warns(UserWarning, match="get_last_lr"):
        schedule.get_lr()
