"""Random calls of compiled FlexAttention, compared with the matrix of all scores in double
precision: sizes, heads that share keys, batches that do, blocks, masks, functions of scores with
captured tensors, types, and gradients.

    python tools/fuzz/flex_attention.py --n 1000 --seed 1
    python tools/fuzz/flex_attention.py --replay 17

The exit status is 1 when a call differed.
"""

from __future__ import annotations

import argparse
import random
import sys

import torch
from torch.nn.attention.flex_attention import create_block_mask, flex_attention

TOLERANCE = {torch.float64: 1e-9, torch.float32: 2e-4, torch.bfloat16: 6e-2, torch.float16: 1e-2}


def _mods(tensors: dict[str, torch.Tensor]) -> dict:
    return {
        "none": None,
        "place": lambda s, b, h, q, kv: s + 0.01 * (q - kv),
        "tanh": lambda s, b, h, q, kv: 2 * torch.tanh(s / 2),
        "head": lambda s, b, h, q, kv: s * tensors["slope"][h],
        "table": lambda s, b, h, q, kv: s + tensors["table"][h, q - kv + 400],
        "square": lambda s, b, h, q, kv: s * tensors["one"] + tensors["pairs"][q, kv],
        "where": lambda s, b, h, q, kv: torch.where(q > kv, s, s * 0.5 - b),
    }


def _masks(limit: torch.Tensor) -> dict:
    return {
        "none": None,
        "causal": lambda b, h, q, kv: q >= kv,
        "window": lambda b, h, q, kv: (q - kv).abs() <= 7 + h,
        "limit": lambda b, h, q, kv: kv < limit[b],
        "nothing": lambda b, h, q, kv: (kv < 0) | (q == 1),
    }


def difference(seed: int) -> str | None:
    """What is wrong with call number `seed`; None: nothing."""
    rng = random.Random(seed)
    torch.manual_seed(seed)
    dtype = rng.choice([torch.float32] * 4 + [torch.float64, torch.bfloat16, torch.float16])
    batch, kv_heads = rng.randint(1, 3), rng.choice((1, 2, 3))
    heads, q_len, kv_len = kv_heads * rng.choice((1, 1, 2, 4)), *_lengths(rng)
    depth, width = rng.choice((1, 5, 8, 16, 33)), rng.choice((1, 7, 16, 40))
    tensors = {
        "slope": torch.rand(heads),
        "table": torch.randn(heads, 800),
        "one": torch.tensor(0.7),
        "pairs": torch.randn(q_len, kv_len),
    }
    mod, mask = rng.choice(list(_mods(tensors))), rng.choice(list(_masks(torch.ones(1))))
    block = rng.choice((1, 3, 16, 32, 128, (16, 8), (5, 64)))
    keys = 1 if mask != "none" and rng.random() < 0.2 else batch
    shapes = [(batch, heads, q_len, depth), (keys, kv_heads, kv_len, depth)]
    shapes.append((keys, kv_heads, kv_len, width))
    inputs = [torch.randn(s).to(dtype) for s in shapes]
    limit = torch.randint(0, kv_len + 1, (batch,))
    grad = rng.random() < 0.5
    text = f"{dtype} {shapes} mod {mod} mask {mask} block {block} grad {grad}"

    def run(call, wide: bool):
        own = {
            k: (t.double() if wide else t.clone()).requires_grad_(grad) for k, t in tensors.items()
        }
        given = [(t.double() if wide else t.clone()).requires_grad_(grad) for t in inputs]
        mask_mod, blocks = _masks(limit)[mask], None
        if mask_mod is not None:
            blocks = create_block_mask(
                mask_mod, batch, heads, q_len, kv_len, device="cpu", BLOCK_SIZE=block
            )
        out = call(*given, _mods(own)[mod], blocks, enable_gqa=heads != kv_heads)
        if not grad:
            return [out]
        leaves = [*given, *own.values()]
        weight = torch.linspace(-1, 1, out.numel()).view(out.shape).to(out.dtype)
        grads = torch.autograd.grad((out * weight).sum(), leaves, allow_unused=True)
        return [out, *(g for g in grads if g is not None)]

    torch._dynamo.reset()
    got, want = run(torch.compile(flex_attention), False), run(flex_attention, True)
    if len(got) != len(want):
        return f"{text}: {len(got)} results instead of {len(want)}"
    for i, (a, b) in enumerate(zip(got, want, strict=True)):
        bound = max(TOLERANCE[dtype], TOLERANCE[a.dtype]) * (
            1 + b.abs().max().item() if b.numel() else 1
        )
        if a.shape != b.shape or not bool(((a.double() - b).abs() <= bound).all()):
            return f"{text}: result {i} differs by {(a.double() - b).abs().max().item():.3g}"
    return None


def _lengths(rng: random.Random) -> tuple[int, int]:
    if rng.random() < 0.3:
        return rng.randint(1, 8), rng.choice((1, 30, 300))
    return rng.choice((9, 33, 64, 100, 130)), rng.choice((1, 17, 64, 129, 200))


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--n", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--replay", type=int)
    options = parser.parse_args()
    first = options.seed * 1_000_003
    chosen = range(options.n) if options.replay is None else [options.replay]
    wrong = 0
    for i in chosen:
        try:
            found = difference(first + i)
        except Exception as error:
            found = f"{type(error).__name__}: {str(error).splitlines()[0]}"
        if found:
            wrong += 1
            print(f"call {i}: {found}", flush=True)
    print(f"{len(chosen)} calls, {wrong} differ")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
