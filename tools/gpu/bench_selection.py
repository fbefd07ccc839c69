"""Times the CUDA cases in which this library was slower than the peer when first measured on an
H200: row reductions with an index or a variance, selection, sorting, indexing and a few products.

    python tools/gpu/bench_selection.py                  a table: name, microseconds, GB/s
    python tools/gpu/bench.py --join OURS PEER      two such tables side by side, with the ratio

The rate counts the bytes an operator must move, and is 0 where arithmetic decides.
"""

from bench import GIGA, device_time

ROWS, COLUMNS = 16384, 4096


def reductions(torch, x):
    size = 4 * x.numel()
    yield "sum dim=1", lambda: x.sum(1), size
    yield "mean dim=1", lambda: x.mean(1), size
    yield "max dim=1", lambda: x.max(1), size
    yield "argmax dim=1", lambda: x.argmax(1), size
    yield "var dim=1", lambda: x.var(1), size
    yield "std_mean dim=1", lambda: torch.std_mean(x, 1), size
    yield "norm", lambda: torch.linalg.vector_norm(x), size
    yield "x.abs().max()", lambda: x.abs().max(), 3 * size


def indexing(torch, x):
    size = 4 * x.numel()
    columns = torch.randint(0, COLUMNS, (ROWS, COLUMNS), device="cuda")
    yield "gather dim=1", lambda: x.gather(1, columns), 4 * size
    rows = torch.randint(0, ROWS, (ROWS, COLUMNS), device="cuda")
    yield "gather dim=0", lambda: x.gather(0, rows), 4 * size
    mask = x[:, 0] > 0
    yield "x[mask]", lambda: x[mask], size
    order = torch.randperm(ROWS, device="cuda")
    yield "x[order]", lambda: x[order], 2 * size
    zeroes = torch.zeros(ROWS, COLUMNS, device="cuda")
    yield "scatter_add dim=0", lambda: zeroes.scatter_add(0, rows, x), 6 * size
    yield "scatter_add dim=1", lambda: zeroes.scatter_add(1, columns, x), 6 * size
    yield "index_add dim=0", lambda: zeroes.index_add(0, order, x), 4 * size
    yield "sort dim=1", lambda: x.sort(1), 4 * size
    yield "topk 10", lambda: x.topk(10, 1), size
    yield "topk 64", lambda: x.topk(64, 1), size
    logits = x.view(-1)[: 32 * 50304].view(32, 50304)
    yield "topk 50 of 32x50304", lambda: logits.topk(50, 1), 4 * logits.numel()


def products(torch):
    for n in (4096, 8192):
        a = torch.randn(n, n, device="cuda").to(torch.bfloat16)
        b = torch.randn(n, n, device="cuda").to(torch.bfloat16)
        yield f"matmul bfloat16 {n}", lambda a=a, b=b: a @ b, 0
    a = torch.randn(96, 256, 64, device="cuda")
    b = torch.randn(96, 64, 256, device="cuda")
    yield "bmm 96x256x64x256", lambda: a @ b, 0


def pointwise(torch, x):
    size = 4 * x.numel()
    yield "randn", lambda: torch.randn(ROWS, COLUMNS, device="cuda"), size
    yield "exp", lambda: x.exp(), 2 * size
    yield "tanh", lambda: x.tanh(), 2 * size
    yield "gelu", lambda: torch.nn.functional.gelu(x), 2 * size
    yield "sigmoid", lambda: x.sigmoid(), 2 * size
    yield "mul_", lambda: x.mul_(1.0), 2 * size


def main() -> None:
    import torch

    print(f"# torch {torch.__version__} on {torch.cuda.get_device_name()}")
    x = torch.randn(ROWS, COLUMNS, device="cuda")
    for group in (reductions(torch, x), indexing(torch, x), products(torch), pointwise(torch, x)):
        for name, call, moved in group:
            try:
                seconds = device_time(torch, call)
            except (RuntimeError, NotImplementedError) as error:
                print(f"{name}\tnan\t0\t{str(error).splitlines()[0]}", flush=True)
                continue
            print(f"{name}\t{seconds * 1e6:.1f}\t{moved / seconds / GIGA:.0f}", flush=True)


if __name__ == "__main__":
    main()
