"""torch.multiprocessing: tensors that processes share, and functions run in several processes."""

import gc
import multiprocessing
import os
import pickle
import signal
import subprocess
import sys
import time

import numpy
import pytest

import torch
import torch.multiprocessing as mp
from torch.multiprocessing.spawn import ProcessContext, ProcessException

METHODS = ("fork", "spawn", "forkserver")


def change(tensor, parameter, inbox, outbox, done):
    """Writes to what it was given, and sends memory of its own."""
    tensor.add_(1)
    parameter.data.mul_(3)
    got = inbox.get()
    got["view"].fill_(7)
    own = torch.zeros(4)
    outbox.put((own, got["whole"], got["empty"]))
    done.wait()
    outbox.put(own.tolist())


@pytest.mark.parametrize("method", METHODS)
def test_memory_is_shared_both_ways(method):
    context = mp.get_context(method)
    inbox, outbox, done = context.Queue(), context.Queue(), context.Event()
    tensor, parameter = torch.zeros(3), torch.nn.Parameter(torch.ones(2))
    if method == "fork":
        tensor.share_memory_()
        parameter.share_memory_()
    args = (tensor, parameter, inbox, outbox, done)
    process = context.Process(target=change, args=args)
    process.start()
    whole = torch.arange(6.0)
    inbox.put({"view": whole[1:3], "whole": whole, "empty": torch.empty(0, 2)})
    theirs, back, empty = outbox.get(timeout=20)
    assert tensor.tolist() == [1, 1, 1] and parameter.tolist() == [3, 3]
    assert whole.tolist() == [0, 7, 7, 3, 4, 5] and whole.is_shared()
    assert empty.shape == (0, 2)
    back[5] = -1
    assert whole[5] == -1
    theirs.fill_(2)
    done.set()
    assert outbox.get(timeout=20) == [2, 2, 2, 2]
    process.join(20)
    assert process.exitcode == 0


def test_share_memory_keeps_values_and_views():
    tensor = torch.arange(6.0).view(2, 3)
    row = tensor[1]
    assert not tensor.is_shared()
    assert tensor.share_memory_() is tensor and tensor.is_shared() and row.is_shared()
    row[0] = 9
    assert tensor[1, 0] == 9
    storage = tensor.untyped_storage()
    descriptor, size = storage._share_fd_cpu_()
    assert size == 24
    other = torch.UntypedStorage._new_shared_fd_cpu(descriptor, size)
    seen = torch.tensor([]).set_(other)
    seen[0] = 5
    assert tensor[0, 0] == 5
    with pytest.raises(RuntimeError, match="of a file of"):
        torch.UntypedStorage._new_shared_fd_cpu(descriptor, 1 << 40)
    assert torch.UntypedStorage._new_shared(8).is_shared()
    assert torch.empty(0).share_memory_().is_shared()


def round_trip(obj):
    return pickle.loads(multiprocessing.reduction.ForkingPickler.dumps(obj))


def test_arrays_taken_before_sharing_keep_their_memory():
    tensor = torch.arange(4.0)
    arrays = [tensor.numpy(), numpy.from_dlpack(tensor)]
    tensor.share_memory_().fill_(7)
    more = [torch.rand(4) for _ in range(50)]
    assert all(array.tolist() == [0, 1, 2, 3] for array in arrays)
    grown = torch.arange(4.0)
    array = grown.numpy()
    grown.resize_(100_000).fill_(7)
    assert array.tolist() == [0, 1, 2, 3] and len(more) == 50


def test_shared_memory_does_not_move_in_silence():
    tensor = torch.arange(4.0).share_memory_()
    for grow in (lambda: tensor.resize_(100), lambda: tensor.untyped_storage().resize_(999)):
        with pytest.raises(RuntimeError, match="not resizable: its memory is shared"):
            grow()
    assert tensor.resize_(2).is_shared()
    assert tensor.resize_(4).tolist() == [0, 1, 2, 3]
    assert tensor.is_shared()


def test_pickling_keeps_everything_but_the_graph():
    whole = torch.arange(8.0)
    one, two = round_trip((whole[2:4], whole))
    two[2] = 50
    assert one[0] == 50 and whole[2] == 50
    leaf = round_trip(torch.ones(2, requires_grad=True))
    assert leaf.requires_grad and leaf.is_leaf
    parameter = round_trip(torch.nn.Parameter(torch.ones(2), requires_grad=False))
    assert isinstance(parameter, torch.nn.Parameter) and not parameter.requires_grad
    conj = round_trip(torch.tensor([1 + 1j]).conj())
    assert conj.is_conj() and conj.item() == 1 - 1j
    strided = round_trip(torch.arange(6).view(2, 3).t())
    assert strided.stride() == (1, 3) and strided.tolist() == [[0, 3], [1, 4], [2, 5]]
    assert round_trip(torch.empty(3, device="meta")).is_meta
    assert round_trip(torch.ones(2, dtype=torch.float8_e5m2)).dtype == torch.float8_e5m2
    typed = round_trip(torch.ones(2)._typed_storage())
    assert typed.tolist() == [1, 1]
    with pytest.raises(RuntimeError, match="non-leaf"):
        round_trip(leaf * 2)

    class Sub(torch.Tensor):
        pass

    globals()["Sub"] = Sub
    Sub.__qualname__ = "Sub"
    sub = torch.ones(2).as_subclass(Sub)
    other = round_trip(sub)
    assert type(other) is Sub
    other.fill_(4)
    assert sub.tolist() == [4, 4]


def test_plain_pickle_copies():
    tensor = torch.zeros(2)
    other = pickle.loads(pickle.dumps(tensor))
    other.fill_(1)
    assert tensor.tolist() == [0, 0] and not tensor.is_shared()


def test_standard_module_shares_without_our_import():
    code = """
import multiprocessing, sys, torch
def add(tensor):
    tensor.add_(1)
if __name__ == "__main__":
    context = multiprocessing.get_context("fork")
    queue = context.SimpleQueue()
    tensor = torch.zeros(2)
    assert "torch.multiprocessing" not in sys.modules
    queue.put(tensor)
    add(queue.get())
    print(tensor.tolist())
"""
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[1.0, 1.0]"


def test_no_name_and_no_descriptor_stays():
    gc.collect()
    before, shm = len(os.listdir("/proc/self/fd")), os.listdir("/dev/shm")
    for _ in range(20):
        tensor = torch.zeros(1000).share_memory_()
        assert round_trip(tensor).is_shared()
    del tensor
    # The resource sharer keeps a socket; its thread closes the last connection a little later.
    deadline = time.monotonic() + 5
    while len(os.listdir("/proc/self/fd")) > before + 2:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    assert os.listdir("/dev/shm") == shm


def double(tensor):
    return tensor * 2


def test_pool_and_wrapped_connection():
    with mp.Pool(2) as pool:
        assert [t.tolist() for t in pool.map(double, [torch.ones(1), torch.ones(2)])] == [
            [2],
            [2, 2],
        ]
    from torch.multiprocessing.queue import ConnectionWrapper, Queue, SimpleQueue

    one, two = mp.Pipe()
    tensor = torch.zeros(2)
    ConnectionWrapper(one).send(tensor)
    ConnectionWrapper(two).recv().fill_(1)
    assert tensor.tolist() == [1, 1] and not ConnectionWrapper(one).closed
    for queue in (Queue(), SimpleQueue()):
        queue.put(tensor)
        assert queue.get().tolist() == [1, 1]


def test_sharing_strategy():
    assert mp.get_sharing_strategy() == "file_descriptor"
    assert mp.get_all_sharing_strategies() == {"file_descriptor", "file_system"}
    with pytest.raises(AssertionError, match="invalid sharing strategy"):
        mp.set_sharing_strategy("carrier pigeon")
    mp.set_sharing_strategy("file_system")
    try:
        tensor = torch.zeros(2)
        other = round_trip(tensor)
        other.fill_(3)
        assert tensor.tolist() == [3, 3]
        # Passed on, it is still the same memory.
        round_trip(other).fill_(4)
        assert tensor.tolist() == [4, 4] and other.tolist() == [4, 4]
    finally:
        mp.set_sharing_strategy("file_descriptor")


def alive(pid):
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rsplit(")", 1)[1].split()[0] not in "ZX"
    except OSError:
        return False


# ---- functions in processes ----------------------------------------------------------------------


def act(index, deed, tensor=None):
    """What the processes of the tests below do."""
    if tensor is not None:
        tensor[index] = index + 1
        return
    if index != 1:
        time.sleep(30)
    if deed == "raise":
        raise ValueError("one is bad")
    if deed == "exit":
        os._exit(9)
    if deed == "leave":
        sys.exit(5)
    os.kill(os.getpid(), signal.SIGKILL)


def test_spawn_runs_all_and_shares_arguments():
    tensor = torch.zeros(2)
    assert mp.spawn(act, args=("write", tensor), nprocs=2) is None
    assert tensor.tolist() == [1, 2]


@pytest.mark.parametrize(
    ("deed", "cls", "text"),
    [
        ("raise", mp.ProcessRaisedException, "Process 1 terminated with the following error"),
        ("exit", mp.ProcessExitedException, "process 1 terminated with exit code 9"),
        ("leave", mp.ProcessExitedException, "process 1 terminated with exit code 5"),
        ("die", mp.ProcessExitedException, "process 1 terminated with signal SIGKILL"),
    ],
)
def test_a_failing_process_ends_the_others(deed, cls, text):
    context = mp.start_processes(act, args=(deed,), nprocs=3, start_method="fork", join=False)
    assert isinstance(context, ProcessContext) and len(context.pids()) == 3
    start = time.monotonic()
    with pytest.raises(cls, match=text) as caught:
        while not context.join(timeout=5):
            pass
    assert time.monotonic() - start < 2
    error = caught.value
    assert isinstance(error, ProcessException)
    assert (error.error_index, error.error_pid) == (1, context.pids()[1])
    if deed == "raise":
        assert "ValueError: one is bad" in error.msg
    if deed == "die":
        assert (error.exit_code, error.signal_name) == (-9, "SIGKILL")
    assert str(pickle.loads(pickle.dumps(error))) == str(error)
    assert not any(process.is_alive() for process in context.processes)
    assert not any(os.path.exists(name) for name in context.error_files)


def test_join_with_a_timeout_and_processes_that_end_with_their_parent():
    code = """
import os, signal, sys, time
import torch.multiprocessing as mp
def sleep(index):
    time.sleep(60)
context = mp.start_processes(sleep, nprocs=2, start_method="fork", join=False)
assert context.join(timeout=0.1) is False
print(*context.pids(), flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    pids = [int(word) for word in out.stdout.split()]
    deadline = time.monotonic() + 3
    while time.monotonic() < deadline and any(alive(pid) for pid in pids):
        time.sleep(0.02)
    assert len(pids) == 2 and not any(alive(pid) for pid in pids)


def test_wrong_start_method_is_said():
    with pytest.warns(FutureWarning, match="start_processes"):
        mp.spawn(act, args=("write", torch.zeros(1)), nprocs=1, start_method="fork")


def test_memory_that_comes_back_is_the_storage_it_was():
    tensor = torch.arange(6.0)
    queue = mp.Queue()
    queue.put([tensor.untyped_storage(), tensor[2:], tensor])
    storage, part, whole = queue.get(timeout=30)
    own = tensor.untyped_storage()._cdata
    assert storage._cdata == own
    assert part.untyped_storage()._cdata == own
    whole[3] = 9
    assert tensor[3] == 9


def test_storage_weak_references_are_equal_by_storage_and_end_with_the_memory():
    from torch.multiprocessing.reductions import StorageWeakRef

    tensor = torch.ones(2)
    first, second = StorageWeakRef(tensor.untyped_storage()), StorageWeakRef(tensor.storage())
    assert first == second and hash(first) == hash(second)
    assert first != StorageWeakRef(torch.ones(2).untyped_storage())
    gc.collect()
    assert not first.expired()  # the tensor holds the memory though no storage object is left
    assert first.lock()._cdata == first.cdata
    del tensor
    gc.collect()
    assert first.expired() and first.lock() is None
    with pytest.raises(TypeError, match="takes one storage"):
        StorageWeakRef(3)


def fail_or_wait(index, seconds):
    """The first fails at once, the second ends by itself."""
    if index == 0:
        sys.exit(7)
    time.sleep(seconds)


@pytest.mark.parametrize(("grace_period", "ended"), [(None, True), (30, False)])
def test_a_grace_period_lets_the_others_end_by_themselves(grace_period, ended, caplog):
    context = mp.start_processes(
        fail_or_wait, args=(0.5,), nprocs=2, start_method="fork", join=False
    )
    with pytest.raises(ProcessException, match="process 0 terminated with exit code 7"):
        while not context.join(grace_period=grace_period):
            pass
    assert any("Terminating process" in record.message for record in caplog.records) is ended
    assert context.processes[1].exitcode == (-signal.SIGTERM if ended else 0)


def test_processes_of_a_fork_server_can_be_started_at_once(monkeypatch):
    monkeypatch.setenv(mp.ENV_VAR_PARALLEL_START, "1")
    shared = torch.zeros(3).share_memory_()
    mp.start_processes(act_on, args=(shared,), nprocs=3, start_method="forkserver")
    assert shared.tolist() == [1.0, 1.0, 1.0]


def act_on(index, shared):
    """Marks its element."""
    shared[index] = 1


def test_share_memory_after_the_storage_shrank_keeps_earlier_views_readable():
    whole = torch.arange(100_000.0)
    view = whole.view(-1)
    whole.untyped_storage().resize_(16)
    whole.untyped_storage().share_memory_()
    assert whole.is_shared() and view[99_999].item() == 99_999
    assert torch.equal(view, torch.arange(100_000.0))
