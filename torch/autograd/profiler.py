"""Recording what runs: `profile` turns the recorder of torch._C on and off around a block and makes
events of what it saw; `record_function` names a range. torch.profiler adds schedules to it."""

from __future__ import annotations

import functools
import json
import os
import threading
import uuid
import warnings

import torch
from torch import _C
from torch.autograd._device_events import Activity, device_events, device_rows, flow_rows
from torch.autograd._profiler_parts import EnforceUnique, KinetoStepTracker, MemRecordsAcc
from torch.autograd.profiler_util import (
    MEMORY_EVENT_NAME,
    EventList,
    FunctionEvent,
    apart,
    take_apart,
)

__all__ = [
    "EnforceUnique",
    "EventList",
    "FunctionEvent",
    "KinetoStepTracker",
    "MemRecordsAcc",
    "emit_itt",
    "emit_nvtx",
    "kineto_available",
    "profile",
    "record_function",
]


def kineto_available() -> bool:
    """Whether operators can be recorded: always."""
    return True


def _is_profiler_enabled() -> bool:
    return _C._profiler_enabled()


def _product(shape) -> int:
    result = 1
    for size in shape:
        result *= size
    return result


def _flops(name, shapes):
    """Floating-point operations of the operators where they are plain to count."""
    try:
        if name in ("aten::mm", "aten::matmul") and len(shapes[0]) == len(shapes[1]) == 2:
            return 2 * _product(shapes[0]) * shapes[1][-1]
        if name == "aten::linear":
            return 2 * _product(shapes[0]) * shapes[1][0]
        if name == "aten::addmm":
            return 2 * _product(shapes[1]) * shapes[2][-1]
        if name == "aten::bmm":
            return 2 * _product(shapes[0]) * shapes[1][-1]
        if name == "aten::baddbmm":
            return 2 * _product(shapes[1]) * shapes[2][-1]
        if name in ("aten::add", "aten::mul"):
            return _product(shapes[0])
    except (IndexError, TypeError):
        return 0
    return 0


def make_events(
    records,
    allocations,
    activities=(),
    *,
    base_ns=0,
    until_ns=None,
    profile_memory=False,
    with_flops=False,
    with_stack=False,
) -> EventList:
    """The recorder's tuples as an EventList with parents and children; with what was allocated and
    released meanwhile as (microseconds, address, bytes, bytes held), and what the GPU did."""
    thread = threading.get_native_id()
    activities = [Activity._make(values) for values in activities]
    if until_ns is not None:  # what the profiler called for itself, at the end, is not shown
        activities = [a for a in activities if not a.is_call_after(until_ns)]
    events = EventList(
        profile_memory=profile_memory,
        with_flops=with_flops,
        with_stack=with_stack,
        use_device="cuda" if activities else None,
    )
    made = []
    for number, record in enumerate(records):
        name, overload, start, end, parent, cpu, device, is_op, shapes, dtypes, stack = record
        event = FunctionEvent(
            number + 1,
            name,
            thread,
            (start - base_ns) / 1000,
            (end - base_ns) / 1000,
            overload,
            is_op,
        )
        event.input_shapes, event.input_dtypes, event.stack = shapes, dtypes, stack
        event.cpu_memory_usage, event.device_memory_usage = cpu, device
        event.flops = _flops(name, shapes) if with_flops else 0
        if parent >= 0:
            event.set_cpu_parent(made[parent])
            made[parent].append_cpu_child(event)
        made.append(event)
    # A range holds what the operators inside hold.
    for event in reversed(made):
        if event.is_user_annotation:
            event.cpu_memory_usage = sum(c.cpu_memory_usage for c in event.cpu_children)
            event.device_memory_usage = sum(c.device_memory_usage for c in event.cpu_children)
    events.extend(made)
    events.extend(take_apart(base_ns, thread, len(made) + 1))
    if activities:
        first = len(events) + 1
        events.extend(device_events(made, activities, first, base_ns=base_ns))
    events._allocations = [((when - base_ns) / 1000, *rest) for when, *rest in allocations]
    return events


def _device_properties(device) -> dict:
    """What a trace file says of a GPU; of one that this process does not see, its number."""
    if not torch.cuda.is_available() or device >= torch.cuda.device_count():
        return {"id": device}
    known = torch.cuda.get_device_properties(device)
    return {
        "id": device,
        "name": known.name,
        "totalGlobalMem": known.total_memory,
        "computeMajor": known.major,
        "computeMinor": known.minor,
        "maxThreadsPerMultiprocessor": known.max_threads_per_multi_processor,
        "warpSize": known.warp_size,
        "numSms": known.multi_processor_count,
    }


def write_trace(path, events, metadata, **settings) -> None:
    """Writes events for chrome://tracing or Perfetto; a name that ends in .gz is compressed."""
    pid = os.getpid()
    rows = [{"ph": "M", "name": "process_name", "pid": pid, "tid": 0, "args": {"name": "python"}}]
    rows += flow_rows(events, pid)
    for event in events:
        if event.use_device and (event.activity or event.device_resource_id is not None):
            rows.append(device_rows(event, pid))
            continue
        arguments = {"External id": event.id}
        if event.input_shapes:
            arguments["Input Dims"] = event.input_shapes
            arguments["Input type"] = event.input_dtypes
        if event.stack:
            arguments["Call stack"] = ";".join(event.stack)
        if event.cpu_memory_usage or event.device_memory_usage:
            arguments["Bytes"] = event.cpu_memory_usage
            arguments["Device Bytes"] = event.device_memory_usage
        rows.append(
            {
                "ph": "X",
                "cat": "user_annotation" if event.is_user_annotation else "cpu_op",
                "name": event.name,
                "pid": pid,
                "tid": event.thread,
                "ts": event.time_range.start,
                "dur": event.time_range.elapsed_us(),
                "args": arguments,
            }
        )
    thread = threading.get_native_id()
    for when, address, size, total in events._allocations:
        change = {"Addr": address, "Bytes": size, "Total Allocated": total}
        row = {"ph": "i", "s": "t", "cat": "cpu_instant_event", "name": MEMORY_EVENT_NAME}
        row |= {"pid": pid, "tid": thread, "ts": when}
        rows.append(row | {"args": {**change, "Device Type": 0, "Device Id": -1}})
    document = {"schemaVersion": 1, "displayTimeUnit": "ms", **settings, **metadata}
    devices = sorted({e.activity.device for e in events if e.activity and not e.activity.is_call})
    document |= {"deviceProperties": [_device_properties(d) for d in devices]} if devices else {}
    document |= {"traceName": os.fspath(path), "traceEvents": rows}
    if os.fspath(path).endswith(".gz"):
        import gzip

        with gzip.open(path, "wt") as file:
            json.dump(document, file)
        return
    with open(path, "w") as file:
        json.dump(document, file)


def join_events(lists) -> EventList:
    """Recordings that were made one after the other as one."""
    last = lists[-1]
    joined = EventList(
        [event for events in lists for event in events],
        profile_memory=last._profile_memory,
        with_flops=last._with_flops,
        with_stack=last._with_stack,
        use_device=next((e._use_device for e in lists if e._use_device), None),
    )
    joined._allocations = [change for events in lists for change in events._allocations]
    return joined


class profile:
    """Records the operators of this thread inside the block."""

    function_events = None  # an EventList when the block has ended

    def __init__(
        self,
        enabled=True,
        *,
        use_cuda=False,
        use_device=None,
        record_shapes=False,
        with_flops=False,
        profile_memory=False,
        with_stack=False,
        with_modules=False,
        use_kineto=False,
        use_cpu=True,
        experimental_config=None,
        acc_events=False,
        custom_trace_id_callback=None,
        post_processing_timeout_s=None,
        activity_filters=None,
    ) -> None:
        self.enabled = enabled
        self.record_shapes = record_shapes or with_flops
        self.with_flops = with_flops
        self.profile_memory = profile_memory
        self.with_stack = with_stack
        self.use_device = "cuda" if use_cuda else use_device
        self.use_cpu = use_cpu
        if enabled and self.use_device == "cuda" and not torch.cuda.is_available():
            warnings.warn("CUDA is not available, disabling CUDA profiling", stacklevel=2)
            self.use_device = None
        self.custom_trace_id_callback = custom_trace_id_callback
        self.trace_id = ""
        self.entered = False
        self._base = 0
        self._parts = []  # recordings that were interrupted

    def __enter__(self) -> profile | None:
        if not self.enabled:
            return None
        if self.entered:
            raise RuntimeError("Profiler context manager is not reentrant")
        self._start()
        return self

    def _start(self, base_ns=None) -> None:
        """Begins; times count from `base_ns` of the recorder's clock, by default from now."""
        self.entered = True
        apart.notes = []
        self._base = _C._profiler_clock() if base_ns is None else base_ns
        self.trace_id = self.create_trace_id()
        self._parts = []
        self._begin()

    def _begin(self) -> None:
        problem = _C._profiler_start(
            self.record_shapes,
            self.with_stack,
            self.profile_memory,
            self.use_cpu,
            self.use_device == "cuda",
        )
        if problem:
            warnings.warn(f"The GPU's work is not recorded: {problem}", stacklevel=4)

    def __exit__(self, exc_type, exc_val, exc_tb) -> bool | None:
        if not self.enabled:
            return None
        if _C._profiler_enabled():
            self._parts.append(self._collect())
        self.function_events = join_events(self._parts)
        self.entered = False
        return False

    def _collect(self) -> EventList:
        until = _C._profiler_clock()
        if torch.cuda.is_initialized():
            torch.cuda.synchronize()
        return make_events(
            *_C._profiler_stop(),
            base_ns=self._base,
            until_ns=until,
            profile_memory=self.profile_memory,
            with_flops=self.with_flops,
            with_stack=self.with_stack,
        )

    def toggle_collection_dynamic(self, enabled, activities) -> None:
        """Stops recording inside of the block, or takes it up again."""
        from torch.profiler import ProfilerActivity

        if not self.entered or ProfilerActivity.CPU not in activities:
            return
        if enabled and not _C._profiler_enabled():
            self._begin()
        elif not enabled and _C._profiler_enabled():
            self._parts.append(self._collect())

    def default_trace_id(self) -> str:
        """A name for a recording that no other has."""
        return uuid.uuid4().hex.upper()

    def create_trace_id(self) -> str:
        """The name of a recording: what the program's callback says, or a new one."""
        if self.custom_trace_id_callback:
            return self.custom_trace_id_callback()
        return self.default_trace_id()

    def _check_finish(self) -> None:
        if self.function_events is None:
            raise RuntimeError("Profiler didn't finish running")

    def __repr__(self) -> str:
        if self.function_events is None:
            return "<unfinished torch.autograd.profile>"
        return repr(self.function_events)

    def __str__(self) -> str:
        if self.function_events is None:
            return "<unfinished torch.autograd.profile>"
        return str(self.function_events)

    def table(
        self,
        sort_by=None,
        row_limit=100,
        max_src_column_width=75,
        max_name_column_width=55,
        max_shapes_column_width=80,
        header=None,
        top_level_events_only=False,
        time_unit=None,
    ):
        """The events as text."""
        options = locals()
        del options["self"]
        self._check_finish()
        return self.function_events.table(**options)

    def export_chrome_trace(self, path, use_python_export=False, metadata=None) -> None:
        """Writes the events for chrome://tracing, with more entries at the top on request."""
        self._check_finish()
        write_trace(path, self.function_events, metadata or {}, trace_id=self.trace_id)

    def export_stacks(self, path, metric="self_cpu_time_total"):
        """Writes the places in the program and their times."""
        self._check_finish()
        if not self.with_stack:
            raise RuntimeError("export_stacks() requires with_stack=True")
        return self.function_events.export_stacks(path, metric)

    def key_averages(
        self, group_by_input_shape=False, group_by_stack_n=0, group_by_overload_name=False
    ) -> EventList:
        """One average per name."""
        self._check_finish()
        return self.function_events.key_averages(
            group_by_input_shape, group_by_stack_n, group_by_overload_name
        )

    def total_average(self):
        """One average over everything."""
        self._check_finish()
        return self.function_events.total_average()

    @property
    def self_cpu_time_total(self) -> float:
        """us spent in all events together."""
        self._check_finish()
        return self.function_events.self_cpu_time_total


class record_function:
    """Names what runs inside; a context manager and a decorator."""

    def __init__(self, name, args=None) -> None:
        self.name = name
        self.args = args
        self._handles = []

    def __call__(self, func):
        @functools.wraps(func)
        def wrapped(*args, **kwargs):
            with type(self)(self.name, self.args):
                return func(*args, **kwargs)

        return wrapped

    def __enter__(self) -> record_function:
        self._handles.append(_C._profiler_begin(self.name))
        return self

    def __exit__(self, exc_type, exc_value, traceback) -> None:
        _C._profiler_end(self._handles.pop())


class emit_nvtx:
    """Hands every operator and range of this thread on to a profiler such as nsys, as an NVTX range
    of the operator's name, with the sizes of its arguments where asked for."""

    def __init__(self, enabled=True, record_shapes=False) -> None:
        self.enabled = enabled
        self.record_shapes = record_shapes
        self.entered = False

    def __enter__(self) -> emit_nvtx | None:
        if not self.enabled:
            return None
        if self.entered:
            raise RuntimeError("NVTX annotation context manager is not reentrant")
        torch.cuda.synchronize()
        _C._profiler_emit(bool(self.record_shapes))
        self.entered = True
        return self

    def __exit__(self, exc_type, exc_val, exc_tb) -> bool | None:
        if not self.enabled:
            return None
        torch.cuda.synchronize()
        _C._profiler_stop()
        self.entered = False
        return False


class emit_itt:
    """Would mark every operator as an ITT range."""

    def __init__(self, enabled=True, record_shapes=False) -> None:
        self.enabled = enabled

    def __enter__(self) -> None:
        if self.enabled:
            raise NotImplementedError("emit_itt is not implemented in this version")
        return None

    def __exit__(self, exc_type, exc_val, exc_tb) -> bool:
        return False
