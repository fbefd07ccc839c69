"""Functions that only tell the world something, in compiled code: by settings they are called after
the graph or not at all, and methods of loggers write nothing from exported programs."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator

import pytest

import torch
import torch._dynamo
import torch._dynamo.config as config
from torch._dynamo.testing import CompileCounter

X = torch.arange(3.0)
logger = logging.getLogger("program")
told: list[object] = []


def tell(value: object, end: str = "") -> None:
    told.append((value if isinstance(value, str) else value.tolist(), end))


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    torch._dynamo.reset()
    told.clear()
    yield
    torch._dynamo.reset()


def written(caplog) -> list[str]:
    return [r.getMessage() for r in caplog.records if r.name == logger.name]


def graphs(program, **settings) -> int:
    """How many graphs a program has; its result is that of plain Python."""
    counter = CompileCounter()
    with config.patch(**settings):
        assert torch.equal(torch.compile(program, backend=counter)(X), program(X))
    return counter.frame_count


def test_function_that_may_be_moved_is_called_after_the_graph_with_its_values() -> None:
    def program(x):
        y = x + 1
        tell("begin")
        tell(y, end="!")
        return y * 2

    assert graphs(program, reorderable_logging_functions={tell}) == 1
    assert told == [("begin", ""), ([1.0, 2.0, 3.0], "!")] * 2


def test_print_warnings_and_methods_of_loggers_may_be_moved(capsys, caplog) -> None:
    def program(x):
        print("size", x.shape[0], sep=": ")
        warnings.warn("careful", stacklevel=1)
        logger.warning("now")
        return x + 1

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        moved = {print, warnings.warn, logging.Logger.warning}
        assert graphs(program, reorderable_logging_functions=moved) == 1
    assert capsys.readouterr().out == "size: 3\n" * 2
    assert [str(w.message) for w in caught] == ["careful"] * 2
    assert written(caplog) == ["now"] * 2


@pytest.mark.parametrize("name", ["ignore_logging_functions", "ignore_logger_methods"])
def test_functions_that_are_ignored_are_not_called(name, caplog) -> None:
    def program(x):
        tell("never")
        logger.warning("never")
        logger.error("always")
        return x + 1

    counter = CompileCounter()
    with config.patch({name: {tell, logging.Logger.warning}}):
        torch.compile(program, backend="eager")(X)
    assert written(caplog) == ["always"] and not told
    torch._dynamo.reset()
    with config.patch({name: {tell, logger.warning, logging.Logger.error}}):
        caplog.clear()
        assert torch.equal(torch.compile(program, backend=counter)(X), X + 1)
    assert counter.frame_count == 1 and not told and not written(caplog)


class Net(torch.nn.Module):
    def forward(self, x):
        logger.warning("tracing %s", x.shape)
        return x.sin() if torch.compiler.is_exporting() else x.cos()


def test_programs_that_are_exported_write_no_messages_and_know_it(caplog) -> None:
    for module in (
        torch.export.export(Net(), (X,), strict=True).module(),
        torch._dynamo.export(Net())(X).graph_module,
    ):
        assert torch.equal(module(X), X.sin())
    assert not written(caplog)
    assert torch.equal(torch.compile(Net(), backend="eager")(X), X.cos())
