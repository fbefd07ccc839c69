"""Time this torch beside another one, in turns, and print the ratios.

Usage: compare.py --peer PYTHON [--filter TEXT] [--rounds N] [--threads N]. One worker process per
interpreter stays alive; every round times a case in both, one right after the other, so that a
busy machine slows both alike. The best round counts. A ratio above 1 means this torch is faster.
"""

from __future__ import annotations

import argparse
import json
import math
import pathlib
import subprocess
import sys
import time
import timeit

from cases import Case, cases

ROUND_SECONDS = 0.05


def serve() -> None:
    """The worker: one JSON request per line on stdin, one JSON answer per line on stdout."""
    import torch

    for line in sys.stdin:
        request = json.loads(line)
        if "threads" in request:
            torch.set_num_threads(request["threads"])
            print(json.dumps({"version": torch.__version__}), flush=True)
            continue
        try:
            timer = timeit.Timer(request["statement"], request["setup"], globals={"torch": torch})
            once = max(timer.timeit(1), 1e-7)
            count = max(1, min(100_000, int(ROUND_SECONDS / once)))
            answer = {"seconds": timer.timeit(count) / count}
        except Exception as error:
            answer = {"error": f"{type(error).__name__}: {error}".splitlines()[0]}
        print(json.dumps(answer), flush=True)


class Worker:
    """One interpreter with its torch."""

    def __init__(self, python: str, threads: int) -> None:
        command = [python, str(pathlib.Path(__file__).resolve()), "--worker"]
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True)
        self.version = self.ask({"threads": threads})["version"]

    def ask(self, request: dict) -> dict:
        assert self.process.stdin and self.process.stdout
        try:
            self.process.stdin.write(json.dumps(request) + "\n")
            self.process.stdin.flush()
            line = self.process.stdout.readline()
        except BrokenPipeError:
            line = ""
        if not line:
            raise SystemExit(f"bench: {self.process.args[0]} ended while it ran {request}")
        return json.loads(line)

    def time(self, case: Case) -> dict:
        return self.ask({"setup": case.setup, "statement": case.statement})


def import_seconds(python: str) -> float:
    """Warm `import torch` over a bare interpreter, best of three."""
    command = str(pathlib.Path(python).absolute())

    def best(code: str) -> float:
        taken = []
        for _ in range(3):
            start = time.perf_counter()
            # Not from the folder we stand in, where every interpreter would find our package.
            subprocess.run([command, "-c", code], check=True, cwd="/")
            taken.append(time.perf_counter() - start)
        return min(taken)

    return best("import torch") - best("pass")


def import_megabytes(python: str) -> float:
    """Resident memory after `import torch`."""
    code = "import torch; print(*[x for x in open('/proc/self/status') if 'VmRSS' in x])"
    command = [str(pathlib.Path(python).absolute()), "-c", code]
    done = subprocess.run(command, check=True, cwd="/", capture_output=True, text=True)
    return int(done.stdout.split()[1]) / 1024


def best_of(first: Worker, second: Worker, case: Case, rounds: int) -> tuple[dict, dict]:
    results = [(first.time(case), second.time(case)) for _ in range(rounds)]
    mine, theirs = zip(*results, strict=True)
    return min(mine, key=seconds_of), min(theirs, key=seconds_of)


def seconds_of(answer: dict) -> float:
    return answer.get("seconds", math.inf)


def show(answer: dict) -> str:
    return f"{answer['seconds'] * 1e6:11.2f} us" if "seconds" in answer else f"{'-':>14}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--peer", help="a Python interpreter that has PyTorch")
    parser.add_argument("--filter", default="", help="only cases whose name contains this")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.worker:
        serve()
        return 0
    if not args.peer:
        parser.error("--peer is needed")

    ours, peer = Worker(sys.executable, args.threads), Worker(args.peer, args.threads)
    print(f"{'':44} {ours.version:>14} {peer.version:>14}  ratio")
    ratios: dict[str, list[float]] = {}
    for case in cases():
        if args.filter not in case.name:
            continue
        mine, theirs = best_of(ours, peer, case, args.rounds)
        line = f"{case.name:44} {show(mine)} {show(theirs)}"
        if "error" in mine or "error" in theirs:
            print(f"{line}  {mine.get('error') or 'peer: ' + theirs['error']}")
            continue
        ratio = theirs["seconds"] / mine["seconds"]
        ratios.setdefault(case.group, []).append(ratio)
        print(f"{line} {ratio:6.2f}")
    for group, values in ratios.items():
        mean = math.exp(sum(map(math.log, values)) / len(values))
        print(f"{group}: geometric mean {mean:.2f}, least {min(values):.2f}, {len(values)} cases")
    mine_s, peer_s = import_seconds(sys.executable), import_seconds(args.peer)
    print(f"import torch: {mine_s * 1e3:.0f} ms, peer {peer_s * 1e3:.0f} ms")
    mine_mb, peer_mb = import_megabytes(sys.executable), import_megabytes(args.peer)
    print(f"memory after it: {mine_mb:.0f} MB, peer {peer_mb:.0f} MB")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
