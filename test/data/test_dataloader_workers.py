"""DataLoader with worker processes: order, seeds, what travels, what happens when a worker dies or
hangs, and continuing within a pass."""

import collections
import ctypes
import faulthandler
import gc
import io
import multiprocessing
import os
import random
import signal
import subprocess
import sys
import time
import warnings

import numpy as np
import pytest

import torch
from torch.utils.data import DataLoader, Dataset, IterableDataset, get_worker_info

METHODS = ("fork", "spawn", "forkserver")


def alike(items):
    """A collation that does nothing."""
    return items


class Numbers(Dataset):
    def __init__(self, count=10):
        self.data = torch.arange(count * 3.0).view(count, 3)

    def __len__(self):
        return len(self.data)

    def __getitem__(self, i):
        return {"x": self.data[i], "i": i, "name": f"n{i}"}


class Noise(Dataset):
    """One number of each generator."""

    def __init__(self, count=12):
        self.count = count

    def __len__(self):
        return self.count

    def __getitem__(self, i):
        return i, torch.rand(()).item(), random.random(), np.random.rand()


class Count(IterableDataset):
    def __init__(self, stop, lengths=None):
        self.stop = stop
        self.lengths = lengths

    def __iter__(self):
        info = get_worker_info()
        first, step = (0, 1) if info is None else (info.id, info.num_workers)
        stop = self.stop if self.lengths is None else self.lengths[first] * step
        for i in range(first, stop, step):
            yield i, torch.rand(()).item()


class Stateful(IterableDataset):
    """Knows its place, and notes whether it was read again from the start."""

    def __init__(self, stop):
        self.stop = stop
        self.at = 0
        self.restored = False

    def __iter__(self):
        info = get_worker_info()
        offset = 0 if info is None else 100 * info.id
        while self.at < self.stop:
            self.at += 1
            yield offset + self.at - 1, int(self.restored)
        self.at = 0

    def state_dict(self):
        return {"at": self.at}

    def load_state_dict(self, state):
        self.at = state["at"]
        self.restored = True


class Misbehaving(Dataset):
    """Does something bad at index 4."""

    def __init__(self, deed):
        self.deed = deed
        self.when = torch.zeros((), dtype=torch.float64).share_memory_()

    def __len__(self):
        return 100

    def __getitem__(self, i):
        if i == 4:
            self.when.fill_(time.monotonic())
            faulthandler.disable()  # pytest's would print
            if self.deed == "exit":
                os._exit(7)
            if self.deed == "crash":
                ctypes.string_at(0)
            if self.deed == "hang":
                time.sleep(60)
            if self.deed == "stop":
                os.kill(os.getpid(), signal.SIGSTOP)
            if self.deed == "raise":
                raise IndexError("four is bad")
            if isinstance(self.deed, int):
                os.kill(os.getpid(), self.deed)
        return os.getpid()


def no_children():
    gc.collect()  # a caught exception's frames hold the iterators of earlier tests
    deadline = time.monotonic() + 2
    while multiprocessing.active_children() and time.monotonic() < deadline:
        time.sleep(0.01)
    return not multiprocessing.active_children()


def descriptors():
    return len(os.listdir("/proc/self/fd"))


def alive(pid):
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rsplit(")", 1)[1].split()[0] not in "ZX"
    except OSError:
        return False


# ---- order and content ---------------------------------------------------------------------------


@pytest.mark.parametrize("method", METHODS)
def test_same_batches_as_in_one_process(method):
    def batches(**kwargs):
        loader = DataLoader(
            Numbers(11),
            batch_size=3,
            shuffle=True,
            generator=torch.Generator().manual_seed(5),
            **kwargs,
        )
        return [
            [(b["x"].tolist(), b["i"].tolist(), b["name"]) for b in loader] for _ in range(passes)
        ]

    passes = 2 if method == "fork" else 1
    workers = {"num_workers": 2, "multiprocessing_context": method}
    assert batches() == batches(**workers)
    assert no_children()


def test_seeds_are_those_recorded_from_pytorch():
    generator = torch.Generator().manual_seed(3)
    loader = DataLoader(
        Noise(4), batch_size=1, num_workers=2, collate_fn=alike, generator=generator
    )
    rows = [batch[0] for batch in loader]
    assert rows[0] == (0, 0.2876076102256775, 0.21793848432592644, 0.8794862824005928)
    assert rows[1] == (1, 0.7470175623893738, 0.09049729754573688, 0.13554665930590137)
    assert rows[2] == (2, 0.686290979385376, 0.5235545516688277, 0.35186014682096967)
    after = torch.Generator().manual_seed(3)
    torch.empty((), dtype=torch.int64).random_(generator=after)
    assert torch.equal(generator.get_state(), after.get_state())


def test_numpy_imported_by_a_sample_is_seeded():
    code = """
import sys, torch
from torch.utils.data import DataLoader, Dataset
class Late(Dataset):
    def __len__(self):
        return 2
    def __getitem__(self, i):
        before = "numpy" in sys.modules
        import numpy
        return before, float(numpy.random.rand())
loader = DataLoader(Late(), batch_size=1, num_workers=2, collate_fn=lambda items: items,
                    generator=torch.Generator().manual_seed(3))
print([batch[0] for batch in loader])
"""
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[(False, 0.8794862824005928), (False, 0.13554665930590137)]"


def test_persistent_workers_stay_and_forget_an_abandoned_pass():
    loader = DataLoader(
        Noise(8), batch_size=2, num_workers=2, persistent_workers=True, prefetch_factor=2
    )
    first = [batch[0].tolist() for batch in loader]
    pids = [member.pid for member in loader._iterator._group.members]
    next(iter(loader))
    assert [batch[0].tolist() for batch in loader] == first
    assert [member.pid for member in loader._iterator._group.members] == pids
    del loader
    assert no_children()


def test_iterable_workers_end_at_different_times():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of more workers than processors
        loader = DataLoader(Count(None, [5, 1, 3]), batch_size=1, num_workers=3, collate_fn=alike)
    got = [batch[0][0] for batch in loader]
    assert got == [0, 1, 2, 3, 5, 6, 8, 9, 12]
    assert [b[0][0] for b in DataLoader(Count(0), num_workers=2, collate_fn=alike)] == []


def test_long_lists_of_indices_and_full_sockets():
    order = [[i % 10 for i in range(first, first + 20000)] for first in range(3)]
    batches = list(DataLoader(Numbers(10), batch_sampler=order, num_workers=2, collate_fn=len))
    assert batches == [20000] * 3
    iterator = iter(
        DataLoader(["y" * 12000] * 200, batch_size=1, num_workers=2, prefetch_factor=100)
    )
    time.sleep(0.1)  # the workers' results do not fit into their sockets
    assert sum(len(batch[0]) for batch in iterator) == 200 * 12000


def test_out_of_order_gives_every_batch_once():
    loader = DataLoader(Numbers(30), batch_size=4, num_workers=2, in_order=False)
    assert sorted(i for batch in loader for i in batch["i"].tolist()) == list(range(30))


def test_worker_info_and_init():
    def init(worker):
        get_worker_info().dataset.data += 100 * (worker + 1)

    data = Numbers(4)
    batches = list(DataLoader(data, num_workers=2, worker_init_fn=init, batch_size=1))
    assert [batch["x"][0, 0].item() for batch in batches] == [100, 203, 106, 209]
    assert data.data[0, 0] == 0 and get_worker_info() is None


Pair = collections.namedtuple("Pair", "left right")


class Mixed(Dataset):
    def __len__(self):
        return 2

    def __getitem__(self, i):
        shared = torch.arange(6.0)
        return {
            "large": torch.full((300, 300), float(i)),
            "pair": Pair(shared, shared[2:4]),
            "row of a large one": torch.ones(1000, 1000)[3],
            "leaf": torch.ones(2, requires_grad=True),
            "parameter": torch.nn.Parameter(torch.zeros(2)),
            "conj": torch.tensor([1 + 2j]).conj(),
            "transposed": torch.arange(6).view(2, 3).t(),
            "empty": torch.empty(0, 4),
            "bfloat16": torch.ones(3, dtype=torch.bfloat16),
            "array": np.arange(3),
            "text": "x" * 100000,
        }


def test_what_travels_stays_what_it_is():
    before = descriptors()
    shm = os.listdir("/dev/shm")
    items = list(DataLoader(Mixed(), batch_size=None, num_workers=1, collate_fn=alike))
    one = items[1]
    assert one["large"].eq(1).all() and one["large"].shape == (300, 300)
    assert isinstance(one["pair"], Pair) and one["pair"].right.tolist() == [2, 3]
    one["pair"].left[2] = 9
    assert one["pair"].right[0] == 9
    assert one["row of a large one"].untyped_storage().nbytes() == 4000
    assert one["leaf"].requires_grad and isinstance(one["parameter"], torch.nn.Parameter)
    assert one["conj"].is_conj() and one["conj"].item() == 1 - 2j
    assert one["transposed"].stride() == (1, 3) and one["transposed"].tolist()[2] == [2, 5]
    assert one["empty"].shape == (0, 4) and one["bfloat16"].dtype == torch.bfloat16
    assert isinstance(one["array"], np.ndarray) and len(one["text"]) == 100000
    one["large"].add_(1)
    assert items[0]["large"].eq(0).all()
    assert os.listdir("/dev/shm") == shm
    # The memory of batches in use has no descriptors.
    assert descriptors() == before


class Pinned:
    def __init__(self, value, pinned=False):
        self.value, self.pinned = value, pinned

    def pin_memory(self):
        return Pinned(self.value, True)


def test_pinning_thread_takes_nested_types(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "current_device", lambda: None)
    before = descriptors()

    def collate(items):
        return {"a": [Pinned(items[0]["i"]), "text"], "b": Pair(Pinned(1), 2)}

    loader = DataLoader(Numbers(6), num_workers=2, pin_memory=True, collate_fn=collate)
    for _ in range(2):
        batches = list(loader)
        assert [batch["a"][0].value for batch in batches] == list(range(6))
        assert all(b["a"][0].pinned and b["b"].left.pinned and b["b"].right == 2 for b in batches)
    assert descriptors() == before


# ---- what goes wrong -----------------------------------------------------------------------------


def test_exception_is_raised_with_its_traceback_and_the_pass_goes_on():
    iterator = iter(DataLoader(Misbehaving("raise"), batch_size=2, num_workers=2))
    next(iterator), next(iterator)
    with pytest.raises(IndexError, match="in DataLoader worker process 0") as caught:
        next(iterator)
    assert "Original Traceback" in str(caught.value) and "__getitem__" in str(caught.value)
    assert "four is bad" in str(caught.value)
    assert next(iterator).shape == (2,)


class Lambdas(Dataset):
    def __len__(self):
        return 1

    def __getitem__(self, i):
        return lambda: i


def test_what_cannot_be_pickled_is_an_exception():
    with pytest.raises(Exception, match="pickle"):
        list(DataLoader(Lambdas(), num_workers=1, collate_fn=alike))

    class Local(Exception):
        def __init__(self, one, two):
            super().__init__(one, two)

    def fail(items):
        raise Local(1, 2)

    with pytest.raises(RuntimeError, match=r"Local: \(1, 2\)"):
        list(DataLoader(Numbers(2), num_workers=1, collate_fn=fail))

    def graph(items):
        return torch.ones(2, requires_grad=True) * 2

    with pytest.raises(RuntimeError, match="non-leaf"):
        list(DataLoader(Numbers(2), num_workers=1, collate_fn=graph))


@pytest.mark.parametrize(
    ("deed", "cause", "method"),
    [
        (int(signal.SIGKILL), "SIGKILL", "fork"),
        (int(signal.SIGTERM), "SIGTERM", "fork"),
        (int(signal.SIGBUS), "SIGBUS", "fork"),
        ("crash", "SIGSEGV", "fork"),
        ("exit", "exit code 7", "fork"),
        (int(signal.SIGKILL), "SIGKILL", "forkserver"),
        ("exit", "exit code 7", "spawn"),
    ],
)
def test_death_of_a_worker_is_named_at_once(deed, cause, method):
    data = Misbehaving(deed)
    before = descriptors()
    loader = DataLoader(data, batch_size=1, num_workers=2, multiprocessing_context=method)
    iterator = iter(loader)
    pid = iterator._group.members[0].pid
    with pytest.raises(RuntimeError, match=rf"DataLoader worker \(pid {pid}\).*{cause}"):
        list(iterator)
    assert time.monotonic() - data.when.item() < 2
    with pytest.raises(RuntimeError, match=str(pid)):
        next(iterator)
    assert no_children() and not alive(pid)
    del iterator
    assert descriptors() <= before + 4  # the fork server's own


def test_death_is_noticed_without_process_descriptors(monkeypatch):
    def missing(pid):
        raise OSError("not in this kernel")

    monkeypatch.setattr(os, "pidfd_open", missing)
    data = Misbehaving(int(signal.SIGKILL))
    with pytest.raises(RuntimeError, match="SIGKILL"):
        list(DataLoader(data, batch_size=1, num_workers=2))
    assert time.monotonic() - data.when.item() < 2 and no_children()


@pytest.mark.parametrize("deed", ["hang", "stop"])
def test_hanging_worker_is_named_and_killed(deed):
    loader = DataLoader(Misbehaving(deed), batch_size=1, num_workers=2, timeout=0.3)
    iterator = iter(loader)
    pid = next(iterator).item()
    start = time.monotonic()
    with pytest.raises(RuntimeError, match=rf"timed out after 0.3 seconds.*pid {pid}"):
        list(iterator)
    assert time.monotonic() - start < 2
    assert no_children() and not alive(pid)


def test_killing_a_persistent_worker_from_outside():
    loader = DataLoader(Numbers(6), num_workers=2, persistent_workers=True)
    assert len(list(loader)) == 6
    victim = loader._iterator._group.members[1].pid
    os.kill(victim, signal.SIGKILL)
    with pytest.raises(RuntimeError, match=rf"pid {victim}.*SIGKILL"):
        list(loader)
    assert len(list(loader)) == 6


def test_workers_end_with_their_parent():
    code = """
import os, signal, time, torch
from torch.utils.data import DataLoader
class Slow:
    def __len__(self):
        return 8
    def __getitem__(self, i):
        if i > 1:
            time.sleep(60)
        return os.getpid()
loader = DataLoader(Slow(), num_workers=2, batch_size=1)
iterator = iter(loader)
print(next(iterator).item(), next(iterator).item(), flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    pids = [int(word) for word in out.stdout.split()]
    deadline = time.monotonic() + 2
    while any(alive(pid) for pid in pids) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert len(pids) == 2 and not any(alive(pid) for pid in pids)


def test_interrupt_does_not_wait_for_a_slow_sample():
    code = """
import time
from torch.utils.data import DataLoader
class Slow:
    def __len__(self):
        return 8
    def __getitem__(self, i):
        if i > 1:
            time.sleep(60)
        return i
iterator = iter(DataLoader(Slow(), num_workers=2, batch_size=1))
print(next(iterator).item(), next(iterator).item(), flush=True)
next(iterator)
"""
    process = subprocess.Popen(
        [sys.executable, "-c", code],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert process.stdout.readline() == "0 1\n"
    time.sleep(0.1)
    start = time.monotonic()
    os.killpg(process.pid, signal.SIGINT)
    _, errors = process.communicate(timeout=20)
    assert time.monotonic() - start < 2 and "KeyboardInterrupt" in errors
    with pytest.raises(ProcessLookupError):
        os.killpg(process.pid, 0)


def test_many_passes_leave_nothing():
    before, shm = descriptors(), os.listdir("/dev/shm")
    for _ in range(8):
        for batch in DataLoader(Mixed(), batch_size=None, num_workers=2, collate_fn=alike):
            del batch
            break
    assert descriptors() == before and os.listdir("/dev/shm") == shm and no_children()


@pytest.mark.parametrize(
    ("kwargs", "error", "text"),
    [
        ({"num_workers": 1, "prefetch_factor": -1}, ValueError, "non-negative"),
        ({"num_workers": 1, "timeout": -1}, ValueError, "non-negative"),
        ({"num_workers": 1, "multiprocessing_context": "thread"}, ValueError, "valid start method"),
        ({"num_workers": 1, "multiprocessing_context": 3}, TypeError, "valid context object"),
        ({"multiprocessing_context": "fork"}, ValueError, "num_workers > 0"),
    ],
)
def test_wrong_options(kwargs, error, text):
    with pytest.raises(error, match=text):
        DataLoader(Numbers(2), **kwargs)


def test_more_workers_than_processors_is_said():
    with pytest.warns(UserWarning, match="This DataLoader will create 4096 worker processes"):
        DataLoader(Numbers(2), num_workers=4096)


# ---- continuing ----------------------------------------------------------------------------------


def saved_and_loaded(state):
    file = io.BytesIO()
    torch.save(state, file)
    file.seek(0)
    return torch.load(file, weights_only=True)


def check_resume(make, taken, seed_again):
    """What a loader gives after `taken` batches and in the next pass, against a new one that
    continues."""
    torch.manual_seed(1), random.seed(2), np.random.seed(3)
    loader = make()
    iterator = iter(loader)
    for _ in range(taken):
        next(iterator)
    state = saved_and_loaded(loader.state_dict())
    here = torch.get_rng_state(), random.getstate(), np.random.get_state()
    expected = list(iterator), list(loader)
    del iterator
    if seed_again:
        torch.set_rng_state(here[0]), random.setstate(here[1]), np.random.set_state(here[2])
    else:
        torch.manual_seed(99)
    other = make()
    other.load_state_dict(state)
    assert other.state_dict() is not None
    got = list(other)
    assert got == expected[0]
    if seed_again:
        assert list(other) == expected[1]


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("taken", [0, 1, 3, 6])
@pytest.mark.parametrize("own_generator", [False, True])
def test_resume_of_a_shuffled_pass_with_noise(workers, taken, own_generator):
    def make():
        generator = torch.Generator().manual_seed(8) if own_generator else None
        return DataLoader(
            Noise(12),
            batch_size=2,
            shuffle=True,
            num_workers=workers,
            generator=generator,
            collate_fn=alike,
        )

    check_resume(make, taken, seed_again=not (workers == 0 and taken == 3))


def test_resume_with_persistent_workers_in_a_later_pass():
    def make():
        return DataLoader(
            Noise(8), batch_size=2, num_workers=2, persistent_workers=True, collate_fn=alike
        )

    torch.manual_seed(4)
    loader = make()
    list(loader)
    between = saved_and_loaded(loader.state_dict())
    iterator = iter(loader)
    first = [next(iterator)]
    state = saved_and_loaded(loader.state_dict())
    rest = list(iterator)
    other = make()
    other.load_state_dict(state)
    assert list(other) == rest
    other.load_state_dict(between)
    assert list(other) == first + rest


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("taken", [1, 3])
def test_resume_of_datasets_without_indices(workers, taken):
    def make():
        return DataLoader(Count(13), batch_size=2, num_workers=workers, collate_fn=alike)

    check_resume(make, taken, seed_again=True)

    def make_stateful():
        return DataLoader(Stateful(7), batch_size=2, num_workers=workers, collate_fn=alike)

    loader = make_stateful()
    iterator = iter(loader)
    for _ in range(taken):
        next(iterator)
    state = saved_and_loaded(loader.state_dict())
    expected = [[number for number, _ in batch] for batch in iterator]
    other = make_stateful()
    other.load_state_dict(state)
    got = list(other)
    assert [[number for number, _ in batch] for batch in got] == expected
    if workers == 0:
        assert got[0][0][1] == 1


def test_resume_out_of_order_misses_nothing():
    def make():
        return DataLoader(Numbers(20), batch_size=2, num_workers=2, in_order=False)

    loader = make()
    iterator = iter(loader)
    seen = [i for _ in range(4) for i in next(iterator)["i"].tolist()]
    state = loader.state_dict()
    del iterator
    other = make()
    other.load_state_dict(state)
    seen += [i for batch in other for i in batch["i"].tolist()]
    assert sorted(seen) == list(range(20))


def test_resume_with_another_number_of_workers():
    loader = DataLoader(Numbers(8), batch_size=2, num_workers=2)
    iterator = iter(loader)
    next(iterator)
    state = loader.state_dict()
    other = DataLoader(Numbers(8), batch_size=2)
    with pytest.warns(UserWarning, match="began with 2 workers"):
        other.load_state_dict(state)
    assert [batch["i"].tolist() for batch in other] == [[2, 3], [4, 5], [6, 7]]
    with pytest.raises(ValueError, match="number of workers"):
        DataLoader(Count(4)).load_state_dict(state)
    with pytest.raises(ValueError, match="not the state"):
        other.load_state_dict({})


class _Longer(IterableDataset):
    """Yields more than it promises."""

    def __iter__(self):
        return iter(range(4))

    def __len__(self):
        return 2


def test_too_many_samples_of_workers_are_explained():
    loader = DataLoader(_Longer(), num_workers=1, batch_size=None)
    assert len(loader) == 2
    with pytest.warns(UserWarning, match="samples have been fetched. For multiprocessing"):
        list(loader)


def test_worker_processes_can_be_watched_from_outside():
    iterator = iter(DataLoader(list(range(100)), num_workers=2, batch_size=2))
    workers = iterator._workers
    next(iterator)
    assert len(workers) == 2 and all(worker.is_alive() for worker in workers)
    del iterator
    for worker in workers:
        worker.join(10)
        assert not worker.is_alive()
