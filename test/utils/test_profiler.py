"""torch.profiler: what is recorded, how it is summed and printed, schedules and trace files; and
that nothing is left behind when it is off."""

import gzip
import json
import os

import pytest

import torch
from torch.profiler import (
    ProfilerAction,
    ProfilerActivity,
    profile,
    record_function,
    schedule,
    tensorboard_trace_handler,
)


def names(prof):
    return [event.name for event in prof.events()]


def test_operators_and_ranges_nest():
    a = torch.randn(8, 16, requires_grad=True)
    b = torch.randn(16, 4)
    with profile(record_shapes=True, profile_memory=True) as prof:
        with record_function("block"):
            c = torch.relu(a @ b)
        c.sum().backward()
    events = prof.events()
    block = next(e for e in events if e.name == "block")
    matmul = next(e for e in events if e.name == "aten::matmul")
    mm = next(e for e in events if e.name == "aten::mm")
    assert matmul.cpu_parent is block and mm.cpu_parent is matmul
    assert mm.input_shapes == [[8, 16], [16, 4]] and mm.input_dtypes == ["Float", "Float"]
    assert mm.cpu_memory_usage == matmul.cpu_memory_usage == 8 * 4 * 4
    assert matmul.self_cpu_memory_usage == 0
    assert block.is_user_annotation and not mm.is_user_annotation
    assert names(prof).count("aten::mm") == 2
    for event in events:
        assert 0 <= event.self_cpu_time_total <= event.cpu_time_total
        if event.cpu_parent is not None:
            outer = event.cpu_parent.time_range
            assert outer.start <= event.time_range.start <= event.time_range.end <= outer.end


def test_averages_add_up():
    a, b = torch.randn(4, 4), torch.randn(5, 5)
    with profile(record_shapes=True) as prof:
        for _ in range(3):
            a + a
        b + b
    (add,) = [e for e in prof.key_averages() if e.key == "aten::add"]
    assert add.count == 4
    assert add.cpu_time_total == pytest.approx(sum(e.cpu_time_total for e in prof.events()))
    averages = prof.key_averages(group_by_input_shape=True)
    by_shape = {str(e.input_shapes): e.count for e in averages}
    assert by_shape == {"[[4, 4], [4, 4], []]": 3, "[[5, 5], [5, 5], []]": 1}
    total = prof.key_averages().total_average()
    assert total.key == "Total" and total.count == 4


def test_table():
    a = torch.randn(64, 64)
    with profile() as prof:
        torch.relu(a @ a)
    text = prof.key_averages().table(sort_by="self_cpu_time_total", row_limit=2)
    lines = text.splitlines()
    titles = [part.strip() for part in lines[1].split("  ") if part.strip()]
    assert titles == [
        "Name", "Self CPU %", "Self CPU", "CPU total %", "CPU total", "CPU time avg", "# of Calls",
    ]  # fmt: skip
    assert set(lines[0]) == {"-", " "} and lines[0] == lines[2] == lines[5]
    assert lines[-1].startswith("Self CPU time total: ")
    assert len(lines) == 7
    with pytest.raises(AttributeError):
        prof.key_averages().table(sort_by="nothing")
    by_old_name = prof.key_averages().table(sort_by="cuda_time_total")
    assert "aten::relu" in by_old_name


def test_stacks_and_flops():
    a = torch.randn(8, 16)

    def here():
        return torch.mm(a, a.t())

    with profile(with_stack=True, with_flops=True) as prof:
        here()
    mm = next(e for e in prof.events() if e.name == "aten::mm")
    assert "here" in mm.stack[0] and __file__ in mm.stack[0]
    assert mm.flops == 2 * 8 * 16 * 8
    assert "Source Location" in prof.key_averages(group_by_stack_n=2).table()


def test_schedule_numbers():
    act = schedule(wait=1, warmup=1, active=2, repeat=2, skip_first=1)
    expected = ["NONE", "NONE", "WARMUP", "RECORD", "RECORD_AND_SAVE"]
    expected += ["NONE", "WARMUP", "RECORD", "RECORD_AND_SAVE", "NONE", "NONE"]
    assert [act(i).name for i in range(11)] == expected
    for wrong in ({"wait": -1, "warmup": 0, "active": 1}, {"wait": 0, "warmup": 0, "active": 0}):
        with pytest.raises(AssertionError, match="Invalid profiler schedule"):
            schedule(**wrong)


def test_steps_are_recorded_by_schedule():
    seen = []
    a = torch.ones(3)
    with profile(
        schedule=schedule(wait=1, warmup=1, active=2, repeat=2),
        on_trace_ready=lambda p: seen.append([e.name for e in p.events()]),
    ) as prof:
        for step in range(9):
            a + 1 if step % 2 else a * 2
            prof.step()
    assert prof.step_num == 9
    assert [len(events) for events in seen] == [4, 4]
    assert seen[0] == ["ProfilerStep#2", "aten::mul", "ProfilerStep#3", "aten::add"]
    assert prof.current_action is ProfilerAction.NONE


def test_trace_files(tmp_path):
    with profile(record_shapes=True) as prof, record_function("range"):
        torch.ones(2) + 1
    prof.add_metadata("who", "me")
    prof.export_chrome_trace(tmp_path / "trace.json")
    prof.export_chrome_trace(str(tmp_path / "trace.json.gz"))
    document = json.loads((tmp_path / "trace.json").read_text())
    again = json.loads(gzip.decompress((tmp_path / "trace.json.gz").read_bytes()))
    assert document["traceEvents"] == again["traceEvents"] and document["who"] == "me"
    rows = [row for row in document["traceEvents"] if row["ph"] == "X"]
    assert {row["cat"] for row in rows} == {"cpu_op", "user_annotation"}
    assert rows[0]["name"] == "range" and rows[0]["dur"] >= rows[-1]["dur"]
    assert rows[-1]["args"]["Input Dims"][0] == [2]
    tensorboard_trace_handler(str(tmp_path / "logs"), "worker")(prof)
    (name,) = os.listdir(tmp_path / "logs")
    assert name.startswith("worker.") and name.endswith(".pt.trace.json")


def test_errors_end_the_recording():
    with pytest.raises(RuntimeError, match="size"), profile() as prof:
        torch.ones(2) + torch.ones(3)
    assert names(prof)[-1] == "aten::add"
    assert not torch._C._profiler_enabled()
    with profile(), pytest.raises(RuntimeError, match="already enabled"):
        profile().start()
    with pytest.raises(AssertionError):
        profile().events()
    with pytest.raises(AssertionError, match="activities"):
        profile(activities=[])


def test_off_leaves_no_key():
    with profile(activities=[ProfilerActivity.CPU]):
        pass
    assert torch._C._dispatch_tls_local_include_set().raw_repr() == 0
    with record_function("nothing records"):
        torch.ones(1) + 1


def test_record_function_decorates():
    @record_function("named")
    def work(x):
        return x + 1

    with profile() as prof:
        work(torch.ones(2))
        work(torch.ones(2))
    assert names(prof).count("named") == 2


def test_autograd_profiler():
    with torch.autograd.profiler.profile() as prof:
        torch.ones(2) * 3
    assert "aten::mul" in str(prof) and prof.self_cpu_time_total > 0
    assert "aten::mul" in prof.key_averages().table()
    with torch.autograd.profiler.profile(enabled=False) as off:
        pass
    assert off is None
    with pytest.raises(NotImplementedError), torch.autograd.profiler.emit_itt():
        pass


def test_results_are_the_same_under_the_profiler():
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Tanh(), torch.nn.Linear(8, 2))
    x = torch.randn(5, 4)

    def run():
        model.zero_grad()
        model(x).square().mean().backward()
        return [p.grad.clone() for p in model.parameters()]

    plain = run()
    with profile(record_shapes=True, profile_memory=True, with_stack=True):
        recorded = run()
    assert all(map(torch.equal, plain, recorded))
    with profile():
        out = torch.vmap(torch.func.grad(lambda v: v.sin().sum()))(x)
    torch.testing.assert_close(out, x.cos())


def test_counted_operations_are_shown_in_a_unit_that_fits():
    layer, x = torch.nn.Linear(64, 32), torch.randn(100, 64)
    with torch.profiler.profile(with_flops=True) as prof:
        layer(x)
    averages = prof.key_averages()
    linear = next(event for event in averages if event.key == "aten::linear")
    assert linear.flops == 2 * 100 * 64 * 32
    table = averages.table()
    assert "Total KFLOPs" in table
    assert "409.600" in table


def test_what_pytorch_needs_mkl_and_lapack_for_is_said_to_work():
    assert torch.backends.mkl.is_available()
    assert torch._C.has_lapack and torch._C.has_spectral and torch._C.has_mkl
    with torch.backends.mkl.verbose(torch.backends.mkl.VERBOSE_OFF):
        matrix = torch.eye(2).to_sparse_csr()
        assert (matrix @ torch.ones(2)).tolist() == [1.0, 1.0]


def test_recordings_have_names(tmp_path):
    with profile() as prof:
        torch.ones(2)
    first = prof.get_trace_id()
    assert len(first) == 32 and int(first, 16) >= 0
    with profile(custom_trace_id_callback=lambda: "mine") as prof:
        torch.ones(2)
    assert prof.get_trace_id() == "mine"
    prof.export_chrome_trace(str(tmp_path / "trace.json"))
    assert json.loads((tmp_path / "trace.json").read_text())["trace_id"] == "mine"
    fresh = profile()
    assert fresh.get_trace_id() is None
    fresh.set_custom_trace_id_callback(lambda: "later")
    fresh.prepare_trace()
    fresh.start_trace()
    torch.ones(2) + 1
    fresh.stop_trace()
    assert fresh.get_trace_id() == "later" and "aten::add" in names(fresh)


def test_recording_may_be_interrupted():
    cpu = [ProfilerActivity.CPU]
    prof = torch.autograd.profiler.profile()
    prof.toggle_collection_dynamic(False, cpu)  # not begun: nothing happens
    with prof:
        torch.ones(2) + 1
        prof.toggle_collection_dynamic(False, cpu)
        prof.toggle_collection_dynamic(False, cpu)
        torch.ones(2) * 2
        prof.toggle_collection_dynamic(True, cpu)
        torch.ones(2).relu()
    seen = [event.name for event in prof.function_events]
    assert "aten::add" in seen and "aten::relu" in seen and "aten::mul" not in seen
    with prof:
        prof.toggle_collection_dynamic(False, cpu)
    assert prof.function_events == []


def test_steps_are_counted_by_who_is_furthest():
    steps = torch.autograd.profiler.KinetoStepTracker
    begin = steps.current_step()
    steps.init_step_count("one")
    steps.init_step_count("two")
    assert steps.increment_step("one") == begin + 1
    assert steps.increment_step("two") == begin + 1
    assert steps.increment_step("two") == begin + 2
    assert steps.erase_step_count("two") and not steps.erase_step_count("two")
    assert steps.current_step() == begin + 2
    with profile(schedule=schedule(wait=0, warmup=0, active=1)) as prof:
        prof.step()
    assert steps.current_step() == begin + 3
    steps.erase_step_count("one")


def test_keys_come_once_and_records_are_found_by_time():
    unique = torch.autograd.profiler.EnforceUnique()
    unique.see("a", 1)
    unique.see("a", 2)
    with pytest.raises(RuntimeError, match="duplicate key"):
        unique.see("a", 1)

    class Record:
        def __init__(self, start):
            self.start_ns = lambda: start

    records = torch.autograd.profiler.MemRecordsAcc([(Record(t), t) for t in (30, 10, 20)])
    assert [r[1] for r in records.in_interval(10, 20)] == [10, 20]
    assert [r[1] for r in records.in_interval(11, 40)] == [20, 30]
    assert list(records.in_interval(31, 40)) == []


def test_parts_of_an_interrupted_recording_share_their_clock():
    cpu = [ProfilerActivity.CPU]
    with profile(activities=cpu) as prof:
        torch.ones(2) + 1
        prof.toggle_collection_dynamic(False, cpu)
        torch.ones(2) * 2
        prof.toggle_collection_dynamic(True, cpu)
        torch.ones(2).relu()
    starts = {e.name: e.time_range.start for e in prof.events()}
    assert "aten::mul" not in starts and starts["aten::add"] < starts["aten::relu"]


def test_range_that_outlives_its_recording_ends_nothing_of_the_next():
    outer = record_function("outer")
    with profile():
        outer.__enter__()
    with profile() as prof, record_function("inner"):
        outer.__exit__(None, None, None)
        torch.ones(2) + 1
    inner = next(e for e in prof.events() if e.name == "inner")
    add = next(e for e in prof.events() if e.name == "aten::add")
    assert add.cpu_parent is inner
    assert inner.time_range.end >= add.time_range.end
