"""What compiled code leaves behind besides its results, and texts made of values that only the
running program has: modes, profiles, warnings, imports."""

from __future__ import annotations

import pathlib
import subprocess
import sys
import traceback
import warnings

import pytest

import torch


@pytest.fixture(autouse=True)
def _fresh():
    torch._dynamo.reset()
    yield
    torch.set_grad_enabled(True)
    torch._dynamo.reset()


@pytest.mark.parametrize("backend", ["eager", "aot_eager", "inductor"])
def test_gradient_mode_left_switched_off_is_off_and_history_before_it_is_kept(backend):
    def switch_off(x):
        y = x * x
        torch.set_grad_enabled(False)
        return y.clone(), y

    x = torch.full((3,), 3.0, requires_grad=True)
    for _ in range(2):
        torch.set_grad_enabled(True)
        copy, y = torch.compile(switch_off, backend=backend, fullgraph=True)(x)
        assert not torch.is_grad_enabled()
        assert copy.grad_fn is None
        torch.set_grad_enabled(True)
        (grad,) = torch.autograd.grad(y.sum(), x)
        assert grad.tolist() == [6.0, 6.0, 6.0]


@pytest.mark.parametrize(
    "make",
    [
        lambda x: "%s" % x.sum(),  # noqa: UP031
        lambda x: "%s and %d" % (x.sum(), 3),  # noqa: UP031
        lambda x: len("%s" % x),  # noqa: UP031
        lambda x: f"{x.sum()}",
        lambda x: "{}".format(x + 1),  # noqa: UP032
    ],
)
def test_text_of_a_computed_tensor_shows_its_value(make):
    x = torch.ones(2)
    assert torch.compile(make, backend="eager")(x) == make(x)


def test_warning_with_a_tensor_in_its_text_shows_the_value():
    def warn(x):
        warnings.warn("sum is %s" % x.sum(), stacklevel=1)  # noqa: UP031
        return x + 1

    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        torch.compile(warn, backend="eager")(torch.ones(2))
    assert [str(w.message) for w in seen] == ["sum is tensor(2.)"]


def test_profile_over_a_graph_break_is_entered_and_left_once():
    states = []

    def measure(x):
        with torch.autograd.profiler.profile() as profile:
            y = x + 2
            states.append(torch._C._profiler_enabled())
            torch._dynamo.graph_break()
            z = y * 3
        return z, profile

    compiled = torch.compile(measure, backend="eager")
    for _ in range(2):
        z, profile = compiled(torch.ones(2))
        assert not torch._C._profiler_enabled()
        assert z.tolist() == [9.0, 9.0]
        assert "aten::mul" in {event.name for event in profile.function_events}


def test_region_of_autocast_is_kept_by_the_backend_that_traces_above_it():
    def products(x):
        with torch.autocast("cpu", torch.bfloat16):
            low = torch.mm(x, x)
        return low, torch.mm(x, x)

    x = torch.randn(8, 8)
    low, high = torch.compile(products, backend="pre_dispatch_eager")(x)
    wanted = products(x)
    assert (low.dtype, high.dtype) == (torch.bfloat16, torch.float32)
    assert torch.equal(low, wanted[0])
    assert torch.equal(high, wanted[1])


def test_numpy_imported_for_the_first_time_below_a_compiled_function_loads():
    program = """
import sys, torch
assert "numpy" not in sys.modules
print(torch.compile(lambda t: t.numpy().size, backend="eager")(torch.ones(3, 4)))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout.strip() == "12", done.stderr


def test_path_that_makes_another_of_its_class_gives_the_same_path():
    def rename(path, x):
        return path.with_suffix(".py"), x + 1

    given = pathlib.PurePosixPath("a/b")
    found, _ = torch.compile(rename, backend="eager")(given, torch.ones(1))
    assert found == pathlib.PurePosixPath("a/b.py")


def test_traceback_of_compiled_code_shows_the_lines_of_the_program():
    def helper(x):
        if x.shape[0] == 3:
            raise KeyError("three")
        return x

    def program(x):
        y = x + 1
        torch._dynamo.graph_break()
        z = helper(y)
        return z

    def lines(fn):
        with pytest.raises(KeyError) as raised:
            fn(torch.ones(3))
        frames = traceback.extract_tb(raised.value.__traceback__)
        return [f.line for f in frames if f.filename == __file__][1:]

    assert lines(program) == ["z = helper(y)", 'raise KeyError("three")']
    shown = lines(torch.compile(program, backend="eager"))
    assert shown[-2:] == ["z = helper(y)", 'raise KeyError("three")']
    assert set(shown[:-2]) <= {"torch._dynamo.graph_break()"}
