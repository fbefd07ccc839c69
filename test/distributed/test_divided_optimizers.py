"""Optimizers and hooks that divide work or state among ranks: ZeroRedundancyOptimizer, PowerSGD,
Join."""

import pytest
from ranks import needs_gloo, run_ranks

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.algorithms.ddp_comm_hooks import powerSGD_hook as power
from torch.distributed.algorithms.join import Join, Joinable, JoinHook
from torch.distributed.optim import ZeroRedundancyOptimizer


def made(seed=0):
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 3))


def _steps(model, optimizer, count=3):
    for step in range(count):
        optimizer.zero_grad()
        model(torch.full((2, 6), 0.1 * (step + 1))).square().sum().backward()
        optimizer.step()
    return [p.tolist() for p in model.parameters()]


def _zero(rank, size):
    model = made()
    optimizer = ZeroRedundancyOptimizer(model.parameters(), torch.optim.Adam, lr=0.1)
    first = _steps(model, optimizer)
    held = len(optimizer.optim.state)
    with pytest.raises(RuntimeError, match="has not been consolidated"):
        optimizer.state_dict()
    optimizer.consolidate_state_dict(to=0)
    box = [optimizer.state_dict() if rank == 0 else None]
    dist.broadcast_object_list(box, src=0)
    other = made(1)
    other.load_state_dict(model.state_dict())
    again = ZeroRedundancyOptimizer(other.parameters(), torch.optim.Adam, lr=0.5)
    again.load_state_dict(box[0])
    return first, held, sorted(box[0]["state"]), _steps(other, again), _steps(model, optimizer)


@needs_gloo
def test_optimizer_with_divided_state_updates_as_a_plain_one_and_its_state_is_whole():
    model = made()
    wanted = _steps(model, torch.optim.Adam(model.parameters(), lr=0.1))
    found = run_ranks(_zero, 2)
    assert sum(held for _, held, *_ in found) == 4
    for first, _, numbers, loaded, kept in found:
        assert first == wanted and numbers == [0, 1, 2, 3] and loaded == kept


def _power(rank, size, hook, rank_of_matrix):
    torch.manual_seed(0)
    model = nn.parallel.DistributedDataParallel(nn.Linear(24, 24, bias=False))
    state = power.PowerSGDState(
        None, matrix_approximation_rank=rank_of_matrix, start_powerSGD_iter=2
    )
    model.register_comm_hook(state, hook)
    errors = []
    for step in range(4):
        model.zero_grad()
        generator = torch.Generator().manual_seed(100 + step)
        # Gradients of rank one on each process, of rank two together.
        both = torch.randn(2, 24, generator=generator)
        (model(both[rank : rank + 1]) * both[1 - rank : 2 - rank]).sum().backward()
        wanted = (both[1:].t() @ both[:1] + both[:1].t() @ both[1:]) / 2
        errors.append((model.module.weight.grad - wanted).abs().max().item())
    return errors, state.compression_stats()


@needs_gloo
def test_gradients_of_low_rank_survive_their_compression():
    for errors, (rate, before, after) in run_ranks(_power, 2, power.powerSGD_hook, 2):
        assert errors[0] < 1e-5 and errors[1] < 1e-5 and before == 2 * 576
        # What one power iteration misses of the first is sent with the next.
        assert rate == pytest.approx(576 / (2 * 2 * 24)) and after == 2 * 96
        assert max(errors) < 3


def test_power_sgd_from_the_first_step_with_error_feedback_raises():
    with pytest.raises(ValueError, match="start_powerSGD_iter"):
        power.PowerSGDState(None, start_powerSGD_iter=1)


class Counter(Joinable):
    """Adds up how many ranks ran each iteration."""

    def __init__(self):
        super().__init__()
        self.seen, self.shadows, self.last = [], 0, None

    def __call__(self):
        Join.notify_join_context(self)
        one = torch.ones(1)
        dist.all_reduce(one)
        self.seen.append(int(one.item()))

    def join_hook(self, **kwargs):
        counter = self

        class Hook(JoinHook):
            def main_hook(self):
                counter.shadows += 1
                dist.all_reduce(torch.zeros(1))

            def post_hook(self, is_last_joiner):
                counter.last = is_last_joiner

        return Hook()

    join_device = property(lambda self: torch.device("cpu"))
    join_process_group = property(lambda self: dist.group.WORLD)


def _join(rank, size):
    counter = Counter()
    with Join([counter]):
        for _ in range(2 + rank):
            counter()
    return counter.seen, counter.shadows, counter.last


def _throw(rank, size):
    counter = Counter()
    with (
        pytest.raises(RuntimeError, match=r"exhausted (all )?inputs"),
        Join([counter], throw_on_early_termination=True),
    ):
        for _ in range(2 + rank):
            counter()
    return len(counter.seen)


@needs_gloo
def test_ranks_without_inputs_shadow_the_others_until_all_have_joined():
    first, second = run_ranks(_join, 2)
    assert first == ([2, 2], 1, False) and second == ([2, 2, 1], 0, True)
    assert run_ranks(_throw, 2) == [2, 2]


def _wrong_parameters(rank, size):
    make = torch.distributed.optim.ZeroRedundancyOptimizer
    dense, other = torch.ones(2), torch.ones(2, dtype=torch.double)
    with pytest.raises(TypeError, match="iterable of Tensors"):
        make(dense, torch.optim.SGD, lr=0.1)
    for wrong in ([dense, other], [dense, torch.ones(2).to_sparse()], [{"params": [other, dense]}]):
        with pytest.raises(ValueError, match="requires all parameters"):
            make(wrong, torch.optim.SGD, lr=0.1)


def test_parameters_that_cannot_travel_together_are_refused():
    run_ranks(_wrong_parameters, 2)
