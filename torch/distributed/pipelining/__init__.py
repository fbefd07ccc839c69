"""Pipelines: a model cut into stages that several processes run, one microbatch after the other."""

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
    ScheduleInterleavedZeroBubble,
    ScheduleLoopedBFS,
    ScheduleZBVZeroBubble,
)
from torch.distributed.pipelining.stage import PipelineStage

__all__ = [
    "Pipe", "PipelineStage", "Schedule1F1B", "ScheduleGPipe", "ScheduleInterleaved1F1B",
    "ScheduleInterleavedZeroBubble", "ScheduleLoopedBFS", "ScheduleZBVZeroBubble", "SplitPoint",
    "build_stage", "pipe_split", "pipeline",
]  # fmt: skip
