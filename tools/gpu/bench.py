"""Times CUDA kernels of whichever torch this interpreter imports: bandwidth of pointwise operators,
copies and reductions on tensors well above the cache, and the host's time for one-element calls.

    python tools/gpu/bench.py                       a table: name, microseconds, GB/s
    python tools/gpu/bench.py --join OURS PEER      two such tables side by side, with the ratio

Times are medians over events on the device; the bytes are those an operator must move.
"""

import argparse
import statistics
import time

GIGA = 1e9


def device_time(torch, call, repeats=20):
    """Median seconds of one call on the device."""
    for _ in range(3):
        call()
    torch.cuda.synchronize()
    times = []
    for _ in range(repeats):
        start = torch.cuda.Event(enable_timing=True)
        end = torch.cuda.Event(enable_timing=True)
        start.record()
        call()
        end.record()
        end.synchronize()
        times.append(start.elapsed_time(end) / 1e3)
    return statistics.median(times)


def host_time(torch, call, count=200):
    """Median seconds of a call over loops of `count`, the device's work included at the end."""
    times = []
    for _ in range(9):
        torch.cuda.synchronize()
        start = time.perf_counter()
        for _ in range(count):
            call()
        torch.cuda.synchronize()
        times.append((time.perf_counter() - start) / count)
    return statistics.median(times)


def cases(torch):
    """(name, call, bytes moved); the call's tensors are kept by its closure."""
    n = 1 << 26
    for kind in (torch.float32, torch.bfloat16):
        short = str(kind).removeprefix("torch.")
        a = torch.randn(n, device="cuda").to(kind)
        b = torch.randn(n, device="cuda").to(kind)
        size = a.element_size()
        yield f"copy {short}", lambda a=a, b=b: b.copy_(a), 2 * n * size
        yield f"add {short}", lambda a=a, b=b: a + b, 3 * n * size
        yield f"mul_ {short}", lambda a=a: a.mul_(1.0), 2 * n * size
        yield f"exp {short}", lambda a=a: a.exp(), 2 * n * size
        yield f"gelu {short}", lambda a=a: torch.nn.functional.gelu(a), 2 * n * size
        m = a.view(8192, 8192)
        row, column = m[0].clone(), m[:, :1].clone()
        yield f"add a row {short}", lambda m=m, row=row: m + row, 2 * n * size
        yield f"add a column {short}", lambda m=m, column=column: m + column, 2 * n * size
        yield f"transpose {short}", lambda m=m: m.t().contiguous(), 2 * n * size
        yield f"slice copy {short}", lambda m=m: m[:, 64:-64].contiguous(), 2 * n * size
        yield f"sum {short}", lambda a=a: a.sum(), n * size
        yield f"sum rows {short}", lambda m=m: m.sum(1), n * size
        yield f"sum columns {short}", lambda m=m: m.sum(0), n * size
        narrow = a.view(-1, 128)
        yield f"sum rows of 128 {short}", lambda t=narrow: t.sum(1), n * size
        yield f"sum columns of 128 {short}", lambda t=narrow: t.sum(0), n * size
        image = a.view(64, 256, 64, 64)
        yield f"mean of channels {short}", lambda t=image: t.mean((0, 2, 3)), n * size
        yield f"max rows {short}", lambda m=m: m.max(1), n * size
        yield f"argmax rows {short}", lambda m=m: m.argmax(1), n * size
        yield f"var rows {short}", lambda m=m: m.var(1), n * size
        yield f"logsumexp rows {short}", lambda m=m: m.logsumexp(1), n * size
        yield f"norm {short}", lambda a=a: torch.linalg.vector_norm(a), n * size
        yield f"cumsum rows {short}", lambda m=m: m.cumsum(1), 2 * n * size
    f = torch.randn(n, device="cuda")
    yield "float32 to bfloat16", lambda: f.to(torch.bfloat16), 6 * n
    yield "compare", lambda: f > 0, 5 * n
    mask = f > 0
    yield "where", lambda: torch.where(mask, f, 0.0), 9 * n
    h = f.to(torch.bfloat16)
    yield "float32 + bfloat16", lambda: f + h, 10 * n
    yield "fill", lambda: f.fill_(1.0), 4 * n
    whole = torch.arange(n // 2, device="cuda")
    yield "int64 add", lambda: whole + whole, 12 * n


def host_cases(torch):
    a, b = torch.ones(1, device="cuda"), torch.ones(1, device="cuda")
    m = torch.ones(64, 64, device="cuda")
    yield "add, one element", lambda: a + b
    yield "add a number, one element", lambda: a + 1
    yield "add_, one element", lambda: a.add_(b)
    yield "exp, one element", lambda: a.exp()
    yield "sum, 64 x 64", lambda: m.sum()
    yield "add a row, 64 x 64", lambda row=m[0]: m + row


def run() -> None:
    import torch

    print(f"# torch {torch.__version__} on {torch.cuda.get_device_name()}")
    for name, call in host_cases(torch):
        call()
        print(f"{name}\t{host_time(torch, call) * 1e6:.2f}\t0", flush=True)
    for name, call, moved in cases(torch):
        try:
            seconds = device_time(torch, call)
        except (RuntimeError, NotImplementedError) as error:
            print(f"{name}\tnan\t0\t{str(error).splitlines()[0]}", flush=True)
            continue
        print(f"{name}\t{seconds * 1e6:.1f}\t{moved / seconds / GIGA:.0f}", flush=True)


def read(path):
    rows = {}
    with open(path, encoding="utf-8") as stream:
        for line in stream:
            if not line.startswith("#"):
                name, micro, rate = line.rstrip("\n").split("\t")[:3]
                rows[name] = (float(micro), float(rate))
    return rows


def join(ours_path, peer_path) -> None:
    ours, peer = read(ours_path), read(peer_path)
    print(f"{'':32} {'ours us':>10} {'GB/s':>6} {'peer us':>10} {'GB/s':>6} {'peer/ours':>9}")
    for name, (micro, rate) in ours.items():
        other, other_rate = peer.get(name, (float("nan"), 0.0))
        print(
            f"{name:32} {micro:10.2f} {rate:6.0f} {other:10.2f} {other_rate:6.0f} "
            f"{other / micro:9.2f}"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--join", nargs=2, metavar=("OURS", "PEER"))
    options = parser.parse_args()
    if options.join:
        join(*options.join)
    else:
        run()


if __name__ == "__main__":
    main()
