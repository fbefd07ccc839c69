"""Contexts of a compiler, sources and guards."""

import dataclasses
import threading

import pytest

import torch
from torch._guards import (
    ChainedSource,
    CompileContext,
    CompileId,
    Guard,
    GuardsContext,
    GuardSource,
    GuardsSet,
    Source,
    TraceId,
    TracingContext,
    compile_context,
    detect_fake_mode,
    tracing,
)
from torch._subclasses.fake_tensor import FakeTensorMode


@dataclasses.dataclass(frozen=True)
class Local(Source):
    local: str

    def name(self):
        return f"L[{self.local!r}]"

    def guard_source(self):
        return GuardSource.LOCAL


@dataclasses.dataclass(frozen=True)
class Attribute(ChainedSource):
    member: str

    def name(self):
        return f"{self.base.name()}.{self.member}"


def equals(builder, guard):
    builder.append(guard.name)


def test_compile_id_prints_and_reads_back():
    for text in ("0/1", "!2", "!2/0/1"):
        assert str(CompileId.from_string(text)) == text
    assert str(TraceId(CompileId(frame_id=3, frame_compile_id=0), 2)) == "3/0_2"
    with pytest.raises(ValueError, match="nonsense"):
        CompileId.from_string("nonsense")


def test_contexts_belong_to_the_thread_and_end_with_the_block():
    inside = CompileContext(CompileId(frame_id=1, frame_compile_id=2))
    other = []
    with compile_context(inside), tracing(TracingContext(None)) as trace:
        assert CompileContext.get() is inside and TracingContext.get() is trace
        assert str(CompileContext.current_trace_id()) == "1/2"
        thread = threading.Thread(target=lambda: other.append(CompileContext.try_get()))
        thread.start()
        thread.join()
    assert other == [None] and CompileContext.try_get() is None
    with pytest.raises(RuntimeError, match="must be called within an ongoing trace"):
        TracingContext.get()


def test_error_in_a_trace_carries_the_frames_of_the_user():
    with pytest.raises(ValueError) as caught, tracing(TracingContext(None)):
        TracingContext.set_current_loc("user.py", 7, "forward")
        raise ValueError("inside")
    assert [(f.filename, f.lineno) for f in caught.value.real_stack] == [("user.py", 7)]


def test_patched_attributes_of_a_trace_come_back():
    with tracing(TracingContext(None)) as trace:
        with TracingContext.patch(aot_graph_name="x"):
            assert trace.aot_graph_name == "x"
        assert trace.aot_graph_name is None


def test_guard_set_holds_a_check_once_and_forgets_parts_with_the_whole():
    x = Local("x")
    part = Attribute(x, "shape")
    guards = GuardsSet()
    for source in (x, part, x, Local("y")):
        guards.add(source.make_guard(equals))
    assert [guard.name for guard in guards] == ["L['x']", "L['x'].shape", "L['y']"]
    assert part.get_base() is x and part.guard_source() is GuardSource.LOCAL
    guards.remove_guards_with_source(x)
    assert [guard.name for guard in guards] == ["L['y']"]


def test_guards_are_sorted_and_created_by_their_function():
    built: list[str] = []
    guards = [Guard(Local("long"), equals), Guard(Local("a"), equals)]
    for guard in sorted(guards):
        guard.create(built)
    assert built == ["L['a']", "L['long']"]


def test_guards_of_a_failed_attempt_are_rolled_back():
    context = GuardsContext()
    context.dynamo_guards.add(Local("x").make_guard(equals))
    state = context.copy_graphstate()
    context.dynamo_guards.add(Local("y").make_guard(equals))
    context.restore_graphstate(state)
    assert len(context.dynamo_guards) == 1


def test_fake_mode_is_found_in_trace_block_and_inputs_and_must_agree():
    mode, other = FakeTensorMode(), FakeTensorMode()
    fake = mode.from_tensor(torch.ones(2))
    assert detect_fake_mode() is None
    assert detect_fake_mode({"a": [fake]}) is mode
    with mode:
        assert detect_fake_mode() is mode
    with tracing(TracingContext(mode)):
        assert detect_fake_mode([fake]) is mode
    with (
        other,
        pytest.raises(AssertionError, match="doesn't match mode"),
    ):
        detect_fake_mode([fake])
