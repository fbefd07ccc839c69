"""What a profiler records of the GPU: kernels, copies and fills under the operators that started
them, sums, tables and trace files; and what happens where the tracing library is missing, refuses,
or the process ends while it records. The emulated libcupti writes records as the vendor's does."""

import json
import subprocess
import threading
import time
import warnings

import pytest
from cuda_support import EMULATED, cuda, emulator_environment, run_python

import torch
from torch.profiler import DeviceType, ProfilerActivity, profile, record_function, schedule

BOTH = [ProfilerActivity.CPU, ProfilerActivity.CUDA]
needs_emulator = pytest.mark.skipif(not EMULATED, reason="starts processes on the emulator")


def work_of(events, kind=None):
    found = [e for e in events if e.activity is not None and not e.activity.is_call]
    return [e for e in found if kind is None or e.activity.kind == kind]


def calls_of(events):
    return [e for e in events if e.activity is not None and e.activity.is_call]


def operators_of(events, name):
    return [e for e in events if e.name == name and e.activity is None]


@pytest.fixture(scope="module", autouse=True)
def warmed_up():
    """Programs are compiled and devices initialised before anything is recorded."""
    x = torch.randn(8, 8, device=cuda)
    (x @ x).relu().add(1).cpu()
    torch.zeros(64, device=cuda)


def test_kernels_belong_to_the_operators_that_launched_them():
    x = torch.randn(8, 8, device=cuda)
    with profile(activities=BOTH) as prof, record_function("block"):
        x.add(1).relu()
    (add,) = operators_of(prof.events(), "aten::add")
    (relu,) = operators_of(prof.events(), "aten::relu")
    (block,) = [e for e in operators_of(prof.events(), "block") if e.device_type is DeviceType.CPU]
    kernels = work_of(prof.events(), "kernel")
    assert len(add.kernels) >= 1 and add.kernels[0].duration > 0 and add.kernels[0].device == 0
    owners = {e.linked_event_id for e in kernels}
    assert add.id in owners
    total = sum(e.time_range.elapsed_us() for e in work_of(prof.events()))
    assert add.self_device_time_total == pytest.approx(sum(k.duration for k in add.kernels))
    assert block.self_device_time_total == 0
    assert block.device_time_total == pytest.approx(total)
    assert block.device_time_total >= add.device_time_total + relu.device_time_total - 1e-6
    for event in kernels:
        assert event.device_type is DeviceType.CUDA and event.cpu_time_total == 0
        assert event.device_time_total == event.time_range.elapsed_us() > 0
        assert event.activity.grid[0] >= 1 and event.activity.block[0] >= 1
        details = json.loads("{" + event.metadata_json + "}")
        assert details["correlation"] == event.linked_correlation_id > 0
        assert details["block"] == list(event.activity.block)
    assert add.metadata_json == "" and add.linked_correlation_id == 0


def test_work_lies_in_time_where_it_was_started():
    x = torch.randn(8, 8, device=cuda)
    with profile(activities=BOTH) as prof:
        for _ in range(30):
            x = x.mul(1.5)
    events = prof.events()
    calls = {e.activity.correlation: e for e in calls_of(events)}
    operators = {e.id: e for e in events if e.activity is None}
    kernels = work_of(events, "kernel")
    assert len(kernels) == 30  # more than one buffer of the emulated library holds
    for kernel in kernels:
        call = calls[kernel.activity.correlation]
        owner = operators[kernel.linked_event_id]
        assert call.cpu_parent is owner and owner.name == "aten::mul"
        assert owner.time_range.start <= call.time_range.start
        assert call.time_range.end <= owner.time_range.end
        assert kernel.time_range.start >= call.time_range.start - 50
        assert call.name.startswith("cuLaunchKernel")
    for operator in operators.values():
        assert operator.self_cpu_time_total >= 0


def test_copies_and_fills_know_their_bytes():
    host = torch.ones(1000)
    with profile(activities=BOTH) as prof:
        on_device = host.to(cuda)
        on_device.zero_()
        on_device.cpu()
    copies = {e.name.split(" (")[0]: e for e in work_of(prof.events(), "gpu_memcpy")}
    assert copies["Memcpy HtoD"].activity.bytes == 4000
    assert copies["Memcpy DtoH"].activity.bytes == 4000
    names = {e.name for e in calls_of(prof.events())}
    assert "cuMemcpyHtoDAsync" in names or "cuMemcpyAsync" in names
    for event in work_of(prof.events(), "gpu_memset"):
        assert event.activity.bytes == 4000
    assert len(work_of(prof.events())) >= 3


@pytest.mark.skipif(torch.cuda.device_count() < 2, reason="needs two devices")
def test_work_of_each_device_is_told_apart():
    x = torch.ones(64, device="cuda:0")
    y = torch.ones(64, device="cuda:1") + 1
    with profile(activities=BOTH) as prof:
        x.add(1)
        y.add(1)
        x.to("cuda:1")
    kernels = work_of(prof.events(), "kernel")
    assert {e.device_index for e in kernels} >= {0, 1}
    (moved,) = work_of(prof.events(), "gpu_memcpy")
    assert moved.activity.bytes == 256


def test_averages_and_table_have_cuda_columns():
    x = torch.randn(16, 16, device=cuda)
    with profile(activities=BOTH, record_shapes=True) as prof:
        for _ in range(4):
            x.add(1)
        x @ x
    averages = prof.key_averages()
    (add,) = [a for a in averages if a.key == "aten::add"]
    (mm,) = [a for a in averages if a.key == "aten::mm"]
    assert add.count == 4
    assert add.device_time_total == add.cuda_time_total > 0
    assert add.self_device_time_total == add.self_cuda_time_total
    assert add.device_time == add.cuda_time == pytest.approx(add.device_time_total / 4)
    assert mm.self_cuda_time_total > 0
    rows = [a for a in averages if a.device_type is DeviceType.CUDA]
    assert sum(a.self_cuda_time_total for a in rows) == pytest.approx(
        sum(a.self_cuda_time_total for a in averages if a.device_type is DeviceType.CPU)
    )
    table = averages.table(sort_by="cuda_time_total", row_limit=3)
    titles = [part.strip() for part in table.splitlines()[1].split("  ") if part.strip()]
    start = titles.index("Self CUDA")
    assert titles[start : start + 4] == ["Self CUDA", "Self CUDA %", "CUDA total", "CUDA time avg"]
    assert "Self CUDA time total: " in table
    by_time = sorted((a.device_time_total for a in averages), reverse=True)
    assert (
        table.splitlines()[3].split()[0]
        in {a.key for a in averages if a.device_time_total == by_time[0]}
        or by_time.count(by_time[0]) == 1
    )
    assert "cuda_time=" in repr(add)


def test_trace_has_rows_of_the_gpu_and_arrows_to_them(tmp_path):
    x = torch.randn(16, 16, device=cuda)
    with profile(activities=BOTH) as prof, record_function("range"):
        (x @ x).add(1).cpu()
    path = tmp_path / "trace.json"
    prof.export_chrome_trace(str(path))
    document = json.loads(path.read_text())
    rows = document["traceEvents"]
    assert document["deviceProperties"][0]["name"] == torch.cuda.get_device_name()
    kernels = [r for r in rows if r.get("cat") == "kernel"]
    work = [r for r in rows if r.get("cat") in ("kernel", "gpu_memcpy", "gpu_memset")]
    calls = [r for r in rows if r.get("cat") in ("cuda_driver", "cuda_runtime")]
    assert len(kernels) >= 2 and all(r["pid"] == 0 and r["dur"] > 0 for r in kernels)
    by_correlation = {r["args"]["correlation"]: r for r in calls}
    starts = {r["id"]: r for r in rows if r["ph"] == "s"}
    ends = {r["id"]: r for r in rows if r["ph"] == "f"}
    assert starts.keys() == ends.keys() and len(starts) == len(work)
    for row in work:
        call = by_correlation[row["args"]["correlation"]]
        assert any(
            (s["pid"], s["tid"], s["ts"]) == (call["pid"], call["tid"], call["ts"])
            and (ends[i]["pid"], ends[i]["tid"], ends[i]["ts"])
            == (row["pid"], row["tid"], row["ts"])
            for i, s in starts.items()
        )
    operators = {r["args"]["External id"]: r for r in rows if r.get("cat") == "cpu_op"}
    assert operators[kernels[-1]["args"]["External id"]]["name"] == "aten::add"
    (span,) = [r for r in rows if r.get("cat") == "gpu_user_annotation"]
    assert span["name"] == "range"
    assert span["ts"] == min(r["ts"] for r in work)
    assert {"ph": "M", "name": "thread_name"}.items() <= next(
        r for r in rows if r.get("args", {}).get("name", "").startswith("stream ")
    ).items()


def test_schedule_records_each_cycle_by_itself():
    x = torch.ones(8, device=cuda)
    seen = []

    def keep(prof):
        seen.append(len(work_of(prof.events(), "kernel")))

    plan = schedule(wait=1, warmup=1, active=2, repeat=2)
    with profile(activities=BOTH, schedule=plan, on_trace_ready=keep) as prof:
        for _ in range(8):
            x.add(1)
            prof.step()
    assert seen == [2, 2]


@pytest.mark.parametrize("kinds", [[ProfilerActivity.CPU], [ProfilerActivity.CUDA]])
def test_activities_choose_what_is_recorded(kinds):
    x = torch.ones(8, device=cuda)
    with profile(activities=kinds) as prof, record_function("range"):
        x.add(1)
    on_cpu = ProfilerActivity.CPU in kinds
    assert bool(operators_of(prof.events(), "aten::add")) is on_cpu
    assert bool(operators_of(prof.events(), "range")) is on_cpu
    assert bool(work_of(prof.events())) is not on_cpu
    assert ("Self CUDA" in prof.key_averages().table()) is not on_cpu


def test_the_gpu_alone_may_be_left_out_for_a_while():
    x = torch.ones(8, device=cuda)
    with profile(activities=BOTH) as prof, record_function("whole"):
        x.add(1)
        prof.toggle_collection_dynamic(False, [ProfilerActivity.CUDA])
        x.mul(2)
        prof.toggle_collection_dynamic(True, [ProfilerActivity.CUDA])
        x.neg()
    times = {e.name: e.time_range.start for e in prof.events() if e.activity is None}
    assert times["aten::add"] < times["aten::mul"] < times["aten::neg"]
    launched = {e.name for e in prof.events() if e.kernels}
    assert launched == {"aten::add", "aten::neg"}


def test_what_the_profiler_calls_itself_is_not_shown():
    with profile(activities=BOTH) as prof:
        torch.ones(2) + 1
    assert not calls_of(prof.events()) and not work_of(prof.events())
    with profile(activities=BOTH) as prof:
        torch.cuda.synchronize()
    (wait,) = prof.events()
    assert wait.name == "cuCtxSynchronize" and wait.cpu_parent is None
    assert wait.thread == threading.get_native_id()


def test_autograd_profiler_records_the_gpu_on_request():
    x = torch.ones(8, device=cuda)
    with torch.autograd.profiler.profile(use_device="cuda") as prof:
        x.add(1)
    assert work_of(prof.function_events)
    with torch.autograd.profiler.profile() as prof:
        x.add(1)
    assert not work_of(prof.function_events) and prof.function_events[0].device_time_total == 0


def test_open_ranges_leave_no_mark_behind():
    x = torch.ones(8, device=cuda)
    prof = profile(activities=BOTH)
    prof.start()
    left_open = record_function("open")
    left_open.__enter__()
    prof.stop()
    left_open.__exit__(None, None, None)
    with profile(activities=BOTH) as prof:
        torch.cuda.synchronize()
        x.add(1)
    owners = {e.linked_event_id for e in calls_of(prof.events()) if "Synchronize" in e.name}
    assert owners <= {0}


def test_work_of_other_threads_is_recorded_without_an_operator():
    x = torch.ones(8, device=cuda)
    with profile(activities=BOTH) as prof:
        thread = threading.Thread(target=lambda: x.add(1))
        thread.start()
        thread.join()
    (kernel,) = work_of(prof.events(), "kernel")
    assert kernel.linked_event_id == 0
    assert not operators_of(prof.events(), "aten::add")


def test_second_recording_thread_is_told_that_the_gpu_is_taken():
    messages = []

    def record():
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            with profile(activities=BOTH) as inner:
                torch.ones(8, device=cuda)
            messages.extend(str(w.message) for w in caught)
            assert not work_of(inner.events())

    with profile(activities=BOTH) as prof:
        thread = threading.Thread(target=record)
        thread.start()
        thread.join()
        torch.ones(8, device=cuda).add(1)
    assert any("another thread records" in m for m in messages)
    assert work_of(prof.events())


def test_thread_that_ends_while_it_records_gives_the_gpu_back():
    def record():
        profile(activities=BOTH).start()

    thread = threading.Thread(target=record)
    thread.start()
    thread.join()
    # What the thread held is freed when the system ends it, a moment after join() returns.
    for _ in range(100):
        with profile(activities=BOTH) as prof:
            torch.ones(8, device=cuda).add(1)
        if work_of(prof.events()):
            break
        time.sleep(0.05)
    assert work_of(prof.events())


def test_graph_replay_shows_its_kernels():
    x = torch.ones(8, device=cuda)
    x.mul(2).add_(1)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        x.mul(2).add_(1)
    with profile(activities=BOTH) as prof, record_function("replay"):
        graph.replay()
    kernels = work_of(prof.events(), "kernel")
    assert len(kernels) >= 1
    calls = {e.activity.correlation: e.name for e in calls_of(prof.events())}
    assert {calls[e.activity.correlation] for e in kernels} == {"cuGraphLaunch"}


@pytest.mark.parametrize("option", ["enable_annotations", "check_input_liveness"])
def test_options_of_graphs_that_are_missing_are_named(option):
    torch.cuda.graph(torch.cuda.CUDAGraph(), **{option: False})
    with pytest.raises(NotImplementedError, match=option):
        torch.cuda.graph(torch.cuda.CUDAGraph(), **{option: True})


def test_memory_and_execution_traces_take_the_program_only(tmp_path):
    x = torch.ones(8, device=cuda)
    observer = torch.profiler.ExecutionTraceObserver()
    observer.register_callback(str(tmp_path / "et.json"))
    with profile(activities=BOTH, execution_trace_observer=observer):
        x.add(1)
    nodes = json.loads((tmp_path / "et.json").read_text())["nodes"]
    assert [n["name"] for n in nodes[1:]] == ["aten::add"]


PROGRAM = """
import warnings, torch
from torch.profiler import profile, ProfilerActivity
x = torch.ones(8, device="cuda")
x.add(1)
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as prof:
        x.add(1)
        x.add(1)
names = [e.name for e in prof.events()]
print(names.count("aten::add"), sum(len(e.kernels) for e in prof.events()), *caught)
prof.key_averages().table(sort_by="cuda_time_total")
"""


@pytest.mark.skipif(not EMULATED, reason="needs a library that refuses")
@pytest.mark.parametrize(
    ("setting", "kernels", "message"),
    [
        ("12", "2", ""),
        ("refuse", "0", "CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED"),
        ("old", "0", "too old"),
        ("lost", "0", ""),
    ],
)
def test_other_versions_and_refusals(setting, kernels, message):
    done = run_python(PROGRAM, emulator_environment(CUPTI=setting))
    assert done.returncode == 0, done.stderr
    assert done.stdout.split()[:2] == ["2", kernels]
    assert message in done.stdout
    assert ("not recorded" in done.stdout) is bool(message)


@pytest.mark.skipif(not EMULATED, reason="needs a machine without the library")
def test_missing_library_leaves_the_operators(tmp_path):
    environment = emulator_environment()
    folder = environment["LD_LIBRARY_PATH"].split(":")[0]
    for name in ("libcuda.so.1", "libnvrtc.so.13", "libcublasLt.so.13"):
        (tmp_path / "emulator").mkdir(exist_ok=True)
        (tmp_path / "emulator" / name).symlink_to(f"{folder}/{name}")
    environment["LD_LIBRARY_PATH"] = str(tmp_path / "emulator")
    done = run_python(PROGRAM, environment)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split()[:2] == ["2", "0"]
    # The system may have the vendor's, which does not accept the emulated driver.
    assert "not recorded: " in done.stdout


@needs_emulator
@pytest.mark.parametrize(
    "end",
    ["", "import os; os._exit(0)", "raise SystemExit(0)", "import gc; del prof; gc.collect()"],
)
def test_process_may_end_while_it_records(end):
    code = (
        "import torch; from torch.profiler import profile, record_function\n"
        "prof = profile(); prof.start(); record_function('open').__enter__()\n"
        f"torch.ones(8, device='cuda').add(1)\n{end}\n"
    )
    done = run_python(code, emulator_environment())
    assert done.returncode == 0, done.stderr


@needs_emulator
def test_child_of_a_recording_process_goes_on():
    code = """
import os, torch
from torch.profiler import profile
prof = profile()
prof.start()
torch.ones(8, device="cuda").add(1)
child = os.fork()
if child == 0:
    torch.ones(3) + 1
    prof.stop()
    assert not any(e.activity for e in prof.events())
    os._exit(7)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
prof.stop()
assert any(e.activity for e in prof.events())
"""
    done = run_python(code, emulator_environment())
    assert done.returncode == 0, done.stderr


NVTX = r"""
#include <cstdint>
#include <cstdio>
extern "C" {
static int depth = 0;
int nvtxRangePushA(const char* name) { std::printf("push %d %s\n", depth, name); return depth++; }
int nvtxRangePop() { std::printf("pop\n"); std::fflush(stdout); return --depth; }
uint64_t nvtxRangeStartA(const char* name) { std::printf("start %s\n", name); return 41; }
void nvtxRangeEnd(uint64_t range) { std::printf("end %d\n", static_cast<int>(range)); }
void nvtxMarkA(const char* name) { std::printf("mark %s\n", name); }
}
"""


@pytest.fixture(scope="module")
def nvtx_environment(tmp_path_factory):
    """The environment of a process that finds an NVTX library which prints what it is told."""
    folder = tmp_path_factory.mktemp("nvtx")
    (folder / "nvtx.cpp").write_text(NVTX)
    library = folder / "libnvtx3interop.so.1"
    command = ["g++", "-shared", "-fPIC", "-o", str(library), str(folder / "nvtx.cpp")]
    subprocess.run(command, check=True)
    environment = emulator_environment()
    environment["LD_LIBRARY_PATH"] += f":{folder}"
    return environment


@needs_emulator
def test_emit_nvtx_makes_ranges_of_operators(nvtx_environment):
    code = """
import torch
x = torch.ones(2, 3, device="cuda")
with torch.autograd.profiler.emit_nvtx(record_shapes=True):
    with torch.profiler.record_function("block"):
        x.add(1)
    try:
        x.add(torch.ones(5, device="cuda"))
    except RuntimeError:
        pass
    torch.cat([x, x])
x.add(1)
with torch.autograd.profiler.emit_nvtx() as emitter:
    x.mul(2)
    try:
        with emitter:
            pass
    except RuntimeError as error:
        print("error", error)
with torch.autograd.profiler.emit_nvtx(enabled=False):
    x.mul(2)
"""
    done = run_python(code, nvtx_environment)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[:4] == ["push 0 block", "push 1 aten::add, sizes = [[2, 3], [], []]", "pop", "pop"]
    assert "push 0 aten::add, sizes = [[2, 3], [5], []]" in lines
    assert "push 0 aten::cat, sizes = [[[2, 3], [2, 3]], []]" in lines
    assert lines.count("push 0 aten::mul") == 1
    assert "error NVTX annotation context manager is not reentrant" in lines
    assert sum(line.startswith("push") for line in lines) == lines.count("pop")


@needs_emulator
def test_nvtx_functions_reach_the_library(nvtx_environment):
    code = """
from torch.cuda import nvtx
print(nvtx.range_push("a"), nvtx.range_push(2), nvtx.range_pop(), nvtx.range_pop(), flush=True)
number = nvtx.range_start("c")
nvtx.range_end(number)
nvtx.mark("d")
with nvtx.range("e {}", 5):
    pass
print(number)
"""
    done = run_python(code, nvtx_environment)
    assert done.returncode == 0, done.stderr
    assert sorted(done.stdout.splitlines()) == sorted(
        ["push 0 a", "push 1 2", "pop", "pop", "0 1 1 0", "start c", "end 41", "mark d"]
        + ["push 0 e 5", "pop", "41"]
    )
