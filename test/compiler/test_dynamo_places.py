"""Compiled functions that ask where a tensor begins in its memory, or count from there."""

from collections.abc import Callable

import pytest

import torch
from torch._dynamo.testing import CompileCounterWithBackend

FUNCTIONS = {
    "place": lambda x: x * x.storage_offset(),
    "place of a view": lambda x: x + x[1:].storage_offset(),
    "as_strided at the place": lambda x: torch.as_strided(x, (2,), (1,), x.storage_offset()) * 2,
    "as_strided without a place": lambda x: x.as_strided((2,), (1,)),
    "as_strided of a view": lambda x: x[1:].as_strided((2,), (1,)),
    "operator": lambda x: torch.ops.aten.as_strided.default(x[1:], (2,), (1,)) + 1,
    "a place of its own": lambda x: x + x.clone().storage_offset(),
}


def _part(start: int) -> torch.Tensor:
    return torch.arange(12.0)[start : start + 3]


@pytest.mark.parametrize("dynamic", [None, True])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_tensors_at_other_places_give_what_they_give_in_eager_code(
    name: str, dynamic: bool | None
) -> None:
    function = FUNCTIONS[name]
    torch._dynamo.reset()
    compiled = torch.compile(function, dynamic=dynamic, fullgraph=True)
    for start in (3, 5, 1, 0, 5):
        got, wanted = compiled(_part(start)), function(_part(start))
        assert torch.equal(got, wanted), start
        assert got.storage_offset() == wanted.storage_offset()


def test_a_write_counted_from_the_start_lands_at_its_place() -> None:
    def function(x: torch.Tensor) -> torch.Tensor:
        return x.as_strided((2,), (1,), x.storage_offset() + 1).mul_(2)

    torch._dynamo.reset()
    compiled = torch.compile(function)
    for start in (3, 5, 1):
        ours, theirs = _part(start), _part(start)
        assert torch.equal(compiled(ours), function(theirs))
        assert torch.equal(ours, theirs)


def test_functions_that_do_not_ask_are_compiled_once_for_all_places() -> None:
    def function(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return x.sin(), x[1:], x.view(1, 3)

    check: Callable = CompileCounterWithBackend("inductor")
    torch._dynamo.reset()
    compiled = torch.compile(function, backend=check, fullgraph=True)
    for start in (3, 5, 1):
        for got, wanted in zip(compiled(_part(start)), function(_part(start)), strict=True):
            assert torch.equal(got, wanted)
    assert check.frame_count == 1
