"""The profiler against a real GPU: one line per property, exit status 1 where one does not hold.

    python tools/gpu/check_profiler.py [--trace FILE] [--small]

A training step, a chain of large products, a CUDA graph and copies are recorded, and what was
recorded is compared with what is known otherwise: which operators ran, how long events say they
took, how many bytes were moved. It takes a few seconds. --small is for the emulator of
test/cuda_emulator, where times say nothing. Needs libcupti (the CUDA toolkit's or the
Python package nvidia-cuda-cupti)."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
import warnings

import torch
from torch.profiler import DeviceType, ProfilerActivity, profile, record_function, schedule

BOTH = [ProfilerActivity.CPU, ProfilerActivity.CUDA]
failures = []


def check(name, holds, detail="") -> None:
    """Prints a property and keeps it in mind where it does not hold."""
    print(f"{'ok  ' if holds else 'FAIL'}  {name}  {detail}", flush=True)
    if not holds:
        failures.append(name)


def kernels_of(events):
    """Kernels, copies and fills among events."""
    return [e for e in events if e.activity is not None and not e.activity.is_call]


def calls_of(events):
    """Calls of the driver and the runtime among events."""
    return [e for e in events if e.activity is not None and e.activity.is_call]


def small_calls_us(count) -> float:
    """Host time of one small operator."""
    x = torch.ones(1, device="cuda")
    for _ in range(20):
        x.add_(1)
    torch.cuda.synchronize()
    began = time.perf_counter()
    for _ in range(count):
        x.add_(1)
    host = time.perf_counter() - began
    torch.cuda.synchronize()
    return host / count * 1e6


def training(width):
    """A function that runs a training step of a small model."""
    torch.manual_seed(0)
    model = torch.nn.Sequential(
        torch.nn.Linear(width, 4 * width), torch.nn.GELU(), torch.nn.Linear(4 * width, width)
    ).cuda()
    optimizer = torch.optim.AdamW(model.parameters())
    host = torch.randn(512, width).pin_memory()

    def step() -> None:
        x = host.to("cuda", non_blocking=True)
        with record_function("forward"):
            loss = (model(x) - x).square().mean()
        with record_function("backward"):
            loss.backward()
        optimizer.step()
        optimizer.zero_grad()

    return step


def check_training(trace, width) -> None:
    """What a schedule over training steps records, in its events, its averages and its file."""
    step = training(width)
    for _ in range(3):
        step()
    plan = schedule(wait=1, warmup=1, active=2)
    with (
        warnings.catch_warnings(record=True) as caught,
        profile(activities=BOTH, schedule=plan, record_shapes=True) as prof,
    ):
        warnings.simplefilter("always")
        for _ in range(4):
            step()
            prof.step()
    check("the GPU is recorded", not caught, "; ".join(str(w.message) for w in caught))
    events = prof.events()
    work, calls = kernels_of(events), calls_of(events)
    kernels = [e for e in work if e.activity.kind == "kernel"]
    check("kernels are found", len(kernels) >= 20, f"{len(kernels)} kernels, {len(calls)} calls")
    if not kernels:
        return
    owned = [e for e in work if e.linked_event_id]
    share = len(owned) / len(work)
    check("work belongs to operators", share > 0.95, f"{len(owned)} of {len(work)}")
    by_id = {e.id: e for e in events if e.activity is None}
    named = ("aten::mm", "aten::addmm", "aten::linear")
    products = [e for e in events if e.name in named and e.kernels]
    check("products have kernels", len(products) >= 10, f"{len(products)} in two steps, of 10")
    inside = []
    launched = {e.activity.correlation: e for e in calls}
    for event in work:
        call = launched.get(event.activity.correlation)
        if call is not None:
            inside.append(event.time_range.start - call.time_range.start)
    check("each work has its call", len(inside) == len(work), f"{len(inside)} of {len(work)}")
    check(
        "work starts after its call",
        min(inside) > -5 and max(inside) < 1e6,
        f"{min(inside):.1f} to {max(inside):.1f} us later",
    )
    check(
        "calls lie in their operators",
        all(by_id[e.linked_event_id] is e.cpu_parent for e in calls if e.linked_event_id),
    )
    copies = [e for e in work if e.activity.kind == "gpu_memcpy"]
    sizes = [e.activity.bytes for e in copies if "HtoD" in e.name]
    check("copies know their bytes", sizes.count(512 * width * 4) == 2, f"{sizes[:4]}")
    check_averages(prof, work, owned)
    check_trace(prof, trace, work)


def check_averages(prof, work, owned) -> None:
    """Sums and the table."""
    averages = prof.key_averages()
    on_cpu = sum(a.self_cuda_time_total for a in averages if a.device_type is DeviceType.CPU)
    known = sum(e.time_range.elapsed_us() for e in owned)
    check("operators' times add up", abs(on_cpu - known) < 1e-3 * known, f"{on_cpu:.1f} us")
    forward = next(a for a in averages if a.key == "forward" and a.device_type is DeviceType.CPU)
    inner = sum(a.device_time_total for a in averages if a.key == "aten::linear")
    check("a range holds its operators' times", forward.device_time_total >= inner > 0)
    table = averages.table(sort_by="cuda_time_total", row_limit=8, max_name_column_width=40)
    print(table)
    check("the table has CUDA columns", "Self CUDA %" in table and "Self CUDA time total" in table)
    total = sum(e.time_range.elapsed_us() for e in work)
    check("work has times", total > 0, f"{total:.1f} us over {len(work)} pieces")


def check_trace(prof, path, work) -> None:
    """The file for chrome://tracing."""
    with tempfile.TemporaryDirectory() as folder:
        path = path or os.path.join(folder, "trace.json")
        prof.export_chrome_trace(path)
        with open(path) as file:
            document = json.load(file)
    rows = document["traceEvents"]
    shown = [r for r in rows if r.get("cat") in ("kernel", "gpu_memcpy", "gpu_memset")]
    starts = {r["id"] for r in rows if r["ph"] == "s"}
    ends = {r["id"] for r in rows if r["ph"] == "f"}
    check("the trace shows all work", len(shown) == len(work) and document["deviceProperties"])
    check("the trace has arrows", starts == ends and len(starts) == len(work), f"{len(starts)}")
    check("the trace has durations", all(r["dur"] >= 0 for r in rows if r["ph"] == "X"))


def check_durations() -> None:
    """Large kernels one after another take together what two events around them say."""
    a = torch.randn(4096, 4096, device="cuda", dtype=torch.bfloat16)
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    for _ in range(3):
        a @ a
    torch.cuda.synchronize()
    with profile(activities=BOTH) as prof:
        a @ a
        begin.record()
        for _ in range(50):
            a @ a
        end.record()
        torch.cuda.synchronize()
    measured = begin.elapsed_time(end) * 1e3
    kernels = [e for e in kernels_of(prof.events()) if e.activity.kind == "kernel"]
    products = [k for e in prof.events() if e.name == "aten::mm" for k in e.kernels]
    total = sum(k.duration for k in products) * 50 / 51
    check(
        "kernel times agree with events",
        0.85 * measured < total < 1.1 * measured,
        f"{total:.0f} us in {len(kernels)} kernels, {measured:.0f} us between events",
    )


def check_graph() -> None:
    """Kernels of a replayed graph are recorded under the call that launched it."""
    x = torch.ones(1 << 20, device="cuda")
    x.mul(2).add_(1)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        y = x.mul(2).add_(1)
    graph.replay()
    torch.cuda.synchronize()
    with profile(activities=BOTH) as prof, record_function("replay"):
        graph.replay()
    work = kernels_of(prof.events())
    spans = [e.name for e in prof.events() if e.device_resource_id is not None and not e.activity]
    check("graphs show their kernels", len(work) >= 1, f"{len(work)}, of at most 2; {spans}")
    check("the graph computed", float(y[0]) == 3.0)


def check_rest() -> None:
    """What stands beside the recorder."""
    with profile(activities=[ProfilerActivity.CPU]) as prof:
        torch.ones(8, device="cuda") + 1
    check("CPU alone records no GPU", not kernels_of(prof.events()))
    with profile(activities=[ProfilerActivity.CUDA]) as prof:
        torch.ones(8, device="cuda") + 1
    names = {e.name for e in prof.events()}
    check("CUDA alone records kernels", kernels_of(prof.events()) and "aten::add" not in names)
    torch.cuda.profiler.start()
    torch.cuda.profiler.stop()
    with torch.autograd.profiler.emit_nvtx(), torch.cuda.nvtx.range("range"):
        torch.ones(8, device="cuda") + 1
    try:
        state = {
            name: getattr(torch.cuda, name)()
            for name in ("utilization", "memory_usage", "temperature", "power_draw", "clock_rate")
        }
    except (ModuleNotFoundError, RuntimeError) as error:
        print(f"skip  NVML: {error}")
    else:
        check("NVML answers", 0 < state["temperature"] < 120, f"{state}")


def check_exit() -> None:
    """A process that ends while it records ends well."""
    code = (
        "import torch; from torch.profiler import profile\n"
        "prof = profile(); prof.start(); (torch.ones(8, device='cuda') + 1).sum()\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    check("a recording process may exit", done.returncode == 0, done.stderr[-300:])


def main() -> int:
    """Runs all checks."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--trace", help="keep the trace of the training steps here")
    parser.add_argument("--small", action="store_true", help="small problems, no times")
    options = parser.parse_args()
    if not torch.cuda.is_available():
        print("no GPU: nothing was checked")
        return 2
    count = 20 if options.small else 2000
    before = min(small_calls_us(count) for _ in range(3))
    check_training(options.trace, 16 if options.small else 1024)
    if not options.small:
        check_durations()
    check_graph()
    check_rest()
    after = min(small_calls_us(count) for _ in range(3))
    print(f"info  a small operator takes {before:.2f} us before, {after:.2f} us after recordings")
    check_exit()
    print(f"{len(failures)} failed" if failures else "all hold")
    return 1 if failures else 0


if __name__ == "__main__":
    raise SystemExit(main())
