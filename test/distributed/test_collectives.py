"""Collectives over Gloo between processes, against NumPy and plain sums."""

import time
from datetime import timedelta

import numpy as np
import pytest
from ranks import needs_gloo, run_ranks

import torch
import torch.distributed as dist

pytestmark = needs_gloo


def _values(rank: int, count: int = 6) -> np.ndarray:
    return np.random.default_rng(rank).integers(1, 9, count).astype(np.float32)


def _all_kinds(rank: int, size: int) -> dict:
    mine = torch.from_numpy(_values(rank))
    found = {}

    def reduced(op, tensor=None):
        tensor = mine.clone() if tensor is None else tensor
        dist.all_reduce(tensor, op)
        return tensor.numpy()

    for op in ("SUM", "AVG", "PRODUCT", "MIN", "MAX"):
        found[op] = reduced(getattr(dist.ReduceOp, op))
    bits = mine.to(torch.int32)
    for op in ("BAND", "BOR", "BXOR"):
        found[op] = reduced(getattr(dist.ReduceOp, op), bits.clone())
    strided = torch.from_numpy(_values(rank, 12)).view(2, 6).t()
    dist.all_reduce(strided)
    found["strided"] = strided.numpy()
    root = mine.clone()
    dist.reduce(root, 1)
    found["reduce"] = root.numpy()
    sent = mine.clone()
    dist.broadcast(sent, 1)
    found["broadcast"] = sent.numpy()
    parts = [torch.empty(6) for _ in range(size)]
    dist.all_gather(parts, mine)
    found["all_gather"] = torch.stack(parts).numpy()
    flat = torch.empty(6 * size)
    dist.all_gather_into_tensor(flat, mine)
    found["all_gather_into_tensor"] = flat.numpy()
    parts = [torch.empty(6) for _ in range(size)] if rank == 0 else None
    dist.gather(mine, parts, 0)
    found["gather"] = torch.stack(parts).numpy() if rank == 0 else None
    part = torch.empty(3)
    halves = list(mine.chunk(size)) if rank == 1 else None
    dist.scatter(part, halves, 1)
    found["scatter"] = part.clone().numpy()
    dist.reduce_scatter(part, list(mine.chunk(size)))
    found["reduce_scatter"] = part.clone().numpy()
    dist.reduce_scatter_tensor(part, mine, dist.ReduceOp.MAX)
    found["reduce_scatter_tensor"] = part.clone().numpy()
    out = torch.empty(6)
    dist.all_to_all_single(out, mine)
    found["all_to_all_single"] = out.numpy()
    uneven = torch.empty(2 if rank == 0 else 10)
    sizes = torch.tensor([1, 1] if rank == 0 else [5, 5])
    dist.all_to_all_single(uneven, mine, sizes, [1, 5])
    found["uneven"] = uneven.numpy()
    return found


def test_collectives_of_two_ranks_agree_with_numpy():
    first, second = run_ranks(_all_kinds, 2)
    a, b = _values(0), _values(1)
    ai, bi = a.astype(np.int32), b.astype(np.int32)
    expected = {
        "SUM": a + b,
        "AVG": (a + b) / 2,
        "PRODUCT": a * b,
        "MIN": np.minimum(a, b),
        "MAX": np.maximum(a, b),
        "BAND": ai & bi,
        "BOR": ai | bi,
        "BXOR": ai ^ bi,
        "strided": (_values(0, 12) + _values(1, 12)).reshape(2, 6).T,
        "broadcast": b,
        "all_gather": np.stack([a, b]),
        "all_gather_into_tensor": np.concatenate([a, b]),
    }
    for name, value in expected.items():
        np.testing.assert_array_equal(first[name], value, err_msg=name)
        np.testing.assert_array_equal(second[name], value, err_msg=name)
    np.testing.assert_array_equal(first["reduce"], a)
    np.testing.assert_array_equal(second["reduce"], a + b)
    np.testing.assert_array_equal(first["gather"], np.stack([a, b]))
    both = np.maximum(a, b)
    for rank, found in enumerate((first, second)):
        half = slice(3 * rank, 3 * rank + 3)
        np.testing.assert_array_equal(found["scatter"], b[half])
        np.testing.assert_array_equal(found["reduce_scatter"], (a + b)[half])
        np.testing.assert_array_equal(found["reduce_scatter_tensor"], both[half])
        np.testing.assert_array_equal(
            found["all_to_all_single"], np.concatenate([a[half], b[half]])
        )
    np.testing.assert_array_equal(first["uneven"], [a[0], b[0]])
    np.testing.assert_array_equal(second["uneven"], np.concatenate([a[1:], b[1:]]))


def _dtypes(rank: int, size: int) -> list:
    found = []
    for dtype in (
        torch.float64,
        torch.bfloat16,
        torch.float16,
        torch.int8,
        torch.int64,
        torch.complex64,
        torch.bool,
    ):
        tensor = torch.tensor([rank, 1, 0]).to(dtype)
        dist.all_reduce(tensor)
        found.append(tensor.tolist())
    return found


def test_all_reduce_of_every_dtype_adds():
    for found in run_ranks(_dtypes, 2):
        assert found[:6] == [[1, 2, 0]] * 6
        assert found[6] == [True, True, False]


def _messages(rank: int, size: int) -> list:
    got = torch.zeros(3)
    if rank == 0:
        for tag in (7, 8):
            dist.isend(torch.full((3,), float(tag)), 1, tag=tag).wait()
        sender = dist.recv(got)
        return [sender, got.tolist()]
    later, sooner = torch.zeros(3), torch.zeros(3)
    works = [dist.irecv(later, 0, tag=8), dist.irecv(sooner, 0, tag=7)]
    for work in works:
        work.wait()
    ops = [dist.P2POp(dist.isend, torch.ones(3), 0)]
    for work in dist.batch_isend_irecv(ops):
        work.wait()
    return [later.tolist(), sooner.tolist()]


def test_messages_are_told_apart_by_tag_and_name_their_sender():
    first, second = run_ranks(_messages, 2)
    assert second == [[8.0] * 3, [7.0] * 3]
    assert first == [1, [1.0] * 3]


def _objects(rank: int, size: int) -> list:
    everyone = [None] * size
    dist.all_gather_object(everyone, {"rank": rank, "text": "x" * rank * 100})
    told = [("from", rank), None]
    dist.broadcast_object_list(told, 1)
    mine = [None]
    dist.scatter_object_list(mine, [f"for {i}" for i in range(size)] if rank == 0 else None)
    gathered = [None] * size if rank == 1 else None
    dist.gather_object(rank * 10, gathered, 1)
    return [everyone, told, mine, gathered]


def test_objects_of_different_sizes_arrive_whole():
    everyone = [{"rank": 0, "text": ""}, {"rank": 1, "text": "x" * 100}]
    first, second = run_ranks(_objects, 2)
    assert first == [everyone, [("from", 1), None], ["for 0"], None]
    assert second == [everyone, [("from", 1), None], ["for 1"], [0, 10]]


def _groups(rank: int, size: int) -> list:
    pair = dist.new_group([0, 2])
    other = dist.new_group([1])
    found = [pair is dist.GroupMember.NON_GROUP_MEMBER]
    if rank != 1:
        tensor = torch.tensor([float(rank)])
        dist.all_reduce(tensor, group=pair)
        sent = torch.tensor([float(rank)])
        dist.broadcast(sent, 2, group=pair)
        found += [tensor.item(), sent.item(), dist.get_rank(pair), dist.get_world_size(pair)]
        dist.destroy_process_group(pair)
    else:
        found += [dist.get_rank(other), dist.get_process_group_ranks(other)]
    return found


def test_groups_of_some_ranks_work_among_themselves():
    assert run_ranks(_groups, 3) == [
        [False, 2.0, 2.0, 0, 2],
        [True, 0, [1]],
        [False, 2.0, 2.0, 1, 2],
    ]


def _async(rank: int, size: int) -> list:
    tensors = [torch.full((4,), float(rank + i)) for i in range(8)]
    works = [dist.all_reduce(tensor, async_op=True) for tensor in tensors]
    futures = [work.get_future().then(lambda f: f.value()[0] * 2) for work in works]
    for work in works:
        work.wait()
    assert all(work.is_completed() and work.is_success() for work in works)
    return [future.wait()[0].item() for future in futures]


def test_async_work_in_any_number_ends_and_runs_its_callbacks():
    expected = [2.0 * (2 * i + 1) for i in range(8)]
    assert run_ranks(_async, 2) == [expected, expected]


def _late(rank: int, size: int) -> str:
    dist.distributed_c10d._set_pg_timeout(timedelta(milliseconds=600))
    if rank == 1:
        time.sleep(1.5)
        return ""
    with pytest.raises(dist.DistBackendError) as caught:
        dist.all_reduce(torch.ones(3, 5))
    return str(caught.value)


def test_all_reduce_that_a_rank_does_not_join_names_it_the_operation_and_the_shape():
    text = run_ranks(_late, 2)[0]
    assert "all_reduce(Float[3, 5], op=SUM) number 1 of rank 0 of 2" in text
    assert "ranks that arrived: 0; ranks that did not: 1" in text


def _barrier(rank: int, size: int) -> str:
    dist.monitored_barrier(timeout=timedelta(seconds=20))
    if rank == 1:
        return ""
    with pytest.raises(RuntimeError) as caught:
        dist.monitored_barrier(timeout=timedelta(milliseconds=300))
    return str(caught.value)


def test_monitored_barrier_names_the_rank_that_did_not_come():
    assert "Rank 1 failed to pass monitoredBarrier in 300 ms" in run_ranks(_barrier, 2)[0]


def _wrong(rank: int, size: int) -> list[str]:
    texts = []
    for call in (
        lambda: dist.all_reduce([1]),
        lambda: dist.all_gather([torch.ones(2)], torch.ones(2)),
        lambda: dist.all_gather_into_tensor(torch.ones(3), torch.ones(2)),
        lambda: dist.all_reduce(torch.ones(2), dist.ReduceOp.BAND),
        lambda: dist.all_to_all_single(torch.ones(3), torch.ones(3)),
        lambda: dist.send(torch.ones(1), rank),
        lambda: dist.broadcast(torch.ones(1), 5),
        lambda: dist.all_to_all_single(torch.ones(2, 4), torch.ones(4, 2).t()),
    ):
        with pytest.raises((TypeError, ValueError, RuntimeError)) as caught:
            call()
        texts.append(str(caught.value))
    return texts


def test_calls_with_wrong_arguments_raise_and_leave_the_group_usable():
    for texts in run_ranks(_wrong, 2):
        assert "Expected parameter `tensor` of type torch.Tensor" in texts[0]
        assert "expected 2, got 1" in texts[1]
        assert "cannot hold the 2 elements of each of 2 ranks" in texts[2]
        assert "Cannot use ReduceOp.BAND" in texts[3]
        assert texts[7] == "Tensors must be contiguous"
        assert "does not divide equally across group size" in texts[4]


def _coalesced(rank: int, size: int) -> list:
    tensors = [torch.full((i + 1,), float(rank)) for i in range(3)]
    with dist._coalescing_manager():
        for tensor in tensors:
            dist.all_reduce(tensor)
    return [tensor.tolist() for tensor in tensors]


def test_all_reduces_inside_a_coalescing_manager_all_happen():
    assert run_ranks(_coalesced, 2) == [[[1.0], [1.0] * 2, [1.0] * 3]] * 2


def _premul(rank: int, size: int) -> list:
    tensor = torch.tensor([1.0, 2.0])
    dist.all_reduce(tensor, dist._make_nccl_premul_sum(0.5))
    return tensor.tolist()


def test_premul_sum_multiplies_before_it_adds():
    assert run_ranks(_premul, 2) == [[1.0, 2.0]] * 2


def _leaving(rank: int, size: int) -> bool:
    if rank == 0:
        dist.destroy_process_group()
    return True


def test_rank_that_leaves_right_after_joining_does_not_break_the_others():
    for _ in range(4):
        assert run_ranks(_leaving, 3) == [True] * 3


def _nothing(rank: int, size: int) -> list:
    none = torch.empty(0, 3)
    dist.all_reduce(none)
    dist.broadcast(none, src=0)
    dist.reduce(none, dst=0)
    parts = [torch.empty(0, 3) for _ in range(size)]
    dist.all_gather(parts, none)
    dist.all_gather_into_tensor(torch.empty(0, 3), none)
    dist.gather(none, parts if rank == 0 else None, dst=0)
    dist.scatter(none, parts if rank == 0 else None, src=0)
    dist.reduce_scatter_tensor(torch.empty(0, 3), none)
    after = torch.ones(1)
    dist.all_reduce(after)
    return after.tolist()


@needs_gloo
def test_collectives_of_tensors_without_elements_leave_the_group_usable():
    assert run_ranks(_nothing, 2) == [[2.0], [2.0]]


def _list_refusals(rank, size):
    group = dist.group.WORLD._get_backend(torch.device("cpu"))
    one, other, long = torch.zeros(1), torch.zeros(1, dtype=torch.double), torch.zeros(2)
    root = dist.GatherOptions()
    root.rootRank = rank
    elsewhere = dist.GatherOptions()
    elsewhere.rootRank = 1 - rank
    calls = {
        "requires non-empty tensor list": lambda: group.allreduce([]),
        "invalid tensor type at index 1": lambda: group.allreduce([one, other]),
        "invalid tensor size at index 1": lambda: group.broadcast([one, long]),
        "invalid root rank: 5": lambda: group.gather([], [one], 5),
        "single-element tensor list": lambda: group.reduce([one, one]),
        "same length": lambda: group.allgather([], [one]),
        "invalid output tensor list at index 0": lambda: group.allgather([[one]], [one]),
        "Incorrect output list size 3": lambda: group.gather([[one] * 3], [one], root),
        "requires empty output on non-root": lambda: group.gather([[one]], [one], elsewhere),
        "requires empty input on non-root": lambda: group.scatter([one], [[one]], elsewhere),
        "invalid size of output tensor at index 0": lambda: group.allgather_coalesced(
            [[long], [one]], [one]
        ),
        "must all have the same type": lambda: group.allreduce_coalesced([one, other]),
    }
    for text, call in calls.items():
        with pytest.raises(RuntimeError, match=text):
            call()
    lists = [[torch.zeros(1) for _ in range(2 * size)] for _ in range(2)]
    own = [torch.tensor([2.0 * rank + i]) for i in range(2)]
    return [[t.item() for t in one] for one in group.allgather(lists, own).get_future().wait()]


def test_lists_that_cannot_be_right_are_refused_by_the_backend_before_it_begins():
    for found in run_ranks(_list_refusals, 2):
        assert found == [[0.0, 1.0, 2.0, 3.0]] * 2


def _profiled(rank, size):
    x = torch.ones(3, 2)
    with torch.profiler.profile(record_shapes=True) as profile:
        dist.all_reduce(x)
        dist.all_gather([torch.empty(3, 2) for _ in range(size)], x)
        dist.scatter(x, [x.clone() for _ in range(size)] if rank == 0 else None, 0)
        dist.barrier()
    dist.all_reduce(x)
    found = [e for e in profile.events() if e.name.startswith("gloo:")]
    assert all(e.is_async and e.cpu_time_total > 0 for e in found)
    return [(e.name, e.input_shapes) for e in found]


def test_collectives_are_in_profiles_with_the_shapes_of_their_inputs():
    for rank, found in enumerate(run_ranks(_profiled, 2)):
        assert found == [
            ("gloo:all_reduce", [[3, 2]]),
            ("gloo:all_gather", [[3, 2]]),
            ("gloo:scatter", [[3, 2], [3, 2]] if rank == 0 else []),
            ("gloo:barrier", []),
        ]
