"""Pipelines: a model cut into stages that several processes run, one microbatch after the other."""

from torch import _later
from torch.distributed.pipelining._pipe import (
    Pipe,
    SplitPoint,
    build_stage,
    pipe_split,
    pipeline,
)
from torch.distributed.pipelining.schedules import (
    Schedule1F1B,
    ScheduleGPipe,
    ScheduleInterleaved1F1B,
    ScheduleLoopedBFS,
)
from torch.distributed.pipelining.stage import PipelineStage

__all__ = [
    "Pipe", "PipelineStage", "Schedule1F1B", "ScheduleGPipe", "ScheduleInterleaved1F1B",
    "ScheduleLoopedBFS", "SplitPoint", "build_stage", "pipe_split", "pipeline",
]  # fmt: skip

globals().update(
    _later.names(
        __name__,
        "ScheduleInterleavedZeroBubble ScheduleZBVZeroBubble",
    )
)
