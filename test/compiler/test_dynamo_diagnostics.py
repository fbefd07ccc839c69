"""What the tracer says: comptime, faults with the user's line, recompilation, metrics."""

from __future__ import annotations

import io
import logging
import pathlib
import sys

import pytest

import torch
import torch._dynamo
import torch._logging
import torch.compiler.config
from torch._dynamo import exc, testing
from torch._dynamo.comptime import ComptimeContext, comptime
from torch._dynamo.metrics_context import MetricsContext, TopN

OUT = io.StringIO()
ERROR: type[Exception] = KeyError


@pytest.fixture(autouse=True)
def fresh() -> None:
    torch._dynamo.reset()
    OUT.seek(0)
    OUT.truncate()


# ---- comptime


def show(e: object) -> None:
    @comptime
    def _(ctx: ComptimeContext) -> None:
        ctx.print(ctx.get_local("e"), file=OUT)


def test_comptime_shows_values_and_leaves_nothing_in_the_graph() -> None:
    counter = testing.CompileCounter()

    @torch.compile(backend=counter, fullgraph=True)
    def function(x: torch.Tensor) -> torch.Tensor:
        y = x * 2
        show(y)
        show([y, 2])
        show({"a": (1,)})
        show(range(1, 3))
        return y

    assert torch.equal(function(torch.ones(3)), torch.full((3,), 2.0))
    assert (counter.frame_count, counter.op_count) == (1, 1)
    assert OUT.getvalue().splitlines() == [
        "FakeTensor(..., size=(3,))",
        "[FakeTensor(..., size=(3,)), 2]",
        "{'a': (1,)}",
        "range(1, 3, 1)",
    ]


def test_comptime_prints_graph_locals_place_and_stack() -> None:
    def inner(y: torch.Tensor) -> torch.Tensor:
        @comptime
        def _(ctx: ComptimeContext) -> None:
            ctx.print_graph(verbose=False, file=OUT)
            ctx.print_locals(file=OUT, stacklevel=1)
            ctx.print_disas(file=OUT)
            ctx.print_bt(file=OUT)

        return y + 1

    @torch.compile(backend="eager", fullgraph=True)
    def function(x: torch.Tensor) -> torch.Tensor:
        y = x * 2
        return inner(y)

    function(torch.ones(2))
    text = OUT.getvalue()
    assert "l_x_ * 2" in text
    assert "y = FakeTensor(..., size=(2,))" in text
    assert "-->" in text
    assert "return inner(y)" in text


def test_comptime_graph_break_splits_the_graph() -> None:
    counter = testing.CompileCounter()

    @torch.compile(backend=counter)
    def function(x: torch.Tensor) -> torch.Tensor:
        y = x * 2
        comptime.graph_break()
        return y + 1

    assert function(torch.ones(1)).item() == 3
    assert counter.frame_count == 2


def test_comptime_outside_of_a_trace_calls_the_fallback() -> None:
    called = []
    comptime(lambda ctx: called.append("traced"), lambda: called.append("plain"))
    assert called == ["plain"]


# ---- faults


def faulty(x: torch.Tensor, error: type[Exception]) -> torch.Tensor:
    def raises(ctx: ComptimeContext) -> None:
        raise ERROR

    comptime(raises)
    return x


@pytest.mark.parametrize(
    ("error", "seen"), [(KeyError, exc.InternalTorchDynamoError), (AssertionError, AssertionError)]
)
def test_fault_of_the_tracer_names_the_line_of_the_user(
    error: type[Exception], seen: type[Exception]
) -> None:
    globals()["ERROR"] = error
    with pytest.raises(seen, match=r"from user code:\n   File .*in faulty\n    comptime\(raises\)"):
        torch.compile(faulty, backend="eager")(torch.ones(1), error)


def test_fault_of_the_tracer_suppressed_runs_the_function_as_it_is(
    caplog: pytest.LogCaptureFixture,
) -> None:
    globals()["ERROR"] = KeyError
    logger = logging.getLogger("torch._dynamo")
    logger.addHandler(caplog.handler)
    try:
        with torch._dynamo.config.patch(suppress_errors=True):
            out = torch.compile(faulty, backend="eager")(torch.ones(1), KeyError)
    finally:
        logger.removeHandler(caplog.handler)
    assert out.item() == 1
    assert "WON'T CONVERT faulty" in caplog.text


# ---- recompilation


def recompile_text(fn: object, *calls: tuple) -> str:
    compiled = torch.compile(fn, backend="eager")
    compiled(*calls[0])
    with (
        pytest.raises(exc.RecompileError) as caught,
        torch._dynamo.config.patch(error_on_recompile=True),
    ):
        compiled(*calls[1])
    return str(caught.value)


def test_recompilation_names_guard_old_and_new_value_and_a_remedy() -> None:
    def add(x: torch.Tensor, n: int) -> torch.Tensor:
        return x + n

    text = recompile_text(add, (torch.ones(2), 3), (torch.ones(2), 4))
    assert "L['n'] == 3, now 4" in text
    assert "dynamic=True" in text
    text = recompile_text(add, (torch.ones(2), 3), (torch.ones(5), 3))
    assert "expected 2, actual 5" in text
    assert "mark_dynamic" in text


def test_last_compilation_that_the_limit_permits_fits_all_sizes() -> None:
    counter = testing.CompileCounter()

    @torch.compile(backend=counter)
    def function(x: torch.Tensor, flag: bool) -> torch.Tensor:
        return x + 1 if flag else x - 1

    with torch._dynamo.config.patch(recompile_limit=3):
        function(torch.ones(2), True)
        function(torch.ones(2, dtype=torch.float64), True)
        function(torch.ones(2), False)
        assert counter.frame_count == 3
        for size in range(3, 9):
            assert torch.equal(function(torch.ones(size), False), torch.zeros(size))
    assert counter.frame_count == 3


def test_limit_of_one_compiled_function_overrides_the_setting() -> None:
    counter = testing.CompileCounter()
    fn = torch.compile(lambda x: x + 1, backend=counter, dynamic=False, recompile_limit=2)
    for size in range(2, 7):
        assert torch.equal(fn(torch.zeros(size)), torch.ones(size))
    assert counter.frame_count == 2


def test_sizes_that_varied_in_an_earlier_run_of_a_job_are_symbols(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path))
    counter = testing.CompileCounter()
    fn = torch.compile(lambda x: x + 1, backend=counter)
    counts = []
    for job in ("first", "first", "second"):
        counter.frame_count = 0
        with torch.compiler.config.patch(job_id=job):
            for size in (3, 4, 5):
                fn(torch.ones(size))
        counts.append(counter.frame_count)
        torch._dynamo.reset()
    assert counts == [2, 1, 2]


def test_every_registered_log_has_a_handler_and_says_a_record_once() -> None:
    names = torch._logging._internal.log_registry.get_log_qnames()
    assert all(logging.getLogger(name).handlers for name in names)
    assert not any(logging.getLogger(name).propagate for name in names)


@pytest.mark.skipif(sys.version_info < (3, 11), reason="code has places in lines from 3.11 on")
def test_traced_calls_are_shown_with_their_place_in_the_line(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def function(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return (x * 2) @ (y * 3)

    logger = logging.getLogger("torch._dynamo")
    torch._logging.set_logs(trace_call=True)
    logger.addHandler(caplog.handler)
    try:
        torch.compile(function, backend="eager")(torch.ones(2, 2), torch.ones(2, 2))
    finally:
        logger.removeHandler(caplog.handler)
        torch._logging.set_logs()
    found = [record for record in caplog.records if record.name.endswith("__trace_call")]
    shown = [record.getMessage().splitlines()[-2:] for record in found]
    line = "        return (x * 2) @ (y * 3)"
    assert shown == [
        [line, "                ~~^~~"],
        [line, "                          ~~^~~"],
        [line, "               ~~~~~~~~^~~~~~~~~"],
    ]


def test_lazy_string_of_the_tracer_is_that_of_logging() -> None:
    assert torch._dynamo.utils.LazyString is torch._logging.LazyString


# ---- metrics


def test_metrics_of_nested_contexts_are_handed_over_once() -> None:
    seen: list[dict] = []
    context = MetricsContext(lambda start, end, metrics, kind, value: seen.append(dict(metrics)))
    with context:
        with context:
            context.set("a", 1)
        context.increment("b", 2)
        context.add_to_set("c", 3)
        with pytest.raises(RuntimeError, match="already been set"):
            context.set("a", 2)
    assert seen == [{"a": 1, "b": 2, "c": {3}}]
    with pytest.raises(RuntimeError, match="outside of a MetricsContext"):
        context.set("a", 1)


def test_top_n_keeps_the_largest() -> None:
    top = TopN(2)
    for key, value in (("a", 1), ("b", 5), ("c", 3), ("b", 4)):
        top.add(key, value)
    assert list(top) == [("b", 5), ("c", 3)]


def test_every_break_says_why_what_helps_where_and_its_id() -> None:
    def branches(x: torch.Tensor) -> torch.Tensor:
        return x if x.sum() > 0 else -x

    def asks(x: torch.Tensor) -> torch.Tensor:
        return x + len(globals())

    texts = []
    for fn in (branches, asks):
        torch._dynamo.reset()
        with pytest.raises(torch._dynamo.exc.Unsupported) as caught:
            torch.compile(fn, backend="eager", fullgraph=True)(torch.ones(2))
        texts.append(str(caught.value))
        for words in (
            "  Explanation: ",
            "  Hint: ",
            "  Registry id: GB",
            "from user code:",
            "return",
        ):
            assert words in texts[-1]
    assert "GB0170" in texts[0] and "/gb/gb0170.html" in texts[0] and ".html" not in texts[1]
