"""A small GPT trained by several processes gives the losses of one process, whatever the way in
which the work is divided."""

import math

import pytest
from ranks import needs_gloo, run_ranks

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import DTensor, Replicate, Shard
from torch.distributed.tensor.parallel import (
    ColwiseParallel,
    PrepareModuleInput,
    RowwiseParallel,
    SequenceParallel,
    loss_parallel,
    parallelize_module,
)

VOCABULARY, WIDTH, HEADS, LENGTH, BATCH, STEPS = 32, 16, 4, 8, 8, 3


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.q, self.k, self.v = (nn.Linear(WIDTH, WIDTH) for _ in range(3))
        self.out = nn.Linear(WIDTH, WIDTH)

    def forward(self, x):
        batch, length = x.shape[:2]
        q, k, v = (
            f(x).view(batch, length, -1, WIDTH // HEADS).transpose(1, 2)
            for f in (self.q, self.k, self.v)
        )
        y = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out(y.transpose(1, 2).reshape(batch, length, -1))


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.attention = Attention()
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.down(nn.functional.gelu(self.up(self.norm2(x))))


class GPT(nn.Module):
    def __init__(self):
        super().__init__()
        self.tokens, self.places = nn.Embedding(VOCABULARY, WIDTH), nn.Embedding(LENGTH, WIDTH)
        self.blocks = nn.ModuleList(Block() for _ in range(2))
        self.norm, self.head = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, VOCABULARY, bias=False)

    def forward(self, x):
        h = self.tokens(x) + self.places(torch.arange(x.size(1)).expand_as(x))
        for block in self.blocks:
            h = block(h)
        return self.head(self.norm(h))


def batch(step):
    generator = torch.Generator().manual_seed(step)
    return torch.randint(VOCABULARY, (BATCH, LENGTH + 1), generator=generator)


def train(model, part=slice(None), mean=None, loss_of=None, clip=None):
    """The losses of a few steps, averaged over ranks by `mean` where each has a part of the
    batch."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    losses = []
    for step in range(STEPS):
        data = batch(step)[part]
        optimizer.zero_grad()
        logits = model(data[:, :-1])
        targets = data[:, 1:]
        if loss_of is None:
            loss = nn.functional.cross_entropy(logits.flatten(0, 1), targets.flatten())
            loss.backward()
        else:
            loss = loss_of(logits, targets)
        if clip is not None:
            nn.utils.clip_grad_norm_(model.parameters(), clip)
        optimizer.step()
        losses.append(float(loss if mean is None else mean(loss.detach())))
    return losses


def made():
    torch.manual_seed(0)
    return GPT()


@pytest.fixture(scope="module")
def alone():
    return train(made())


def close(found, wanted):
    return all(math.isclose(a, b, rel_tol=2e-5) for a, b in zip(found, wanted, strict=True))


def _mean(group=None):
    def mean(loss):
        loss = loss.clone()
        dist.all_reduce(loss, group=group)
        return loss / dist.get_world_size(group)

    return mean


def _part(rank, size):
    return slice(rank * BATCH // size, (rank + 1) * BATCH // size)


def _data_parallel(rank, size):
    model = nn.parallel.DistributedDataParallel(made())
    return train(model, _part(rank, size), _mean())


def _sharded(rank, size, options):
    model = made()
    for block in model.blocks:
        fully_shard(block, **options)
    fully_shard(model, **options)
    return train(model, _part(rank, size), _mean())


def _hybrid(rank, size):
    mesh = init_device_mesh("cpu", (2, size // 2), mesh_dim_names=("replicate", "shard"))
    return _sharded(rank, size, {"mesh": mesh})


def _tensor_parallel_model(mesh, sequence=False):
    model = made()
    cut = Shard(1) if sequence else Replicate()
    plan = {}
    for i in range(2):
        name = f"blocks.{i}"
        plan |= {
            f"{name}.attention.q": ColwiseParallel(),
            f"{name}.attention.k": ColwiseParallel(),
            f"{name}.attention.v": ColwiseParallel(),
            f"{name}.attention.out": RowwiseParallel(
                output_layouts=cut, use_local_output=not sequence
            ),
            f"{name}.up": ColwiseParallel(input_layouts=cut),
            f"{name}.down": RowwiseParallel(output_layouts=cut, use_local_output=not sequence),
        }
        if sequence:
            plan |= {f"{name}.norm1": SequenceParallel(), f"{name}.norm2": SequenceParallel()}
            plan[f"{name}.attention"] = PrepareModuleInput(
                input_layouts=Shard(1), desired_input_layouts=Replicate()
            )
    if sequence:
        plan["tokens"] = RowwiseParallel(
            input_layouts=Replicate(), output_layouts=Shard(1), use_local_output=False
        )
        plan["places"] = RowwiseParallel(
            input_layouts=Replicate(), output_layouts=Shard(1), use_local_output=False
        )
        plan["norm"] = SequenceParallel()
        plan["head"] = ColwiseParallel(
            input_layouts=Shard(1), output_layouts=Shard(-1), use_local_output=False
        )
    return parallelize_module(model, mesh, plan)


def _tensor_parallel(rank, size):
    return train(_tensor_parallel_model(init_device_mesh("cpu", (size,))))


def _sequence_parallel(rank, size):
    mesh = init_device_mesh("cpu", (size,))

    def loss_of(logits, targets):
        assert isinstance(logits, DTensor) and logits.placements == (Shard(2),)
        targets = DTensor.from_local(targets, mesh, [Replicate()])
        with loss_parallel():
            loss = nn.functional.cross_entropy(logits.flatten(0, 1), targets.flatten())
            loss.backward()
        return loss.full_tensor()

    return train(_tensor_parallel_model(mesh, sequence=True), loss_of=loss_of)


def _both(rank, size):
    mesh = init_device_mesh("cpu", (2, size // 2), mesh_dim_names=("dp", "tp"))
    model = _tensor_parallel_model(mesh["tp"])
    for block in model.blocks:
        fully_shard(block, mesh=mesh["dp"])
    fully_shard(model, mesh=mesh["dp"])
    place = mesh.get_local_rank("dp")
    losses = train(model, _part(place, 2), _mean(mesh.get_group("dp")))
    whole = {
        name: value.full_tensor().sum().item()
        for name, value in model.state_dict().items()
        if isinstance(value, DTensor)
    }
    return losses, whole


@needs_gloo
@pytest.mark.parametrize("size", [2, 4])
def test_training_with_distributed_data_parallel_equals_one_process(alone, size):
    for losses in run_ranks(_data_parallel, size):
        assert close(losses, alone), (losses, alone)


@needs_gloo
@pytest.mark.parametrize("size", [2, 4])
@pytest.mark.parametrize("reshard", [True, False])
def test_training_with_fully_shard_equals_one_process(alone, size, reshard):
    for losses in run_ranks(_sharded, size, {"reshard_after_forward": reshard}):
        assert close(losses, alone), (losses, alone)


@needs_gloo
def test_training_with_fully_shard_on_two_dimensions_equals_one_process(alone):
    for losses in run_ranks(_hybrid, 4):
        assert close(losses, alone), (losses, alone)


@needs_gloo
@pytest.mark.parametrize("size", [2, 4])
def test_training_with_tensor_parallel_equals_one_process(alone, size):
    for losses in run_ranks(_tensor_parallel, size):
        assert close(losses, alone), (losses, alone)


@needs_gloo
def test_training_with_sequence_and_loss_parallel_equals_one_process(alone):
    for losses in run_ranks(_sequence_parallel, 2):
        assert close(losses, alone), (losses, alone)


@needs_gloo
def test_training_with_fully_shard_over_tensor_parallel_equals_one_process(alone):
    model = made()
    train(model)
    wanted = {name: value.sum().item() for name, value in model.state_dict().items()}
    for losses, whole in run_ranks(_both, 4):
        assert close(losses, alone), (losses, alone)
        for name, value in whole.items():
            assert math.isclose(value, wanted[name], rel_tol=1e-3, abs_tol=1e-3), name
