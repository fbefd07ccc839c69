"""Times the CUDA runtime of whichever torch this interpreter imports: allocation, reading a value
back, copies over the bus, events, a backward pass of small operators; and checks order between
streams, which needs a GPU that really runs them side by side. The table is that of bench.py, whose
--join puts two of them beside each other.

    python tools/gpu/bench_runtime.py
"""

import time

from bench import GIGA, device_time, host_time


def host_cases(torch):
    """(name, call): the host's time."""
    value = torch.ones((), device="cuda")
    event = torch.cuda.Event()
    side = torch.cuda.Stream()
    small = torch.ones(4, 4, device="cuda", requires_grad=True)
    other = torch.ones(4, 4, device="cuda")

    def backward() -> None:
        (small * other).sum().backward()
        small.grad = None

    def streams() -> None:
        with torch.cuda.stream(side):
            pass

    yield "empty, 4 bytes", lambda: torch.empty(1, device="cuda")
    yield "empty, 64 MiB", lambda: torch.empty(1 << 24, device="cuda")
    yield "zeros, 4 KiB", lambda: torch.zeros(1024, device="cuda")
    yield "item", lambda: value.item()
    yield "copy a number to the device", lambda: value.copy_(torch.tensor(1.0))
    yield "tensor([1.0], device)", lambda: torch.tensor([1.0], device="cuda")
    yield "event record", lambda: event.record()
    yield "with stream", streams
    yield "backward of three nodes", backward


def bus_cases(torch):
    """(name, call, bytes): the device's time."""
    size = 1 << 28
    device = torch.empty(size, dtype=torch.uint8, device="cuda")
    pinned = torch.empty(size, dtype=torch.uint8, pin_memory=True)
    plain = torch.ones(size, dtype=torch.uint8)
    yield "host to device, pinned", lambda: device.copy_(pinned, non_blocking=True), size
    yield "device to host, pinned", lambda: pinned.copy_(device, non_blocking=True), size
    yield "host to device, ordinary", lambda: device.copy_(plain), size
    yield "device to host, ordinary", lambda: plain.copy_(device), size
    yield "zero_", lambda: device.zero_(), size


def allocation_growth(torch):
    """Seconds to take 4 GiB in tensors of 16 MiB from the driver for the first time."""
    torch.cuda.empty_cache()
    start = time.perf_counter()
    held = [torch.empty(1 << 22, device="cuda") for _ in range(256)]
    seconds = time.perf_counter() - start
    del held
    return seconds


def check_stream_order(torch):
    """How many of 30 rounds gave the right sum where a long computation on one stream feeds
    another, forward and backward."""
    right = 0
    side = torch.cuda.Stream()
    a = torch.eye(2048, device="cuda")
    for _ in range(30):
        side.wait_stream(torch.cuda.current_stream())
        x = torch.ones(2048, 2048, device="cuda", requires_grad=True)
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            y = x
            for _ in range(20):
                y = y @ a
            y.record_stream(torch.cuda.current_stream())
        torch.cuda.current_stream().wait_stream(side)
        total = (y * 2).sum()
        total.backward()
        grad = x.grad.sum()
        right += total.item() == 2 * 2048**2 and grad.item() == 2 * 2048**2
    return right


def check_memory_between_streams(torch):
    """How many of 30 rounds kept what a stream still reads after its tensor is gone."""
    right = 0
    side = torch.cuda.Stream()
    n = 1 << 24
    for _ in range(30):
        source = torch.ones(n, device="cuda")
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            total = source
            for _ in range(10):
                total = total * 1.0
            total = total.sum() + source.sum()
        source.record_stream(side)
        del source
        torch.full((n,), 7.0, device="cuda")
        side.synchronize()
        right += total.item() == 2 * n
    return right


def run() -> None:
    import torch

    print(f"# torch {torch.__version__} on {torch.cuda.get_device_name()}")
    for name, call in host_cases(torch):
        call()
        print(f"{name}\t{host_time(torch, call) * 1e6:.2f}\t0", flush=True)
    for name, call, moved in bus_cases(torch):
        seconds = device_time(torch, call, repeats=9)
        print(f"{name}\t{seconds * 1e6:.1f}\t{moved / seconds / GIGA:.0f}", flush=True)
    print(f"first 4 GiB in 16 MiB pieces\t{allocation_growth(torch) * 1e6:.0f}\t0")
    print(f"# order between streams: {check_stream_order(torch)} of 30 right")
    print(f"# memory between streams: {check_memory_between_streams(torch)} of 30 right")


if __name__ == "__main__":
    run()
