"""Context managers that C code or other packages implement, inside of captured functions."""

from __future__ import annotations

import warnings
from collections.abc import Iterator

import pytest

import torch
import torch._dynamo
from torch._dynamo.testing import CompileCounter


@pytest.fixture(autouse=True)
def nothing_compiled() -> Iterator[None]:
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


def inside_and_outside(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    with torch.inference_mode():
        inside = x + 1
    return inside, x * 2


@pytest.mark.parametrize("backend", ["eager", "aot_eager", "inductor"])
def test_inference_mode_is_captured_and_ends_where_it_ends(backend: str) -> None:
    x = torch.randn(3, requires_grad=True)
    inside, outside = torch.compile(inside_and_outside, backend=backend, fullgraph=True)(x)
    assert torch.equal(inside, x + 1) and not inside.requires_grad
    assert not torch.is_inference_mode_enabled()
    outside.sum().backward()
    assert torch.equal(x.grad, torch.full((3,), 2.0))


@torch.inference_mode()
def decorated(x: torch.Tensor) -> torch.Tensor:
    return x + torch.is_inference_mode_enabled()


def test_function_under_the_decorator_of_inference_mode_is_captured() -> None:
    x = torch.randn(3, requires_grad=True)
    found = torch.compile(lambda x: decorated(x), backend="aot_eager", fullgraph=True)(x)
    assert torch.equal(found, x + 1) and not found.requires_grad


def test_break_inside_of_inference_mode_leaves_and_enters_it() -> None:
    def fn(x: torch.Tensor) -> tuple[torch.Tensor, bool]:
        with torch.inference_mode():
            y = x + 1
            torch._dynamo.graph_break()
            y = y * 2
        return y, torch.is_inference_mode_enabled()

    x = torch.randn(3, requires_grad=True)
    found, enabled = torch.compile(fn, backend="eager")(x)
    assert torch.equal(found, (x + 1) * 2) and found.is_inference() and not enabled


def test_hooks_on_saved_tensors_run_although_a_graph_was_tried() -> None:
    packed = []

    def fn(x: torch.Tensor) -> torch.Tensor:
        with torch.autograd.graph.save_on_cpu():
            y = x * x
        return y + 1

    def hooked(x: torch.Tensor) -> torch.Tensor:
        with torch.autograd.graph.saved_tensors_hooks(lambda t: packed.append(t) or t, lambda t: t):
            return x * x

    x = torch.ones(2, requires_grad=True)
    for one in (fn, hooked):
        x.grad = None
        torch.compile(one, backend="eager")(x).sum().backward()
        assert torch.equal(x.grad, torch.full((2,), 2.0))
    assert packed


def test_warnings_are_caught_without_a_break_where_none_is_given() -> None:
    counter = CompileCounter()

    def fn(x: torch.Tensor) -> tuple[torch.Tensor, int]:
        with warnings.catch_warnings(record=True) as caught:
            y = x.sin()
        return y, len(caught)

    x = torch.randn(3)
    found = torch.compile(fn, backend=counter, fullgraph=True)(x)
    assert torch.equal(found[0], x.sin()) and found[1] == 0 and counter.frame_count == 1


def test_warnings_given_inside_are_recorded() -> None:
    def fn(x: torch.Tensor) -> tuple[torch.Tensor, list[str]]:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            y = x.sin()
            warnings.warn("heard", stacklevel=1)
            y = y + 1
        return y, [str(w.message) for w in caught]

    x = torch.randn(3)
    found, texts = torch.compile(fn, backend="eager")(x)
    assert torch.equal(found, x.sin() + 1) and texts == ["heard"]


def test_managers_that_were_not_entered_are_made_for_each_call() -> None:
    fn = torch.compile(
        lambda x: (x.sin(), warnings.catch_warnings(record=True)), backend="eager", fullgraph=True
    )
    x = torch.randn(3)
    first, second = fn(x)[1], fn(x)[1]
    assert isinstance(first, warnings.catch_warnings) and first is not second
