"""Times one decoding step of GPT-2 on CUDA at batch 1: weights in bfloat16 against 4-bit weights.

    python tools/gpu/bench_int4_decode.py [--sizes small,medium,large,xl] [--group 64]
                                          [--modes eager,graph,compile] [--small]

Runs with any torch, so that the figures of two interpreters can be laid side by side. A step takes
one token, writes its key and value into a cache of fixed length, attends to the whole cache and
gives the scores of the next token. Every linear layer, the last one included, is quantized. Modes:
`graph` replays the step as a CUDA graph, where the time is that of the kernels; `eager` has the
host's time in it; `compile` is torch.compile(mode="reduce-overhead").

Before timing, the 4-bit products are compared with float64 and the scores with those of the same
model whose weights were rounded to the 4-bit values beforehand: the difference of the two is the
kernel's, that to the unrounded model the quantization's. Products of float8 matrices with tensor
and row scales are checked and timed too. --small shrinks everything to what the emulator of
test/cuda_emulator can run, to check the script itself. The exit code is 1 if a check fails.
"""

from __future__ import annotations

import argparse
import itertools
import statistics
import sys
import time

import torch
from torch import nn
from torch.nn import functional as F

SIZES = {  # layers, width, heads
    "small": (12, 768, 12),
    "medium": (24, 1024, 16),
    "large": (36, 1280, 20),
    "xl": (48, 1600, 25),
}
VOCABULARY, CACHE = 50304, 256


# ---- the model -----------------------------------------------------------------------------------
class Block(nn.Module):
    def __init__(self, width, heads, length) -> None:
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.mix, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.rise, self.fall = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        shape = (1, heads, length, width // heads)
        self.register_buffer("keys", torch.randn(shape))
        self.register_buffer("values", torch.randn(shape))

    def forward(self, x, position):
        parts = self.mix(self.norm1(x)).view(1, 1, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        query, key, value = parts.unbind(0)
        self.keys.index_copy_(2, position, key)
        self.values.index_copy_(2, position, value)
        gathered = F.scaled_dot_product_attention(query, self.keys, self.values)
        x = x + self.out(gathered.reshape(1, -1))
        return x + self.fall(F.gelu(self.rise(self.norm2(x)), approximate="tanh"))


class GPT2(nn.Module):
    def __init__(self, layers, width, heads, vocabulary, length) -> None:
        super().__init__()
        self.tokens, self.places = nn.Embedding(vocabulary, width), nn.Embedding(length, width)
        self.blocks = nn.ModuleList([Block(width, heads, length) for _ in range(layers)])
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, vocabulary, bias=False)

    def forward(self, token, position):
        x = self.tokens(token) + self.places(position)
        for block in self.blocks:
            x = block(x, position)
        return self.head(self.norm(x))


# ---- 4-bit layers --------------------------------------------------------------------------------
def quantize(weight, group):
    """Levels from 0 to 15, and a scale and a zero for each group: (level - 8) * scale + zero."""
    rows, columns = weight.shape
    grouped = weight.float().view(rows, columns // group, group)
    low, high = grouped.amin(-1, keepdim=True), grouped.amax(-1, keepdim=True)
    scale = ((high - low).clamp_min(1e-6) / 15).to(weight.dtype).float()
    zero = (low + 8 * scale).to(weight.dtype).float()
    levels = ((grouped - zero) / scale + 8).round().clamp(0, 15)
    rounded = ((levels - 8) * scale + zero).view(rows, columns).to(weight.dtype)
    pairs = torch.cat([scale, zero], -1).transpose(0, 1).contiguous().to(weight.dtype)
    return levels.view(rows, columns).to(torch.uint8), pairs, rounded


class Int4Linear(nn.Module):
    def __init__(self, levels, pairs, bias, group) -> None:
        super().__init__()
        tiles = next(t for t in (8, 4, 2) if levels.shape[1] % (16 * t) == 0)
        both = levels[:, ::2] << 4 | levels[:, 1::2]
        self.register_buffer("packed", torch._convert_weight_to_int4pack(both.contiguous(), tiles))
        self.register_buffer("pairs", pairs)
        self.bias, self.group = bias, group

    def forward(self, x):
        y = torch._weight_int4pack_mm(x, self.packed, self.group, self.pairs)
        return y if self.bias is None else y + self.bias


def replace_layers(module, make) -> None:
    for name, child in module.named_children():
        if isinstance(child, nn.Linear):
            setattr(module, name, make(child))
        else:
            replace_layers(child, make)


def build(sizes, vocabulary, length, kind, group):
    """The same weights for every kind: bfloat16, rounded (to 4 bits, kept in bfloat16), int4."""
    torch.manual_seed(0)
    with torch.device("cuda"):
        model = GPT2(*sizes, vocabulary, length)
    model = model.to(torch.bfloat16).eval().requires_grad_(False)

    def convert(layer):
        levels, pairs, rounded = quantize(layer.weight, group)
        if kind == "int4":
            return Int4Linear(levels, pairs, layer.bias, group)
        layer.weight.copy_(rounded)
        return layer

    if kind != "bfloat16":
        replace_layers(model, convert)
    return model


# ---- timing --------------------------------------------------------------------------------------
def microseconds(call, repeats, rounds=7):
    """The median over rounds of one call, between two events of the device."""
    call()
    marks = [torch.cuda.Event(enable_timing=True) for _ in range(rounds + 1)]
    marks[0].record()
    for mark in marks[1:]:
        for _ in range(repeats):
            call()
        mark.record()
    torch.cuda.synchronize()
    times = [a.elapsed_time(b) for a, b in itertools.pairwise(marks)]
    return statistics.median(times) * 1e3 / repeats


def step_of(model, mode):
    token = torch.zeros(1, dtype=torch.int64, device="cuda")
    position = torch.full((1,), model.places.num_embeddings - 1, device="cuda")
    if mode == "compile":
        model = torch.compile(model, mode="reduce-overhead")

    def step():
        with torch.no_grad():
            return model(token, position)

    end = time.perf_counter() + (
        1.5 if mode == "compile" else 0.0
    )  # kernels are compiled beside it
    for i in itertools.count():
        step()
        if i >= 2 and time.perf_counter() >= end:
            break
    torch.cuda.synchronize()
    if mode != "graph":
        return step
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        step()
    return graph.replay


def time_modes(models, modes, repeats) -> None:
    for mode in modes:
        times = {}
        for kind, model in models.items():
            if kind == "rounded":
                continue
            started = time.perf_counter()
            try:
                times[kind] = microseconds(step_of(model, mode), repeats)
            except Exception as error:  # one mode that fails leaves the others their figures
                print(f"  {mode:8} {kind}: {type(error).__name__}: {str(error).splitlines()[0]}")
            torch.cuda.synchronize()
            if time.perf_counter() - started > 120:
                print(f"  {mode:8} {kind}: took {time.perf_counter() - started:.0f} s to measure")
        if len(times) == 2:
            wide, narrow = times["bfloat16"], times["int4"]
            print(
                f"  {mode:8} bfloat16 {wide:9.1f} us   int4 {narrow:9.1f} us   "
                f"{wide / narrow:5.2f}x",
                flush=True,
            )


# ---- checks --------------------------------------------------------------------------------------
def report(name, error, bound) -> bool:
    good = bool(error <= bound)
    print(f"  {'ok  ' if good else 'FAIL'} {name}: {error:.3g} (at most {bound:.3g})", flush=True)
    return good


def check_products(small) -> bool:
    shapes = [(8, 256)] if small else [(2304, 768), (768, 3072), (4800, 1600), (50304, 768)]
    good = True
    print("4-bit products, largest error relative to the largest value")
    for outputs, inputs in shapes:
        for group in (32, 64):
            weight = torch.randn(outputs, inputs, device="cuda").bfloat16()
            levels, pairs, _ = quantize(weight, group)
            layer = Int4Linear(levels, pairs, None, group)
            scale, zero = pairs.double().repeat_interleave(group, 0).permute(2, 1, 0)
            exact = (levels.double() - 8) * scale + zero
            for rows in (1, 5, 40):
                x = torch.randn(rows, inputs, device="cuda").bfloat16()
                reference = x.double() @ exact.t()
                error = (layer(x).double() - reference).abs().max() / reference.abs().max()
                name = f"{rows} x {inputs} x {outputs}, group {group}"
                good &= report(name, error.item(), 2**-7)
    return good


def check_scores(models) -> bool:
    scores = {kind: step_of(model, "eager")().float() for kind, model in models.items()}
    span = scores["bfloat16"].abs().max()
    kernel = (scores["int4"] - scores["rounded"]).abs().max() / span
    loss = (scores["int4"] - scores["bfloat16"]).abs().max() / span
    print(f"  scores: int4 to bfloat16 {loss.item():.3g} of the largest (quantization)")
    return report("scores: int4 to the model of rounded weights", kernel.item(), 0.05)


def check_float8(small) -> bool:
    size = 64 if small else 4096
    print("float8 products, largest error relative to the largest value")
    a, b = (torch.randn(size, size, device="cuda") for _ in range(2))
    one = torch.ones((), device="cuda")
    left, right = a.to(torch.float8_e4m3fn), b.to(torch.float8_e4m3fn)
    by_row = torch.rand(size, 1, device="cuda") + 0.5, torch.rand(1, size, device="cuda") + 0.5
    good = True
    exact = left.double() @ right.double().t()
    for name, scales in (("tensor scales", (one * 2, one * 0.5)), ("row scales", by_row)):
        reference = exact * scales[0].double() * scales[1].double()

        def call(scales=scales):
            return torch._scaled_mm(left, right.t(), *scales, out_dtype=torch.bfloat16)

        error = (call().double() - reference).abs().max() / reference.abs().max()
        good &= report(name, error.item(), 2**-7)
        print(f"       {size}^3: {microseconds(call, 1 if small else 20):9.1f} us", flush=True)
    half = a.bfloat16(), b.bfloat16().t()
    wide = microseconds(lambda: half[0] @ half[1], 1 if small else 20)
    print(f"       bfloat16 product of this size: {wide:9.1f} us", flush=True)
    return good


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sizes", default="small,xl")
    parser.add_argument("--modes", default="eager,graph,compile")
    parser.add_argument("--group", type=int, default=64)
    parser.add_argument("--small", action="store_true")
    options = parser.parse_args()
    print(f"torch {torch.__version__} on {torch.cuda.get_device_name()}", flush=True)
    good = check_products(options.small)
    good &= check_float8(options.small)
    for size in options.sizes.split(","):
        shape, vocabulary, length = SIZES[size], VOCABULARY, CACHE
        if options.small:
            shape, vocabulary, length = (1, 64, 2), 64, 8
        print(f"GPT-2 {size}: {shape[0]} layers of {shape[1]}, cache of {length}", flush=True)
        kinds = ("bfloat16", "rounded", "int4")
        models = {k: build(shape, vocabulary, length, k, options.group) for k in kinds}
        good &= check_scores(models)
        time_modes(models, options.modes.split(","), 1 if options.small else 50)
    return int(not good)


if __name__ == "__main__":
    sys.exit(main())
