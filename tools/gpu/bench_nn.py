"""Times what a network is made of, on whichever torch this interpreter imports: matrix products,
softmax, norms, cross entropy, embedding, attention, dropout, random fills, indexing, sorting and
optimizer steps; and the host's time for small ones.

    python tools/gpu/bench_nn.py > ours.txt      name, microseconds, GB/s (GFLOP/s for products)
    python tools/gpu/bench.py --join ours.txt peer.txt

Bytes are the fewest an operator must move, so the rate shows what was moved besides.
"""

from bench import device_time, host_time

GIGA = 1e9
TOKENS, WIDTH, VOCABULARY = 16384, 768, 50304


def products(torch):
    for kind in (torch.bfloat16, torch.float16, torch.float32):
        short = str(kind).removeprefix("torch.")
        for m, k, n in ((4096, 4096, 4096), (TOKENS, 768, 3072), (TOKENS, 3072, 768), (64, 64, 64)):
            a = torch.randn(m, k, device="cuda").to(kind)
            w = torch.randn(n, k, device="cuda").to(kind)
            b = torch.randn(n, device="cuda").to(kind)
            work = 2 * m * k * n
            name = f"{m}x{k}x{n} {short}"
            yield f"mm {name}", lambda a=a, w=w: a @ w.t(), work
            yield f"linear {name}", lambda a=a, w=w, b=b: torch.nn.functional.linear(a, w, b), work
        q = torch.randn(192, 1024, 64, device="cuda").to(kind)
        work = 2 * 192 * 1024 * 1024 * 64
        yield f"bmm 192x1024x64x1024 {short}", lambda q=q: q @ q.transpose(1, 2), work


def rows(torch):
    f = torch.nn.functional
    for kind in (torch.float32, torch.bfloat16):
        short, size = str(kind).removeprefix("torch."), 4 if kind == torch.float32 else 2
        for n in (128, 1024, 4096, VOCABULARY, VOCABULARY - 47):
            count = (1 << 27) // n
            x = torch.randn(count, n, device="cuda").to(kind)
            y = x.softmax(-1)
            moved = count * n * size
            yield f"softmax {n} {short}", lambda x=x: x.softmax(-1), 2 * moved
            yield f"log_softmax {n} {short}", lambda x=x: x.log_softmax(-1), 2 * moved
            yield (
                f"softmax backward {n} {short}",
                lambda x=x, y=y: torch._softmax_backward_data(x, y, -1, x.dtype),
                3 * moved,
            )
        for n in (768, 1024, 4096):
            count = (1 << 26) // n
            x = torch.randn(count, n, device="cuda").to(kind)
            w = torch.ones(n, device="cuda").to(kind)
            _, mean, rstd = torch.native_layer_norm(x, (n,), w, w, 1e-5)
            moved = count * n * size
            yield (
                f"layer_norm {n} {short}",
                lambda x=x, w=w, n=n: f.layer_norm(x, (n,), w, w),
                (2 * moved),
            )
            yield (
                f"layer_norm backward {n} {short}",
                lambda x=x, w=w, n=n, mean=mean, rstd=rstd: (
                    torch.ops.aten.native_layer_norm_backward(
                        x, x, (n,), mean, rstd, w, w, [True, True, True]
                    )
                ),
                3 * moved,
            )
        yield from losses(torch, kind, short, size)


def losses(torch, kind, short, size):
    f = torch.nn.functional
    x = torch.randn(TOKENS // 2, VOCABULARY, device="cuda").to(kind).requires_grad_()
    target = torch.randint(VOCABULARY, (TOKENS // 2,), device="cuda")
    moved = x.numel() * size
    yield f"cross_entropy {short}", lambda: f.cross_entropy(x, target), moved
    loss = f.cross_entropy(x, target)
    yield (
        f"cross_entropy backward {short}",
        lambda: torch.autograd.grad(loss, x, retain_graph=True),
        2 * moved,
    )


def tokens(torch):
    f = torch.nn.functional
    weight = torch.randn(VOCABULARY, WIDTH, device="cuda", requires_grad=True)
    index = torch.randint(VOCABULARY, (TOKENS,), device="cuda")
    moved = TOKENS * WIDTH * 4
    yield "embedding", lambda: f.embedding(index, weight), 2 * moved
    out = f.embedding(index, weight)
    grad = torch.randn_like(out)
    yield (
        "embedding backward",
        lambda: torch.autograd.grad(out, weight, grad, retain_graph=True),
        moved + VOCABULARY * WIDTH * 4,
    )
    x = torch.randn(TOKENS, WIDTH, device="cuda")
    yield "dropout", lambda: f.dropout(x, 0.1), 9 * x.numel()
    yield "normal_", lambda: x.normal_(), 4 * x.numel()
    yield "uniform_", lambda: x.uniform_(), 4 * x.numel()
    yield "cat of 3", lambda: torch.cat([x, x, x], 1), 24 * x.numel()
    yield (
        "gather",
        lambda: weight.detach().gather(0, index.view(-1, 1).expand(-1, WIDTH)),
        (2 * moved),
    )
    long = torch.randn(1 << 22, device="cuda")
    yield "sort 4M", lambda: torch.sort(long), 16 * long.numel()
    short = torch.randn(4096, 1024, device="cuda")
    yield "sort rows of 1024", lambda: torch.sort(short), 16 * short.numel()
    yield (
        "topk 50 of 50304",
        lambda: torch.topk(weight.detach().t()[:64].contiguous(), 50),
        (4 * 64 * VOCABULARY),
    )
    yield "nonzero", lambda: torch.nonzero(long > 1), 4 * long.numel()


def attention(torch):
    call = torch.nn.functional.scaled_dot_product_attention
    for kind in (torch.bfloat16, torch.float32):
        short = str(kind).removeprefix("torch.")
        q, k, v = (
            torch.randn(8, 12, 1024, 64, device="cuda").to(kind).requires_grad_() for _ in range(3)
        )
        work = 4 * 8 * 12 * 1024 * 1024 * 64
        yield f"attention causal {short}", lambda q=q, k=k, v=v: call(q, k, v, is_causal=True), work
        out = call(q, k, v, is_causal=True)
        grad = torch.randn_like(out)
        yield (
            f"attention backward {short}",
            lambda q=q, k=k, v=v, out=out, grad=grad: torch.autograd.grad(
                out, (q, k, v), grad, retain_graph=True
            ),
            2.5 * work,
        )


def steps(torch):
    shapes = [(768, 768)] * 48 + [(3072, 768)] * 24 + [(768,)] * 75 + [(50304, 768)]
    params = [torch.randn(s, device="cuda", requires_grad=True) for s in shapes]
    for p in params:
        p.grad = torch.randn_like(p)
    count = sum(p.numel() for p in params)
    for name, make, moved in (
        ("AdamW", lambda: torch.optim.AdamW(params, lr=1e-4, fused=True), 28),
        ("SGD", lambda: torch.optim.SGD(params, lr=1e-4, momentum=0.9, fused=True), 20),
    ):
        optimizer = make()
        optimizer.step()
        yield f"{name}, {count // 10**6}M parameters", optimizer.step, moved * count
    clip = torch.nn.utils.clip_grad_norm_
    yield "clip_grad_norm_", lambda: clip(params, 1.0), 12 * count


def host_cases(torch):
    f = torch.nn.functional
    x, w, b = (torch.randn(s, device="cuda") for s in ((64, 64), (64, 64), (64,)))
    target = torch.randint(64, (64,), device="cuda")
    yield "host: mm 64", lambda: x @ w
    yield "host: linear 64", lambda: f.linear(x, w, b)
    yield "host: softmax 64", lambda: x.softmax(-1)
    yield "host: layer_norm 64", lambda: f.layer_norm(x, (64,), b, b)
    yield "host: cross_entropy 64", lambda: f.cross_entropy(x, target)
    yield "host: embedding 64", lambda: f.embedding(target, w)
    yield "host: cat", lambda: torch.cat([x, w])
    yield "host: randn", lambda: torch.randn(64, device="cuda")


def main() -> None:
    import torch

    print(f"# torch {torch.__version__} on {torch.cuda.get_device_name()}")
    for name, call in host_cases(torch):
        call()
        print(f"{name}\t{host_time(torch, call) * 1e6:.2f}\t0", flush=True)
    for group in (products, rows, tokens, attention, steps):
        for name, call, moved in group(torch):
            try:
                seconds = device_time(torch, call)
            except (RuntimeError, NotImplementedError) as error:
                print(f"{name}\tnan\t0\t{str(error).splitlines()[0]}", flush=True)
                continue
            print(f"{name}\t{seconds * 1e6:.1f}\t{moved / seconds / GIGA:.0f}", flush=True)


if __name__ == "__main__":
    main()
