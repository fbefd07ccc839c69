"""Runs the op records of torch/testing/_internal/opinfo with every tensor moved to CUDA.

    python tools/gpu/records.py [--jobs 16] [--thin N] [--op REGEX] [--family F] [--out FILE]

A record's samples run on the device for each dtype the record claims; values are held against the
record's double precision reference at its tolerance, first-order gradients against those of the
CPU for the same cotangents. An operator none of whose calls has a kernel there counts as absent, a
call that is refused beside others that run as refused. Records are dealt to processes; one that
dies, or whose device is left in error, is replaced and the record counts as a crash. The exit
status says whether the share of matching calls reached --threshold.

--thin N takes N samples of one dtype of each kind: with --under 'compute-sanitizer ...', which is
put before each worker's command, that is the set the memory checker runs.
"""

import argparse
import collections
import concurrent.futures
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys
import time
import warnings

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "test/support"), str(ROOT / "test/ops")]

PASSED, FAILED, REFUSED, CRASHED = "passed", "failed", "refused", "crashed"
# Families whose samples cannot be moved, with the reason; --family names them all the same.
OUTSIDE = {"sparse": "their tensors are made inside the call, and no layout but strided is on CUDA"}
# Positional arguments, the input being the first, that stay on the CPU by definition.
HOST_ARGUMENTS = {"_pack_padded_sequence": (1,)}
LOST_DEVICE = 75  # exit status of a worker whose device no longer responds


def on_device(record, sample):
    """The sample with its tensors, and the device it names, on CUDA."""
    stays = {
        id(t)
        for i in HOST_ARGUMENTS.get(record.name, ())
        for t in flat_tensors([sample.input, *sample.args][i])
    }

    def move(t):
        if id(t) in stays or t.device.type != "cpu" or t.layout is not torch.strided:
            return t
        return t.detach().to("cuda").requires_grad_(t.requires_grad)

    moved = sample.transform(move)
    if "device" in moved.kwargs:
        moved.kwargs["device"] = torch.device("cuda")
    return moved


def returned(value):
    """A result with its tensors on the CPU, named tuples included."""
    if isinstance(value, torch.Tensor):
        return value.detach().cpu()
    if isinstance(value, (list, tuple)):
        return type(value)([returned(v) for v in value])
    return value


def check_value(record, sample) -> None:
    """The result on the device against the record's reference."""
    kept = clone(sample)
    torch.manual_seed(0)
    result = returned(record.apply(on_device(record, clone(sample))))
    if record.check:
        record.check(kept, result)
    else:
        compare(record, result, reference(record, kept))


def gradients(record, sample):
    """Gradients of a weighted sum of the results at the inputs that require them."""
    inputs = [t for t in sample.tensors() if t.requires_grad]
    torch.manual_seed(0)
    op = record.grad_op or record.op
    results = flat_tensors(op(sample.input, *sample.args, **sample.kwargs))[: record.grad_outputs]
    results = [t for t in results if t.requires_grad]
    weights = [torch.linspace(0.5, 1.5, max(t.numel(), 1))[: t.numel()] for t in results]
    weights = [w.reshape(t.shape).to(t) for w, t in zip(weights, results, strict=True)]
    if not results:
        return []
    return torch.autograd.grad(results, inputs, weights, allow_unused=True)


def check_gradient(record, sample) -> None:
    expected = gradients(record, sample)
    found = gradients(record, on_device(record, sample))
    assert len(expected) == len(found), "other results require gradients than on the CPU"
    for want, got in zip(expected, found, strict=True):
        assert (want is None) == (got is None), "a gradient is missing on one device"
        if want is None:
            continue
        assert got.is_cuda, "the gradient is not on the device"
        rtol, atol = (10 * t for t in record.tolerance(want.dtype))
        want, got = to_numpy(want), to_numpy(got)
        largest = np.nanmax(np.abs(want), initial=0.0, where=np.isfinite(want))
        np.testing.assert_allclose(got, want, rtol, atol + rtol * largest, equal_nan=True)


def attempt(check, record, sample) -> tuple[str, str]:
    """(outcome, what went wrong)"""
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            check(record, sample)
    except NotImplementedError as error:
        return REFUSED, str(error).split("\n")[0]
    except torch.AcceleratorError:
        raise
    except Exception as error:
        return FAILED, f"{type(error).__name__}: {' '.join(str(error).split())[:240]}"
    return PASSED, ""


def value_cases(record, thin):
    kinds = [d for d in record.dtypes if d in KINDS] or record.dtypes[:1]
    for dtype in kinds if thin else record.dtypes:
        if record.skip_reason("value", dtype):
            continue
        samples = record.sample_inputs("cpu", dtype)
        if thin:
            samples.sort(key=lambda s: not any(t.numel() > 1 for t in s.tensors()))
        for sample in samples[: thin or None]:
            yield "value", dtype, sample, check_value


def gradient_cases(record, thin):
    if record.is_random or record.full_name in NO_GRADIENT:
        return
    kinds = {torch.float64: torch.float32, torch.complex128: torch.complex64}
    for wide in record.grad_dtypes:
        narrow = [kinds[wide]] if kinds[wide] in record.dtypes and not thin else []
        for dtype in (wide, *narrow):
            for sample in record.gradient_inputs("cpu", dtype)[: thin or 4]:
                yield "gradient", dtype, sample, check_gradient


def run_record(record, thin) -> dict:
    """The record's outcomes: counts by outcome and a line for each call that did not match."""
    counts, lines, answered = collections.Counter(), [], False
    for cases in (value_cases, gradient_cases):
        for kind, dtype, sample, check in cases(record, thin):
            outcome, what = attempt(check, record, sample)
            counts[outcome] += 1
            answered |= outcome != REFUSED
            if outcome != PASSED:
                lines.append(f"{kind} {str(dtype)[6:]} ({sample.summary()[:120]}): {what}")
    return {"name": record.full_name, "family": record.family, "lines": lines, **counts}


def work(names, thin) -> None:
    """A worker: one line of JSON before and one after each record."""
    by_name = {r.full_name: r for r in records()}
    for name in names:
        print(json.dumps({"begin": name}), flush=True)
        try:
            done = run_record(by_name[name], thin)
            torch.cuda.synchronize()
        except torch.AcceleratorError as error:
            print(json.dumps({"lost": name, "why": str(error).split("\n")[0]}), flush=True)
            sys.stdout.flush()
            os._exit(LOST_DEVICE)
        print(json.dumps(done), flush=True)


def supervise(names, options):
    """Runs workers over the names until each has an outcome."""
    outcomes, left, status = [], list(names), 0
    while left:
        command = [*shlex.split(options.under), sys.executable, __file__, "--worker"]
        command += ["--thin", str(options.thin)]
        done = subprocess.run(
            command, input="\n".join(left), capture_output=True, text=True, check=False
        )
        begun, why = None, done.stderr.strip()[-600:]
        for line in done.stdout.splitlines():
            if not line.startswith("{"):
                continue
            entry = json.loads(line)
            if "begin" in entry:
                begun = entry["begin"]
            elif "lost" in entry:
                why = entry["why"]
            else:
                outcomes.append(entry)
                begun = None
        if options.under:
            print(*[t for t in done.stdout.splitlines() if t.startswith("=====")], sep="\n")
            status = status or done.returncode
        if begun is None and done.returncode and not options.under:
            sys.exit(f"a worker ended with {done.returncode}:\n{why}")
        if begun is None:
            break
        outcomes.append({"name": begun, "family": "", CRASHED: 1, "lines": [f"crash: {why}"]})
        left = left[left.index(begun) + 1 :]
    return outcomes, status


def table(outcomes, stream) -> float:
    """Prints counts by family and what did not match; returns the share that did."""
    absent = [o for o in outcomes if o.get(REFUSED) and not (o.get(PASSED) or o.get(FAILED))]
    there = [o for o in outcomes if o not in absent]
    for o in there:
        for line in o["lines"]:
            print(f"{o['name']} {line}", file=stream)
    heads = (PASSED, FAILED, REFUSED, CRASHED)
    print(f"{'':14} {'records':>8}", *(f"{h:>8}" for h in heads), f"{'absent':>8}")
    by_family = collections.defaultdict(list)
    for o in outcomes:
        by_family[o["family"] or "(crashed)"].append(o)
    for family, members in sorted(by_family.items()):
        here = [m for m in members if m not in absent]
        sums = [sum(m.get(h, 0) for m in here) for h in heads]
        numbers = (len(here), *sums, len(members) - len(here))
        print(f"{family:14}", *(f"{n:8}" for n in numbers))
    print("absent:", " ".join(sorted(o["name"] for o in absent)))
    worst = sorted(there, key=lambda o: -(o.get(FAILED, 0) + o.get(REFUSED, 0) + o.get(CRASHED, 0)))
    for o in worst[:40]:
        if o["lines"]:
            counts = ", ".join(f"{o[h]} {h}" for h in heads if o.get(h))
            print(f"  {o['name']}: {counts}; {o['lines'][0][:200]}")
    sums = {h: sum(o.get(h, 0) for o in there) for h in heads}
    total = sum(sums.values())
    share = sums[PASSED] / max(total, 1)
    print(
        f"op records on CUDA: {sums[PASSED]} of {total} calls match ({share:.2%}); "
        f"{len(there)} records, {sum(1 for o in there if not o['lines'])} without a difference, "
        f"{len(absent)} absent"
    )
    return share


def chosen(options) -> list[str]:
    names = [
        r.full_name
        for r in records()
        if re.search(options.op, r.full_name)
        and (r.family in options.family.split(",") if options.family else r.family not in OUTSIDE)
    ]
    return names[:: options.every]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--jobs", type=int, default=min(16, os.cpu_count()))
    parser.add_argument(
        "--thin", type=int, default=0, help="samples per operator and kind of dtype"
    )
    parser.add_argument("--every", type=int, default=1, help="take every n-th record")
    parser.add_argument("--op", default="", help="regular expression of names")
    parser.add_argument("--family", default="", help="families, by commas")
    parser.add_argument("--under", default="", help="command put before each worker")
    parser.add_argument("--threshold", type=float, default=0.97)
    parser.add_argument("--out", help="file for every call that did not match")
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        return work(sys.stdin.read().split(), options.thin)
    start = time.monotonic()
    names = chosen(options)
    shards = [names[i :: options.jobs] for i in range(options.jobs)]
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        parts = list(pool.map(lambda n: supervise(n, options), [s for s in shards if s]))
    outcomes = [o for part, _ in parts for o in part]
    with open(options.out or os.devnull, "w", encoding="utf-8") as stream:
        share = table(outcomes, stream)
    if not options.family:
        print("left out:", *(f"{name} ({why})" for name, why in OUTSIDE.items()))
    print(f"{len(names)} records in {time.monotonic() - start:.0f} s, {options.jobs} processes")
    return int(share < options.threshold or any(status for _, status in parts))


import numpy as np  # noqa: E402  after the path is set
from cuda_support import cuda  # noqa: E402, F401  makes CUDA, or the emulator's, available
from test_ops import clone, compare, reference  # noqa: E402
from test_ops_gradients import EXCEPTIONS  # noqa: E402

import torch  # noqa: E402
from torch.testing._internal.opinfo import records  # noqa: E402
from torch.testing._internal.opinfo.core import flat_tensors, to_numpy  # noqa: E402

KINDS = (torch.float32, torch.int64, torch.complex64, torch.bool)
NO_GRADIENT = {name for name, order in EXCEPTIONS if order == "first"}

if __name__ == "__main__":
    sys.exit(main())
