"""Distributed tensors: making, moving, looking at and saving them."""

import io
import itertools

import pytest
from ranks import needs_gloo, run_ranks

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch import nn
from torch.distributed import tensor as dt
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import (
    DTensor,
    Partial,
    Replicate,
    Shard,
    distribute_module,
    distribute_tensor,
)
from torch.distributed.tensor._utils import compute_local_shape_and_global_offset
from torch.distributed.tensor.debug import CommDebugMode
from torch.distributed.tensor.experimental import (
    implicit_replication,
    local_map,
    register_sharding,
)
from torch.distributed.tensor.placement_types import _StridedShard

functional = torch.ops.c10d_functional


@pytest.fixture
def pair():
    """Rank 1 of 2, on a backend that moves nothing."""
    dist.init_process_group("fake", store=dist.HashStore(), rank=1, world_size=2)
    yield init_device_mesh("cpu", (2,))
    dist.destroy_process_group()


@pytest.fixture
def square():
    """Rank 3 of 4, as 2 by 2."""
    dist.init_process_group("fake", store=dist.HashStore(), rank=3, world_size=4)
    yield init_device_mesh("cpu", (2, 2), mesh_dim_names=("dp", "tp"))
    dist.destroy_process_group()


# ---- what one process can see --------------------------------------------------------------------
def test_parts_of_an_uneven_dimension_have_the_rounded_length_but_the_last(square):
    sizes, offsets = compute_local_shape_and_global_offset((7, 5), square, [Shard(0), Shard(1)])
    assert (sizes, offsets) == ((3, 2), (4, 3))
    sizes, offsets = compute_local_shape_and_global_offset((3,), square, [Shard(0), Shard(0)])
    assert (sizes, offsets) == ((0,), (3,))


def test_strided_shard_cuts_what_plain_shards_leave(square):
    placements = [_StridedShard(0, split_factor=2), Shard(0)]
    sizes, offsets = compute_local_shape_and_global_offset((8,), square, placements)
    # The second dimension takes elements 4 to 7, of which the first takes 6 and 7.
    assert (sizes, offsets) == ((2,), (6,))
    placements = [_StridedShard(0, split_factor=2), Shard(0)]
    sizes, offsets = compute_local_shape_and_global_offset((7,), square, placements)
    assert (sizes, offsets) == ((1,), (6,))


def test_from_local_computes_shape_and_strides_of_the_whole(pair):
    x = DTensor.from_local(torch.ones(3, 4), pair, [Shard(1)])
    assert x.shape == (3, 8) and x.stride() == (8, 1) and x.placements == (Shard(1),)
    y = DTensor.from_local(torch.ones(4, 3).t(), pair, [Shard(-2)])
    assert y.shape == (6, 4) and y.stride() == (1, 6)
    z = DTensor.from_local(torch.ones(2, 3), pair, [Shard(0)], shape=(5, 3), stride=(3, 1))
    assert z.shape == (5, 3)
    with pytest.raises(RuntimeError, match="both shape and stride"):
        DTensor.from_local(torch.ones(2, 3), pair, [Shard(0)], shape=(5, 3))


def test_wrong_placements_raise(pair):
    x = torch.ones(4, 4)
    with pytest.raises(ValueError, match="must have the same length"):
        distribute_tensor(x, pair, [Shard(0), Shard(1)])
    with pytest.raises(ValueError, match="out of range"):
        distribute_tensor(x, pair, [Shard(2)])
    with pytest.raises(RuntimeError, match="leaf tensor"):
        distribute_tensor(torch.ones(4, requires_grad=True) * 2, pair, [Shard(0)])
    placed = DTensor.from_local(x, pair, [Replicate()])
    with pytest.raises(RuntimeError, match="Can not redistribute to Partial"):
        placed.redistribute(placements=[Partial()])
    with pytest.raises(RuntimeError, match=r"mixed torch.Tensor and DTensor"):
        placed + x
    with pytest.raises(RuntimeError, match="placement changes"):
        DTensor.from_local(x, pair, [Shard(0)]).cumsum_(0)


def test_operator_without_a_rule_raises_not_implemented(pair):
    x = DTensor.from_local(torch.ones(4, 4), pair, [Replicate()])
    with pytest.raises(NotImplementedError, match="sharding strategy"):
        torch.ormqr(x, x[0], x)


def test_plain_tensors_count_as_replicated_where_the_program_says_so(pair):
    x = DTensor.from_local(torch.ones(4, 3), pair, [Shard(0)])
    with implicit_replication():
        y = torch.ones(3) + x
    assert y.placements == (Shard(0),) and y.shape == (8, 3)
    assert (x + torch.tensor(1.0)).placements == (Shard(0),)


def test_view_of_a_dimension_of_one_keeps_its_cut(pair):
    whole = {"shape": (1, 2, 2), "stride": (4, 2, 1)}
    x = DTensor.from_local(torch.empty(0, 2, 2), pair, [Shard(0)], **whole)
    with CommDebugMode() as mode:
        y = x.view(1, 4)
    assert y.placements == (Shard(0),) and mode.get_total_counts() == 0
    assert mode.comm_module_counts["Global"] == {"forward": {}, "backward": {}}


def test_operator_along_a_cut_dimension_makes_it_whole(pair):
    x = DTensor.from_local(torch.ones(4, 3), pair, [Shard(0)])
    assert x.softmax(0).placements == (Replicate(),)
    assert x.softmax(1).placements == (Shard(0),)


def test_like_factories_keep_cuts_and_make_partial_ones_whole(pair):
    x = DTensor.from_local(torch.ones(4, 3), pair, [Shard(0)])
    assert torch.zeros_like(x).placements == (Shard(0),)
    p = DTensor.from_local(torch.ones(4, 3), pair, [Partial()])
    assert torch.ones_like(p).placements == (Replicate(),)


def test_plans_are_kept_for_calls_of_one_kind(pair):
    from torch.distributed.tensor.debug import _get_sharding_prop_cache_info

    x = DTensor.from_local(torch.ones(4, 3), pair, [Shard(0)])
    x * 2.5
    hits, misses, *_ = _get_sharding_prop_cache_info()
    x * 3.5
    assert _get_sharding_prop_cache_info()[:2] == (hits + 1, misses)


def test_plans_of_ranks_that_are_threads_are_their_own(pair):
    whole = {"shape": (3, 2), "stride": (2, 1)}
    x = DTensor.from_local(torch.ones(1, 2), pair, [Shard(0)], **whole)
    assert x.view(3, 2, 1).to_local().shape == (1, 2, 1)
    other = init_device_mesh("cpu", (2,))
    other._coordinate = [0]
    y = DTensor.from_local(torch.ones(2, 2), other, [Shard(0)], **whole)
    assert other == pair and y.view(3, 2, 1).to_local().shape == (2, 2, 1)


def test_saved_tensor_comes_back_with_its_placements(pair):
    x = DTensor.from_local(torch.randn(3, 3), pair, [Shard(0)])
    file = io.BytesIO()
    torch.save(x, file)
    for safe in (False, True):
        file.seek(0)
        y = torch.load(file, weights_only=safe)
        assert isinstance(y, DTensor) and y.placements == x.placements and y.shape == x.shape
        assert torch.equal(y.to_local(), x.to_local())


def test_rule_of_a_user_decides_placements(pair):
    library = torch.library.Library("dtensor_test", "FRAGMENT")
    library.define("twice(Tensor x, int n) -> Tensor")
    library.impl("twice", lambda x, n: x * n, "CPU")
    library.impl("twice", lambda x, n: torch.empty_like(x), "Meta")
    op = torch.ops.dtensor_test.twice.default

    @register_sharding(op)
    def rule(x, n):
        assert x.shape == (8, 4) and n == 3
        return [([Replicate()], [Replicate(), None]), ([Shard(1)], [Shard(1), None])]

    x = DTensor.from_local(torch.ones(8, 2), pair, [Shard(1)])
    y = op(x, 3)
    assert y.placements == (Shard(1),) and torch.equal(y.to_local(), torch.full((8, 2), 3.0))


# ---- what several processes do -------------------------------------------------------------------
def _moves(rank, size):
    mesh = init_device_mesh("cpu", (2, 2))
    whole = torch.arange(45.0).view(9, 5)
    kinds = [Replicate(), Shard(0), Shard(1)]
    for old in itertools.product([*kinds, Partial()], repeat=2):
        start = [Replicate() if p.is_partial() else p for p in old]
        x = distribute_tensor(whole, mesh, start)
        factor = 2 ** sum(p.is_partial() for p in old)
        x = DTensor.from_local(x.to_local(), mesh, old, shape=whole.shape, stride=whole.stride())
        for new in itertools.product(kinds, repeat=2):
            y = x.redistribute(placements=new)
            wanted = distribute_tensor(whole * factor, mesh, new)
            assert torch.equal(y.to_local(), wanted.to_local()), (old, new)
            assert torch.equal(y.full_tensor(), whole * factor), (old, new)
    strided = distribute_tensor(whole, mesh, [_StridedShard(0, split_factor=2), Shard(0)])
    assert torch.equal(strided.full_tensor(), whole)
    counts = []
    for old, new in (("S0 S1", "S0 S0"), ("S0 S1", "S1 S0"), ("S0 S0", "S1 S1")):
        x = distribute_tensor(whole, mesh, [Shard(int(p[1])) for p in old.split()])
        with CommDebugMode() as mode:
            x.redistribute(placements=[Shard(int(p[1])) for p in new.split()])
        counts.append(mode.get_total_counts())
    return counts


@needs_gloo
def test_redistribution_between_all_placements_keeps_the_value():
    assert run_ranks(_moves, 4) == [[1, 2, 2]] * 4


def _gradients(rank, size):
    mesh = init_device_mesh("cpu", (size,))
    x = distribute_tensor(torch.ones(5, 3, requires_grad=True), mesh, [Shard(0)])
    with CommDebugMode() as mode:
        out = x.redistribute(placements=[Replicate()]).to_local(grad_placements=[Partial()])
        out.backward(torch.ones_like(out))
    counts = mode.get_comm_counts()
    found = [counts[functional.all_gather_into_tensor], counts[functional.reduce_scatter_tensor]]
    found.append(x.grad.full_tensor().unique().tolist())
    part = torch.ones(3, 3, requires_grad=True)
    y = DTensor.from_local(part * 3, mesh, [Shard(0)]) * 2
    (y.to_local() * (rank + 1)).sum().backward()
    found.append(part.grad.unique().tolist())
    # Each part of a sum has the gradient of the sum, without communication.
    part = torch.ones(2, requires_grad=True)
    total = DTensor.from_local(part, mesh, [Partial()]).redistribute(placements=[Replicate()])
    with CommDebugMode() as mode:
        total.backward(torch.ones_like(total))
    found += [mode.get_total_counts(), part.grad.tolist()]
    return found


@needs_gloo
def test_gradients_of_moves_go_back_to_where_the_values_were():
    for rank, found in enumerate(run_ranks(_gradients, 2)):
        assert found == [1, 1, [2.0], [6.0 * (rank + 1)], 0, [1.0, 1.0]]


def _random(rank, size):
    mesh = init_device_mesh("cpu", (size,))
    torch.manual_seed(rank)  # the first rank's counts
    found = [dt.rand(6, 5, device_mesh=mesh, placements=[Shard(0)]).full_tensor()]
    x = dt.empty(5, 5, device_mesh=mesh, placements=[Shard(1)])
    nn.init.normal_(x)
    found.append(x.full_tensor())
    found.append(dt.randn(3, 20, device_mesh=mesh, placements=[Replicate()]).to_local())
    found.append(nn.functional.dropout(torch.ones_like(x), 0.5).full_tensor())
    return [t.tolist() for t in found]


@needs_gloo
def test_random_numbers_do_not_depend_on_placements():
    first, second = run_ranks(_random, 2)
    torch.manual_seed(0)
    x = torch.empty(5, 5)
    wanted = [torch.rand(6, 5), nn.init.normal_(x), torch.randn(3, 20)]
    wanted.append(nn.functional.dropout(torch.ones(5, 5), 0.5))
    assert first == second == [t.tolist() for t in wanted]


def _modules(rank, size):
    mesh = init_device_mesh("cpu", (size,))
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(6, 4), nn.ReLU(), nn.Linear(4, 2))
    whole = [p.clone() for p in model.parameters()]

    def place(name, module, mesh):
        if name == "0":
            for key, value in list(module.named_parameters()):
                placed = distribute_tensor(value, mesh, [Shard(0)])
                module.register_parameter(key, nn.Parameter(placed))

    distribute_module(
        model, mesh, place,
        lambda module, inputs, mesh: DTensor.from_local(inputs[0], mesh, [Replicate()]),
        lambda module, output, mesh: output.full_tensor(),
    )  # fmt: skip
    x = torch.linspace(-1, 1, 18).view(3, 6)
    wanted = torch.relu(x @ whole[0].t() + whole[1]) @ whole[2].t() + whole[3]
    assert torch.allclose(model(x), wanted, atol=1e-6)
    model.to(torch.float64)
    assert model[0].weight.dtype == model[0].weight.to_local().dtype == torch.float64
    norm = nn.utils.clip_grad_norm_([torch.nn.Parameter(p) for p in whole], 1.0)
    for p in model.parameters():
        p.grad = torch.ones_like(p)
    norm = nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    count = sum(p.numel() for p in whole)
    assert abs(norm.full_tensor().item() - count**0.5) < 1e-5
    assert abs(model[0].weight.grad.full_tensor()[0, 0].item() - count**-0.5) < 1e-4

    @local_map(out_placements=[Partial()], in_placements=([Shard(0)], None))
    def total(part, factor):
        return part.sum(0) * factor

    y = distribute_tensor(torch.arange(8.0).view(4, 2), mesh, [Shard(0)])
    assert total(y, 2.0).full_tensor().tolist() == [24.0, 32.0]
    return [list(p.placements) == [Shard(0) if i < 2 else Replicate()]
            for i, p in enumerate(model.parameters())]  # fmt: skip


@needs_gloo
def test_distribute_module_places_parameters_and_hooks_inputs_and_outputs():
    assert run_ranks(_modules, 2) == [[True] * 4] * 2


def _save(rank, size, folder):
    mesh = init_device_mesh("cpu", (size,))
    x = distribute_tensor(torch.arange(35.0).view(7, 5), mesh, [Shard(0)])
    dcp.save({"x": x, "n": {"y": torch.ones(2)}}, checkpoint_id=folder)


def _load(rank, size, folder):
    mesh = init_device_mesh("cpu", (2, size // 2))
    x = distribute_tensor(torch.zeros(7, 5), mesh, [Shard(1), Shard(0)])
    state = {"x": x, "n": {"y": torch.zeros(2)}}
    dcp.load(state, checkpoint_id=folder)
    return state["x"].full_tensor().tolist(), state["n"]["y"].tolist()


@needs_gloo
def test_checkpoint_is_read_on_another_mesh_with_other_placements(tmp_path):
    run_ranks(_save, 2, str(tmp_path))
    wanted = (torch.arange(35.0).view(7, 5).tolist(), [1.0, 1.0])
    assert run_ranks(_load, 4, str(tmp_path)) == [wanted] * 4
