"""Times whole training steps and launch-bound work on CUDA, this torch and another one in turns.

    python tools/gpu/bench_models.py [--peer PYTHON] [--rounds 5] [--filter TEXT] [--small]

One worker per interpreter stays alive. Each round times a case in one worker and right after it in
the other, between two events of the device with the host's gaps inside; the median of the rounds
counts, and the spread of the ratio is printed beside it. --small shrinks the problems to what the
emulator of test/cuda_emulator can run, to check the script itself.
"""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
ROUND_SECONDS = 0.4


# ---- cases ---------------------------------------------------------------------------------------
def gpt_step(torch, small, layers, width, heads, vocabulary, batch, length):
    """A training step of the example's GPT: bf16 autocast, clipping, fused AdamW."""
    from model import GPT, Config

    if small:
        layers, width, heads, vocabulary, batch, length = 1, 16, 2, 32, 2, 8
    torch.manual_seed(0)
    config = Config(vocabulary, length, layers, heads, width, dropout=0.0)
    model = GPT(config).to("cuda")
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
    tokens = torch.randint(0, vocabulary, (batch, length), device="cuda")
    targets = torch.randint(0, vocabulary, (batch, length), device="cuda")

    def step() -> None:
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast("cuda", dtype=torch.bfloat16):
            loss = model(tokens, targets)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()

    return step


def gpt_token(torch, small):
    from model import GPT, Config

    sizes = (32, 8, 1, 2, 16) if small else (50304, 1024, 12, 12, 768)
    model = GPT(Config(*sizes, dropout=0.0)).to("cuda").bfloat16().eval()
    tokens = torch.zeros((1, 1), dtype=torch.int64, device="cuda")

    def forward() -> None:
        with torch.no_grad():
            model(tokens)

    return forward


def mlp_step(torch, small):
    width, batch = (8, 4) if small else (1024, 256)
    nn = torch.nn
    layers = [nn.Linear(width, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU()]
    model = nn.Sequential(*layers, nn.Linear(width, 10)).to("cuda")
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)
    x = torch.randn(batch, width, device="cuda")
    y = torch.randint(0, 10, (batch,), device="cuda")

    def step() -> None:
        optimizer.zero_grad(set_to_none=True)
        nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()

    return step


def adds(torch, small):
    a = torch.ones(1, device="cuda")
    count = 4 if small else 200

    def run() -> None:
        for _ in range(count):
            a.add_(1)

    return run


def sums(torch, small):
    a, b = torch.ones(1, device="cuda"), torch.ones(1, device="cuda")
    count = 4 if small else 200

    def run() -> None:
        for _ in range(count):
            a + b

    return run


def adamw(torch, small):
    count, size = (3, 64) if small else (100, 65536)
    params = [torch.randn(size, device="cuda", requires_grad=True) for _ in range(count)]
    for p in params:
        p.grad = torch.randn_like(p)
    return torch.optim.AdamW(params, lr=1e-3).step


def rows(call):
    def build(torch, small):
        x = torch.randn(*((4, 32) if small else (16384, 4096)), device="cuda")
        return call(torch, x)

    return build


def cross_entropy(torch, small):
    rows, classes = (4, 32) if small else (4096, 50304)
    x = torch.randn(rows, classes, device="cuda", requires_grad=True)
    y = torch.randint(0, classes, (rows,), device="cuda")

    def run() -> None:
        torch.autograd.grad(torch.nn.functional.cross_entropy(x, y), x)

    return run


def large_add(torch, small):
    a = torch.randn(64 if small else 1 << 26, device="cuda")
    b = torch.randn_like(a)
    return lambda: a + b


CASES = {
    "200 additions in place of one element": adds,
    "200 additions of one element": sums,
    "MLP 3 x 1024, training step, b256": mlp_step,
    "GPT, 6 layers of 384, training step, b4 t256, bf16": lambda t, s: gpt_step(
        t, s, 6, 384, 6, 256, 4, 256
    ),
    "GPT-2 124M, training step, b16 t1024, bf16": lambda t, s: gpt_step(
        t, s, 12, 768, 12, 50304, 16, 1024
    ),
    "GPT-2 124M, one token, no gradients": gpt_token,
    "AdamW, 100 parameters of 64 Ki": adamw,
    "softmax of 16384 x 4096": rows(lambda torch, x: lambda: torch.softmax(x, 1)),
    "layer norm of 16384 x 4096": rows(
        lambda torch, x: lambda: torch.nn.functional.layer_norm(x, x.shape[1:])
    ),
    "cross entropy, forward and backward, 4096 x 50304": cross_entropy,
    "a + b, 64 Mi float32": large_add,
}


# ---- the worker ----------------------------------------------------------------------------------
def median_seconds(torch, call):
    """Median over samples of one call, for about ROUND_SECONDS."""
    start = time.perf_counter()
    call()
    torch.cuda.synchronize()
    once = max(time.perf_counter() - start, 1e-6)
    inner = max(1, int(0.02 / once))
    samples, begun = [], time.perf_counter()
    while len(samples) < 3 or (time.perf_counter() - begun < ROUND_SECONDS and len(samples) < 100):
        first = torch.cuda.Event(enable_timing=True)
        last = torch.cuda.Event(enable_timing=True)
        first.record()
        for _ in range(inner):
            call()
        last.record()
        torch.cuda.synchronize()
        samples.append(first.elapsed_time(last) / 1e3 / inner)
        if time.perf_counter() - begun > 5 * ROUND_SECONDS:
            break
    return statistics.median(samples)


def serve() -> None:
    """One JSON request per line on stdin, one JSON answer per line on stdout."""
    sys.path.insert(0, str(ROOT / "examples" / "gpt"))
    import torch

    name, call = None, None
    for line in sys.stdin:
        request = json.loads(line)
        if "case" not in request:
            answer = {"version": torch.__version__, "device": torch.cuda.get_device_name()}
        else:
            try:
                if request["case"] != name:
                    call = None
                    torch.cuda.empty_cache()
                    name, call = request["case"], CASES[request["case"]](torch, request["small"])
                    for _ in range(3):
                        call()
                answer = {"seconds": median_seconds(torch, call)}
            except Exception as error:
                answer = {"error": f"{type(error).__name__}: {error}".splitlines()[0]}
        print(json.dumps(answer), flush=True)


class Worker:
    def __init__(self, python, ours) -> None:
        environment = dict(os.environ)
        if ours:
            paths = [str(ROOT), environment.get("PYTHONPATH", "")]
            environment["PYTHONPATH"] = os.pathsep.join(p for p in paths if p)
        else:
            environment.pop("PYTHONPATH", None)
        # Not from the folder we stand in, where every interpreter would find our package.
        self.process = subprocess.Popen(
            [python, str(pathlib.Path(__file__).resolve()), "--worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd="/",
            env=environment,
        )
        self.about = self.ask({})

    def ask(self, request):
        try:
            self.process.stdin.write(json.dumps(request) + "\n")
            self.process.stdin.flush()
            line = self.process.stdout.readline()
        except BrokenPipeError:
            line = ""
        if not line:
            sys.exit(f"bench_models: {self.process.args[0]} ended while it ran {request}")
        return json.loads(line)


def report(name, answers) -> bool:
    """One line: our median, the peer's, and the ratio with its extremes over the rounds."""
    faults = [a["error"] for round_ in answers for a in round_ if "error" in a]
    if faults:
        print(f"{name:52} {faults[0]}", flush=True)
        return False
    columns = zip(*answers, strict=True)
    medians = [statistics.median(a["seconds"] for a in column) for column in columns]
    text = f"{name:52} " + " ".join(f"{m * 1e6:12.1f}" for m in medians)
    if len(medians) > 1:
        ratios = sorted(b["seconds"] / a["seconds"] for a, b in answers)
        text += f" {statistics.median(ratios):7.2f} ({ratios[0]:.2f} to {ratios[-1]:.2f})"
    print(text, flush=True)
    return True


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--peer", help="interpreter that has PyTorch")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--filter", default="", help="only cases whose name contains this")
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        serve()
        return 0
    workers = [Worker(sys.executable, True)]
    if options.peer:
        workers.append(Worker(options.peer, False))
    print("# " + ", ".join(f"{w.about['version']} on {w.about['device']}" for w in workers))
    heads = ["ours us", "peer us"][: len(workers)]
    print(f"{'':52} " + " ".join(f"{h:>12}" for h in heads) + "   peer/ours, median (spread)")
    passed = True
    for name in CASES:
        if options.filter not in name:
            continue
        request = {"case": name, "small": options.small}
        answers = [[w.ask(request) for w in workers] for _ in range(options.rounds)]
        passed &= report(name, answers)
    return int(not passed)


if __name__ == "__main__":
    sys.exit(main())
