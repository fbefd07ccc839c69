"""What a compiled call costs besides its operators: a trivial function, a function that broke, and
guard trees of growing size. The same script runs on PyTorch.

    python benchmarks/dynamo_overhead.py
"""

from __future__ import annotations

import argparse
import timeit

import torch


def microseconds(fn: object, *args: object, number: int = 20000) -> float:
    """The best of five runs."""
    for _ in range(3):
        fn(*args)
    return min(timeit.repeat(lambda: fn(*args), number=number, repeat=5)) / number * 1e6


def trivial(x: torch.Tensor) -> torch.Tensor:
    """One operator."""
    return x + 1


class Constants:
    """An object with integer attributes, each of which gets a guard."""

    def __init__(self, count: int) -> None:
        self.names = [f"a{i}" for i in range(count)]
        for i, name in enumerate(self.names):
            setattr(self, name, i)


def guarded(count: int) -> tuple[object, Constants]:
    """A compiled function with about `count` guards."""
    text = " + ".join(f"c.a{i}" for i in range(count))
    space: dict[str, object] = {}
    exec(f"def f(x, c):\n    return x + ({text})\n", space)
    return torch.compile(space["f"], backend="eager"), Constants(count)


def main() -> None:
    """Prints a table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--guards", type=int, nargs="*", default=[10, 100, 1000])
    options = parser.parse_args()
    x = torch.ones(4)
    eager = microseconds(trivial, x)
    compiled = microseconds(torch.compile(trivial, backend="eager"), x)
    print(f"trivial function: eager {eager:.2f} us, compiled {compiled:.2f} us")
    for count in options.guards:
        fn, constants = guarded(count)
        spent = microseconds(fn, x, constants, number=2000)
        print(f"{count} guards on attributes: {spent - compiled:.2f} us more than the trivial one")


if __name__ == "__main__":
    main()
