"""Operators defined at run time without an autograd kernel: gradients warn, or end silently."""

import contextlib
import warnings

import pytest

import torch
from torch.library import _scoped_library

_WARNING = "an autograd kernel was not registered"


@contextlib.contextmanager
def mode(name):
    before = torch._C._get_autograd_fallback_mode()
    torch._C._set_autograd_fallback_mode(name)
    try:
        yield
    finally:
        torch._C._set_autograd_fallback_mode(before)


@pytest.fixture
def library():
    with _scoped_library("unregistered_autograd", "FRAGMENT") as made:
        made.define("twice(Tensor x) -> Tensor")
        made.impl("twice", lambda x: torch.tensor(x.detach().numpy() * 2), "CPU")
        made.define("sine(Tensor x) -> Tensor")
        made.impl("sine", lambda x: x.sin(), "CPU")
        made.define("zeros_(Tensor(a!) x) -> Tensor(a!)")
        made.impl("zeros_", _zeros, "CPU")
        yield torch.ops.unregistered_autograd


def _zeros(x):
    with torch.no_grad():
        return x.zero_()


def test_warning_is_the_default_and_other_modes_are_refused():
    assert torch._C._get_autograd_fallback_mode() == "warn"
    with pytest.raises(RuntimeError, match="mode must be"):
        torch._C._set_autograd_fallback_mode("error")


def test_a_result_without_history_warns_in_backward_and_gives_no_gradient(library):
    x = torch.ones(3, requires_grad=True)
    y = library.twice(x)
    assert y.grad_fn.name() == "torch::autograd::WarnNotImplemented"
    with pytest.warns(UserWarning, match=_WARNING):
        y.sum().backward()
    assert x.grad is None


def test_a_kernel_of_differentiable_operators_keeps_its_gradient_and_warns(library):
    x = torch.tensor([0.5], requires_grad=True)
    with pytest.warns(UserWarning, match=_WARNING):
        library.sine(x).backward()
    assert torch.allclose(x.grad, torch.tensor([0.5]).cos())


def test_mode_nothing_ends_gradients_silently(library):
    x = torch.ones(3, requires_grad=True)
    with mode("nothing"), warnings.catch_warnings():
        warnings.simplefilter("error")
        assert not library.twice(x).requires_grad


def test_nothing_happens_without_recording(library):
    x = torch.ones(3, requires_grad=True)
    with torch.no_grad():
        assert not library.twice(x).requires_grad
    assert not library.twice(torch.ones(3)).requires_grad


def test_a_written_view_warns_through_its_base_too(library):
    base = torch.ones(3, requires_grad=True).clone()
    library.zeros_(base[0])
    with pytest.warns(UserWarning, match=_WARNING):
        base.sum().backward()
