"""A small GPT cut into stages gives the losses of one process, alone and together with the other
ways to divide the work: two and three dimensions of a mesh."""

import math

import pytest
from ranks import needs_gloo, run_ranks
from test_parallel_training import BATCH, STEPS, Block, batch, made, train

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.pipelining import (
    PipelineStage,
    Schedule1F1B,
    ScheduleGPipe,
    ScheduleZBVZeroBubble,
)
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

pytestmark = needs_gloo


class _Stage(nn.Module):
    """One of as many parts of the model as there are stages: four at most, of half a block."""

    def __init__(self, stage, stages):
        super().__init__()
        whole = made()
        pieces = [_Embedding(whole), *whole.blocks, _Head(whole)]
        bounds = [i * len(pieces) // stages for i in range(stages + 1)]
        self.pieces = nn.ModuleList(pieces[bounds[stage] : bounds[stage + 1]])

    def forward(self, x):
        for piece in self.pieces:
            x = piece(x)
        return x


class _Embedding(nn.Module):
    def __init__(self, whole):
        super().__init__()
        self.tokens, self.places = whole.tokens, whole.places

    def forward(self, x):
        return self.tokens(x) + self.places(torch.arange(x.size(1)).expand_as(x))


class _Head(nn.Module):
    def __init__(self, whole):
        super().__init__()
        self.norm, self.head = whole.norm, whole.head

    def forward(self, x):
        return self.head(self.norm(x))


def _loss(logits, targets):
    return nn.functional.cross_entropy(logits.flatten(0, 1), targets.flatten())


def _tensor_parallel(stage, mesh):
    plan = {}
    for name, piece in stage.named_modules():
        if isinstance(piece, Block):
            plan |= {f"{name}.attention.{part}": ColwiseParallel() for part in "qkv"}
            plan |= {f"{name}.attention.out": RowwiseParallel(), f"{name}.up": ColwiseParallel()}
            plan[f"{name}.down"] = RowwiseParallel()
    return parallelize_module(stage, mesh, plan) if plan else stage


def _train(group, schedule, prepare=lambda stage: stage, part=slice(None), dp=None):
    rank, size = dist.get_rank(group), dist.get_world_size(group)
    two = schedule is ScheduleZBVZeroBubble
    count = 2 * size if two else size
    places = [rank, count - 1 - rank] if two else [rank]
    models = [prepare(_Stage(place, count)) for place in places]
    stages = [
        PipelineStage(model, place, count, torch.device("cpu"), group=group)
        for model, place in zip(models, places, strict=True)
    ]
    runner = schedule(stages if two else stages[0], 2, loss_fn=_loss)
    optimizer = torch.optim.AdamW([p for m in models for p in m.parameters()], lr=1e-2)
    last = 0 if two else size - 1
    found = []
    for step in range(STEPS):
        data, losses = batch(step)[part], []
        optimizer.zero_grad()
        first = (data[:, :-1].contiguous(),) if rank == 0 else ()
        named = {"target": data[:, 1:].contiguous(), "losses": losses} if rank == last else {}
        runner.step(*first, **named)
        optimizer.step()
        mean = torch.stack([one.detach() for one in losses]).mean() if losses else torch.zeros(())
        dist.broadcast(mean, group=group, group_src=last)
        if dp is not None:
            dist.all_reduce(mean, group=dp)
            mean /= dist.get_world_size(dp)
        found.append(mean.item())
    return found


def _alone(rank, size, schedule):
    return _train(dist.group.WORLD, schedule)


def _divided(rank, size, pp, dp, tp):
    mesh = init_device_mesh("cpu", (pp, dp, tp), mesh_dim_names=("pp", "dp", "tp"))

    def prepare(stage):
        if tp > 1:
            stage = _tensor_parallel(stage, mesh["tp"])
        return fully_shard(stage, mesh=mesh["dp"]) if dp > 1 else stage

    place = mesh.get_local_rank("dp")
    part = slice(place * BATCH // dp, (place + 1) * BATCH // dp)
    group = mesh.get_group("dp") if dp > 1 else None
    return _train(mesh.get_group("pp"), Schedule1F1B, prepare, part, group)


def _check(every):
    wanted = train(made())
    for losses in every:
        for one, other in zip(losses, wanted, strict=True):
            assert math.isclose(one, other, rel_tol=2e-5), (losses, wanted)


@pytest.mark.parametrize(
    "schedule, size",
    [(ScheduleGPipe, 2), (Schedule1F1B, 2), (Schedule1F1B, 4), (ScheduleZBVZeroBubble, 2)],
)
def test_training_in_stages_equals_one_process(schedule, size):
    _check(run_ranks(_alone, size, schedule))


@pytest.mark.parametrize("pp, dp, tp", [(2, 2, 1), (2, 1, 2), (2, 2, 2)])
def test_training_in_stages_that_are_divided_too_equals_one_process(pp, dp, tp):
    _check(run_ranks(_divided, pp * dp * tp, pp, dp, tp))


def _replicated_or_sharded(rank, size, schedule, wrapper):
    mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("pp", "dp"))
    group, place = mesh.get_group("dp"), mesh.get_local_rank("dp")

    def prepare(stage):
        if wrapper == "replicated":
            return nn.parallel.DistributedDataParallel(stage, process_group=group)
        return fully_shard(stage, mesh=mesh["dp"], reshard_after_forward=wrapper == "cut")

    part = slice(place * BATCH // 2, (place + 1) * BATCH // 2)
    return _train(mesh.get_group("pp"), schedule, prepare, part, group)


@pytest.mark.parametrize("schedule", [ScheduleGPipe, Schedule1F1B, ScheduleZBVZeroBubble])
@pytest.mark.parametrize("wrapper", ["replicated", "whole", "cut"])
def test_stages_that_are_replicated_or_sharded_exchange_what_all_microbatches_add(
    schedule, wrapper
):
    _check(run_ranks(_replicated_or_sharded, 4, schedule, wrapper))


def _raises_in_a_step(rank, size):
    stage = fully_shard(nn.Linear(2, 2))
    unit = stage._fsdp_state.unit
    group = [dist.new_group([0]), dist.new_group([1])][rank]

    def loss(output, target):
        raise KeyError("no loss")

    place = PipelineStage(stage, 0, 1, torch.device("cpu"), group=group)
    runner = ScheduleGPipe(place, 2, loss_fn=loss)
    for _ in range(2):
        with pytest.raises(KeyError, match="no loss"):
            runner.step(torch.ones(4, 2), target=torch.ones(4, 2))
    runner._loss_fn = nn.functional.mse_loss
    runner.step(torch.ones(4, 2), target=torch.ones(4, 2))
    return unit.reduce_grads, stage._fsdp_state.reshard_after_backward, stage.weight.grad is None


def test_settings_of_a_sharded_stage_outlive_a_step_that_raises():
    assert run_ranks(_raises_in_a_step, 2) == [(True, True, False)] * 2
