"""More small programs for script_overhead.py, by kind: loops over integers, lists, dictionaries,
strings, objects of classes, tensors one element at a time, and modules of modules."""

from __future__ import annotations

import math

import torch
from torch import nn

# ---- integers and floats


def collatz(n: int) -> int:
    most = 0
    for start in range(1, n):
        steps, k = 0, start
        while k != 1:
            k = k // 2 if k % 2 == 0 else 3 * k + 1
            steps += 1
        most = max(most, steps)
    return most


def primes(n: int) -> list[int]:
    marks = [True] * (n + 1)
    found: list[int] = []
    for i in range(2, n + 1):
        if marks[i]:
            found.append(i)
            k = i * i
            while k <= n:
                marks[k] = False
                k += i
    return found


def series(x: float, terms: int) -> float:
    total, factor = 0.0, 1.0
    for i in range(terms):
        total += factor * math.sin(x * i)
        factor = -factor / (i + 1)
    return total


# ---- containers


def distances(a: list[int], b: list[int]) -> int:
    """Edits between two sequences."""
    row = [i * 1 for i in range(len(b) + 1)]
    for i, x in enumerate(a):
        last = row[0]
        row[0] = i + 1
        for j, y in enumerate(b):
            cost = last if x == y else last + 1
            last = row[j + 1]
            row[j + 1] = min(cost, min(last, row[j]) + 1)
    return row[-1]


def grid_sum(rows: list[list[int]]) -> int:
    total = 0
    for row in rows:
        for v in row:
            total += v
    return total


def sort_and_slice(values: list[float], k: int) -> list[float]:
    values = sorted(values)
    middle = values[k:-k] + [0.5] * k
    middle.reverse()
    return [v * 2.0 for v in middle]


def group(pairs: list[tuple[str, int]]) -> dict[str, list[int]]:
    out: dict[str, list[int]] = {}
    for key, value in pairs:
        if key not in out:
            out[key] = []
        out[key].append(value)
    return out


def histogram(values: list[int]) -> int:
    seen: dict[int, int] = {}
    for v in values:
        seen[v] = seen.get(v, 0) + 1
    best = -1
    for key, count in seen.items():
        if best < 0 or count > seen[best]:
            best = key
    return best


def queue(n: int) -> int:
    waiting: dict[int, int] = {}
    total = 0
    for i in range(n):
        waiting[i] = i * i
        if i >= 8:
            total += waiting.pop(i - 8)
    return total


# ---- strings


def wrap(words: list[str], width: int) -> list[str]:
    lines: list[str] = []
    line = ""
    for word in words:
        if len(line) + len(word) + 1 > width:
            lines.append(line)
            line = word
        else:
            line = line + " " + word if len(line) > 0 else word
    lines.append(line)
    return lines


def caesar(text: str, shift: int) -> str:
    out: list[str] = []
    for c in text:
        if c.isalpha():
            base = 65 if c.isupper() else 97
            out.append(chr((ord(c) - base + shift) % 26 + base))
        else:
            out.append(c)
    return "".join(out)


def render(names: list[str], count: int) -> str:
    parts: list[str] = []
    for i in range(count):
        parts.append(f"{names[i % len(names)]}_{i}={i * 2}")
    return ", ".join(parts).replace("_", "-").upper()


# ---- objects


class Account:
    def __init__(self, owner: str, balance: float) -> None:
        self.owner = owner
        self.balance = balance
        self.moves = 0

    def add(self, amount: float) -> float:
        self.balance += amount
        self.moves += 1
        return self.balance


class Complex2:
    def __init__(self, re: float, im: float) -> None:
        self.re = re
        self.im = im

    def times(self, o: Complex2) -> Complex2:
        return Complex2(self.re * o.re - self.im * o.im, self.re * o.im + self.im * o.re)

    def size(self) -> float:
        return self.re * self.re + self.im * self.im


def interest(n: int) -> float:
    a = Account("x", 100.0)
    for i in range(n):
        if a.add(float(i % 7) - 3.0) < 0.0:
            a.balance = 0.0
    return a.balance + a.moves


def orbit(n: int) -> float:
    z, c = Complex2(0.3, 0.2), Complex2(0.8, 0.5)
    for _ in range(n):
        z = z.times(c)
    return z.size()


# ---- tensors


def running(x: torch.Tensor, decay: float) -> torch.Tensor:
    mean = torch.zeros_like(x[0])
    for i in range(x.size(0)):
        mean = mean * decay + x[i] * (1 - decay)
    return mean


def beam(scores: torch.Tensor, width: int) -> list[list[int]]:
    beams = [[0]]
    totals = torch.zeros(1)
    for t in range(scores.size(0)):
        all_scores = (totals[:, None] + scores[t][None, :]).view(-1)
        totals, picked = all_scores.topk(min(width, all_scores.numel()))
        new: list[list[int]] = []
        for i in range(picked.numel()):
            p = int(picked[i])
            new.append(beams[p // scores.size(1)] + [p % scores.size(1)])
        beams = new
    return beams


def rotary(q: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
    a, b = q[..., ::2], q[..., 1::2]
    return torch.stack([a * cos - b * sin, a * sin + b * cos], dim=-1).flatten(-2)


def one(x: torch.Tensor) -> torch.Tensor:
    return x + 1


def pad_all(items: list[torch.Tensor], value: float) -> torch.Tensor:
    most = 0
    for t in items:
        most = max(most, t.size(0))
    out = torch.full([len(items), most], value)
    for i, t in enumerate(items):
        out[i, : t.size(0)] = t
    return out


def assign(x: torch.Tensor) -> dict[str, torch.Tensor]:
    mask = x > 0
    x = x.clone()
    x[mask] = 1.0
    x[:, 0] += 2
    return {"x": x, "count": mask.sum(), "mean": x.mean()}


# ---- modules


class Block(nn.Module):
    def __init__(self, d: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(d)
        self.up, self.down = nn.Linear(d, 2 * d), nn.Linear(2 * d, d)
        self.act, self.drop = nn.GELU(), nn.Dropout(0.1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.drop(self.down(self.act(self.up(self.norm(x)))))


class Stack(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.blocks = nn.ModuleList([Block(16) for _ in range(4)])
        self.heads = nn.ModuleDict({"a": nn.Linear(16, 3), "b": nn.Linear(16, 2)})

    def forward(self, x: torch.Tensor) -> dict[str, torch.Tensor]:
        for block in self.blocks:
            x = block(x)
        out: dict[str, torch.Tensor] = {}
        for name, head in self.heads.items():
            out[name] = head(x)
        return out


class Counter(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.calls = 0
        self.register_buffer("total", torch.zeros(4))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.calls += 1
        self.total = self.total + x
        if self.calls % 2 == 0:
            return self.total / self.calls
        return self.total


class Residual(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(4, 4, 3, padding=1), nn.BatchNorm2d(4)
        self.conv2, self.bn2 = nn.Conv2d(4, 4, 3, padding=1), nn.BatchNorm2d(4)
        self.relu = nn.ReLU()
        self.down = None

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.relu(self.bn1(self.conv1(x)))
        y = self.bn2(self.conv2(y))
        if self.down is not None:
            x = self.down(x)
        return self.relu(x + y)


class Recurrent(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.cell = nn.GRUCell(8, 8)
        self.out = nn.Linear(8, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = torch.zeros(x.size(1), 8)
        outs: list[torch.Tensor] = []
        for t in range(x.size(0)):
            h = self.cell(x[t], h)
            outs.append(self.out(h))
        return torch.stack(outs)


def programs():
    r = torch.randn
    words = "the quick brown fox jumps over the lazy dog and runs away from it".split() * 4
    ints = [(i * 37) % 50 for i in range(200)]
    return [
        ("collatz", collatz, (60,), None),
        ("primes", primes, (400,), None),
        ("series", series, (0.7, 60), None),
        ("edit distance", distances, (ints[:20], ints[5:25]), None),
        ("nested lists", grid_sum, ([list(range(12)) for _ in range(12)],), None),
        ("sort and slice", sort_and_slice, ([float(i) for i in ints], 3), None),
        ("group pairs", group, ([(w, i) for i, w in enumerate(words)],), None),
        ("histogram", histogram, (ints,), None),
        ("queue in a dict", queue, (200,), None),
        ("wrap lines", wrap, (words, 30), None),
        ("caesar", caesar, ("Some Text of forty characters, or so!!", 3), None),
        ("f-strings", render, (["a", "bb", "ccc"], 20), None),
        ("object with state", interest, (100,), None),
        ("objects made in a loop", orbit, (50,), None),
        ("running mean", running, (r(20, 8), 0.9), None),
        ("beam search", beam, (r(6, 10), 4), None),
        ("rotary", rotary, (r(2, 4, 8, 16), r(8, 8), r(8, 8)), None),
        ("one addition", one, (r(4),), None),
        ("pad a list", pad_all, ([r(i % 5 + 1) for i in range(12)], 0.0), None),
        ("masks and slices", assign, (r(8, 8),), None),
        ("blocks of modules", Stack().eval(), (r(4, 16),), None),
        ("module with state", Counter(), (r(4),), None),
        ("residual block", Residual().eval(), (r(1, 4, 8, 8),), None),
        ("recurrent module", Recurrent().eval(), (r(6, 2, 8),), None),
    ]
