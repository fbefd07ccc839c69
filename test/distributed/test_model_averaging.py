"""Parameters that are averaged now and then, hooks by name, and checkpoints in another form."""

import pytest
from ranks import needs_gloo, run_ranks

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch import nn
from torch.distributed.algorithms.ddp_comm_hooks import DDPCommHookType, register_ddp_comm_hook
from torch.distributed.algorithms.ddp_comm_hooks.post_localSGD_hook import (
    PostLocalSGDState,
    post_localSGD_hook,
)
from torch.distributed.algorithms.model_averaging.averagers import PeriodicModelAverager
from torch.distributed.checkpoint.format_utils import dcp_to_torch_save, torch_save_to_dcp
from torch.distributed.optim import PostLocalSGDOptimizer
from torch.nn.parallel import DistributedDataParallel


def _averaged(rank, size):
    weight = nn.Parameter(torch.zeros(2))
    averager = PeriodicModelAverager(period=2, warmup_steps=1)
    optimizer = PostLocalSGDOptimizer(torch.optim.SGD([weight], lr=1.0), averager)
    seen = []
    for _ in range(4):
        weight.grad = torch.full((2,), -float(rank + 1))
        optimizer.step()
        seen.append(weight.tolist()[0])
    state = optimizer.state_dict()
    assert state["step"] == 4
    averager.step = 0
    optimizer.load_state_dict(state)
    assert averager.step == 4
    return seen


@needs_gloo
def test_parameters_are_averaged_at_every_second_step_after_the_first():
    # Ranks add 1 and 2 a step; steps 2 and 4 end with the average of both.
    assert run_ranks(_averaged, 2) == [[1, 3.0, 4.0, 6.0], [2, 3.0, 5.0, 6.0]]


def _hooks(rank, size):
    found = {}
    for kind in ("ALLREDUCE", "FP16_COMPRESS", "NOOP", "POWER_SGD"):
        torch.manual_seed(0)
        model = DistributedDataParallel(nn.Linear(2, 1, bias=False))
        register_ddp_comm_hook(DDPCommHookType[kind], model, dist.group.WORLD)
        model(torch.full((1, 2), float(rank + 1))).sum().backward()
        found[kind] = model.module.weight.grad.tolist()[0][0]
    model = DistributedDataParallel(nn.Linear(2, 1, bias=False))
    model.register_comm_hook(PostLocalSGDState(None, None, 1, False), post_localSGD_hook)
    steps = []
    for _ in range(2):
        model.zero_grad()
        model(torch.full((1, 2), float(rank + 1))).sum().backward()
        steps.append(model.module.weight.grad.tolist()[0][0])
    found["local"] = steps
    return found


@needs_gloo
def test_hooks_by_name_exchange_gradients_as_they_say():
    for rank, found in enumerate(run_ranks(_hooks, 2)):
        own = rank + 1.0
        assert found["ALLREDUCE"] == found["FP16_COMPRESS"] == found["POWER_SGD"] == 1.5
        assert found["NOOP"] == own and found["local"] == [1.5, own]


def test_quantized_hooks_are_refused_by_name():
    with pytest.raises(NotImplementedError, match="quantized per tensor"):
        register_ddp_comm_hook(DDPCommHookType.QUANTIZE_PER_TENSOR, None)


def test_checkpoint_goes_from_torch_save_to_distributed_and_back(tmp_path):
    state = {"model": {"w": torch.arange(6.0).view(2, 3)}, "epoch": 3, "names": ["a", "b"]}
    torch.save(state, tmp_path / "one.pt")
    torch_save_to_dcp(tmp_path / "one.pt", tmp_path / "many")
    room = {"model": {"w": torch.zeros(2, 3)}}
    dcp.load(room, checkpoint_id=str(tmp_path / "many"), no_dist=True)
    assert torch.equal(room["model"]["w"], state["model"]["w"])
    dcp_to_torch_save(tmp_path / "many", tmp_path / "back.pt")
    back = torch.load(tmp_path / "back.pt", weights_only=False)
    assert torch.equal(back["model"]["w"], state["model"]["w"])
    assert back["epoch"] == 3 and back["names"] == ["a", "b"]


def test_kind_of_reduction_is_not_equal_to_an_operation_but_the_operation_is():
    operation = dist.ReduceOp(dist.ReduceOp.SUM)
    assert operation == dist.ReduceOp.SUM
    kind = dist.ReduceOp.SUM
    assert not kind == operation and kind != "SUM"  # noqa: SIM201
