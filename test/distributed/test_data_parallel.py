"""DistributedDataParallel: ranks that each see a part of the data take the steps that one process
takes with all of it."""

import contextlib
import copy

import numpy as np
import pytest
from ranks import needs_gloo, run_ranks

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as Parallel
from torch.utils.checkpoint import checkpoint

pytestmark = needs_gloo


def _model() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 8), nn.Tanh(), nn.Linear(8, 2))


def _data() -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(1)
    return torch.randn(8, 6, generator=generator), torch.randn(8, 2, generator=generator)


def _train(model: nn.Module, parts: list, steps: int = 4) -> list[np.ndarray]:
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    for _ in range(steps):
        optimizer.zero_grad()
        for x, y in parts:
            nn.functional.mse_loss(model(x), y).backward()
        optimizer.step()
    return [p.detach().numpy() for p in model.parameters()]


def _parallel(rank: int, size: int, options: dict) -> list[np.ndarray]:
    if rank:
        torch.manual_seed(99)
        model = nn.Sequential(*copy.deepcopy(list(_model())))
        for p in model.parameters():
            nn.init.normal_(p)
    else:
        model = _model()
    hook = options.pop("hook", None)
    model = Parallel(model, **options)
    if hook:
        model.register_comm_hook(None, hook)
    x, y = _data()
    return _train(model, [(x[rank::size], y[rank::size])])


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"gradient_as_bucket_view": True},
        {"find_unused_parameters": True},
        {"static_graph": True},
        {"bucket_cap_mb": 1e-4},
    ],
    ids=str,
)
def test_parameters_after_training_are_those_of_one_process(options):
    x, y = _data()
    expected = _train(_model(), [(x, y)])
    first, second = run_ranks(_parallel, 2, options)
    for one, other, alone in zip(first, second, expected, strict=True):
        np.testing.assert_array_equal(one, other)
        np.testing.assert_allclose(one, alone, rtol=1e-5, atol=1e-6)


class _Recomputed(nn.Module):
    """Layers that run again in passes of their own inside the backward pass, each of `uses` times;
    no parameter gets its gradient in the outer pass."""

    def __init__(self, uses: int) -> None:
        super().__init__()
        self.layers, self.uses = _model(), uses

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        total = torch.zeros(())
        for scale in range(1, self.uses + 1):
            y = x * scale
            for layer in self.layers:
                y = checkpoint(layer, y, use_reentrant=True)
            total = total + y
        return total


def _recomputing(rank: int, size: int, uses: int) -> list:
    model = Parallel(_Recomputed(uses), static_graph=uses > 1)
    x, y = _data()
    return _train(model, [(x[rank::size].requires_grad_(), y[rank::size])])


@pytest.mark.parametrize("uses", [1, 2])
def test_layers_recomputed_in_passes_of_their_own_train_as_in_one_process(uses):
    x, y = _data()
    wanted = _train(_Recomputed(uses), [(x.requires_grad_(), y)])
    for found in run_ranks(_recomputing, 2, uses):
        for one, other in zip(found, wanted, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-6)


def _averaging(state, bucket):
    future = dist.group.WORLD.allreduce([bucket.buffer()]).get_future()
    return future.then(lambda done: done.value()[0] / dist.get_world_size())


def test_hook_on_communication_that_averages_gives_the_same():
    x, y = _data()
    expected = _train(_model(), [(x, y)])
    for found in run_ranks(_parallel, 2, {"hook": _averaging}):
        for one, alone in zip(found, expected, strict=True):
            np.testing.assert_allclose(one, alone, rtol=1e-5, atol=1e-6)


def _bucket_is_a_number(state, bucket: int):
    raise AssertionError


def _returns_a_number(state, bucket: dist.GradBucket) -> int:
    return 1


def _returns_a_number_unannounced(state, bucket):
    return 1


def _annotated(state, bucket: dist.GradBucket) -> torch.futures.Future[torch.Tensor]:
    return _averaging(state, bucket)


def _hooked(rank: int, size: int, hook) -> str:
    model = Parallel(nn.Linear(2, 1))
    try:
        model.register_comm_hook(None, hook)
        model(torch.ones(1, 2)).sum().backward()
    except (ValueError, RuntimeError) as error:
        return f"{type(error).__name__}: {error}"
    return ""


@pytest.mark.parametrize(
    ("hook", "text"),
    [
        (_bucket_is_a_number, "ValueError: Communication hook: bucket annotation should be"),
        (_returns_a_number, "ValueError: Communication hook: return annotation should be"),
        (_returns_a_number_unannounced, "RuntimeError: DDP communication hook's callback must"),
        (_annotated, ""),
    ],
)
def test_hook_that_takes_or_returns_something_else_is_refused(hook, text):
    (found,) = run_ranks(_hooked, 1, hook)
    assert found.startswith(text)
    assert bool(found) == bool(text)


def _compressed(rank: int, size: int) -> list:
    from torch.distributed.algorithms.ddp_comm_hooks import default_hooks

    model = Parallel(nn.Linear(3, 1, bias=False))
    model.register_comm_hook(None, default_hooks.bf16_compress_hook)
    model(torch.full((1, 3), 1.0 + rank)).sum().backward()
    return model.module.weight.grad.flatten().tolist()


def test_compressed_gradients_are_the_average():
    assert run_ranks(_compressed, 2) == [[1.5] * 3] * 2


def _accumulating(rank: int, size: int) -> list:
    model = Parallel(nn.Linear(2, 1, bias=False))
    x = torch.ones(1, 2) * (rank + 1)
    with model.no_sync():
        model(x).sum().backward()
    alone = model.module.weight.grad.flatten().tolist()
    model(x).sum().backward()
    return [alone, model.module.weight.grad.flatten().tolist()]


def test_no_sync_keeps_gradients_until_the_next_pass():
    first, second = run_ranks(_accumulating, 2)
    assert first == [[1.0, 1.0], [3.0, 3.0]] and second == [[2.0, 2.0], [3.0, 3.0]]


class _Branches(nn.Module):
    def __init__(self):
        super().__init__()
        self.left, self.right, self.never = (nn.Linear(2, 1, bias=False) for _ in range(3))

    def forward(self, x, left):
        return (self.left if left else self.right)(x)


def _unused(rank: int, size: int) -> list:
    model = Parallel(_Branches(), find_unused_parameters=True)
    found = []
    for _ in range(2):
        model.zero_grad()
        model(torch.ones(1, 2), rank == 0).sum().backward()
        grads = [p.grad for p in model.parameters()]
        found.append([None if grad is None else grad.flatten().tolist() for grad in grads])
    return found


def test_parameters_that_some_ranks_do_not_use_are_averaged_and_unused_ones_left_alone():
    expected = [[[0.5, 0.5], [0.5, 0.5], None]] * 2
    assert run_ranks(_unused, 2) == [expected, expected]


def _unused_unannounced(rank: int, size: int) -> str:
    model = Parallel(_Branches())
    model(torch.ones(1, 2), True).sum().backward()
    with pytest.raises(RuntimeError) as caught:
        model(torch.ones(1, 2), True)
    return str(caught.value)


def test_unused_parameters_without_the_option_raise_and_are_named():
    for text in run_ranks(_unused_unannounced, 2):
        assert "Expected to have finished reduction in the prior iteration" in text
        assert "right.weight" in text and "never.weight" in text and "left" not in text


def _different(rank: int, size: int) -> str:
    with pytest.raises(RuntimeError) as caught:
        Parallel(nn.Linear(2 + rank, 1))
    return str(caught.value)


def test_models_of_different_shapes_raise_on_every_rank():
    first, second = run_ranks(_different, 2)
    assert "another rank's params differ" in first
    assert "params[0] in this process with sizes [1, 3]" in second


def _buffers(rank: int, size: int) -> list:
    model = Parallel(nn.BatchNorm1d(2))
    model.module.running_mean.fill_(float(rank + 3))
    model.eval()
    model(torch.ones(2, 2))
    return [model.module.running_mean.tolist(), sorted(model.state_dict())[0]]


def test_buffers_follow_those_of_rank_zero():
    assert run_ranks(_buffers, 2) == [[[3.0, 3.0], "module.bias"]] * 2


def _sync_batch_norm(rank: int, size: int) -> list:
    layer = nn.SyncBatchNorm.convert_sync_batchnorm(nn.BatchNorm1d(3))
    x = _data()[0][:, :3].clone()[rank * 4 : rank * 4 + 4].requires_grad_()
    out = layer(x)
    (out * torch.arange(12.0).view(4, 3)).sum().backward()
    return [out.detach().numpy(), x.grad.numpy(), layer.running_var.numpy()]


def test_sync_batch_norm_normalises_over_the_batches_of_all_ranks():
    layer = nn.BatchNorm1d(3)
    x = _data()[0][:, :3].clone().requires_grad_()
    out = layer(x)
    weight = torch.arange(12.0).view(4, 3)
    (out * torch.cat([weight, weight])).sum().backward()
    for rank, found in enumerate(run_ranks(_sync_batch_norm, 2)):
        rows = slice(rank * 4, rank * 4 + 4)
        np.testing.assert_allclose(found[0], out.detach().numpy()[rows], rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(found[1], x.grad.numpy()[rows], rtol=1e-3, atol=1e-4)
        np.testing.assert_allclose(found[2], layer.running_var.numpy(), rtol=1e-5)


def _refusals(rank: int, size: int) -> list[str]:
    texts = []
    for call in (
        lambda: Parallel(nn.ReLU()),
        lambda: Parallel(nn.Linear(1, 1), device_ids=[0, 1]),
        lambda: Parallel(nn.Linear(1, 1)).register_comm_hook(None, 3),
    ):
        with pytest.raises((RuntimeError, ValueError, TypeError)) as caught:
            call()
        texts.append(str(caught.value))
    return texts


def test_what_cannot_be_parallel_raises():
    texts = run_ranks(_refusals, 1)[0]
    assert "doesn't have any parameters that require a gradient" in texts[0]
    assert "device_ids" in texts[1] and "must be callable" in texts[2]


class _Uneven(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.Linear(8, 1))

    def forward(self, x):
        return self.body(x)


def _joined(rank, size, inputs, divides_by_all, options):
    torch.manual_seed(0)
    model = nn.parallel.DistributedDataParallel(nn.Linear(4, 1), **options)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with model.join(divide_by_initial_world_size=divides_by_all):
        for step in range(inputs[rank]):
            x = torch.full((2, 4), 1.0 + step + 10 * rank)
            optimizer.zero_grad()
            model(x).sum().backward()
            optimizer.step()
    dist.barrier()
    return [p.detach().clone() for p in model.parameters()]


def _alone_uneven(size, inputs, divides_by_all):
    """The same steps in one process: the ranks that have an input, divided by all or by them."""
    torch.manual_seed(0)
    model = nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(max(inputs)):
        active = [rank for rank in range(size) if step < inputs[rank]]
        optimizer.zero_grad()
        for rank in active:
            share = size if divides_by_all else len(active)
            (model(torch.full((2, 4), 1.0 + step + 10 * rank)).sum() / share).backward()
        optimizer.step()
    return [p.detach() for p in model.parameters()]


@needs_gloo
@pytest.mark.parametrize("inputs", [(3, 1), (1, 4), (0, 3), (2, 2)])
@pytest.mark.parametrize("divides_by_all", [True, False])
def test_rank_without_inputs_left_joins_the_passes_of_the_others(inputs, divides_by_all):
    wanted = _alone_uneven(2, inputs, divides_by_all)
    for options in ({}, {"find_unused_parameters": True}):
        for found in run_ranks(_joined, 2, inputs, divides_by_all, options):
            for one, other in zip(found, wanted, strict=True):
                assert torch.allclose(one, other, rtol=1e-5)


def _joined_with_buffers(rank, size):
    torch.manual_seed(0)
    model = nn.parallel.DistributedDataParallel(_Uneven())
    with model.join():
        for step in range(2 + 2 * rank):
            with model.no_sync() if step % 2 else contextlib.nullcontext():
                model(torch.randn(4, 4) + rank).sum().backward()
    return [b.detach().clone() for b in model.buffers()]


@needs_gloo
def test_buffers_after_joining_are_those_of_a_rank_that_ended_last():
    first, second = run_ranks(_joined_with_buffers, 2)
    assert all(torch.equal(a, b) for a, b in zip(first, second, strict=True))
    assert first[2].item() == 4  # batches of the rank that had more


def _joined_strictly(rank, size):
    model = nn.parallel.DistributedDataParallel(nn.Linear(4, 1))
    strict = model.join(throw_on_early_termination=True)
    with pytest.raises(RuntimeError, match=r"exhausted (all )?inputs"), strict:
        for _ in range(1 + rank):
            model(torch.ones(2, 4)).sum().backward()


@needs_gloo
def test_rank_that_ends_early_raises_everywhere_where_that_was_asked_for():
    run_ranks(_joined_strictly, 2)


def _sparse(rank, size, hooked):
    torch.manual_seed(0)
    table = nn.Embedding(6, 3, sparse=True)
    model = nn.parallel.DistributedDataParallel(nn.Sequential(table, nn.Linear(3, 1)))
    if hooked:

        def exchange(state, bucket):
            future = model.process_group.allreduce([bucket.buffer()]).get_future()
            return future.then(lambda f: f.wait()[0] / size)

        model.register_comm_hook(None, exchange)
    with model.no_sync():
        model(torch.tensor([5])).sum().backward()
    model(torch.tensor([rank, 3])).sum().backward()
    assert table.weight.grad.is_sparse
    return table.weight.grad.to_dense(), model.module[1].weight.grad


@needs_gloo
@pytest.mark.parametrize("hooked", [False, True])
def test_sparse_gradients_are_averaged(hooked):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Embedding(6, 3), nn.Linear(3, 1))
    for rank in range(2):
        (model(torch.tensor([5])).sum() / 2).backward()
        (model(torch.tensor([rank, 3])).sum() / 2).backward()
    for table, weight in run_ranks(_sparse, 2, hooked):
        assert torch.allclose(table, model[0].weight.grad)
        assert torch.allclose(weight, model[1].weight.grad)
