"""torch.profiler.profile: a recording that follows the steps of a training loop."""

from __future__ import annotations

import enum
import os
import socket
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from torch.autograd import profiler as _recording
from torch.autograd.profiler_util import EventList
from torch.profiler._writers import write_execution_trace, write_memory_timeline

if TYPE_CHECKING:
    from torch.profiler import ProfilerActivity

__all__ = [
    "ExecutionTraceObserver",
    "ProfilerAction",
    "profile",
    "schedule",
    "supported_activities",
    "tensorboard_trace_handler",
]


class ProfilerAction(enum.Enum):
    """What to do in a step."""

    NONE = 0
    WARMUP = 1
    RECORD = 2
    RECORD_AND_SAVE = 3
    DEVICE_STOPPED = 4


def supported_activities() -> set[ProfilerActivity]:
    """What can be recorded."""
    import torch
    from torch.profiler import ProfilerActivity

    kinds = {ProfilerActivity.CPU}
    if torch.cuda.is_available():
        kinds.add(ProfilerActivity.CUDA)
    return kinds


def schedule(
    *, wait, warmup, active, repeat=0, skip_first=0, skip_first_wait=0
) -> Callable[[int], ProfilerAction]:
    """A function from the number of a step to what to do in it: after skip_first steps, cycles of
    wait, warmup and active steps, `repeat` of them or without end. With skip_first_wait the first
    cycle does not wait."""
    if wait < 0 or warmup < 0 or active <= 0 or repeat < 0 or skip_first < 0:
        raise AssertionError(
            f"Invalid profiler schedule arguments. Got wait={wait} (need >= 0), warmup={warmup} "
            f"(need >= 0), active={active} (need > 0), repeat={repeat} (need >= 0), "
            f"skip_first={skip_first} (need >= 0)."
        )

    def action_of(step) -> ProfilerAction:
        if step < 0:
            raise AssertionError(f"Step must be non-negative. Got {step}.")
        if step < skip_first:
            return ProfilerAction.NONE
        step -= skip_first
        if skip_first_wait:
            step += wait
        cycle = wait + warmup + active
        if repeat > 0 and step // cycle >= repeat:
            return ProfilerAction.NONE
        place = step % cycle
        if place < wait:
            return ProfilerAction.NONE
        if place < wait + warmup:
            return ProfilerAction.WARMUP
        return ProfilerAction.RECORD if place < cycle - 1 else ProfilerAction.RECORD_AND_SAVE

    return action_of


def _default_schedule_fn(step) -> ProfilerAction:
    """Without a schedule every step is recorded."""
    return ProfilerAction.RECORD


def tensorboard_trace_handler(
    dir_name, worker_name=None, use_gzip=False, use_python_export=False
) -> Any:
    """An on_trace_ready that writes each trace into a folder, under a name of its own."""

    def write(prof) -> None:
        os.makedirs(dir_name, exist_ok=True)
        worker = worker_name or f"{socket.gethostname()}_{os.getpid()}"
        name = f"{worker}.{time.time_ns()}.pt.trace.json"
        prof.export_chrome_trace(os.path.join(dir_name, name + (".gz" if use_gzip else "")))

    return write


def _activity(name) -> ProfilerActivity:
    from torch.profiler import ProfilerActivity

    return ProfilerActivity[name]


class profile:
    """Records the operators that this thread runs inside the block. With a schedule, step() says
    that a step ended, and on_trace_ready(self) is called after each cycle."""

    def __init__(
        self,
        *,
        activities=None,
        schedule=None,
        on_trace_ready=None,
        record_shapes=False,
        profile_memory=False,
        with_stack=False,
        with_flops=False,
        with_modules=False,
        experimental_config=None,
        execution_trace_observer=None,
        acc_events=False,
        use_cuda=None,
        custom_trace_id_callback=None,
        post_processing_timeout_s=None,
        activity_filters=None,
    ) -> None:
        self.activities = set(supported_activities() if activities is None else activities)
        if not self.activities:
            raise AssertionError("No valid profiler activities found")
        if use_cuda:
            self.activities.add(_activity("CUDA"))
        self.use_device = "cuda" if self._records("CUDA") else None
        self.schedule = schedule or _default_schedule_fn
        self.record_steps = schedule is not None
        self.on_trace_ready = on_trace_ready
        self.record_shapes = record_shapes
        self.profile_memory = profile_memory
        self.with_stack = with_stack
        self.with_flops = with_flops
        self.with_modules = with_modules
        self.acc_events = acc_events
        self.custom_trace_id_callback = custom_trace_id_callback
        self.step_num = 0
        self.current_action = self.schedule(0)
        self.profiler = None
        self._events = None
        self._step_range = None
        self._metadata = {}
        self._interrupted = False
        self._collected = set(self.activities)  # less what toggle_collection_dynamic took out
        self._base = None
        self.execution_trace_observer = execution_trace_observer

    # ---- the recording of one cycle

    def _start_recording(self) -> None:
        self.profiler = _recording.profile(
            use_cpu=_activity("CPU") in self._collected,
            use_device=self.use_device if _activity("CUDA") in self._collected else None,
            record_shapes=self.record_shapes,
            with_flops=self.with_flops,
            profile_memory=self.profile_memory,
            with_stack=self.with_stack,
            custom_trace_id_callback=self.custom_trace_id_callback,
        )
        self.profiler._start(self._base if self._joins() else None)
        self._base = self.profiler._base

    def _stop_recording(self) -> None:
        if self.profiler is None or not self.profiler.entered:
            return
        self.profiler.__exit__(None, None, None)
        events = self.profiler.function_events
        if self.execution_trace_observer is not None:
            self.execution_trace_observer._take(events)
        if self._joins():
            events = _recording.join_events([self._events, events])
        self._events = events

    def _records(self, kind) -> bool:
        return _activity(kind) in self.activities

    def _warm_up(self) -> None:
        """The GPU's tracing library is loaded and attached once, which takes its time: before the
        steps that count."""
        if self.use_device and not _recording._is_profiler_enabled():
            warm = _recording.profile(use_cpu=False, use_device=self.use_device)
            warm._start()
            warm.__exit__(None, None, None)

    def _joins(self) -> bool:
        """Whether a recording continues the one before, on the same clock."""
        return bool((self.acc_events or self._interrupted) and self._events)

    def set_custom_trace_id_callback(self, callback) -> None:
        """Names recordings that begin from now on by what `callback` returns."""
        self.custom_trace_id_callback = callback

    def get_trace_id(self) -> str | None:
        """The name of the recording, which its trace file bears; None before the first."""
        return self.profiler.trace_id if self.profiler is not None else None

    def prepare_trace(self) -> None:
        """Loads what start_trace will need, so that it takes no time of what is recorded."""
        self._warm_up()

    def start_trace(self) -> None:
        """Begins a recording apart from any schedule."""
        self._start_recording()

    def stop_trace(self) -> None:
        """Ends the recording of start_trace."""
        self._stop_recording()

    def _recording_now(self) -> bool:
        return self.current_action in (ProfilerAction.RECORD, ProfilerAction.RECORD_AND_SAVE)

    def start(self) -> None:
        """Begins with step 0."""
        if self.record_steps:
            _recording.KinetoStepTracker.init_step_count("ProfilerStep")
        if self._recording_now():
            self._start_recording()
        elif self.current_action is ProfilerAction.WARMUP:
            self._warm_up()
        self._open_step()

    def stop(self) -> None:
        """Ends the recording, and hands it to on_trace_ready."""
        self._close_step()
        if self.record_steps:
            _recording.KinetoStepTracker.erase_step_count("ProfilerStep")
        if self._recording_now():
            self._finish_cycle()

    def _finish_cycle(self) -> None:
        self._stop_recording()
        self._interrupted = False
        self._collected = set(self.activities)
        if self.on_trace_ready:
            self.on_trace_ready(self)

    def _open_step(self) -> None:
        if self.record_steps:
            self._step_range = _recording.record_function(f"ProfilerStep#{self.step_num}")
            self._step_range.__enter__()

    def _close_step(self) -> None:
        if self._step_range is not None:
            self._step_range.__exit__(None, None, None)
            self._step_range = None

    def step(self) -> None:
        """Says that the next step begins."""
        self._close_step()
        if self.record_steps:
            _recording.KinetoStepTracker.increment_step("ProfilerStep")
        before, was_recording = self.current_action, self._recording_now()
        self.step_num += 1
        self.current_action = self.schedule(self.step_num)
        if was_recording and (
            before is ProfilerAction.RECORD_AND_SAVE or not self._recording_now()
        ):
            self._finish_cycle()
            was_recording = False
        if self._recording_now() and not was_recording:
            self._start_recording()
        elif self.current_action is ProfilerAction.WARMUP and before is not self.current_action:
            self._warm_up()
        self._open_step()

    def __enter__(self) -> profile:
        self.start()
        return self

    def __exit__(self, exc_type, exc_val, exc_tb) -> None:
        self.stop()

    # ---- what was recorded

    def _finished(self) -> EventList:
        if self._events is None:
            raise AssertionError("Profiler must be initialized and have recorded something first")
        return self._events

    def events(self) -> EventList:
        """All events of the last cycle."""
        return self._finished()

    def key_averages(
        self, group_by_input_shape=False, group_by_stack_n=0, group_by_overload_name=False
    ) -> EventList:
        """One average per name."""
        return self._finished().key_averages(
            group_by_input_shape, group_by_stack_n, group_by_overload_name
        )

    def export_chrome_trace(self, path, use_python_export=False) -> None:
        """Writes the last cycle for chrome://tracing or Perfetto."""
        _recording.write_trace(
            path,
            self._finished(),
            self._metadata,
            record_shapes=int(self.record_shapes),
            profile_memory=int(self.profile_memory),
            with_stack=int(self.with_stack),
            trace_id=self.get_trace_id(),
            host_name=socket.gethostname(),
        )

    def export_stacks(self, path, metric="self_cpu_time_total") -> None:
        """Writes the places in the program and their times, for flame graphs."""
        self._finished().export_stacks(path, metric)

    def export_memory_timeline(self, path, device=None) -> None:
        """Writes how memory was used over time: .html a picture, .raw.json.gz every change,
        other names the curve as JSON."""
        if not (self.record_shapes and self.profile_memory and self.with_stack):
            raise ValueError(
                "record_shapes=True, profile_memory=True, with_stack=True required for memory "
                "profiling."
            )
        if device is None:
            device = "cuda:0" if self._records("CUDA") else "cpu"
        write_memory_timeline(path, self._finished(), device)

    def add_metadata(self, key, value) -> None:
        """Puts a text into the trace file."""
        self._metadata[key] = str(value)

    def add_metadata_json(self, key, value) -> None:
        """Puts a JSON value, given as text, into the trace file."""
        import json

        self._metadata[key] = json.loads(value)

    preset_metadata_json = add_metadata_json

    def toggle_collection_dynamic(self, enable, activities) -> None:
        """Stops or takes up again the recording of operators, or of the GPU, while the profiler is
        running."""
        if self.profiler is None or not self._recording_now():
            return
        named = self.activities & set(activities)
        wanted = self._collected | named if enable else self._collected - named
        if wanted == self._collected:
            return
        if self.profiler.entered:
            self._stop_recording()
            self._interrupted = True
        self._collected = wanted
        if wanted:
            self._start_recording()


class ExecutionTraceObserver:
    """Writes which operators ran with which shapes, and which called which, to a file. Recording
    needs the recorder of this thread: give the observer to `profile` to use both at once."""

    def __init__(self) -> None:
        self._path = None
        self._own = None
        self._events = []

    def register_callback(self, output_file_path) -> ExecutionTraceObserver:
        """Names the file; recording begins with start."""
        self._path = os.fspath(output_file_path)
        self._events = []
        return self

    @property
    def is_registered(self) -> bool:
        """Whether a file is named."""
        return self._path is not None

    def get_output_file_path(self) -> str | None:
        """The file, or None."""
        return self._path

    def start(self) -> None:
        """Begins recording."""
        if self._path is not None and self._own is None and not _recording._is_profiler_enabled():
            self._own = _recording.profile(record_shapes=True)
            self._own._start()

    def stop(self) -> None:
        """Ends recording; the file is written."""
        if self._own is not None:
            self._own.__exit__(None, None, None)
            events, self._own = self._own.function_events, None
            self._take(events)

    def _take(self, events) -> None:
        of_program = (e for e in events if e.activity is None and e.device_resource_id is None)
        self._events += of_program
        if self._path is not None:
            write_execution_trace(self._path, self._events)

    def is_running(self) -> bool:
        """Whether operators are recorded for this file."""
        return self._own is not None

    def unregister_callback(self) -> None:
        """Ends recording and forgets the file."""
        self.stop()
        self._path = None

    cleanup = unregister_callback
