"""Models cut into stages by marks: the stages together are the model, parameters keep their names,
and two processes run them with the model's gradients."""

import pytest
from ranks import needs_gloo, run_ranks

import torch
from torch import nn
from torch.distributed.pipelining import (
    ScheduleGPipe,
    SplitPoint,
    pipe_split,
    pipeline,
)
from torch.utils._pytree import tree_leaves


class _Marked(nn.Module):
    """The third stage needs what the first has made, and an argument."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.first, self.second = nn.Linear(4, 6), nn.Sequential(nn.Linear(6, 6), nn.Tanh())
        self.third = nn.Linear(6, 4)
        self.register_buffer("shift", torch.arange(6.0))

    def forward(self, x, scale=None):
        a = self.first(x) + self.shift
        pipe_split()
        b = self.second(a)
        pipe_split()
        return {"out": self.third(a + b) + x, "middle": (b,)}


def test_stages_one_after_the_other_are_the_model():
    model, x = _Marked(), torch.randn(3, 4)
    pipe = pipeline(model, (x,))
    assert pipe.num_stages == 3
    names = [sorted(pipe.get_stage_module(i).state_dict()) for i in range(3)]
    assert names == [
        ["first.bias", "first.weight", "shift"],
        ["second.0.bias", "second.0.weight"],
        ["third.bias", "third.weight"],
    ]
    # The outputs come as a tuple, whatever holds them in the model.
    expected, got = tree_leaves(model(x)), pipe(x)
    assert isinstance(got, tuple)
    assert len(got) == len(expected)
    assert all(map(torch.equal, got, expected))
    with pytest.raises(ValueError, match="Invalid stage index 3"):
        pipe.get_stage_module(3)


def test_submodules_named_in_the_spec_begin_and_end_stages():
    torch.manual_seed(0)
    model = nn.Sequential(*(nn.Linear(3, 3) for _ in range(4)))
    x = torch.randn(2, 3)
    spec = {"1": SplitPoint.BEGINNING, "2": SplitPoint.END}
    pipe = pipeline(model, (x,), split_spec=spec)
    names = [sorted(pipe.get_stage_module(i).state_dict()) for i in range(3)]
    assert names == [["0.bias", "0.weight"],
                     ["1.bias", "1.weight", "2.bias", "2.weight"],
                     ["3.bias", "3.weight"]]  # fmt: skip
    (out,) = pipe(x)
    assert torch.equal(out, model(x))
    assert "forward" not in model[1].__dict__
    with pytest.raises(ValueError, match="no mark"):
        pipeline(model, (x,))


def _trained(rank, size):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 2))
    x, y = torch.randn(8, 4), torch.randn(8, 2)
    pipe = pipeline(model, (x[:2],), split_spec={"2": SplitPoint.BEGINNING})
    stage = pipe.build_stage(rank, torch.device("cpu"))
    schedule = ScheduleGPipe(stage, 4, loss_fn=nn.functional.mse_loss)
    if rank == 0:
        schedule.step(x)
    else:
        schedule.step(target=y, losses=[])
    mine = {name: p.grad for name, p in stage.submod.named_parameters()}
    model.zero_grad()
    reference = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 2))
    reference.load_state_dict(model.state_dict())
    nn.functional.mse_loss(reference(x), y).backward()
    wanted = {name: p.grad for name, p in reference.named_parameters()}
    return all(torch.allclose(grad, wanted[name], atol=1e-6) for name, grad in mine.items()), len(
        mine
    )


@needs_gloo
def test_two_processes_train_the_stages_with_the_gradients_of_the_model():
    assert run_ranks(_trained, 2) == [(True, 2), (True, 2)]
