"""Functions that make a module parallel in its place: what they may not change, and that replicate
and checkpoint do what the wrappers do."""

import copy

import pytest
from ranks import needs_gloo, run_ranks

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed._composable import _get_registry, checkpoint, contract, replicate
from torch.nn.parallel import DistributedDataParallel


@contract()
def _marked(module):
    _marked.state(module).mark = 7
    return module


def test_contract_keeps_a_state_and_is_applied_once():
    model = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2))
    assert _get_registry(model) is None
    _marked(model[0])
    assert _marked.state(model[0]).mark == 7 and _marked.state(model[1]) is None
    assert list(_get_registry(model[0])) == ["_marked"]
    with pytest.raises(AssertionError, match="_marked has already been applied"):
        _marked(model[0])


def test_contract_refuses_changed_names():
    @contract()
    def wrapped(module):
        return nn.Sequential(module)

    with pytest.raises(RuntimeError, match=r"Checking parameters: .* cannot modify FQNs"):
        wrapped(nn.Linear(2, 2))


def test_checkpoint_with_an_unknown_option_is_refused():
    with pytest.raises(ValueError, match="Unexpected keyword arguments: fast, once"):
        checkpoint(nn.Linear(1, 1), once=True, fast=True)


def test_checkpoint_computes_again_and_gives_the_same_gradients():
    torch.manual_seed(0)
    plain = nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 4))
    again = copy.deepcopy(plain)
    runs = []
    again[1].register_forward_hook(lambda *_: runs.append(1))
    checkpoint(again)
    x = torch.randn(3, 4)
    plain(x).sum().backward()
    again(x).sum().backward()
    assert len(runs) == 2
    for one, other in zip(plain.parameters(), again.parameters(), strict=True):
        assert torch.equal(one.grad, other.grad)


def _trained(rank, size):
    def made():
        torch.manual_seed(rank)  # replicate sends the first rank's values
        return nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 2))

    wrapped, replicated = DistributedDataParallel(made()), made()
    names = list(replicated.state_dict())
    replicate(replicated)
    for step in range(3):
        torch.manual_seed(10 * step + rank)
        x = torch.randn(5, 4)
        for model in (wrapped, replicated):
            model(x).pow(2).sum().backward()
        for p, q in zip(wrapped.parameters(), replicated.parameters(), strict=True):
            assert torch.equal(p.grad, q.grad)
            with torch.no_grad():
                p -= 0.1 * p.grad
                q -= 0.1 * q.grad
    return list(replicated.state_dict()) == names, replicated[0].weight.detach().numpy().tolist()


@needs_gloo
def test_replicate_trains_as_the_wrapper_does():
    (same, first), (_, second) = run_ranks(_trained, 2)
    assert same and first == second


def _states(rank, size):
    from torch.distributed.utils import _sync_module_states

    module = nn.Linear(2, 2)
    nn.init.constant_(module.weight, rank)
    nn.init.constant_(module.bias, rank)
    _sync_module_states(module, dist.group.WORLD, 1 << 20, 1, {"bias"})
    return module.weight.unique().tolist(), module.bias.unique().tolist()


@needs_gloo
def test_states_come_from_the_chosen_rank_but_for_the_ignored():
    assert run_ranks(_states, 2) == [([1.0], [0.0]), ([1.0], [1.0])]


def _sharded(rank, size):
    from torch.distributed._shard.sharded_tensor import Shard, init_from_local_shards

    whole = torch.arange(12.0).view(4, 3)
    mine = Shard.from_tensor_and_offsets(whole[2 * rank : 2 * rank + 2], [2 * rank, 0], rank)
    made = init_from_local_shards([mine], 4, 3)
    out = torch.zeros(4, 3) if rank == 1 else None
    made.gather(1, out)
    wrong = Shard.from_tensor_and_offsets(whole[:2], [0, 0], rank)
    with pytest.raises(ValueError, match="overlap"):
        init_from_local_shards([wrong], 4, 3)
    return made.shape == (4, 3) and (rank == 0 or torch.equal(out, whole))


@needs_gloo
def test_sharded_tensor_is_put_together_on_one_rank():
    assert run_ranks(_sharded, 2) == [True, True]
