"""Small scripted and traced models that together use every part of the archive format: classes,
enumerations, tuples with names, interfaces, containers, constants, hooks, state methods."""

from __future__ import annotations

import enum
import functools
from typing import NamedTuple

import torch
from torch import Tensor, nn


class Colour(enum.Enum):
    """An enumeration."""

    RED = 1
    BLUE = 2


class Pair(NamedTuple):
    """A tuple with names and a default."""

    left: Tensor
    right: int = 3


@torch.jit.script
class Counter:
    """A class of the language."""

    def __init__(self, start: int) -> None:
        self.n = start
        self.seen: list[int] = []

    def add(self, k: int) -> int:
        """Adds and remembers."""
        self.n += k
        self.seen.append(k)
        return self.n


@torch.jit.interface
class Step(nn.Module):
    """What a module of an interface has."""

    def forward(self, x: Tensor) -> Tensor:
        """One step."""


class Double(nn.Module):
    """A module that fits the interface."""

    def __init__(self) -> None:
        super().__init__()
        self.w = nn.Parameter(torch.ones(2))

    def forward(self, x: Tensor) -> Tensor:
        """Twice x."""
        return x * self.w * 2


class Values(nn.Module):
    """Attributes of every type."""

    empty: list[int]
    maybe: Tensor | None
    by_name: dict[str, tuple[int, float]]

    def __init__(self) -> None:
        super().__init__()
        self.empty, self.maybe = [], None
        self.numbers, self.words = [1, 2, 3], ["a", "b"]
        self.tensors = [torch.ones(2), torch.zeros(1, dtype=torch.float16)]
        self.by_name = {"x": (1, 2.5)}
        self.colour, self.device = Colour.BLUE, torch.device("cpu")
        self.pair = (1, "two", torch.ones(2, dtype=torch.bfloat16), 1.5, True)
        self.counter = Counter(2)
        self.register_buffer("mask", torch.tensor([True, False]))

    def forward(self, x: Tensor) -> tuple[Tensor, int, dict[str, int], Pair]:
        """Uses them."""
        total = 0
        for i, n in enumerate(self.numbers):
            total += n * i if n % 2 == 0 else n
        found = {w: len(w) for w in self.words}
        if self.colour == Colour.RED:
            total = -total
        pair = Pair(torch.where(self.mask, x, self.tensors[0]), self.by_name["x"][0])
        maybe = self.maybe
        if maybe is not None:
            x = x + maybe
        return x * total, self.counter.add(total), found, pair


class Flow(nn.Module):
    """Loops, conditions, errors and text."""

    limit: int | str

    def __init__(self) -> None:
        super().__init__()
        self.step = Double()
        self.limit = 4

    def forward(self, x: Tensor, name: str = "n") -> tuple[Tensor, str]:
        """A loop that ends early."""
        k = 0
        while k < 6:
            k += 1
            if k == 2:
                continue
            x = self.step(x) / k
            limit = self.limit
            if isinstance(limit, int) and k >= limit:
                break
        if k > 100:
            raise ValueError(f"too many: {k}")
        futures = [torch.jit.fork(self.step, x + i) for i in range(2)]
        for f in futures:
            x = x + torch.jit.wait(f)
        return x, f"{name}-{k}" + name.upper()


class Kept(nn.Module):
    """State methods."""

    def __init__(self) -> None:
        super().__init__()
        self.a, self.k = torch.ones(2), 3

    @torch.jit.export
    def __getstate__(self) -> tuple[Tensor, int, bool]:
        return (self.a, self.k, self.training)

    @torch.jit.export
    def __setstate__(self, state: tuple[Tensor, int, bool]) -> None:
        self.a, self.k, self.training = state[0], state[1], state[2]

    def forward(self, x: Tensor) -> Tensor:
        """Uses the state."""
        return x * self.a + self.k


class Holder(nn.Module):
    """A module of an interface."""

    step: Step

    def __init__(self) -> None:
        super().__init__()
        self.step = Double()

    def forward(self, x: Tensor) -> Tensor:
        """One step."""
        return self.step.forward(x)


def _before(self: nn.Module, args: tuple[Tensor]) -> tuple[Tensor]:
    return (args[0] + 1,)


def _constant(x: Tensor) -> Tensor:
    return (x + torch.tensor([1.0, 2.0])).half().float() + torch.arange(2)


@functools.cache
def models() -> dict[str, tuple[torch.jit.ScriptModule, tuple[Tensor, ...]]]:
    """A module and arguments for each name."""
    hooked = Double()
    hooked.register_forward_pre_hook(_before)
    layers = nn.Sequential(nn.Conv1d(2, 3, 2), nn.BatchNorm1d(3), nn.ReLU(), nn.Flatten()).eval()
    vector, image = torch.ones(2), torch.ones(1, 2, 4)
    return {
        "values": (torch.jit.script(Values()), (vector,)),
        "flow": (torch.jit.script(Flow()), (vector,)),
        "kept": (torch.jit.script(Kept()), (vector,)),
        "holder": (torch.jit.script(Holder()), (vector,)),
        "hooked": (torch.jit.script(hooked), (vector,)),
        "layers": (torch.jit.script(layers), (image,)),
        "traced": (torch.jit.trace(layers, (image,)), (image,)),
        "constant": (torch.jit.trace(_constant, (vector,)), (vector,)),
        "recurrent": (torch.jit.script(nn.LSTM(2, 2).eval()), (image.mT.contiguous(),)),
        "frozen": (torch.jit.freeze(torch.jit.script(layers)), (image,)),
    }
