"""Backends that C++ extensions bring; groups, stores and work of ours in their hands."""

import importlib.util
import pathlib
import threading
from datetime import timedelta

import pytest

import torch
import torch.distributed as dist
from torch.utils import cpp_extension

pytestmark = [
    pytest.mark.slow,
    pytest.mark.xdist_group("extension_backends"),
    pytest.mark.skipif(
        importlib.util.find_spec("pybind11") is None,
        reason="the headers of pybind11 are a package of their own, and not installed here",
    ),
]

SOURCE = pathlib.Path(__file__).parent / "foreign_backend" / "backend.cpp"


@pytest.fixture(scope="module")
def extension(tmp_path_factory: pytest.TempPathFactory):
    return cpp_extension.load(
        "extension_backend",
        [str(SOURCE)],
        extra_cflags=["-O0"],
        build_directory=str(tmp_path_factory.mktemp("backend")),
    )


def on_ranks(function, size: int = 2) -> list:
    """function(rank) in a thread for each rank."""
    results: list = [None] * size

    def work(rank: int) -> None:
        try:
            results[rank] = function(rank)
        except BaseException as error:
            results[rank] = error

    threads = [threading.Thread(target=work, args=(rank,)) for rank in range(size)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    for result in results:
        if isinstance(result, BaseException):
            raise result
    return results


@pytest.fixture
def backends(extension):
    store = dist.HashStore()
    return [extension.make(store, rank, 2, timedelta(seconds=30)) for rank in range(2)]


@pytest.fixture
def group(extension):
    """The default group, of one rank, on the extension's backend."""
    if "STORED" not in vars(dist.Backend):
        dist.Backend.register_backend("stored", extension.make, devices="cpu")
    dist.init_process_group("stored", store=dist.HashStore(), rank=0, world_size=1)
    yield dist.group.WORLD
    dist.destroy_process_group()


def test_operations_of_two_ranks_meet_in_the_extension(backends) -> None:
    def run(rank: int):
        x = torch.arange(3.0) + rank
        backends[rank].allreduce([x]).wait()
        all_of_them = [torch.zeros(2), torch.zeros(2)]
        backends[rank].allgather([all_of_them], [torch.full((2,), float(rank))]).wait()
        sent = torch.tensor([rank])
        backends[rank].broadcast([sent], root=1).wait()
        whole = torch.zeros(2, 3)
        backends[rank]._allgather_base(whole, torch.full((3,), 1.0 + rank)).wait()
        assert whole.tolist() == [[1.0] * 3, [2.0] * 3]
        backends[rank].barrier().wait()
        return x.tolist(), [t.tolist() for t in all_of_them], sent.item()

    expected = ([1.0, 3.0, 5.0], [[0.0, 0.0], [1.0, 1.0]], 1)
    assert on_ranks(run) == [expected, expected]


def test_backend_says_who_it_is(backends) -> None:
    assert isinstance(backends[1], torch._C._distributed_c10d.Backend)
    assert (backends[1].rank(), backends[1].size(), backends[1].name()) == (1, 2, "stored")


def test_registered_backend_serves_the_functions_of_the_package(group) -> None:
    x = torch.ones(2)
    dist.all_reduce(x)
    work = dist.all_reduce(x, async_op=True)
    assert work.get_future().wait()[0] is not None and work.is_success()
    objects = [None]
    dist.all_gather_object(objects, {"a": 1})
    assert objects == [{"a": 1}] and dist.get_backend() == "stored"


def test_training_in_parallel_uses_the_backend(group) -> None:
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(2, 1))
    model(torch.ones(3, 2)).sum().backward()
    assert model.module.weight.grad.tolist() == [[3.0, 3.0]]


def test_group_of_old_is_a_backend(extension) -> None:
    old = extension.make_old(0, 3)
    x = torch.ones(2)
    old.allreduce([x]).wait()
    assert x.tolist() == [3.0, 3.0]


def test_functions_take_groups_of_every_backend(extension, group) -> None:
    assert extension.described(group) == (0, 1, "stored", group.group_name)
    assert extension.mean_over(group, torch.full((2,), 3.0)).tolist() == [3.0, 3.0]
    dist.destroy_process_group()
    dist.init_process_group("fake", store=dist.HashStore(), rank=1, world_size=4)
    assert extension.described(dist.group.WORLD)[:3] == (1, 4, "fake")
    assert extension.mean_over(dist.group.WORLD, torch.ones(1)).tolist() == [0.25]


def test_threads_as_ranks_reduce_through_the_extension(extension) -> None:
    def run(rank: int) -> list[float]:
        engine = torch._C._distributed_c10d.ThreadedProcessGroup(rank, 2, name="through")
        made = torch._C._distributed_c10d.ProcessGroup(rank, 2)
        kind = torch._C._distributed_c10d.ProcessGroup.BackendType.CUSTOM
        made._register_backend(torch.device("cpu"), kind, engine)
        return extension.mean_over(made, torch.tensor([2.0 * rank])).tolist()

    assert on_ranks(run) == [[1.0], [1.0]]


def test_stores_and_work_go_in_and_backends_come_back_as_they_were(extension, backends) -> None:
    store = dist.PrefixStore("p", dist.HashStore())
    assert extension.counted(store, "k") == 6 and extension.counted(store, "k") == 8
    assert store.get("k") == b"4"
    assert extension.same(backends[0])
    assert not extension.same(torch._C._distributed_c10d.FakeProcessGroup(0, 1))
    fake = torch._C._distributed_c10d.FakeProcessGroup(0, 1)
    assert extension.waited(fake.allreduce([torch.ones(1)]))
    assert extension.none() is None


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda b: b.alltoall([], []), NotImplementedError, "stored does not support alltoall"),
        (lambda b: b.monitored_barrier(), NotImplementedError, "not support monitored"),
        (lambda b: b.send([torch.ones(1)], 0), RuntimeError, "nobody is listening"),
        (lambda b: b.send([torch.ones(1)], 1), RuntimeError, "stored returned a null pointer"),
        (lambda b: b.recv([torch.ones(1)], 1).wait(), RuntimeError, "the wire is cut"),
        (
            lambda b: b.allreduce([torch.ones(1)], op=dist.ReduceOp.MIN),
            ValueError,
            "stored: sums and maxima",
        ),
    ],
)
def test_failures_in_the_extension_are_exceptions(backends, call, error, message) -> None:
    with pytest.raises(error, match=message):
        call(backends[0])


@pytest.mark.parametrize(
    ("function", "arguments"),
    [
        ("counted", ({}, "k")),
        ("waited", (None,)),
        ("described", (3,)),
        ("same", (dist.HashStore(),)),
        ("make", (None, 0, 1, timedelta(1))),
    ],
)
def test_object_of_another_kind_is_a_type_error(extension, function, arguments) -> None:
    with pytest.raises(TypeError, match="incompatible function arguments"):
        getattr(extension, function)(*arguments)


def test_rank_outside_of_the_group_is_refused(extension) -> None:
    with pytest.raises(ValueError, match="rank 5 is not in a group of size 2"):
        extension.make(dist.HashStore(), 5, 2, timedelta(1))


def test_class_for_such_backends_cannot_be_made_in_python() -> None:
    from torch._distributed.group import ForeignBackend

    with pytest.raises(TypeError, match="made by a function of the extension"):
        ForeignBackend()
