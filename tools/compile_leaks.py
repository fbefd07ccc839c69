"""Compile, reset and compile again, many times: resident memory must stay flat, and nothing of the
program may be kept by what was compiled.

    python tools/compile_leaks.py --rounds 200 [--backend inductor]
"""

from __future__ import annotations

import argparse
import gc
import resource
import sys
import weakref

import torch


class Block(torch.nn.Module):
    """A layer with a branch, a buffer and a table."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.line = torch.nn.Linear(width, width)
        self.norm = torch.nn.LayerNorm(width)
        self.register_buffer("mean", torch.ones(width))
        self.table = {"scale": 2.0}

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """One layer."""
        y = self.norm(self.line(x)) * self.table["scale"] + self.mean
        return torch.relu(y) if self.training else y


def resident() -> float:
    """Megabytes of this process in memory now."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * resource.getpagesize() / 2**20


def broken(x: torch.Tensor, model: torch.nn.Module) -> torch.Tensor:
    """A function with a graph break and a closure."""
    kept = [x + 1]
    torch._dynamo.graph_break()
    return model(kept[0]) + (lambda y: y * x)(kept[0])


def one_round(backend: str) -> list[weakref.ref]:
    """Compiles, calls and drops a model and a function; weak references to what was used."""
    model = torch.nn.Sequential(Block(8), Block(8))
    compiled = torch.compile(model, backend=backend)
    function = torch.compile(broken, backend=backend)
    refs = [weakref.ref(model), weakref.ref(model[0].line.weight)]
    for rows in (2, 3, 5):
        x = torch.randn(rows, 8)
        compiled(x).sum().backward()
        function(x, model)
        refs.append(weakref.ref(x))
    torch._dynamo.reset()
    return refs


def main() -> int:
    """Prints growth per round, and what stayed alive."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=100)
    parser.add_argument("--backend", default="eager")
    options = parser.parse_args()
    alive = 0
    start = 0.0
    for i in range(options.rounds):
        refs = one_round(options.backend)
        gc.collect()
        alive += sum(ref() is not None for ref in refs)
        if i == options.rounds // 4:
            start = resident()
    graphs = 6 * (options.rounds - options.rounds // 4 - 1)
    grown = resident() - start
    print(f"{grown:.1f} MB more over {graphs} graphs, {alive} objects alive")
    return 1 if alive or grown > 8 else 0


if __name__ == "__main__":
    sys.exit(main())
