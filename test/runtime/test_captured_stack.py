"""torch._C._profiler.gather_traceback and symbolize_tracebacks."""

import torch


def inner():
    return torch._C._profiler.gather_traceback()


def test_stack_names_the_functions_from_the_innermost():
    stacks = torch._C._profiler.symbolize_tracebacks([inner(), inner()])
    assert len(stacks) == 2
    assert [frame["name"] for frame in stacks[0][:2]] == [
        "inner",
        "test_stack_names_the_functions_from_the_innermost",
    ]
    assert stacks[0][0]["filename"] == __file__ and isinstance(stacks[0][0]["line"], int)


def test_functions_can_be_imported_from_the_extension():
    from torch._C._profiler import gather_traceback, symbolize_tracebacks

    assert symbolize_tracebacks([gather_traceback()])[0][0]["filename"] == __file__


def test_stack_without_python_frames_is_empty():
    captured = torch._C._profiler.gather_traceback(python=False)
    assert torch._C._profiler.symbolize_tracebacks([captured]) == [[]]
