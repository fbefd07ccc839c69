"""Schedules: in which order the ranks of a pipeline run microbatches forwards and backwards. The
backward pass of a microbatch may be two actions: gradients of inputs, which others wait for, and of
weights, which fill the time in which a rank would wait.

All schedules come from one simulation. In each tick every rank takes, among the actions whose
inputs are there, the one its schedule prefers; a limit on microbatches that wait for their backward
pass bounds memory. A schedule is a preference and a limit. Orders made in this way cannot deadlock:
an action is only taken when what it needs was made in an earlier tick."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch.distributed.pipelining.microbatch import merge_chunks, split_args_kwargs_into_chunks
from torch.distributed.pipelining.stage import PipelineStage

__all__ = [
    "PipelineScheduleMulti", "PipelineScheduleSingle", "Schedule1F1B", "ScheduleGPipe",
    "ScheduleInterleaved1F1B", "ScheduleInterleavedZeroBubble", "ScheduleLoopedBFS",
    "ScheduleZBVZeroBubble", "get_schedule_class",
]  # fmt: skip

# Kinds of actions: forwards, backwards as a whole, and its two parts.
_F, _B, _I, _W = "FBIW"
# What each does to the number of microbatches whose values a rank holds.
_HELD = {_F: 1, _B: -1, _I: 0, _W: -1}


class Action(NamedTuple):
    """A microbatch's run through a stage."""

    stage: int
    kind: str
    microbatch: int

    @property
    def is_forward(self) -> bool:
        """Whether it is a forward pass."""
        return self.kind == _F

    def __repr__(self) -> str:
        return f"{self.stage}{self.kind}{self.microbatch}"


class Problem(NamedTuple):
    """What an order is asked for: the rank of each stage, and the kinds of actions."""

    ranks: list[int]
    microbatches: int
    kinds: str = _F + _B


def simulate(
    problem: Problem,
    prefer: Callable[[Action], tuple],
    is_full: Callable[[int, int, Action], bool],
) -> list[list[Action]]:
    """The actions of each rank, in order. is_full(rank, held, action) says whether a rank that
    holds the values of so many microbatches must not take another."""
    stages, size = len(problem.ranks), max(problem.ranks) + 1
    orders: list[list[Action]] = [[] for _ in range(size)]
    held = [0] * size
    done: set[Action] = set()
    todo: list[set[Action]] = [set() for _ in range(size)]
    for stage, rank in enumerate(problem.ranks):
        numbers = range(problem.microbatches)
        todo[rank] |= {Action(stage, kind, mb) for mb in numbers for kind in problem.kinds}
    total = sum(map(len, todo))

    def ready(action: Action) -> bool:
        stage, kind, mb = action
        if kind == _F:
            return stage == 0 or Action(stage - 1, _F, mb) in done
        if kind == _W:
            return Action(stage, _I, mb) in done
        if Action(stage, _F, mb) not in done:
            return False
        return stage == stages - 1 or Action(stage + 1, kind, mb) in done

    def may(rank: int, action: Action) -> bool:
        refused = problem.kinds != _F and action.kind == _F and is_full(rank, held[rank], action)
        return not refused and ready(action)

    while len(done) < total:
        taken = []
        for rank in range(size):
            choices = [a for a in todo[rank] if may(rank, a)]
            if choices:
                taken.append((rank, min(choices, key=prefer)))
        if not taken:
            raise RuntimeError(
                f"{problem.microbatches} microbatches over {stages} stages on {size} ranks have no "
                "order"
            )
        for rank, action in taken:
            orders[rank].append(action)
            held[rank] += _HELD[action.kind]
            todo[rank].discard(action)
            done.add(action)
    return orders


class _Schedule(ABC):
    """Runs the stages of this process as its order says."""

    def __init__(
        self,
        stages: list[PipelineStage],
        n_microbatches: int,
        loss_fn: Callable[..., torch.Tensor] | None,
        args_chunk_spec: Any,
        kwargs_chunk_spec: Any,
        output_merge_spec: Any,
        scale_grads: bool,
    ) -> None:
        if n_microbatches < 1:
            raise ValueError(f"the number of microbatches must be positive, got {n_microbatches}")
        self._stages = {stage.stage_index: stage for stage in stages}
        self._first = stages[0]
        self._n_microbatches, self._loss_fn = n_microbatches, loss_fn
        self._specs = args_chunk_spec, kwargs_chunk_spec
        self._merge_spec, self.scale_grads = output_merge_spec, scale_grads
        for stage in stages:
            stage.neighbours = self._stages
        self._orders: dict[bool, list[Action]] = {}

    # The actions of a microbatch on a stage.
    kinds = _F + _B

    @abstractmethod
    def _prefer(self, action: Action) -> tuple:
        """What is taken first among the actions that are possible: the smallest."""

    def _limit(self, rank: int) -> int:
        """How many microbatches may wait for their backward pass."""
        return self._n_microbatches * self._first.num_stages

    def _is_full(self, rank: int, held: int, action: Action) -> bool:
        return held >= self._limit(rank)

    def order(self, backward: bool = True) -> list[Action]:
        """What this process does in a step."""
        if backward not in self._orders:
            first = self._first
            ranks = [first.stage_index_to_group_rank[i] for i in range(first.num_stages)]
            problem = Problem(ranks, self._n_microbatches, self.kinds if backward else _F)
            made = simulate(problem, self._prefer, self._is_full)
            self._orders[backward] = made[first.group_rank]
        return self._orders[backward]

    def step(
        self,
        *args: Any,
        target: Any = None,
        losses: list | None = None,
        return_outputs: bool = True,
        **kwargs: Any,
    ) -> Any:
        """Runs one batch. The first stage gets the arguments, the last one the target; the last one
        returns the result, if asked for, and puts the losses of microbatches into `losses`."""
        backward = self._loss_fn is not None and torch.is_grad_enabled()
        result = self._run(args, kwargs, target, losses, backward)
        return result if return_outputs else None

    def eval(
        self, *args: Any, target: Any = None, losses: list | None = None, **kwargs: Any
    ) -> Any:
        """Runs one batch forwards only."""
        with torch.no_grad():
            return self._run(args, kwargs, target, losses, False)

    def _run(
        self, args: tuple, kwargs: dict[str, Any], target: Any, losses: list | None, backward: bool
    ) -> Any:
        count = self._n_microbatches
        arg_parts, kwarg_parts = split_args_kwargs_into_chunks(args, kwargs, count, *self._specs)
        targets = list(torch.tensor_split(target, count)) if target is not None else None
        for stage in self._stages.values():
            stage.begin(count, backward)
        found: dict[int, torch.Tensor] = {}
        for action in self.order(backward):
            stage, mb = self._stages[action.stage], action.microbatch
            if action.is_forward:
                result = stage.forward_one_chunk(mb, arg_parts[mb], kwarg_parts[mb])
                if stage.is_last and self._loss_fn is not None and targets is not None:
                    found[mb] = self._loss_fn(result, targets[mb])
            elif action.kind == _B:
                stage.backward_one_chunk(mb, found.get(mb))
            elif action.kind == _I:
                stage.backward_input_one_chunk(mb, found.get(mb))
            else:
                stage.backward_weight_one_chunk(mb)
        return self._finish(found, losses, backward)

    def _finish(self, found: dict[int, torch.Tensor], losses: list | None, backward: bool) -> Any:
        merged = None
        for stage in self._stages.values():
            stage.finish_sends()
            if backward and self.scale_grads:
                stage.scale_grads(self._n_microbatches)
            if stage.is_last:
                merged = merge_chunks([stage.results[mb] for mb in sorted(stage.results)])
            stage.clear()
        if losses is not None and found:
            losses[:] = [found[mb] for mb in sorted(found)]
        return merged


class PipelineScheduleSingle(_Schedule):
    """Each process has one stage."""

    def __init__(
        self,
        stage: PipelineStage,
        n_microbatches: int,
        loss_fn: Callable[..., torch.Tensor] | None = None,
        args_chunk_spec: Any = None,
        kwargs_chunk_spec: Any = None,
        output_merge_spec: Any = None,
        scale_grads: bool = True,
    ) -> None:
        super().__init__(
            [stage], n_microbatches, loss_fn, args_chunk_spec, kwargs_chunk_spec,
            output_merge_spec, scale_grads,
        )  # fmt: skip
        if stage.num_stages != stage.group_size:
            raise ValueError(
                f"{type(self).__name__} needs as many stages as ranks, got {stage.num_stages} "
                f"stages on {stage.group_size} ranks"
            )


class PipelineScheduleMulti(_Schedule):
    """Each process has several stages."""

    def __init__(
        self,
        stages: list[PipelineStage],
        n_microbatches: int,
        loss_fn: Callable[..., torch.Tensor] | None = None,
        args_chunk_spec: Any = None,
        kwargs_chunk_spec: Any = None,
        output_merge_spec: Any = None,
        use_full_backward: bool | None = None,
        scale_grads: bool = True,
    ) -> None:
        super().__init__(
            list(stages), n_microbatches, loss_fn, args_chunk_spec, kwargs_chunk_spec,
            output_merge_spec, scale_grads,
        )  # fmt: skip


class ScheduleGPipe(PipelineScheduleSingle):
    """All microbatches forwards, then all backwards."""

    def _prefer(self, action: Action) -> tuple:
        return not action.is_forward, action.microbatch


class Schedule1F1B(PipelineScheduleSingle):
    """A backward pass as soon as there is one; a stage holds no more microbatches than there are
    stages after it."""

    def _prefer(self, action: Action) -> tuple:
        return action.is_forward, action.microbatch

    def _limit(self, rank: int) -> int:
        return self._first.num_stages - rank


class ScheduleInterleaved1F1B(PipelineScheduleMulti):
    """1F1B of several stages per rank: groups of as many microbatches as there are ranks go through
    a rank's first stage, then through its second."""

    def _prefer(self, action: Action) -> tuple:
        ranks = self._first.group_size
        group, within = divmod(action.microbatch, ranks)
        stage = action.stage if action.is_forward else -action.stage
        return action.is_forward, group, stage, within

    def _limit(self, rank: int) -> int:
        ranks, stages = self._first.group_size, self._first.num_stages
        return (stages // ranks - 1) * ranks + 2 * (ranks - rank - 1) + 1


class ScheduleInterleavedZeroBubble(ScheduleInterleaved1F1B):
    """Interleaved 1F1B whose backward passes are in two parts: gradients of weights are computed
    when nothing else can be done, or to make room."""

    kinds = _F + _I + _W

    def _prefer(self, action: Action) -> tuple:
        ranks = self._first.group_size
        group, within = divmod(action.microbatch, ranks)
        stage = action.stage if action.is_forward else -action.stage
        return (_I + _F + _W).index(action.kind), group, stage, within


class ScheduleZBVZeroBubble(PipelineScheduleMulti):
    """Two stages per rank that go down the ranks and up again, in the form of a V, with backward
    passes in two parts: the last stage is on the first rank, so that its backward passes begin
    early there."""

    kinds = _F + _I + _W

    def __init__(
        self,
        stages: list[PipelineStage],
        n_microbatches: int,
        loss_fn: Callable[..., torch.Tensor] | None = None,
        args_chunk_spec: Any = None,
        kwargs_chunk_spec: Any = None,
        output_merge_spec: Any = None,
        scale_grads: bool = True,
    ) -> None:
        size = stages[0].group_size
        if len(stages) != 2 or stages[0].num_stages != 2 * size:
            raise ValueError(
                "ScheduleZBVZeroBubble needs two stages per rank, got "
                f"{len(stages)} of {stages[0].num_stages} on {size} ranks"
            )
        down = list(range(size))
        for stage in stages:
            stage.stage_index_to_group_rank = dict(enumerate(down + down[::-1]))
            if stage.stage_index_to_group_rank[stage.stage_index] != stage.group_rank:
                raise ValueError(
                    f"rank {stage.group_rank} has stages {stage.group_rank} and "
                    f"{2 * size - 1 - stage.group_rank} of this schedule, not {stage.stage_index}"
                )
        super().__init__(
            stages, n_microbatches, loss_fn, args_chunk_spec, kwargs_chunk_spec,
            output_merge_spec, None, scale_grads,
        )  # fmt: skip

    def _prefer(self, action: Action) -> tuple:
        # The second stage first: its results set free what the ranks hold.
        return (_I + _F + _W).index(action.kind), -action.stage, action.microbatch

    def _is_full(self, rank: int, held: int, action: Action) -> bool:
        # Only what enters the V is kept back, for what is in it must go on.
        size = self._first.group_size
        return action.stage < size and held >= 2 * size


class ScheduleLoopedBFS(PipelineScheduleMulti):
    """All microbatches through a rank's first stage, then through its second; then all
    backwards."""

    def _prefer(self, action: Action) -> tuple:
        stage = action.stage if action.is_forward else -action.stage
        return not action.is_forward, stage, action.microbatch


_BY_NAME = {
    "gpipe": ScheduleGPipe,
    "1f1b": Schedule1F1B,
    "interleaved1f1b": ScheduleInterleaved1F1B,
    "interleavedzerobubble": ScheduleInterleavedZeroBubble,
    "zbvzerobubble": ScheduleZBVZeroBubble,
    "loopedbfs": ScheduleLoopedBFS,
    "pipelineschedulesingle": PipelineScheduleSingle,
    "pipelineschedulemulti": PipelineScheduleMulti,
}


def get_schedule_class(schedule_name: str) -> type[_Schedule]:
    """The schedule of that name, in any case."""
    found = _BY_NAME.get(schedule_name.lower())
    if found is None:
        raise ValueError(
            f"Unknown schedule name: {schedule_name}. The valid options are {list(_BY_NAME)}"
        )
    return found
