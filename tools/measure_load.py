"""How much slower parallel work gets when other processes keep the cores busy: the median time of a
parallel addition (65,536 and 4 M elements) and of a 512 x 512 product, alone and beside busy
processes. A pool that waits for threads which the system has not scheduled shows here as a factor
of ten and more; the goal is 3.

    python tools/measure_load.py [--busy 2] [--seconds 1.0]
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import time


def cases(torch):
    small, large, matrix = torch.rand(65_536), torch.rand(4_000_000), torch.rand(512, 512)
    return {
        "add 65,536": lambda: torch.add(small, small),
        "add 4 M": lambda: torch.add(large, large),
        "512 x 512 product": lambda: torch.mm(matrix, matrix),
    }


def median_us(call, seconds: float) -> float:
    """Median time of a call; the calls are grouped so that the clock does not matter."""
    call()
    times = []
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        start = time.perf_counter()
        for _ in range(5):
            call()
        times.append((time.perf_counter() - start) / 5)
    return statistics.median(times) * 1e6


def measure(torch, seconds):
    return {name: median_us(call, seconds) for name, call in cases(torch).items()}


def beside(count: int, action):
    """Runs `action` while `count` processes spin."""
    busy = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(count)]
    try:
        time.sleep(0.3)
        return action()
    finally:
        for process in busy:
            process.kill()
            process.wait()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--busy", type=int, default=2, help="busy processes beside the measurement")
    parser.add_argument("--seconds", type=float, default=1.0, help="per case")
    parser.add_argument("--limit", type=float, default=0, help="fail above this ratio")
    options = parser.parse_args()
    import torch

    alone = measure(torch, options.seconds)
    loaded = beside(options.busy, lambda: measure(torch, options.seconds))
    print(f"{torch.get_num_threads()} threads, {options.busy} busy processes")
    worst = 0.0
    for name, time_alone in alone.items():
        ratio = loaded[name] / time_alone
        worst = max(worst, ratio)
        times = f"alone {time_alone:10.1f} us   loaded {loaded[name]:10.1f} us"
        print(f"{name:20s} {times}   {ratio:5.2f}x")
    return 1 if options.limit and worst > options.limit else 0


if __name__ == "__main__":
    sys.exit(main())
