"""Pipelines: the order of microbatches, and steps that equal those of one process."""

import pytest
from ranks import needs_gloo, run_ranks

import torch
from torch import nn
from torch.distributed.pipelining import (
    PipelineStage,
    Schedule1F1B,
    ScheduleGPipe,
    ScheduleInterleaved1F1B,
    ScheduleInterleavedZeroBubble,
    ScheduleLoopedBFS,
    ScheduleZBVZeroBubble,
)
from torch.distributed.pipelining._backward import (
    stage_backward,
    stage_backward_input,
    stage_backward_weight,
)
from torch.distributed.pipelining.microbatch import (
    TensorChunkSpec,
    merge_chunks,
    split_args_kwargs_into_chunks,
)
from torch.distributed.pipelining.schedules import Problem, get_schedule_class, simulate

WIDTH, STAGES, BATCH = 6, 4, 8


def made():
    torch.manual_seed(0)
    return nn.ModuleList(nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.Tanh()) for _ in range(STAGES))


def data():
    generator = torch.Generator().manual_seed(1)
    return (
        torch.randn(BATCH, WIDTH, generator=generator),
        torch.randn(BATCH, WIDTH, generator=generator),
    )


def alone():
    """Output, loss and gradients of one process that knows no pipeline."""
    layers = made()
    x, y = data()
    out = x
    for layer in layers:
        out = layer(out)
    loss = nn.functional.mse_loss(out, y)
    loss.backward()
    return out.detach(), loss.item(), [p.grad for p in layers.parameters()]


def test_order_of_1f1b_alternates_after_the_first_forwards():
    def prefer(action):
        return action.is_forward, action.microbatch

    orders = simulate(Problem([0, 1], 4), prefer, lambda rank, held, _: held >= 2 - rank)
    assert str(orders[0]) == "[0F0, 0F1, 0B0, 0F2, 0B1, 0F3, 0B2, 0B3]"
    assert str(orders[1]) == "[1F0, 1B0, 1F1, 1B1, 1F2, 1B2, 1F3, 1B3]"


def test_gradients_of_weights_fill_the_time_of_waiting():
    stages = [_Place(0, 0, 4, 2), _Place(3, 0, 4, 2)]
    order = ScheduleZBVZeroBubble(stages, 4, nn.functional.mse_loss).order()
    assert len(order) == 2 * 4 * 3 == len(set(order))
    for action in order:
        if action.kind == "W":
            assert order.index(action) > order.index(action._replace(kind="I"))
    # The last stage's first backward pass begins before the first stage has had all microbatches.
    text = [str(a) for a in order]
    assert text.index("3I0") < text.index("0F3")


class _Place:
    """What a schedule asks of a stage to make its order."""

    def __init__(self, index, rank, stages, ranks):
        self.stage_index, self.num_stages = index, stages
        self.group_rank, self.group_size = rank, ranks


@pytest.mark.parametrize("ranks", [2, 3, 4])
@pytest.mark.parametrize("microbatches", [1, 2, 5, 12])
def test_a_v_of_any_size_has_an_order_that_bounds_what_is_held(ranks, microbatches):
    for rank in range(ranks):
        pair = [_Place(i, rank, 2 * ranks, ranks) for i in (rank, 2 * ranks - 1 - rank)]
        held = most = 0
        for action in ScheduleZBVZeroBubble(pair, microbatches).order():
            held += {"F": 1, "I": 0, "W": -1}[action.kind]
            most = max(most, held)
        assert held == 0
        assert most <= min(4 * ranks, 2 * microbatches)


def test_a_v_needs_the_stages_of_its_rank():
    with pytest.raises(ValueError, match="two stages per rank"):
        ScheduleZBVZeroBubble([_Place(0, 0, 4, 2)], 4)
    with pytest.raises(ValueError, match="rank 0 has stages 0 and 3"):
        ScheduleZBVZeroBubble([_Place(0, 0, 4, 2), _Place(2, 0, 4, 2)], 4)


class _Mixed(nn.Module):
    """Weights that are used once, twice, through views, and on ways that no input is on."""

    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, WIDTH)
        self.norm = nn.LayerNorm(WIDTH)
        self.scale = nn.Parameter(torch.rand(WIDTH))
        self.unused = nn.Parameter(torch.rand(2))

    def forward(self, x):
        h = self.norm(torch.tanh(self.a(x)))
        h = self.b(h) * self.scale.exp() + self.a(h)
        return h * self.scale, (self.scale * self.b.bias).sum()


@pytest.mark.parametrize("needs_input", [True, False])
def test_both_parts_of_a_backward_pass_give_the_gradients_of_the_whole(needs_input):
    torch.manual_seed(0)
    model = _Mixed().double()
    x = torch.randn(BATCH, WIDTH, dtype=torch.double, requires_grad=needs_input)
    grads = [torch.randn(BATCH, WIDTH, dtype=torch.double), torch.tensor(2.0).double()]
    (wanted,) = stage_backward(model(x), grads, (x,))
    expected = {name: p.grad for name, p in model.named_parameters()}
    model.zero_grad()
    x.grad = None
    for _ in range(2):
        found, rest = stage_backward_input(model(x), grads, (x,), model.parameters())
        assert (len(found) == 1 and torch.equal(found[0], wanted)) if needs_input else found == ()
    assert all(p.grad is None for p in model.parameters())
    stage_backward_weight(model.parameters(), rest)
    for name, p in model.named_parameters():
        if name == "unused":
            assert p.grad is None
        else:
            assert torch.allclose(p.grad, expected[name]), name


def test_microbatches_are_cut_and_joined_along_the_dimension_of_the_spec():
    x, y = torch.arange(12).view(4, 3), torch.arange(6).view(2, 3)
    specs = TensorChunkSpec.from_tuple((0, 1))
    args, kwargs = split_args_kwargs_into_chunks((x, y), {"scale": 2}, 3, specs)
    assert [tuple(a[0].shape) for a in args] == [(2, 3), (1, 3), (1, 3)]
    assert [a[1].tolist() for a in args] == [[[0], [3]], [[1], [4]], [[2], [5]]]
    assert kwargs == [{"scale": 2}] * 3
    assert torch.equal(merge_chunks([a[0] for a in args]), x)
    with pytest.raises(RuntimeError, match="cannot be cut into 5"):
        split_args_kwargs_into_chunks((x,), {}, 5)


def test_schedule_is_found_by_name_in_any_case():
    assert get_schedule_class("gpipe") is ScheduleGPipe
    assert get_schedule_class("Interleaved1F1B") is ScheduleInterleaved1F1B
    with pytest.raises(ValueError, match="Unknown schedule"):
        get_schedule_class("none")


def _train(rank, size, schedule, microbatches):
    layers = made()
    per_stage = STAGES // size if schedule in (ScheduleGPipe, Schedule1F1B) else 1
    stages = STAGES // per_stage
    places = list(range(rank, stages, size))
    if schedule is ScheduleZBVZeroBubble:
        places = [rank, stages - 1 - rank]
    own = [
        PipelineStage(nn.Sequential(*layers[i * per_stage : (i + 1) * per_stage]), i, stages, "cpu")
        for i in places
    ]
    runner = schedule(own if len(own) > 1 else own[0], microbatches, nn.functional.mse_loss)
    x, y = data()
    losses = []
    for _ in range(2):
        for stage in own:
            stage.submod.zero_grad()
        first = (x,) if own[0].is_first else ()
        out = runner.step(*first, target=y if own[-1].is_last else None, losses=losses)
    grads = {
        stage.stage_index * per_stage * 2 + n: p.grad
        for stage in own
        for n, p in enumerate(stage.submod.parameters())
    }
    return (None if out is None else out.detach()), [float(x) for x in losses], grads


@needs_gloo
@pytest.mark.parametrize(
    "schedule",
    [
        ScheduleGPipe, Schedule1F1B, ScheduleInterleaved1F1B, ScheduleLoopedBFS,
        ScheduleInterleavedZeroBubble, ScheduleZBVZeroBubble,
    ],
)  # fmt: skip
def test_step_of_a_pipeline_equals_one_process(schedule):
    wanted, loss, grads = alone()
    found = run_ranks(_train, 2, schedule, 4)
    out, losses, _ = found[0 if schedule is ScheduleZBVZeroBubble else 1]
    assert torch.allclose(out, wanted, atol=1e-6)
    assert abs(sum(losses) / 4 - loss) < 1e-6
    for _, _, own in found:
        for place, grad in own.items():
            assert torch.allclose(grad, grads[place], atol=1e-6), place
