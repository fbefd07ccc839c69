"""Meshes of ranks and collectives as functions."""

import pytest
from ranks import needs_gloo, run_ranks

import torch
import torch.distributed as dist
from torch.distributed import _functional_collectives as functional
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh


@pytest.fixture
def eight():
    dist.init_process_group("fake", store=dist.HashStore(), rank=5, world_size=8)
    yield
    dist.destroy_process_group()


def test_mesh_of_two_dimensions_has_a_group_along_each(eight):
    mesh = init_device_mesh("cpu", (2, 4), mesh_dim_names=("dp", "tp"))
    assert mesh.shape == (2, 4) and mesh.ndim == 2 and mesh.size() == 8 and mesh.size(1) == 4
    assert mesh.get_coordinate() == [1, 1]
    assert dist.get_process_group_ranks(mesh.get_group("dp")) == [1, 5]
    assert dist.get_process_group_ranks(mesh.get_group(1)) == [4, 5, 6, 7]
    assert mesh.get_local_rank("tp") == 1


def test_part_of_a_mesh_by_name_has_its_ranks_and_groups(eight):
    mesh = init_device_mesh("cpu", (2, 2, 2), mesh_dim_names=("pp", "dp", "tp"))
    part = mesh["dp", "tp"]
    assert part.mesh.tolist() == [[4, 5], [6, 7]] and part.mesh_dim_names == ("dp", "tp")
    assert part.get_group("tp") is mesh.get_group("tp")
    flat = mesh["pp", "dp"]._flatten("all")
    assert flat.mesh.tolist() == [1, 3, 5, 7] and mesh["all"] is flat
    both = mesh["all", "tp"]
    assert both.mesh.tolist() == [[0, 1], [2, 3], [4, 5], [6, 7]] and both.mesh.dtype is torch.int32
    assert both.get_group("all") is flat.get_group()
    assert both.get_group("tp") is mesh.get_group("tp")
    with pytest.raises(KeyError, match="ascending"):
        mesh["all", "dp"]


def test_mesh_that_is_wrong_raises(eight):
    with pytest.raises(RuntimeError, match="bigger than default world size"):
        init_device_mesh("cpu", (3, 4))
    with pytest.raises(RuntimeError, match="should have same length"):
        init_device_mesh("cpu", (8,), mesh_dim_names=("a", "b"))
    mesh = init_device_mesh("cpu", (2, 4), mesh_dim_names=("a", "b"))
    with pytest.raises(KeyError, match="Invalid mesh_dim_names"):
        mesh["c"]
    with pytest.raises(RuntimeError, match="needs to be specified"):
        mesh.get_group()


def test_meshes_compare_by_value(eight):
    one, other = DeviceMesh("cpu", [[0, 1], [4, 5]]), DeviceMesh("cpu", [[0, 1], [4, 5]])
    assert one == other and hash(one) == hash(other)
    assert repr(one) == "DeviceMesh('cpu', [[0, 1], [4, 5]])"


def _functions(rank: int, size: int) -> list:
    mesh = init_device_mesh("cpu", (size,))
    x = torch.arange(4.0).view(2, 2) + 10 * rank
    before = x.clone()
    found = [
        functional.all_reduce(x, "sum", mesh),
        functional.all_gather_tensor(x, 0, mesh),
        functional.all_gather_tensor(x, 1, mesh),
        functional.reduce_scatter_tensor(x, "max", 0, mesh),
        functional.reduce_scatter_tensor(x, "sum", 1, mesh),
        functional.all_to_all_single(x, None, None, mesh),
        functional.permute_tensor(x, [1, 0], mesh),
        functional.broadcast(x, 1, mesh),
    ]
    assert torch.equal(x, before)
    return [tensor.tolist() for tensor in found]


@needs_gloo
def test_functions_return_new_tensors():
    first, second = run_ranks(_functions, 2)
    assert first[0] == second[0] == [[10, 12], [14, 16]]
    assert first[1] == second[1] == [[0, 1], [2, 3], [10, 11], [12, 13]]
    assert first[2] == [[0, 1, 10, 11], [2, 3, 12, 13]]
    assert first[3] == [[10, 11]] and second[3] == [[12, 13]]
    assert first[4] == [[10], [14]] and second[4] == [[12], [16]]
    assert first[5] == [[0, 1], [10, 11]] and second[5] == [[2, 3], [12, 13]]
    assert first[6] == [[10, 11], [12, 13]] and second[6] == [[0, 1], [2, 3]]
    assert first[7] == second[7] == [[10, 11], [12, 13]]


def test_functions_on_meta_tensors_have_the_shapes(eight):
    x = torch.empty(16, 3, device="meta")
    name = dist.group.WORLD.group_name
    ops = torch.ops._c10d_functional
    assert ops.all_gather_into_tensor(x, 8, name).shape == (128, 3)
    assert ops.reduce_scatter_tensor(x, "sum", 8, name).shape == (2, 3)


def _differentiable(rank: int, size: int) -> list:
    from torch.distributed.nn import functional as nnf

    x = torch.tensor([1.0 + rank], requires_grad=True)
    (nnf.all_reduce(x) * (rank + 1)).sum().backward()
    reduced = x.grad.item()
    x.grad = None
    (torch.cat(nnf.all_gather(x)) * torch.tensor([2.0, 5.0])).sum().backward()
    return [reduced, x.grad.item()]


@needs_gloo
def test_gradients_flow_through_collectives():
    assert run_ranks(_differentiable, 2) == [[3.0, 4.0], [3.0, 10.0]]
