"""State of sharded models: whole, on rank 0 alone, and back again."""

import dataclasses

import pytest
from ranks import needs_gloo, run_ranks

import torch
from torch import nn
from torch.distributed.checkpoint.state_dict import (
    StateDictOptions,
    get_state_dict,
    set_state_dict,
)
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
from torch.distributed.tensor import DTensor, Shard


def made(seed=0):
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(5, 7), nn.ReLU(), nn.Linear(7, 3))


def _sharded(seed, **options):
    model = made(seed)
    fully_shard(model[0], **options)
    fully_shard(model, **options)
    return model, torch.optim.AdamW(model.parameters(), lr=0.1)


def _step(model, optimizer):
    model(torch.linspace(-1, 1, 20).view(4, 5)).square().sum().backward()
    optimizer.step()
    optimizer.zero_grad()


def _states(rank, size):
    model, optimizer = _sharded(0)
    _step(model, optimizer)
    cut, _ = get_state_dict(model, optimizer)
    assert all(isinstance(v, DTensor) and v.placements == (Shard(0),) for v in cut.values())
    whole = StateDictOptions(full_state_dict=True)
    state, optim = get_state_dict(model, optimizer, options=whole)
    alone = StateDictOptions(full_state_dict=True, cpu_offload=True)
    only, _ = get_state_dict(model, optimizer, options=alone)
    assert bool(only) == (rank == 0)
    # Another model takes it over, from each rank's own copy and from rank 0's.
    found = []
    for options in (whole, StateDictOptions(full_state_dict=True, broadcast_from_rank0=True)):
        other, other_optimizer = _sharded(1)
        _step(other, other_optimizer)
        empty = options.broadcast_from_rank0 and rank
        set_state_dict(
            other, other_optimizer,
            model_state_dict={} if empty else state,
            optim_state_dict={} if empty else optim,
            options=options,
        )  # fmt: skip
        _step(other, other_optimizer)
        found.append([p.full_tensor().tolist() for p in other.parameters()])
    _step(model, optimizer)
    return found, [p.full_tensor().tolist() for p in model.parameters()]


@needs_gloo
def test_whole_state_of_a_sharded_model_goes_to_another_one():
    for found, wanted in run_ranks(_states, 2):
        assert found == [wanted, wanted]


def _accumulated(rank, size):
    model, _ = _sharded(0)
    plain = made(0)
    parts = torch.linspace(-1, 1, 40).view(4, 2, 5)
    for step in range(2):
        model.set_requires_gradient_sync(step == 1)
        model(parts[2 * step + rank]).square().sum().backward()
        assert (model[0].weight.grad is None) == (step == 0)
    for part in parts:
        plain(part).square().sum().div(size).backward()
    return all(
        torch.allclose(a.grad.full_tensor(), b.grad, atol=1e-5)
        for a, b in zip(model.parameters(), plain.parameters(), strict=True)
    )


@needs_gloo
def test_gradients_without_synchronisation_are_added_up_until_the_last_pass():
    assert run_ranks(_accumulated, 2) == [True, True]


def _mixed(rank, size):
    inner = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
    model = made()
    fully_shard(model[0], mp_policy=inner)
    fully_shard(model, mp_policy=dataclasses.replace(inner, output_dtype=torch.float32))
    seen = []
    model[2].register_forward_pre_hook(lambda m, x: seen.append((m.weight.dtype, x[0].dtype)))
    out = model(torch.ones(2, 5))
    out.sum().backward()
    handle = model.unshard(async_op=True)
    handle.wait()
    whole = model[2].weight
    kinds = [out.dtype, *seen[0], model[0].weight.grad.dtype, whole.dtype]
    shape, is_plain = tuple(whole.shape), not isinstance(whole, DTensor)
    model.reshard()
    return [str(kind) for kind in kinds], shape, is_plain, type(model).__name__


@needs_gloo
def test_mixed_precision_computes_in_one_dtype_and_keeps_another():
    for kinds, shape, is_plain, name in run_ranks(_mixed, 2):
        assert kinds == ["torch.float32", "torch.bfloat16", "torch.bfloat16", "torch.float32",
                         "torch.bfloat16"]  # fmt: skip
        assert shape == (3, 7) and is_plain and name == "FSDPSequential"


def _frozen(rank, size):
    model = made(0)
    model[0].weight.requires_grad_(False)
    fully_shard(model)
    x = torch.ones(2, 5, requires_grad=True)
    model(x).sum().backward()
    plain = made(0)
    y = torch.ones(2, 5, requires_grad=True)
    plain(y).sum().backward()
    return (
        model[0].weight.grad is None
        and torch.allclose(x.grad, y.grad)
        and torch.allclose(model[2].weight.grad.full_tensor(), plain[2].weight.grad)
    )


@needs_gloo
def test_frozen_parameters_stay_whole_until_the_backward_pass_has_ended():
    assert run_ranks(_frozen, 2) == [True, True]


def _wrong(rank, size):
    with pytest.raises(ValueError, match="containers"):
        fully_shard(nn.ModuleList([nn.Linear(2, 2)]))
    with pytest.raises(ValueError, match="scalar"):
        module = nn.Module()
        module.weight = nn.Parameter(torch.ones(()))
        fully_shard(module)
    model = fully_shard(made())
    with pytest.raises(AssertionError, match="once"):
        fully_shard(model)
    meta = fully_shard(nn.Linear(4, 4, device="meta"))
    with pytest.raises(RuntimeError, match="meta device"):
        meta(torch.ones(1, 4))
    meta.to_empty(device="cpu")
    meta.reset_parameters()
    return tuple(meta(torch.ones(1, 4)).shape)


@needs_gloo
def test_wrong_use_of_fully_shard_raises_and_meta_modules_get_their_memory_later():
    assert run_ranks(_wrong, 2) == [(1, 4), (1, 4)]
