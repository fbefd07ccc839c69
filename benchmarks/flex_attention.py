"""Compiled FlexAttention on the CPU: processor time of a call, forward, with gradients, and with
few queries, and how far results are from double precision. Run with either library; figures of
both are compared by running them in turns on the same machine.

    python benchmarks/flex_attention.py [--case NAME] [--repeat 5]
"""

from __future__ import annotations

import argparse
import json
import time

import torch
from torch.nn.attention.flex_attention import create_block_mask, flex_attention

LENGTH, HEADS, DEPTH = 1024, 8, 64


def causal(b, h, q, kv):
    return q >= kv


def window(b, h, q, kv):
    return (q >= kv) & (q - kv < 256)


def relative(score, b, h, q, kv):
    return score + (q - kv) * 0.01


def capped(score, b, h, q, kv):
    return 20 * torch.tanh(score / 20)


SLOPES = torch.exp2(-torch.arange(1, HEADS + 1).float())


def alibi(score, b, h, q, kv):
    return score + SLOPES[h] * (kv - q)


def _tensors(q_len: int, kv_len: int, kv_heads: int, dtype: torch.dtype, grad: bool) -> list:
    torch.manual_seed(0)
    shapes = [(1, HEADS, q_len, DEPTH), (1, kv_heads, kv_len, DEPTH), (1, kv_heads, kv_len, DEPTH)]
    return [torch.randn(s).to(dtype).requires_grad_(grad) for s in shapes]


# name: (score_mod, mask_mod, queries, keys, heads of keys, dtype, gradients)
CASES = {
    "plain": (None, None, LENGTH, LENGTH, HEADS, torch.float32, False),
    "causal": (None, causal, LENGTH, LENGTH, HEADS, torch.float32, False),
    "relative": (relative, None, LENGTH, LENGTH, HEADS, torch.float32, False),
    "capped causal": (capped, causal, LENGTH, LENGTH, HEADS, torch.float32, False),
    "alibi causal": (alibi, causal, LENGTH, LENGTH, HEADS, torch.float32, False),
    "window": (None, window, 2 * LENGTH, 2 * LENGTH, HEADS, torch.float32, False),
    "causal bf16": (None, causal, LENGTH, LENGTH, HEADS, torch.bfloat16, False),
    "shared keys": (relative, causal, LENGTH, LENGTH, 2, torch.float32, False),
    "decoding": (alibi, None, 1, 8 * LENGTH, HEADS, torch.float32, False),
    "decoding shared": (alibi, None, 1, 8 * LENGTH, 2, torch.float32, False),
    "gradients": (alibi, causal, LENGTH, LENGTH, HEADS, torch.float32, True),
}


def measure(name: str, repeat: int) -> dict[str, object]:
    """One case: seconds to the first result, milliseconds of processor time, largest error."""
    score_mod, mask_mod, q_len, kv_len, kv_heads, dtype, grad = CASES[name]
    q, k, v = _tensors(q_len, kv_len, kv_heads, dtype, grad)
    mask = None
    if mask_mod is not None:
        mask = create_block_mask(mask_mod, None, None, q_len, kv_len, device="cpu")
    torch._dynamo.reset()
    call = torch.compile(flex_attention)

    def run():
        out = call(q, k, v, score_mod, mask, enable_gqa=kv_heads != HEADS)
        if grad:
            torch.autograd.grad(out.sum(), (q, k, v))
        return out

    begin = time.perf_counter()
    out = run()
    first = time.perf_counter() - begin
    run()
    best = float("inf")
    for _ in range(repeat):
        begin = time.process_time()
        run()
        best = min(best, time.process_time() - begin)
    wide = [t.detach().double() for t in (q, k, v)]
    want = flex_attention(*wide, score_mod, mask, enable_gqa=kv_heads != HEADS)
    error = (out.detach().double() - want).abs().max().item()
    return {"case": name, "first_s": round(first, 2), "ms": round(best * 1e3, 2), "error": error}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--case", choices=CASES, action="append")
    parser.add_argument("--repeat", type=int, default=5)
    options = parser.parse_args()
    for name in options.case or CASES:
        try:
            print(json.dumps(measure(name, options.repeat)), flush=True)
        except Exception as error:
            text = str(error).strip().splitlines() or [""]
            print(json.dumps({"case": name, "error": f"{type(error).__name__}: {text[0]}"}))


if __name__ == "__main__":
    main()
