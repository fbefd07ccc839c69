"""What a recording is looked at through: events with their times, averages over equal names, and
the table that is printed."""

from __future__ import annotations

import collections
import json
import threading
from collections.abc import Callable

__all__ = [
    "EventList",
    "FunctionEvent",
    "FunctionEventAvg",
    "Interval",
    "Kernel",
    "MEMORY_EVENT_NAME",
    "format_memory",
    "format_time",
]

MEMORY_EVENT_NAME = "[memory]"
Kernel = collections.namedtuple("Kernel", ["name", "device", "duration"])


def format_time(time_us) -> str:
    """A time in us as text: 1.5ms."""
    if time_us >= 1e6:
        return f"{time_us / 1e6:.3f}s"
    if time_us >= 1e3:
        return f"{time_us / 1e3:.3f}ms"
    return f"{time_us:.3f}us"


def format_memory(nbytes) -> str:
    """Bytes as text: 16.00 KB."""
    for unit, size in (("GB", 1 << 30), ("MB", 1 << 20), ("KB", 1 << 10)):
        if abs(nbytes) >= size:
            return f"{nbytes / size:.2f} {unit}"
    return f"{nbytes} B"


_format_time = format_time


def _format_share(part, whole) -> str:
    return f"{part * 100.0 / whole:.2f}%" if whole else "NaN"


class Interval:
    """From start to end, in us."""

    def __init__(self, start, end) -> None:
        self.start, self.end = start, end

    def elapsed_us(self) -> float:
        """How long it is."""
        return self.end - self.start


class _Times:
    """The times of an event or an average under the names programs read."""

    @property
    def device_time(self) -> float:
        return self.device_time_total / self.count if self.count else 0.0

    @property
    def cpu_time(self) -> float:
        return self.cpu_time_total / self.count if self.count else 0.0

    @property
    def cpu_time_str(self) -> str:
        return format_time(self.cpu_time)

    @property
    def cpu_time_total_str(self) -> str:
        return format_time(self.cpu_time_total)

    @property
    def self_cpu_time_total_str(self) -> str:
        return format_time(self.self_cpu_time_total)

    @property
    def device_time_str(self):
        return format_time(self.device_time)

    @property
    def device_time_total_str(self):
        return format_time(self.device_time_total)

    @property
    def self_device_time_total_str(self):
        return format_time(self.self_device_time_total)

    @property
    def cuda_time(self):
        return self.device_time

    @property
    def cuda_time_total(self):
        return self.device_time_total

    @property
    def self_cuda_time_total(self):
        return self.self_device_time_total

    @property
    def cuda_memory_usage(self):
        return self.device_memory_usage

    @property
    def self_cuda_memory_usage(self):
        return self.self_device_memory_usage


class FunctionEvent(_Times):
    """One call of an operator, one named range, or one piece of work of a GPU."""

    count = 1
    is_async = is_remote = is_legacy = False
    device_index = 0
    device_resource_id = None  # the stream
    use_device = None
    activity = None  # the record of the GPU's tracing library, of work and the calls that start it
    linked_event_id = 0

    def __init__(
        self,
        id,
        name,
        thread,
        start_us,
        end_us,
        overload_name=None,
        is_operator=True,
        node_id=-1,
        sequence_nr=-1,
    ) -> None:
        from torch.profiler import DeviceType

        self.id = id
        self.name = self.trace_name = name
        self.overload_name = overload_name or ""
        self.node_id, self.sequence_nr = node_id, sequence_nr
        self.thread = self.fwd_thread = thread
        self.time_range = Interval(start_us, end_us)
        self.is_user_annotation = not is_operator
        self.device_type = DeviceType.CPU
        self.cpu_parent = None
        self.cpu_children = []
        self.kernels = []
        self.input_shapes = []
        self.input_dtypes = []
        self.stack = []
        self.cpu_memory_usage = self.device_memory_usage = 0
        self.flops = 0

    @property
    def key(self) -> str:
        return self.name

    @property
    def linked_correlation_id(self) -> int:
        """Equal for work of the GPU and the call that started it; 0 for others."""
        return self.activity.correlation if self.activity is not None else 0

    @property
    def metadata_json(self) -> str:
        """What a trace file says of work of the GPU and of the calls that start it, without the
        braces around it."""
        from torch.autograd._device_events import details_of

        return json.dumps(details_of(self))[1:-1]

    @property
    def _on_device(self) -> bool:
        return self.device_resource_id is not None

    @property
    def cpu_time_total(self) -> float:
        return 0.0 if self._on_device else self.time_range.elapsed_us()

    @property
    def device_time_total(self) -> float:
        """us of the GPU's work: its own, or that started by an event of the CPU and inside it."""
        if self._on_device:
            return self.time_range.elapsed_us()
        return self.self_device_time_total + sum(c.device_time_total for c in self.cpu_children)

    @property
    def self_device_time_total(self) -> float:
        if self._on_device:
            return self.time_range.elapsed_us()
        return sum(kernel.duration for kernel in self.kernels)

    @property
    def self_cpu_time_total(self) -> float:
        return self.cpu_time_total - sum(c.cpu_time_total for c in self.cpu_children)

    @property
    def self_cpu_memory_usage(self) -> int:
        return self.cpu_memory_usage - sum(c.cpu_memory_usage for c in self.cpu_children)

    @property
    def self_device_memory_usage(self) -> int:
        return self.device_memory_usage - sum(c.device_memory_usage for c in self.cpu_children)

    def append_kernel(self, name, device, duration) -> None:
        """Notes work of a GPU that this event started."""
        self.kernels.append(Kernel(name, device, duration))

    def append_cpu_child(self, child) -> None:
        """Makes an event part of this one."""
        self.cpu_children.append(child)

    def set_cpu_parent(self, parent) -> None:
        """Makes this event part of another."""
        self.cpu_parent = parent

    def _device_part(self) -> str:
        if not self.use_device:
            return ""
        return f"{self.use_device}_time={self.device_time_str} "

    def __repr__(self) -> str:
        return (
            f"<FunctionEvent id={self.id} name={self.name} overload_name={self.overload_name} "
            f"device_type={self.device_type} cpu_time={self.cpu_time_str} "
            f"start_us={self.time_range.start} end_us={self.time_range.end} "
            f"cpu_children={[child.id for child in self.cpu_children]} thread={self.thread} "
            f"input_shapes={self.input_shapes} cpu_memory_usage={self.cpu_memory_usage} "
            f"{self._device_part()}is_async={self.is_async} is_remote={self.is_remote} "
            f"seq_nr={self.sequence_nr}>"
        )


class FunctionEventAvg(_Times):
    """All events of one name, or of one name and one set of shapes or place in the program."""

    is_async = is_remote = is_legacy = False
    node_id = 0
    use_device = None

    def __init__(self) -> None:
        self.key = None
        self.overload_name = ""
        self.count = 0
        self.cpu_time_total = self.self_cpu_time_total = 0
        self.device_time_total = self.self_device_time_total = 0
        self.input_shapes = self.stack = None
        self.cpu_memory_usage = self.self_cpu_memory_usage = 0
        self.device_memory_usage = self.self_device_memory_usage = 0
        self.cpu_children = self.cpu_parent = None
        self.device_type = None
        self.is_user_annotation = False
        self.flops = 0

    def add(self, other) -> FunctionEventAvg:
        """Takes an event or average in."""
        if self.key is None:
            self.key = other.key
            self.overload_name = other.overload_name
            self.input_shapes = other.input_shapes
            self.stack = other.stack
            self.device_type = other.device_type
            self.is_user_annotation = other.is_user_annotation
            self.use_device = other.use_device
        for name in (
            "count",
            "cpu_time_total",
            "self_cpu_time_total",
            "device_time_total",
            "self_device_time_total",
            "cpu_memory_usage",
            "self_cpu_memory_usage",
            "device_memory_usage",
            "self_device_memory_usage",
            "flops",
        ):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        return self

    __iadd__ = add

    def __repr__(self) -> str:
        return (
            f"<FunctionEventAvg key={self.key} self_cpu_time={self.self_cpu_time_total_str} "
            f"cpu_time={self.cpu_time_str}  self_cuda_time={self.self_device_time_total_str} "
            f"cuda_time={self.device_time_str} input_shapes={self.input_shapes or ''} "
            f"cpu_memory_usage={self.cpu_memory_usage} "
            f"cuda_memory_usage={self.device_memory_usage}>"
        )


class _Apart(threading.local):
    """What was started while this thread recorded and goes on beside it, such as collectives: name,
    shapes, dtypes, nanoseconds of the start, and a function that says how long it took."""

    def __init__(self) -> None:
        self.notes: list[tuple[str, list, list, int, Callable[[], float]]] = []


apart = _Apart()


def take_apart(base_ns, thread, number) -> list[FunctionEvent]:
    """The events of what went on beside the thread, numbered from `number`."""
    notes, apart.notes = apart.notes, []
    events = []
    for name, shapes, dtypes, start, duration in notes:
        begun = (start - base_ns) / 1000
        event = FunctionEvent(number + len(events), name, thread, begun, begun + 1000 * duration())
        event.input_shapes, event.input_dtypes = shapes, dtypes
        event.is_async = True
        events.append(event)
    return events


class EventList(list):
    """Events, or averages of them."""

    def __init__(
        self, *args, profile_memory=False, with_flops=False, with_stack=False, use_device=None
    ) -> None:
        super().__init__(*args)
        self._profile_memory = profile_memory
        self._with_flops = with_flops
        self._with_stack = with_stack
        self._use_device = use_device
        self._allocations = []

    def __str__(self) -> str:
        return self.table()

    @property
    def self_cpu_time_total(self) -> float:
        """us spent in all events together."""
        return sum(event.self_cpu_time_total for event in self)

    def key_averages(
        self,
        group_by_input_shapes=False,
        group_by_stack_n=0,
        group_by_overload_name=False,
    ) -> EventList:
        """One average per name (and shapes, innermost frames, overload, where asked for)."""
        groups = {}
        for event in self:
            key = (
                event.key,
                event.is_user_annotation,
                event.device_type,
                str(event.input_shapes) if group_by_input_shapes else None,
                tuple(event.stack[:group_by_stack_n]) if group_by_stack_n else None,
                event.overload_name if group_by_overload_name else None,
            )
            groups.setdefault(key, FunctionEventAvg()).add(event)
        for average in groups.values():
            if not group_by_input_shapes:
                average.input_shapes = ""
            average.stack = list((average.stack or [])[:group_by_stack_n])
            if not group_by_overload_name:
                average.overload_name = ""
        return EventList(
            groups.values(),
            profile_memory=self._profile_memory,
            with_flops=self._with_flops,
            with_stack=self._with_stack,
            use_device=self._use_device,
        )

    def total_average(self) -> FunctionEventAvg:
        """One average over everything."""
        total = FunctionEventAvg()
        for event in self:
            total.add(event)
            total.key = None
        total.key = "Total"
        return total

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
    ) -> str:
        """The events as text, one line each."""
        return _table(
            self,
            sort_by,
            row_limit,
            max_src_column_width,
            max_name_column_width,
            max_shapes_column_width,
            header,
            top_level_events_only,
        )

    def export_chrome_trace(self, path) -> None:
        """Writes the events in the format of chrome://tracing."""
        from torch.autograd.profiler import write_trace

        write_trace(path, self, {})

    supported_export_stacks_metrics = ["self_cpu_time_total", "self_cuda_time_total"]

    def export_stacks(self, path, metric) -> None:
        """Writes one line per place in the program: its frames, outermost first, and a time."""
        if metric not in self.supported_export_stacks_metrics:
            raise ValueError(
                "metric should be one of: " + str(self.supported_export_stacks_metrics)
            )
        replace = str.maketrans(" ;\t\n", "____")
        with open(path, "w") as file:
            for event in self:
                value = int(getattr(event, metric))
                if event.stack and value > 0:
                    frames = ";".join(f.translate(replace) for f in reversed(event.stack))
                    file.write(f"{frames} {value}\n")


def _clip(text, width):
    if width is not None and len(text) > width:
        return text[: width - 3] + "..."
    return text


def _flops_unit(least) -> tuple[str, int]:
    """The prefix, and what it stands for, in which the smallest count is at least 1."""
    prefix, scale = "", 1
    for letter in "KMGTP":
        if least < 1000 * scale:
            break
        prefix, scale = letter, 1000 * scale
    return prefix, scale


def _device_total(events) -> float:
    """us of the GPU's work, each piece once: not again for the operators and ranges around it."""
    from torch.profiler import DeviceType

    return sum(
        event.self_device_time_total
        for event in events
        if event.device_type is not DeviceType.CPU and not event.is_user_annotation
    )


def _device_columns(events):
    total = _device_total(events)
    if not total:
        return []
    return [
        ("Self CUDA", 12, lambda e: e.self_device_time_total_str),
        ("Self CUDA %", 12, lambda e: _format_share(e.self_device_time_total, total)),
        ("CUDA total", 12, lambda e: e.device_time_total_str),
        ("CUDA time avg", 13, lambda e: e.device_time_str),
    ]


def _columns(events, limits, total):
    """[(title, width or None for left-aligned text, text of an event)]."""
    source_width, name_width, shapes_width = limits
    has_memory = events._profile_memory
    widest = max((len(_clip(e.key, name_width)) for e in events), default=0) + 4
    columns = [("Name", widest, lambda e: _clip(e.key, name_width))]
    if any(e.overload_name for e in events if isinstance(e, FunctionEventAvg)):
        columns.append(("Overload Name", 20, lambda e: e.overload_name))
    columns += [
        ("Self CPU %", 12, lambda e: _format_share(e.self_cpu_time_total, total)),
        ("Self CPU", 12, lambda e: e.self_cpu_time_total_str),
        ("CPU total %", 12, lambda e: _format_share(e.cpu_time_total, total)),
        ("CPU total", 12, lambda e: e.cpu_time_total_str),
        ("CPU time avg", 12, lambda e: e.cpu_time_str),
    ]
    columns += _device_columns(events)
    if has_memory:
        columns += [
            ("CPU Mem", 12, lambda e: format_memory(e.cpu_memory_usage)),
            ("Self CPU Mem", 12, lambda e: format_memory(e.self_cpu_memory_usage)),
        ]
        if any(e.device_memory_usage for e in events):
            columns += [
                ("CUDA Mem", 12, lambda e: format_memory(e.device_memory_usage)),
                ("Self CUDA Mem", 13, lambda e: format_memory(e.self_device_memory_usage)),
            ]
    columns.append(("# of Calls", 12, lambda e: str(e.count)))
    shapes = [str(e.input_shapes) for e in events if e.input_shapes]
    if shapes:
        width = min(max(map(len, shapes)), shapes_width or max(map(len, shapes))) + 4
        columns.append(("Input Shapes", width, lambda e: _clip(str(e.input_shapes), shapes_width)))
    counted = [e.flops for e in events if e.flops]
    if counted:
        prefix, scale = _flops_unit(min(counted))
        columns.append(
            (f"Total {prefix}FLOPs", 14, lambda e: f"{e.flops / scale:.3f}" if e.flops else "--")
        )
    stacks = [frame for e in events for frame in (e.stack or [])]
    if stacks:
        width = min(max(map(len, stacks)), source_width or max(map(len, stacks))) + 4
        columns.append(
            ("Source Location", width, lambda e: _clip((e.stack or [""])[0], source_width))
        )
    return columns


def _table(events, sort_by, row_limit, source, name, shapes, header, top_level_events_only) -> str:
    if not events:
        return ""
    total = sum(event.self_cpu_time_total for event in events)
    rows = events
    if sort_by is not None:
        sort_by = sort_by.replace("cuda", "device") if "cuda" in sort_by else sort_by
        rows = sorted(events, key=lambda e: getattr(e, sort_by), reverse=True)
    columns = _columns(events, (source, name, shapes), total)
    ruler = "".join("-" * width + "  " for _, width, _ in columns)
    titles = "".join(f"{title:>{width}}  " for title, width, _ in columns)
    lines = [header, ruler, titles, ruler] if header else [ruler, titles, ruler]
    shown = 0
    for event in rows:
        if row_limit >= 0 and shown == row_limit:
            break
        if top_level_events_only and getattr(event, "cpu_parent", None) is not None:
            continue
        lines.append("".join(f"{text(event):>{width}}  " for _, width, text in columns))
        shown += 1
    lines += [ruler, f"Self CPU time total: {format_time(total)}"]
    if device_total := _device_total(events):
        lines.append(f"Self CUDA time total: {format_time(device_total)}")
    lines.append("")
    return "\n".join(lines)
