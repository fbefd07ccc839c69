"""Calls of builtins that are wrong, and others at the edge: compiled functions raise what plain
ones raise, where the program can catch it."""

from __future__ import annotations

import sys

import pytest

import torch

EXPRESSIONS = """
isinstance(1, 1)
isinstance(1, (5, int))
isinstance(1, (int, 5))
isinstance(1, ((str, (int,)),))
isinstance([1], list[int])
isinstance('a', str | None)
isinstance(1, ())
issubclass(int, ((str, int),))
issubclass(int, 5)
slice()
slice(1, 2, 3, 4)
reversed(1)
reversed({1})
list(reversed('abc'))
vars(1)
dict([1])
dict([(1, 2, 3)])
dict(5)
min()
max([], key=len)
map(5)
list(map(5, [1]))
iter(5, 6)
filter(None, 5)
range()
getattr(5)
getattr(5, 5)
callable()
id()
repr()
round(1, 2, 3)
divmod(7)
abs()
type()
object(5)
next(5)
len(5)
sum(['a'])
sorted([1, 'a'])
torch.Size([2, 3]).numel()
sys.getrecursionlimit()
""".strip().split("\n")


def outcome(run, x: torch.Tensor) -> str:
    return repr(run(x)[1])


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_call_ends_as_in_plain_python(expression: str) -> None:
    torch._dynamo.reset()
    names = {"torch": torch, "sys": sys}
    text = f"""
def run(x):
    try:
        found = {expression}
    except Exception as error:
        found = type(error).__name__, error.args
    return x + 1, found
"""
    exec(text, names)
    x = torch.ones(2)
    assert outcome(torch.compile(names["run"], backend="eager"), x) == outcome(names["run"], x)


SIZE = torch.Size([2])


def test_size_of_the_program_is_counted() -> None:
    torch._dynamo.reset()
    compiled = torch.compile(lambda x: x + SIZE.numel(), backend="eager", fullgraph=True)
    assert compiled(torch.ones(1)).item() == 3


def test_global_that_is_stored_and_deleted_is_gone() -> None:
    def run(x):
        global passing
        passing = 5
        del passing
        try:
            return x + 1, passing
        except NameError as error:
            return x + 1, str(error)

    torch._dynamo.reset()
    x = torch.ones(2)
    assert torch.compile(run, backend="eager")(x)[1] == run(x)[1]
