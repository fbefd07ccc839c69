"""What the GPU did during a recording, as events beside those of the CPU: kernels, copies and fills
with their times, the calls that started them, and ranges of the program as they lie on each
stream; and the rows these are in a trace file."""

from __future__ import annotations

import threading
from typing import NamedTuple

from torch.autograd.profiler_util import FunctionEvent

__all__ = ["Activity", "details_of", "device_events", "device_rows", "flow_rows"]


class Activity(NamedTuple):
    """One record of the GPU's tracing library; times in ns, `event` counts from 1, 0 is none."""

    kind: str
    name: str
    start: int
    end: int
    correlation: int
    event: int
    device: int
    context: int
    stream: int
    thread: int
    bytes: int
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    shared_memory: int
    registers: int

    @property
    def is_call(self) -> bool:
        """A call of the driver or runtime, on the CPU, rather than the GPU's work."""
        return self.kind in ("cuda_driver", "cuda_runtime")

    def is_call_after(self, when_ns) -> bool:
        """A call that began after a time."""
        return self.is_call and self.start >= when_ns


def _owner(activity, made):
    return made[activity.event - 1] if 0 < activity.event <= len(made) else None


def _thread_numbers() -> dict[int, int]:
    """The system's number of each thread by what the tracing library calls it: the lower half of
    its handle."""
    return {
        thread.ident & 0xFFFFFFFF: thread.native_id
        for thread in threading.enumerate()
        if thread.ident is not None
    }


def _call_event(number, activity, owner, threads, base_ns) -> FunctionEvent:
    """A call lies inside the operator that made it; the two clocks agree to a microsecond only."""
    start, end = (activity.start - base_ns) / 1000, (activity.end - base_ns) / 1000
    if owner is not None:
        first, last = owner.time_range.start, owner.time_range.end
        start = min(max(start, first), last)
        end = min(max(end, start), last)
    thread = threads.get(activity.thread, activity.thread)
    where = owner.thread if owner is not None else thread
    event = FunctionEvent(number, activity.name, where, start, end)
    if owner is not None:
        event.set_cpu_parent(owner)
        owner.append_cpu_child(event)
    return event


def _work_event(number, activity, base_ns) -> FunctionEvent:
    from torch.profiler import DeviceType

    start, end = (activity.start - base_ns) / 1000, (activity.end - base_ns) / 1000
    event = FunctionEvent(number, activity.name, activity.stream, start, end)
    event.device_type = DeviceType.CUDA
    event.device_index, event.device_resource_id = activity.device, activity.stream
    return event


def _range_events(number, spans, base_ns) -> list[FunctionEvent]:
    """The ranges of the program on each stream, from the first work they started to the last."""
    from torch.profiler import DeviceType

    events = []
    for (_, device, stream), (span, start, end) in spans.items():
        event = FunctionEvent(
            number + len(events),
            span.name,
            stream,
            (start - base_ns) / 1000,
            (end - base_ns) / 1000,
            is_operator=False,
        )
        event.device_type = DeviceType.CUDA
        event.device_index, event.device_resource_id = device, stream
        events.append(event)
    return events


def _widen(spans, owner, activity) -> None:
    """Takes work into the spans of the ranges around the operator that started it."""
    while owner is not None:
        if owner.is_user_annotation:
            key = (owner.id, activity.device, activity.stream)
            _, start, end = spans.get(key, (owner, activity.start, activity.end))
            spans[key] = (owner, min(start, activity.start), max(end, activity.end))
        owner = owner.cpu_parent


def device_events(made, activities, first, *, base_ns) -> list[FunctionEvent]:
    """Events of `activities`, linked with the CPU's events `made` that started them;
    numbered from `first`."""
    events, spans, threads = [], {}, _thread_numbers()
    for number, activity in enumerate(activities, start=first):
        owner = _owner(activity, made)
        if activity.is_call:
            event = _call_event(number, activity, owner, threads, base_ns)
        else:
            event = _work_event(number, activity, base_ns)
            if owner is not None:
                duration = event.time_range.elapsed_us()
                owner.append_kernel(activity.name, activity.device, duration)
                _widen(spans, owner, activity)
        event.activity, event.linked_event_id = activity, activity.event
        event.use_device = "cuda"
        events.append(event)
    for event in made:
        event.use_device = "cuda"
    ranges = _range_events(first + len(events), spans, base_ns)
    for event in ranges:
        event.use_device = "cuda"
    return events + ranges


# ---- trace files


def details_of(event) -> dict:
    """What a trace file says of a call or of the GPU's work; nothing of other events."""
    activity = event.activity
    if activity is None:
        return {}
    details = {"External id": event.linked_event_id, "correlation": activity.correlation}
    if activity.is_call:
        return details
    details |= {
        "device": activity.device,
        "context": activity.context,
        "stream": activity.stream,
    }
    microseconds = event.time_range.elapsed_us()
    if activity.kind == "kernel":
        details |= {
            "grid": list(activity.grid),
            "block": list(activity.block),
            "shared memory": activity.shared_memory,
            "registers per thread": activity.registers,
        }
    else:
        details["bytes"] = activity.bytes
        if microseconds > 0:
            details["memory bandwidth (GB/s)"] = activity.bytes / microseconds / 1e3
    return details


def device_rows(event, pid) -> dict:
    """The row of one of `device_events`: a process is a GPU and a thread a stream."""
    on_device = event.activity is None or not event.activity.is_call
    if event.activity is None:
        category = "gpu_user_annotation"
        details = {"device": event.device_index, "stream": event.device_resource_id}
    else:
        category, details = event.activity.kind, details_of(event)
    return {
        "ph": "X",
        "cat": category,
        "name": event.name,
        "pid": event.device_index if on_device else pid,
        "tid": event.device_resource_id if on_device else event.thread,
        "ts": event.time_range.start,
        "dur": event.time_range.elapsed_us(),
        "args": details,
    }


def _name_rows(places) -> list[dict]:
    rows = []
    for device in sorted({device for device, _ in places}):
        for kind, values in (
            ("process_name", {"name": "python"}),
            ("process_labels", {"labels": f"GPU {device}"}),
            ("process_sort_index", {"sort_index": 5000000 + device}),
        ):
            rows.append({"ph": "M", "name": kind, "pid": device, "tid": 0, "args": values})
    for device, stream in sorted(places):
        values = {"name": f"stream {stream}"}
        rows.append(
            {"ph": "M", "name": "thread_name", "pid": device, "tid": stream, "args": values}
        )
    return rows


def flow_rows(events, pid) -> list[dict]:
    """Names of the GPUs and streams, and an arrow from each call to each piece of work it
    started."""
    calls, work, places = {}, [], set()
    for event in events:
        activity = event.activity
        if activity is None:
            continue
        if activity.is_call:
            calls.setdefault(activity.correlation, event)
        else:
            work.append(event)
            places.add((activity.device, activity.stream))
    rows = _name_rows(places)
    for number, event in enumerate(work, start=1):
        call = calls.get(event.activity.correlation)
        if call is None:
            continue
        flow = {"cat": "ac2g", "name": "ac2g", "id": number}
        start = {"ph": "s", "pid": pid, "tid": call.thread, "ts": call.time_range.start}
        place = {"pid": event.device_index, "tid": event.device_resource_id}
        end = {"ph": "f", "bp": "e", **place, "ts": event.time_range.start}
        rows += [flow | start, flow | end]
    return rows
