"""Small programs with torch.jit.script as a decorator against the same programs without it.

    python benchmarks/script_overhead.py [--rounds 9] [--filter TEXT]

Each program is the kind people decorate: a few operators, a loop, containers, a module. Both forms
run in turns in one process and processor time counts, so that a busy machine disturbs both alike;
the median of the rounds is printed, with eager time over scripted time: 1 and more is no slower.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time

import script_kinds

import torch
from torch import nn
from torch.nn import functional as F

ROUND_SECONDS = 0.05


def pointwise(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return torch.tanh(x * y + x) * torch.sigmoid(y) - x


def gelu(x: torch.Tensor) -> torch.Tensor:
    return 0.5 * x * (1.0 + torch.tanh(0.7978845608 * (x + 0.044715 * x * x * x)))


def lstm_cell(
    x: torch.Tensor, h: torch.Tensor, c: torch.Tensor, wx: torch.Tensor, wh: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    gates = torch.mm(x, wx.t()) + torch.mm(h, wh.t())
    i, f, g, o = gates.chunk(4, 1)
    c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
    return torch.sigmoid(o) * torch.tanh(c), c


def recurrence(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    h = torch.zeros(x.size(1), w.size(0))
    out: list[torch.Tensor] = []
    for t in range(x.size(0)):
        h = torch.tanh(x[t] + h @ w)
        out.append(h)
    return torch.stack(out)


def attention(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    scores = torch.matmul(q, k.transpose(-2, -1)) / (q.size(-1) ** 0.5)
    return torch.matmul(torch.softmax(scores, dim=-1), v)


def box_overlap(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    low = torch.max(a[:, None, :2], b[:, :2])
    high = torch.min(a[:, None, 2:], b[:, 2:])
    size = (high - low).clamp(min=0)
    inner = size[:, :, 0] * size[:, :, 1]
    area_a = (a[:, 2] - a[:, 0]) * (a[:, 3] - a[:, 1])
    area_b = (b[:, 2] - b[:, 0]) * (b[:, 3] - b[:, 1])
    return inner / (area_a[:, None] + area_b - inner)


def numbers(n: int) -> int:
    total = 0
    for i in range(n):
        if i % 3 == 0:
            total += i * 2
        elif i % 5 == 0:
            total -= i
    return total


def words(names: list[str]) -> dict[str, int]:
    counts: dict[str, int] = {}
    for name in names:
        key = name.strip().lower()
        if key in counts:
            counts[key] += 1
        else:
            counts[key] = 1
    return counts


def choose(x: torch.Tensor, scale: float | None, training: bool) -> torch.Tensor:
    if scale is not None:
        x = x * scale
    if training:
        x = x + 1
    if bool(x.sum() > 0):
        return x.relu()
    return -x


def greedy(scores: torch.Tensor, count: int) -> list[int]:
    kept: list[int] = []
    left = scores.clone()
    for _ in range(count):
        best = int(left.argmax())
        kept.append(best)
        left[best] = -1.0
    return kept


def normalise(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
    mean = x.mean(-1, keepdim=True)
    variance = (x - mean).pow(2).mean(-1, keepdim=True)
    return (x - mean) * torch.rsqrt(variance + 1e-5) * weight + bias


def focal(scores: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    p = torch.sigmoid(scores)
    loss = F.binary_cross_entropy_with_logits(scores, targets, reduction="none")
    both = p * targets + (1 - p) * (1 - targets)
    return (loss * ((1 - both) ** 2.0)).mean()


def reshape(x: torch.Tensor) -> torch.Tensor:
    b, c, h, w = x.shape
    x = x.view(b, 2, c // 2, h, w).transpose(1, 2).contiguous()
    return x.view(b, c, h, w)


class Network(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(32, 64), nn.Linear(64, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.second(torch.relu(self.first(x)))


class Convolutions(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU())

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.adaptive_avg_pool2d(self.layers(x), 1).flatten(1)


def boxes(n):
    low = torch.rand(n, 2)
    return torch.cat([low, low + torch.rand(n, 2)], 1)


def programs():
    r = torch.randn
    trained = r(16, 16, requires_grad=True)

    def gradient(f):
        def step(x, y):
            f(x, y).sum().backward()
            x.grad = None

        return step

    return [
        ("pointwise", pointwise, (r(32, 32), r(32, 32)), None),
        ("gelu", gelu, (r(64, 64),), None),
        ("lstm cell", lstm_cell, (r(4, 16), r(4, 32), r(4, 32), r(128, 16), r(128, 32)), None),
        ("recurrence of 20 steps", recurrence, (r(20, 4, 16), r(16, 16)), None),
        ("attention", attention, (r(2, 4, 16, 8), r(2, 4, 16, 8), r(2, 4, 16, 8)), None),
        ("overlap of boxes", box_overlap, (boxes(10), boxes(12)), None),
        ("loop of numbers", numbers, (500,), None),
        ("words in a dict", words, (["One ", "two", "THREE", "two", " one"] * 8,), None),
        ("choices", choose, (r(8, 8), 2.0, True), None),
        ("greedy choice", greedy, (torch.rand(64), 10), None),
        ("normalisation", normalise, (r(8, 64), r(64), r(64)), None),
        ("focal loss", focal, (r(8, 20), torch.rand(8, 20).round()), None),
        ("channel shuffle", reshape, (r(2, 8, 6, 6),), None),
        ("two-layer module", Network().eval(), (r(8, 32),), None),
        ("convolution module", Convolutions().eval(), (r(1, 3, 12, 12),), None),
        ("forward and backward", pointwise, (trained, r(16, 16)), gradient),
    ]


def seconds(call, arguments, count):
    start = time.process_time()
    for _ in range(count):
        call(*arguments)
    return (time.process_time() - start) / count


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--filter", default="")
    options = parser.parse_args()
    torch.manual_seed(0)
    torch.set_num_threads(1)
    print(f"torch {torch.__version__}; microseconds of processor time\n")
    print(f"{'':28}{'eager':>10}{'scripted':>10}{'ratio':>8}")
    slower = 0
    for name, program, arguments, wrap in [*programs(), *script_kinds.programs()]:
        if options.filter not in name:
            continue
        forms = [program, torch.jit.script(program)]
        if wrap is not None:
            forms = [wrap(form) for form in forms]
        counts = []
        for form in forms:
            for _ in range(20):  # also what an optimising executor wants to see first
                form(*arguments)
            counts.append(max(1, int(ROUND_SECONDS / max(seconds(form, arguments, 5), 1e-7))))
        samples = [
            [seconds(form, arguments, count) for form, count in zip(forms, counts, strict=True)]
            for _ in range(options.rounds)
        ]
        eager, scripted = (statistics.median(column) for column in zip(*samples, strict=True))
        slower += eager < scripted
        ratio = eager / scripted
        print(f"{name:28}{eager * 1e6:10.2f}{scripted * 1e6:10.2f}{ratio:8.2f}", flush=True)
    print(f"\n{slower} slower than eager")
    return 0


if __name__ == "__main__":
    sys.exit(main())
