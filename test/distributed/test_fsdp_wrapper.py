"""FullyShardedDataParallel: the same training as on one process, and state dicts in three forms."""

import functools

import pytest
from ranks import needs_gloo, run_ranks

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.fsdp import (
    CPUOffload,
    FullOptimStateDictConfig,
    FullStateDictConfig,
    MixedPrecision,
    ShardedStateDictConfig,
    ShardingStrategy,
    StateDictType,
)
from torch.distributed.fsdp import FullyShardedDataParallel as FSDP
from torch.distributed.fsdp.wrap import (
    CustomPolicy,
    ModuleWrapPolicy,
    enable_wrap,
    size_based_auto_wrap_policy,
    transformer_auto_wrap_policy,
    wrap,
)
from torch.distributed.tensor import DTensor


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.inner = nn.Linear(width, width)
        self.norm = nn.LayerNorm(width)

    def forward(self, x):
        return x + self.norm(self.inner(x).tanh())


def made(seed=0):
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(5, 8), Block(8), Block(8), nn.Linear(8, 3))


def batch(rank, size):
    whole = torch.linspace(-1, 1, 40).view(8, 5)
    return whole.chunk(size)[rank]


def train(model, rank, size, steps=3, clip=False):
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.05)
    for _ in range(steps):
        model(batch(rank, size)).square().mean().backward()
        if clip:
            model.clip_grad_norm_(0.1)
        optimizer.step()
        optimizer.zero_grad()
    return optimizer


def alone(steps=3, clip=False):
    """The same training on one process."""
    model = made()
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.05)
    for _ in range(steps):
        model(batch(0, 1)).square().mean().backward()
        if clip:
            nn.utils.clip_grad_norm_(model.parameters(), 0.1)
        optimizer.step()
        optimizer.zero_grad()
    return {name: value.detach() for name, value in model.state_dict().items()}


def assert_same(found, wanted):
    assert list(found) == list(wanted)
    for name, value in wanted.items():
        torch.testing.assert_close(found[name], value, rtol=1e-4, atol=1e-5)


POLICY = functools.partial(transformer_auto_wrap_policy, transformer_layer_cls={Block})


def _strategies(rank, size):
    found = {}
    for strategy in ShardingStrategy:
        model = FSDP(made(), sharding_strategy=strategy, auto_wrap_policy=POLICY)
        assert len(FSDP.fsdp_modules(model)) == 3
        train(model, rank, size)
        found[strategy.name] = model.state_dict()
    model = FSDP(made(), auto_wrap_policy=POLICY, cpu_offload=CPUOffload(offload_params=True))
    train(model, rank, size)
    found["offload"] = model.state_dict()
    return found


@needs_gloo
def test_every_strategy_trains_as_one_process_does():
    wanted = alone()
    for found in run_ranks(_strategies, 2):
        for state in found.values():
            assert_same(state, wanted)


def _states(rank, size):
    model = FSDP(made(), auto_wrap_policy=ModuleWrapPolicy({Block}))
    optimizer = train(model, rank, size)
    only = FullStateDictConfig(offload_to_cpu=True, rank0_only=True)
    with FSDP.state_dict_type(model, StateDictType.FULL_STATE_DICT, only):
        assert bool(model.state_dict()) == (rank == 0)
    with FSDP.state_dict_type(
        model, StateDictType.SHARDED_STATE_DICT, ShardedStateDictConfig(offload_to_cpu=True)
    ):
        cut = model.state_dict()
        assert all(isinstance(value, DTensor) for value in cut.values())
    with FSDP.state_dict_type(model, StateDictType.LOCAL_STATE_DICT):
        parts = model.state_dict()
    whole = model.state_dict()
    assert parts["0.weight"].shape[0] * size == whole["0.weight"].shape[0]
    optim = FSDP.optim_state_dict(model, optimizer)
    assert set(optim["state"]) == set(whole)
    assert optim["state"]["0.weight"]["exp_avg"].shape == whole["0.weight"].shape
    # Another model goes on from there, from each form.
    found = []
    for kind, state in (
        (StateDictType.FULL_STATE_DICT, whole),
        (StateDictType.SHARDED_STATE_DICT, cut),
        (StateDictType.LOCAL_STATE_DICT, parts),
    ):
        other = FSDP(made(1), auto_wrap_policy=ModuleWrapPolicy({Block}))
        other_optimizer = torch.optim.AdamW(other.parameters(), lr=0.05)
        with FSDP.state_dict_type(other, kind):
            other.load_state_dict(state)
        loaded = FSDP.optim_state_dict_to_load(other, other_optimizer, optim)
        other_optimizer.load_state_dict(loaded)
        other(batch(rank, size)).square().mean().backward()
        other_optimizer.step()
        found.append(other.state_dict())
    return found


@needs_gloo
def test_model_that_loads_a_state_of_any_type_goes_on_as_one_process_does():
    wanted = alone(steps=4)
    for states in run_ranks(_states, 2):
        for state in states:
            assert_same(state, wanted)


def _helpers(rank, size):
    model = FSDP(made(), auto_wrap_policy=POLICY)
    train(model, rank, size, clip=True)
    clipped = model.state_dict()
    with FSDP.summon_full_params(model):
        assert dict(model.named_parameters())["1.inner.weight"].shape == (8, 8)
        with torch.no_grad():
            model.module[0].weight.fill_(0.5)
    kept = model.state_dict()["0.weight"]
    with FSDP.summon_full_params(model, writeback=False), torch.no_grad():
        model.module[0].weight.zero_()
    same = model.state_dict()["0.weight"]
    model.zero_grad()
    with model.no_sync():
        model(batch(rank, size)).square().mean().backward()
    assert all(p.grad is None for p in model.parameters())
    model(batch(rank, size)).square().mean().backward()
    twice = model.module[0].bias.grad.full_tensor()
    model.zero_grad()
    model(batch(rank, size)).square().mean().backward()
    return clipped, kept, same, twice, model.module[0].bias.grad.full_tensor()


@needs_gloo
def test_clipping_summoning_and_no_sync_act_on_whole_gradients_and_parameters():
    wanted = alone(clip=True)
    for clipped, kept, same, twice, once in run_ranks(_helpers, 2):
        assert_same(clipped, wanted)
        assert torch.equal(kept, torch.full((8, 5), 0.5)) and torch.equal(same, kept)
        torch.testing.assert_close(twice, 2 * once)


def _precision(rank, size):
    seen = []
    model = FSDP(
        made(),
        auto_wrap_policy=POLICY,
        mixed_precision=MixedPrecision(torch.bfloat16, torch.float32, torch.bfloat16),
    )
    model.module[1].module.inner.register_forward_hook(
        lambda module, args, output: seen.append((args[0].dtype, module.weight.dtype))
    )
    train(model, rank, size, steps=1)
    return seen[0], {p.dtype for p in model.parameters()}


@needs_gloo
def test_mixed_precision_computes_low_and_keeps_parameters_high():
    for seen, kept in run_ranks(_precision, 2):
        assert seen == (torch.bfloat16, torch.bfloat16) and kept == {torch.float32}


def _beginnings(rank, size):
    synced = FSDP(made(seed=rank), sync_module_states=True).state_dict()["0.weight"]
    with torch.device("meta"):
        empty = made()

    def fill(module):
        module.to_empty(device="cpu", recurse=False)
        with torch.no_grad():
            for p in module.parameters(recurse=False):
                p.fill_(2.0)

    filled = FSDP(empty, param_init_fn=fill).state_dict()["3.bias"]
    model = made()
    kept = FSDP(model, ignored_modules=[model[1]])
    assert not isinstance(kept.module[1].inner.weight, DTensor)
    with pytest.raises(TypeError, match="list elements"):
        FSDP(made(), ignored_modules=[3])
    return synced, filled, dist.get_rank()


@needs_gloo
def test_parameters_come_from_rank_zero_or_from_a_function_and_some_stay_whole():
    results = run_ranks(_beginnings, 2)
    assert all(torch.equal(synced, made(0)[0].weight) for synced, _, _ in results)
    assert all(torch.equal(filled, torch.full((3,), 2.0)) for _, filled, _ in results)


def _policies(rank, size):
    by_size = functools.partial(size_based_auto_wrap_policy, min_num_params=60)
    counts = [len(FSDP.fsdp_modules(FSDP(made(), auto_wrap_policy=by_size)))]
    custom = CustomPolicy(lambda m: {"sharding_strategy": ShardingStrategy.SHARD_GRAD_OP}
                          if isinstance(m, Block) else False)  # fmt: skip
    model = FSDP(made(), auto_wrap_policy=custom)
    counts.append(len(FSDP.fsdp_modules(model)))
    assert model.module[1].sharding_strategy is ShardingStrategy.SHARD_GRAD_OP
    with enable_wrap(wrapper_cls=FSDP):
        assert isinstance(wrap(nn.Linear(2, 2)), FSDP)
    assert not isinstance(wrap(nn.Linear(2, 2)), FSDP)
    return counts


@needs_gloo
def test_policies_pick_modules_by_size_class_and_function():
    # The linear layers of both blocks have 72 elements, the layers at the ends 48 and 27.
    assert run_ranks(_policies, 2) == [[3, 3], [3, 3]]


def _wrong(rank, size):
    model = FSDP(made(), auto_wrap_policy=POLICY)
    model(batch(rank, size))
    with pytest.raises(RuntimeError, match="root FSDP"):
        model.module[1].clip_grad_norm_(1.0)
    with pytest.raises(RuntimeError, match="Expected FullStateDictConfig"):
        FSDP.set_state_dict_type(model, StateDictType.FULL_STATE_DICT, ShardedStateDictConfig())
    before = FSDP.set_state_dict_type(model, StateDictType.SHARDED_STATE_DICT)
    assert before.state_dict_type is StateDictType.FULL_STATE_DICT
    assert isinstance(before.optim_state_dict_config, FullOptimStateDictConfig)
    with pytest.raises(ValueError, match="containers"):
        FSDP(nn.ModuleList([nn.Linear(2, 2)]))


@needs_gloo
def test_wrong_uses_are_refused_with_the_reason():
    run_ranks(_wrong, 2)


def _hooked(rank, size):
    calls = []

    def reduced(state, gradient, part):
        calls.append(gradient.numel() == size * part.numel())
        dist.reduce_scatter_tensor(part, gradient / size)

    grads = []
    for hook in (None, reduced):
        model = FSDP(made(), auto_wrap_policy=ModuleWrapPolicy({Block}))
        if hook is not None:
            model.register_comm_hook(None, hook)
            with pytest.raises(AssertionError, match="already registered"):
                model.register_comm_hook(None, hook)
        model(batch(rank, size)).square().mean().backward()
        grads.append([p.grad.to_local().clone() for p in model.parameters()])
    assert calls and all(calls)
    return all(torch.equal(a, b) for a, b in zip(*grads, strict=True))


@needs_gloo
def test_communication_hook_replaces_the_reduction():
    assert run_ranks(_hooked, 2) == [True, True]
