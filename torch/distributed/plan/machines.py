"""What machines can do: how fast they compute, and how fast bytes move between neighbours and
between nodes. The tables hold what is reached, not what is advertised; `measure` finds the numbers
of this machine."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass

__all__ = ["MACHINES", "Machine", "collective_seconds", "measure"]


@dataclass(frozen=True)
class Machine:
    """One kind of machine; per rank and second."""

    name: str
    flops: float  # of matrix products in bfloat16 or, on CPUs, float32
    memory: float  # bytes
    near: float  # bytes to ranks of the same node
    far: float  # bytes to ranks of other nodes
    per_node: int  # ranks
    latency: float = 1e-5  # seconds until a message has begun


# About half of the peak for products and four fifths of the links, as large jobs report.
MACHINES = {
    "a100": Machine("a100", 1.5e14, 80e9, 2.4e11, 2.0e10, 8),
    "h100": Machine("h100", 4.0e14, 80e9, 3.6e11, 4.0e10, 8),
    "h200": Machine("h200", 4.0e14, 141e9, 3.6e11, 4.0e10, 8),
}

# How often the data of one rank crosses a link in a ring of n.
_ROUNDS = {
    "all_reduce": lambda n: 2 * (n - 1) / n,
    "all_reduce_coalesced": lambda n: 2 * (n - 1) / n,
    "all_gather": lambda n: (n - 1) / n,
    "all_gather_into_tensor": lambda n: (n - 1) / n,
    "reduce_scatter": lambda n: (n - 1) / n,
    "reduce_scatter_tensor": lambda n: (n - 1) / n,
    "all_to_all_single": lambda n: (n - 1) / n,
}


def collective_seconds(
    machine: Machine, name: str, nbytes: int, ranks: int, is_near: bool, count: int = 1
) -> float:
    """How long `count` operations take that move `nbytes` together; `nbytes` is the size of the
    larger side."""
    if ranks <= 1:
        return 0.0
    rounds = _ROUNDS.get(name, lambda n: 1.0)(ranks)
    link = machine.near if is_near else machine.far
    return nbytes * rounds / link + count * machine.latency * math.ceil(math.log2(ranks))


def measure(size: int = 1024) -> Machine:
    """This machine's numbers: a matrix product, and copies from memory to memory, which is what
    ranks of one machine do with messages."""
    import torch

    a, b = torch.randn(size, size), torch.randn(size, size)
    data = torch.empty(1 << 24)

    def seconds(work) -> float:
        work()
        best = math.inf
        for _ in range(3):
            begin = time.perf_counter()
            work()
            best = min(best, time.perf_counter() - begin)
        return best

    flops = 2 * size**3 / seconds(lambda: torch.mm(a, b))
    copied = data.numel() * 4 / seconds(data.clone)
    return Machine("this machine", flops, 0.0, copied / 2, copied / 2, 1 << 20)
