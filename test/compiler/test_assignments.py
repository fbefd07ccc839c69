"""Assignments to parts of tensors, by masks, indices, slices and all of them together, with numbers
and tensors: compiled functions give what eager ones give."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import torch
import torch._dynamo
from torch._subclasses.fake_tensor import FakeTensorMode

ROWS, COLUMNS = 4, 5
I, J = torch.tensor([2, 0]), torch.tensor([[1], [3]])
MASK = torch.arange(ROWS * COLUMNS).reshape(ROWS, COLUMNS) % 3 == 0
KEYS = {
    "mask": lambda m: m,
    "rows by a mask": lambda m: m[:, 0],
    "columns by a mask": lambda m: (..., m[0]),
    "mask and number": lambda m: (m[:, 0], 1),
    "indices": lambda m: I,
    "list": lambda m: [0, 3],
    "two indices": lambda m: (I, J),
    "index and slice": lambda m: (slice(1, None), I),
    "slice with a step": lambda m: (slice(None, None, 2), 2),
    "new dimension": lambda m: (None, 1),
    "new dimension and indices": lambda m: (None, I),
    "number": lambda m: -1,
    "nothing": lambda m: (slice(0, 0),),
    "all": lambda m: ...,
}
VALUES = [0.5, 3, True, float("inf"), torch.tensor(2.5), torch.tensor([7.0])]


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


@pytest.mark.parametrize("backend", ["eager", "aot_eager", "inductor"])
@pytest.mark.parametrize("key", KEYS)
def test_assignments_of_numbers_and_tensors_do_as_in_eager_code(key, backend) -> None:
    def program(x, m, values):
        outs = []
        for value in values:
            y = x * 2
            y[KEYS[key](m)] = value
            outs.append(y)
        y = x.clone()
        y[KEYS[key](m)] *= 3
        x[KEYS[key](m)] = -1
        return [*outs, y], x + 1

    x = torch.randn(ROWS, COLUMNS)
    other = x.clone()
    wanted = program(x, MASK, VALUES)
    compiled = torch.compile(program, backend=backend, fullgraph=True)
    got = compiled(other, MASK, VALUES)
    for a, b in zip([*wanted[0], wanted[1], x], [*got[0], got[1], other], strict=True):
        assert torch.equal(a, b)


@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
def test_gradients_pass_by_what_was_assigned(backend) -> None:
    def program(x, m, w):
        y = x * 2
        y[m] = 0.25
        y[:, I] = w
        return (y * y).sum()

    leaves = [torch.randn(ROWS, COLUMNS), torch.randn(ROWS, 2)]
    grads = []
    for run in (program, torch.compile(program, backend=backend, fullgraph=True)):
        x, w = (leaf.clone().requires_grad_() for leaf in leaves)
        run(x, MASK, w).backward()
        grads.append((x.grad, w.grad))
    for a, b in zip(*grads, strict=True):
        assert torch.equal(a, b)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.int64, torch.bool])
def test_fake_tensors_take_numbers_at_indices(dtype) -> None:
    with FakeTensorMode():
        x, m = torch.ones(3, 4).to(dtype), torch.ones(3, dtype=torch.bool)
        for key in (m, torch.tensor([1, 0]), (slice(1, 2), torch.tensor([3]))):
            x[key] = 1
            assert type(x).__name__ == "FakeTensor" and x.shape == (3, 4)
