"""C++ beside PyTorch's C++ library: compiles cpp_overhead.cpp against this package and against the
one of another Python, runs the two programs in turns and prints the ratio of each case.

    python benchmarks/cpp_compare.py --peer PYTHON [--rounds 3] [--seconds 0.2] [--headers]

With --headers it also compares the compiler's user time for `#include <torch/torch.h>` alone."""

from __future__ import annotations

import argparse
import math
import os
import pathlib
import resource
import statistics
import subprocess
import sys
import tempfile

SOURCE = pathlib.Path(__file__).with_name("cpp_overhead.cpp")
FOLDER_OF_TORCH = "import torch, os; print(os.path.dirname(torch.__file__))"
# Of a case whose cost is the library's overhead and not arithmetic.
LARGE = {"mlp_step", "gpt_block_small", "gpt_block"}


def torch_folder(python: str) -> pathlib.Path:
    done = subprocess.run(
        [python, "-c", FOLDER_OF_TORCH], capture_output=True, text=True, check=True, cwd="/"
    )
    return pathlib.Path(done.stdout.strip())


def compiler_flags(folder: pathlib.Path) -> list[str]:
    include = folder / "include"
    paths = [include, include / "torch" / "csrc" / "api" / "include"]
    # The newest versions of the peer need C++20.
    return ["-std=c++20", "-w", *(f"-I{path}" for path in paths)]


def build(folder: pathlib.Path, target: str) -> None:
    libraries = [path.name for path in (folder / "lib").glob("lib*.so")]
    wanted = ["torch_nn", "torch", "torch_cpu", "c10"]
    links = [f"-l{name}" for name in wanted if f"lib{name}.so" in libraries]
    where = [f"-L{folder / 'lib'}", f"-Wl,-rpath,{folder / 'lib'}", "-Wl,--no-as-needed"]
    flags = ["-O2", *compiler_flags(folder), str(SOURCE), "-o", target, *where, *links]
    subprocess.run(["g++", *flags], check=True)


def times_of(program: str, seconds: float) -> dict[str, float]:
    done = subprocess.run([program, str(seconds)], capture_output=True, text=True, check=True)
    return {name: float(ns) for name, ns in (line.split() for line in done.stdout.splitlines())}


def header_seconds(folder: pathlib.Path) -> float:
    """User time of parsing torch/torch.h."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    command = ["g++", "-O0", "-fsyntax-only", *compiler_flags(folder), "-x", "c++", "-"]
    subprocess.run(command, input="#include <torch/torch.h>\n", text=True, check=True)
    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before


def compare_headers(ours: pathlib.Path, peer: pathlib.Path, rounds: int) -> None:
    pairs = [(header_seconds(ours), header_seconds(peer)) for _ in range(rounds)]
    mine, theirs = (statistics.median(side) for side in zip(*pairs, strict=True))
    print(f"torch/torch.h: {mine:.2f} s, peer {theirs:.2f} s, {mine / theirs:.3f} of the peer's")


def compare_speed(ours: pathlib.Path, peer: pathlib.Path, rounds: int, seconds: float) -> None:
    with tempfile.TemporaryDirectory() as folder:
        programs = [os.path.join(folder, name) for name in ("ours", "peer")]
        for torch, program in zip((ours, peer), programs, strict=True):
            build(torch, program)
        runs = [[times_of(program, seconds) for program in programs] for _ in range(rounds)]
    ratios: dict[str, float] = {}
    print(f"{'case':18}{'ours ns':>14}{'peer ns':>14}{'ratio':>8}")
    for name in runs[0][0]:
        mine, theirs = (statistics.median(run[side][name] for run in runs) for side in (0, 1))
        ratios[name] = theirs / mine
        print(f"{name:18}{mine:14.0f}{theirs:14.0f}{ratios[name]:8.2f}")
    small = [ratio for name, ratio in ratios.items() if name not in LARGE]
    mean = math.exp(statistics.fmean(map(math.log, small)))
    print(f"small operators: geometric mean {mean:.2f}x, least {min(small):.2f}x")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--peer", required=True, help="a Python that imports PyTorch")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=0.2)
    parser.add_argument("--headers", action="store_true")
    options = parser.parse_args()
    ours, peer = torch_folder(sys.executable), torch_folder(options.peer)
    if options.headers:
        compare_headers(ours, peer, options.rounds)
    compare_speed(ours, peer, options.rounds, options.seconds)


if __name__ == "__main__":
    main()
