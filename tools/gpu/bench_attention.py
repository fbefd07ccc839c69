"""Checks and times attention on a GPU.

    python tools/gpu/bench_attention.py            check, then a table of times
    python tools/gpu/bench_attention.py --check    only the checks

The checks compare the fused kernels' output and gradients with float64 NumPy, on lengths around the
tiles' edges, and want results that repeat to the last bit, in deterministic mode. The table
has microseconds (and TFLOP/s of the products that must be made) of scaled_dot_product_attention:
forward, and forward with backward; with this library also its own kernels' backward alone and the
form composed from products. Under another torch the same script prints that one's times.
"""

import argparse
import sys

from bench import device_time

CHECKS = (
    # batch, heads, heads of keys, queries, keys, dim
    (1, 2, 2, 1, 1, 64),
    (2, 3, 3, 127, 129, 64),
    (1, 4, 2, 300, 515, 64),
    (2, 2, 2, 1024, 1024, 64),
    (1, 2, 2, 65, 63, 128),
    (1, 4, 1, 257, 640, 128),
    (1, 2, 2, 1000, 1000, 128),
    (1, 2, 2, 200, 200, 96),
    (1, 2, 2, 200, 200, 32),
)
TIMES = (
    # name, batch, heads, heads of keys, length, dim, heads split off rows of features
    ("gpt2 b16 h12 t1024 d64", 16, 12, 12, 1024, 64, True),
    ("b4 h16 t4096 d128", 4, 16, 16, 4096, 128, False),
    ("b4 h16 t4096 d64", 4, 16, 16, 4096, 64, False),
    ("b4 h32/8 t2048 d128", 4, 32, 8, 2048, 128, False),
    ("b1 h12 t128 d64", 1, 12, 12, 128, 64, False),
)


def reference(np, q, k, v, grad, causal):
    group, scale = q.shape[1] // k.shape[1], q.shape[-1] ** -0.5
    wide_k, wide_v = (t.repeat(group, axis=1) for t in (k, v))
    scores = q @ wide_k.swapaxes(-1, -2) * scale
    if causal:
        scores = np.where(np.tril(np.ones(scores.shape[-2:], bool)), scores, -np.inf)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    weights /= weights.sum(-1, keepdims=True)
    out = weights @ wide_v
    to_scores = weights * (grad @ wide_v.swapaxes(-1, -2) - (grad * out).sum(-1, keepdims=True))
    dk = to_scores.swapaxes(-1, -2) @ q * scale
    dv = weights.swapaxes(-1, -2) @ grad
    dk, dv = (t.reshape(k.shape[0], k.shape[1], group, *k.shape[2:]).sum(2) for t in (dk, dv))
    return out, to_scores @ wide_k * scale, dk, dv


def check(torch):
    """Prints the largest errors, relative to the largest element; returns how many are bad."""
    import numpy as np

    bad = 0
    for kind, bits in ((torch.bfloat16, 8), (torch.float16, 11)):
        for b, h, hk, n, m, d in CHECKS:
            q, g = (torch.randn(b, h, n, d).to(kind) for _ in range(2))
            k, v = (torch.randn(b, hk, m, d).to(kind) for _ in range(2))
            for causal in (False, True):
                runs = [run(torch, q, k, v, g, causal) for _ in range(2)]
                same = all(torch.equal(x, y) for x, y in zip(*runs, strict=True))
                want = reference(np, *(t.double().numpy() for t in (q, k, v, g)), causal)
                errors = []
                for got, right in zip(runs[0], want, strict=True):
                    gap = np.abs(got.double().numpy() - right).max()
                    errors.append(float(gap / max(np.abs(right).max(), 1e-2)))
                good = same and max(errors) <= 4 * 2.0**-bits
                bad += not good
                text = " ".join(f"{e:.1e}" for e in errors)
                name = f"{str(kind)[6:]} b{b} h{h}/{hk} q{n} k{m} d{d} causal={causal}"
                print(f"{'ok ' if good else 'BAD'} {name}: {text}{'' if same else ' (varies)'}")
    return bad


def run(torch, q, k, v, g, causal):
    """Output and gradients, on the CPU."""
    a, b, c = (t.cuda().requires_grad_() for t in (q, k, v))
    gqa = q.shape[1] != k.shape[1]
    torch.use_deterministic_algorithms(True)
    out = torch.nn.functional.scaled_dot_product_attention(
        a, b, c, is_causal=causal, enable_gqa=gqa
    )
    out.backward(g.cuda())
    torch.use_deterministic_algorithms(False)
    return [t.detach().cpu() for t in (out, a.grad, b.grad, c.grad)]


def leaves(torch, kind, b, h, hk, n, d, split):
    """q, k, v that ask for gradients."""
    if split:
        x = torch.randn(b, n, 3 * h * d, device="cuda").to(kind)
        parts = [t.view(b, n, h, d).transpose(1, 2) for t in x.split(h * d, dim=2)]
    else:
        parts = [torch.randn(b, heads, n, d, device="cuda").to(kind) for heads in (h, hk, hk)]
    return [t.detach().requires_grad_() for t in parts]


def times(torch, ours) -> None:
    attention, kind = torch.nn.functional.scaled_dot_product_attention, torch.bfloat16
    for name, b, h, hk, n, d, split in TIMES:
        q, k, v = leaves(torch, kind, b, h, hk, n, d, split)
        g = torch.randn(b, h, n, d, device="cuda").to(kind)
        for causal in (False, True):
            gqa, scale = h != hk, d**-0.5
            work = 4 * b * h * n * n * d * (0.5 if causal else 1)

            def fused(q=q, k=k, v=v, causal=causal, gqa=gqa):
                return attention(q, k, v, is_causal=causal, enable_gqa=gqa)

            def composed(q=q, k=k, v=v, causal=causal, scale=scale):
                return torch.ops.aten._attention_by_products(q, k, v, causal, scale)[0]

            forms = [("sdpa", fused)]
            if ours and not gqa:
                forms.append(("products", composed))
            for form, call in forms:
                with torch.no_grad():
                    report(torch, f"{form} {name} causal={causal} fwd", call, work)
                report(
                    torch,
                    f"{form} {name} causal={causal} fwd+bwd",
                    lambda call=call, q=q, k=k, v=v, g=g: torch.autograd.grad(call(), (q, k, v), g),
                    3.5 * work,
                )
            if ours:  # of this library's own kernels
                a, s, w = (t.detach() for t in (q, k, v))
                out, lse = torch.ops.aten._fused_attention(a, s, w, causal, scale)
                backward = torch.ops.aten._fused_attention_backward
                report(
                    torch,
                    f"fused backward {name} causal={causal}",
                    lambda: backward(g, a, s, w, out, lse, causal, scale),  # noqa: B023
                    2.5 * work,
                )


def report(torch, name, call, work) -> None:
    seconds = device_time(torch, call)
    print(f"{name:60s} {seconds * 1e6:10.1f} us {work / seconds / 1e12:8.1f} TFLOP/s", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--check", action="store_true", help="only the checks")
    options = parser.parse_args()
    import torch

    ours = hasattr(torch.ops.aten, "_fused_attention")
    torch.manual_seed(0)
    bad = check(torch) if ours or options.check else 0
    if not options.check:
        times(torch, ours)
    if bad:
        sys.exit(f"{bad} checks failed")


if __name__ == "__main__":
    main()
