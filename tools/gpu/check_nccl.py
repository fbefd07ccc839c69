"""NCCL itself on one GPU: a world of one by the real library.

    python tools/gpu/check_nccl.py [--only NAME,...] [--timing]

Every collective and its reductions by value and by dtype, asynchronous work and streams, recordings
as CUDA graphs (also with the collective on the group's own stream, and while earlier work is still
watched), registered memory, DistributedDataParallel and fully_shard on the GPU, timeouts and the
end of a group. Prints a line for each check and the library's version; the exit status is that of
the worst. What more ranks would be sent is tested without a GPU (test/distributed).

NCCL is taken from the system or from the package nvidia-nccl-cu12/13 beside torch; a path in
CRESSET_NCCL_LIBRARY goes before both.
"""

import argparse
import ctypes
import datetime
import os
import sys
import tempfile
import time
import traceback

import torch
import torch.distributed as dist
from torch import nn

CHECKS = {}


def check(function):
    """Adds a function to what is run, by its name."""
    CHECKS[function.__name__] = function
    return function


def same(got, expected, what=""):
    """Fails where the values differ or are on another device."""
    assert got.is_cuda, f"{what}: on {got.device}"
    torch.testing.assert_close(got.cpu(), expected, rtol=0, atol=0, msg=lambda m: f"{what}: {m}")


def values(dtype, count=12):
    """Numbers that every dtype holds exactly, on the host."""
    numbers = torch.arange(count) % 5
    return numbers.bool() if dtype is torch.bool else numbers.to(dtype)


DTYPES = (
    torch.uint8, torch.int8, torch.int32, torch.int64, torch.float16, torch.bfloat16, torch.float32,
    torch.float64, torch.complex64, torch.complex128, torch.bool,
)  # fmt: skip


@check
def reductions():
    """all_reduce and reduce by every reduction and dtype."""
    op = dist.ReduceOp
    for dtype in DTYPES:
        host = values(dtype)
        ordered = not dtype.is_complex
        names = ["SUM", "PRODUCT"] + ["MIN", "MAX"] * ordered + ["AVG"] * (dtype is not torch.bool)
        if dtype is torch.bool:
            names += ["BAND", "BOR"]
        for name in names:
            if dtype.is_complex and name in ("PRODUCT",):
                continue
            for call in (dist.all_reduce, lambda t, o: dist.reduce(t, 0, o)):
                there = host.cuda()
                call(there, getattr(op, name))
                same(there, host, f"{name} of {dtype}")
    for dtype in (torch.float16, torch.float32, torch.float64):
        there = values(dtype).cuda()
        dist.all_reduce(there, dist._make_nccl_premul_sum(2.0))
        same(there, 2 * values(dtype), f"premul_sum of {dtype}")
        work = dist.all_reduce(there, dist._make_nccl_premul_sum(3.0), async_op=True)
        work.wait()
        same(there, 6 * values(dtype), f"asynchronous premul_sum of {dtype}")
    for name in ("BAND", "BXOR"):
        try:
            dist.all_reduce(torch.ones(2, dtype=torch.int32).cuda(), getattr(op, name))
        except ValueError as error:
            assert "NCCL" in str(error), error
        else:
            raise AssertionError(f"{name} of integers was not refused")


@check
def collectives():
    """All other operations, each by value."""
    for dtype in DTYPES:
        host = values(dtype)
        mine, empty = host.cuda(), lambda dtype=dtype: torch.zeros(12, dtype=dtype).cuda()
        dist.broadcast(sent := host.cuda(), 0)
        same(sent, host, "broadcast")
        for gather in (dist.all_gather, lambda out, t: dist.gather(t, out, 0)):
            gather(out := [empty()], mine)
            same(out[0], host, "gather")
        dist.all_gather_into_tensor(out := empty(), mine)
        same(out, host, "all_gather_into_tensor")
        dist.scatter(out := empty(), [mine], 0)
        same(out, host, "scatter")
        dist.reduce_scatter(out := empty(), [mine])
        same(out, host, "reduce_scatter")
        dist.reduce_scatter_tensor(out := empty(), mine)
        same(out, host, "reduce_scatter_tensor")
        dist.all_to_all(out := [empty()], [mine])
        same(out[0], host, "all_to_all")
        dist.all_to_all_single(out := empty(), mine)
        same(out, host, "all_to_all_single")
        dist.all_to_all_single(out := empty(), mine, [12], [12])
        same(out, host, "all_to_all_single with splits")
    dist.barrier()
    dist.barrier(device_ids=[0])
    backend, device = dist.group.WORLD._get_backend(torch.device("cuda")), torch.device("cuda")
    sent, got = torch.arange(5.0).cuda(), torch.zeros(5).cuda()
    dist.group.WORLD._start_coalescing(device)  # what batch_isend_irecv does between ranks
    backend.send([sent], 0)
    backend.recv([got], 0)
    dist.group.WORLD._end_coalescing(device).wait()
    same(got, sent.cpu(), "send and receive in a batch")
    objects = [None]
    dist.all_gather_object(objects, {"rank": 0, "text": "x" * 1000})
    assert objects == [{"rank": 0, "text": "x" * 1000}]
    dist.broadcast_object_list(objects, 0)
    assert objects[0]["rank"] == 0
    many = [torch.full((i + 1,), float(i)).cuda() for i in range(20)]
    dist.all_reduce_coalesced(many)
    for i, t in enumerate(many):
        same(t, torch.full((i + 1,), float(i)), "all_reduce_coalesced")
    with dist._coalescing_manager(device=torch.device("cuda"), async_ops=True) as manager:
        for t in many:
            dist.all_reduce(t)
    manager.wait()
    same(many[3], torch.full((4,), 3.0), "the coalescing manager")


@check
def functional():
    """The functional collectives, with gradients."""
    from torch.distributed import _functional_collectives as funcol
    from torch.distributed.nn import functional as with_gradients

    group = dist.group.WORLD
    x = torch.arange(8.0).cuda()
    same(funcol.all_reduce(x, "sum", group) + 0, torch.arange(8.0))
    same(funcol.all_gather_tensor(x, 0, group) + 0, torch.arange(8.0))
    same(funcol.reduce_scatter_tensor(x, "sum", 0, group) + 0, torch.arange(8.0))
    same(funcol.all_to_all_single(x, None, None, group) + 0, torch.arange(8.0))
    leaf = torch.ones(4).cuda().requires_grad_()
    (with_gradients.all_reduce(leaf) * 3).sum().backward()
    same(leaf.grad, torch.full((4,), 3.0))


@check
def streams():
    """Work on the group's stream waits for the caller's, and the caller's waits for it."""
    for _ in range(50):
        x = torch.randn(1 << 20).cuda()
        expected = x * 2 + 1
        x.mul_(2)  # still running when the collective is given
        work = dist.all_reduce(x, async_op=True)
        work.wait()
        x.add_(1)
        assert torch.equal(x, expected)
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        y = torch.full((1 << 22,), 1.0).cuda()
        works = [dist.all_reduce(y, async_op=True) for _ in range(20)]
        for work in works:
            work.wait()
        y.add_(1)
    side.synchronize()
    same(y[:4], torch.full((4,), 2.0))
    work = dist.all_reduce(y, async_op=True)
    work.wait(datetime.timedelta(seconds=20))
    assert work.is_completed()
    future = dist.all_reduce(y, async_op=True).get_future()
    future.wait()
    del y, works  # the memory is used again while the group may still use it
    for _ in range(200):
        z = torch.full((1 << 18,), 3.0).cuda()
        dist.all_reduce(z, async_op=True)
        del z
    torch.cuda.synchronize()


@check
def graphs():
    """Collectives in recordings, replayed with other values."""
    calls = {
        "all_reduce": lambda t: dist.all_reduce(t),
        "broadcast": lambda t: dist.broadcast(t, 0),
        "reduce_scatter_tensor": lambda t: dist.reduce_scatter_tensor(t, t.clone()),
        "all_gather_into_tensor": lambda t: dist.all_gather_into_tensor(t, t.clone()),
        "all_to_all_single": lambda t: dist.all_to_all_single(t, t.clone()),
        "asynchronous": lambda t: dist.all_reduce(t, async_op=True).wait(),
    }
    dist.all_reduce(torch.ones(1).cuda())  # the connection is made before a recording
    for name, call in calls.items():
        static = torch.zeros(1024).cuda()
        out = torch.zeros(1024).cuda()
        busy = torch.ones(1 << 24).cuda()
        for _ in range(10):  # being watched while the recording goes on
            dist.all_reduce(busy, async_op=True)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            value = static * 2
            call(value)
            out.copy_(value + 1)
            time.sleep(0.3)  # the watcher looks every 100 ms
        for i in range(20):
            static.fill_(float(i))
            graph.replay()
            same(out[:3], torch.full((3,), 2.0 * i + 1), name)
        dist.all_reduce(value)  # and outside again
    torch.cuda.synchronize()


@check
def graph_of_a_training_step():
    """A whole step of a replicated model as one recording."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(64, 128), nn.GELU(), nn.Linear(128, 8)).cuda()
    plain = nn.Sequential(nn.Linear(64, 128), nn.GELU(), nn.Linear(128, 8)).cuda()
    plain.load_state_dict(model.state_dict())
    data = torch.randn(32, 64).cuda()

    def step(net, reduce):
        for p in net.parameters():
            p.grad = None
        net(data).square().mean().backward()
        with torch.no_grad():
            for p in net.parameters():
                if reduce:
                    dist.all_reduce(p.grad)
                p -= 0.1 * p.grad

    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            step(model, True)
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        step(model, True)
    for _ in range(5):
        graph.replay()
    for _ in range(8):
        step(plain, False)
    for p, q in zip(model.parameters(), plain.parameters(), strict=True):
        torch.testing.assert_close(p, q)


@check
def registered_memory():
    """A pool of memory that NCCL knows, also in recordings."""
    backend = dist.group.WORLD._get_backend(torch.device("cuda"))
    pool = torch.cuda.MemPool()
    with torch.cuda.use_mem_pool(pool):
        large = torch.ones(1 << 22).cuda()
        small = torch.ones(16).cuda()
    backend.register_mem_pool(pool)
    try:
        backend.register_mem_pool(pool)
    except RuntimeError as error:
        assert "already" in str(error)
    else:
        raise AssertionError("a pool was registered twice")
    for t in (large, small):
        dist.all_reduce(t)
        work = dist.all_reduce(t, async_op=True)
        work.wait()
        same(t[:3], torch.ones(3))
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        large.mul_(2)
        dist.all_reduce(large)
    graph.replay()
    same(large[:3], torch.full((3,), 2.0))
    del graph
    torch.cuda.synchronize()
    backend.deregister_mem_pool(pool)
    dist.all_reduce(large)
    same(large[-3:], torch.full((3,), 2.0))


@check
def wrappers():
    """DistributedDataParallel and fully_shard on the GPU give the losses of the model alone."""
    from torch.distributed.fsdp import fully_shard
    from torch.nn.parallel import DistributedDataParallel

    def losses(wrap):
        torch.manual_seed(3)
        model = nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 4)).cuda()
        model = wrap(model)
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
        data, target = torch.randn(16, 32).cuda(), torch.randn(16, 4).cuda()
        found = []
        for _ in range(8):
            loss = nn.functional.mse_loss(model(data), target)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            found.append(loss.item())
        return found

    def sharded(model):
        for layer in model:
            if any(True for _ in layer.parameters()):
                fully_shard(layer)
        return fully_shard(model)

    alone = losses(lambda m: m)
    assert alone[-1] < alone[0]
    for wrap in (DistributedDataParallel, sharded):
        got = losses(wrap)
        assert all(abs(a - b) < 1e-6 for a, b in zip(alone, got, strict=True)), (wrap, alone, got)


@check
def refusals():
    """What NCCL cannot take is an error and leaves the group usable."""
    for wrong in (torch.ones(3), torch.ones(4, 4).cuda().t(), torch.ones(3).to_sparse().cuda()):
        try:
            dist.group.WORLD._get_backend(torch.device("cuda")).allreduce([wrong])
        except (ValueError, RuntimeError) as error:
            assert str(error)
        else:
            raise AssertionError(f"{wrong.layout} on {wrong.device} was taken")
    dist.all_reduce(x := torch.ones(3).cuda())
    same(x, torch.ones(3))


@check
def groups():
    """More groups beside the first, their end, and a group made anew."""
    for _ in range(3):
        group = dist.new_group([0])
        dist.all_reduce(x := torch.ones(3).cuda(), group=group)
        same(x, torch.ones(3))
        dist.destroy_process_group(group)
    group = dist.new_group([0], timeout=datetime.timedelta(seconds=5))
    x = torch.ones(1 << 20).cuda()
    for _ in range(100):
        dist.all_reduce(x, group=group, async_op=True)
    group._get_backend(torch.device("cuda")).abort()
    try:
        dist.all_reduce(x, group=group)
    except RuntimeError as error:
        assert "shut down" in str(error) or "abort" in str(error), error
    else:
        raise AssertionError("an aborted group took an operation")
    torch.cuda.synchronize()


def timing():
    """Microseconds of the host and of the device per all_reduce."""
    for size in (1 << 10, 1 << 20, 1 << 26):
        x = torch.zeros(size // 4).cuda()
        for what, options in (("on the caller's stream", {}), ("asynchronous", {"async_op": True})):
            for _ in range(20):
                dist.all_reduce(x, **options)
            torch.cuda.synchronize()
            begun = time.perf_counter()
            for _ in range(200):
                dist.all_reduce(x, **options)
            host = time.perf_counter() - begun
            torch.cuda.synchronize()
            whole = time.perf_counter() - begun
            print(f"all_reduce {size:9d} bytes {what}: host {host * 5e3:7.1f} us, "
                  f"with the device {whole * 5e3:7.1f} us")  # fmt: skip


def version():
    """The version of the library that is loaded."""
    library = ctypes.CDLL(os.environ.get("CRESSET_NCCL_LIBRARY") or "libnccl.so.2")
    number = ctypes.c_int()
    library.ncclGetVersion(ctypes.byref(number))
    return number.value


def main():
    """Runs the checks; returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", help="names of checks, by commas")
    parser.add_argument("--timing", action="store_true", help="also time all_reduce")
    arguments = parser.parse_args()
    if not torch.cuda.is_available() or not dist.is_nccl_available():
        from torch._distributed.engines import plugin_error

        print(f"no GPU or no NCCL: cuda {torch.cuda.is_available()}, nccl {plugin_error('nccl')}")
        return 2
    torch.cuda.set_device(0)
    failed = []
    with tempfile.TemporaryDirectory() as folder:
        begun = time.perf_counter()
        dist.init_process_group("nccl", init_method=f"file://{folder}/s", rank=0, world_size=1)
        dist.all_reduce(torch.ones(1).cuda())
        torch.cuda.synchronize()
        seconds = time.perf_counter() - begun
        print(f"NCCL {version()} on {torch.cuda.get_device_name(0)}, connected in {seconds:.2f} s")
        names = arguments.only.split(",") if arguments.only else list(CHECKS)
        for name in names:
            begun = time.perf_counter()
            try:
                CHECKS[name]()
                torch.cuda.synchronize()
            except Exception:
                failed.append(name)
                traceback.print_exc()
            outcome = "FAILED" if name in failed else "passed"
            print(f"{name}: {outcome}, {time.perf_counter() - begun:.2f} s", flush=True)
        if arguments.timing:
            timing()
        dist.destroy_process_group()
    print(f"{len(names) - len(failed)} of {len(names)} checks passed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
