"""Time every operator record beside another torch, in turns, and print the ratios, worst first.

Usage: records.py --peer PYTHON [--filter TEXT] [--rounds N] [--dtypes float32,complex64,int64]

The samples are those of the thread test: the record's own, enlarged until the largest tensor has
about a quarter of a million elements. Each runs in two processes, ours and the peer's, by the
operator's public name with the same arguments; one thread, processor time, the best of the rounds.
What comes out below LEAST is timed again later in the run, as one moment of the machine may lie.
A ratio above 1 means this torch is faster. A ratio below LEAST needs its cause in CAUSES; the
program ends with 1 when one is missing, and names causes that nothing needs any more.
"""

from __future__ import annotations

import argparse
import dataclasses
import math
import os
import pathlib
import pickle
import struct
import subprocess
import sys

from record_causes import CAUSES

import torch
from torch.testing._internal.opinfo import records
from torch.testing._internal.opinfo.core import OpInfo, SampleInput, resolve

LEAST = 0.8
AGAIN = 3
WORKER = pathlib.Path(__file__).resolve().parent / "records_worker.py"


class NotPortable(Exception):
    """An argument that cannot be sent to another process."""


def encode(value: object) -> object:
    """An argument as plain Python values, tensors as dtype, shape and bytes."""
    if isinstance(value, torch.Tensor):
        if value.layout is not torch.strided or value.is_nested:
            raise NotPortable("a sparse or nested tensor")
        plain = value.detach().resolve_conj().resolve_neg().contiguous()
        data = plain.reshape(-1).view(torch.uint8).numpy().tobytes() if plain.numel() else b""
        return ("tensor", str(plain.dtype)[6:], list(plain.shape), data)
    if isinstance(value, (torch.dtype, torch.layout, torch.memory_format)):
        return ("torch", str(value)[6:])
    if isinstance(value, tuple):
        return ("tuple", *map(encode, value))
    if isinstance(value, list):
        return [encode(v) for v in value]
    if isinstance(value, dict):
        return {k: encode(v) for k, v in value.items()}
    if isinstance(value, slice):
        return ("slice", value.start, value.stop, value.step)
    if value is None or isinstance(value, (bool, int, float, complex, str)):
        return value
    raise NotPortable(f"an argument of type {type(value).__name__}")


def request(record: OpInfo, sample: SampleInput, rounds: int) -> dict:
    args = [] if sample.input is None and not sample.args else [sample.input, *sample.args]
    return {
        "name": record.name,
        "args": [encode(a) for a in args],
        "kwargs": encode(sample.kwargs),
        "rounds": rounds,
    }


class Worker:
    """One interpreter with its torch."""

    def __init__(self, python: str, environment: dict[str, str]) -> None:
        pipe = subprocess.PIPE
        # Not from the folder we stand in, where every interpreter would find our package.
        command = [str(pathlib.Path(python).absolute()), "-W", "ignore", str(WORKER)]
        self.process = subprocess.Popen(command, stdin=pipe, stdout=pipe, cwd="/", env=environment)

    def ask(self, message: dict) -> dict:
        assert self.process.stdin and self.process.stdout
        data = pickle.dumps(message)
        self.process.stdin.write(struct.pack("<q", len(data)) + data)
        self.process.stdin.flush()
        header = self.process.stdout.read(8)
        if not header:
            raise SystemExit(f"{self.process.args[0]} ended while it ran {message['name']}")
        return pickle.loads(self.process.stdout.read(struct.unpack("<q", header)[0]))


@dataclasses.dataclass
class Row:
    """One sample on both sides, or why it was not compared."""

    record: str
    sample: str
    ours: float = math.nan
    peer: float = math.nan
    reason: str = ""
    request: dict = dataclasses.field(default_factory=dict, repr=False)

    def measure(self, ours: Worker, peer: Worker) -> None:
        """Times both sides; the least of all times counts."""
        mine, theirs = ours.ask(self.request), peer.ask(self.request)
        if "error" in mine or "error" in theirs:
            self.reason = mine.get("error") or "peer: " + theirs["error"]
            return
        self.ours = min(mine["seconds"], self.ours) if self.ours == self.ours else mine["seconds"]
        self.peer = (
            min(theirs["seconds"], self.peer) if self.peer == self.peer else theirs["seconds"]
        )

    @property
    def ratio(self) -> float:
        return self.peer / self.ours


def compare(record: OpInfo, dtype: torch.dtype, ours: Worker, peer: Worker, rounds: int) -> list:
    """The rows of one record in one dtype."""
    if record.op is not resolve(record.name):
        return [Row(record.full_name, "", reason="the record calls a function of its own")]
    rows = []
    for sample in record.large_inputs("cpu", dtype):
        row = Row(record.full_name, sample.summary())
        rows.append(row)
        try:
            row.request = request(record, sample, rounds)
        except NotPortable as error:
            row.reason = f"not sent: {error}"
            continue
        row.measure(ours, peer)
        if row.reason or row.ratio >= LEAST:
            row.request = {}
    return rows


def show(rows: list[Row]) -> list[str]:
    """Prints the table and returns the records that are slow without a cause."""
    measured = sorted((r for r in rows if not r.reason), key=lambda r: r.ratio)
    unexplained = []
    for row in measured:
        cause = CAUSES.get(row.record, "") if row.ratio < LEAST else ""
        if row.ratio < LEAST and not cause:
            unexplained.append(row.record)
        times = f"{row.ours * 1e6:10.1f} us {row.peer * 1e6:10.1f} us"
        print(f"{row.ratio:7.2f} {times}  {row.record}({row.sample[:90]})  {cause}")
    for row in rows:
        if row.reason:
            print(f"      -  {row.record}({row.sample[:90]})  {row.reason}")
    mean = math.exp(sum(math.log(r.ratio) for r in measured) / max(1, len(measured)))
    slow = {r.record for r in measured if r.ratio < LEAST}
    print(f"{len(measured)} samples, geometric mean {mean:.2f}, {len(slow)} records below {LEAST}")
    for name in CAUSES:
        if name not in slow and any(r.record == name and not r.reason for r in rows):
            print(f"cause no longer needed: {name}")
    return sorted(set(unexplained))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--peer", required=True, help="a Python interpreter that has PyTorch")
    parser.add_argument("--filter", default="", help="only records whose name contains this")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--dtypes", default="float32,complex64,int64")
    args = parser.parse_args()
    plain = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    ours, peer = Worker(sys.executable, dict(os.environ)), Worker(args.peer, plain)
    rows: list[Row] = []
    for record in records():
        if args.filter not in record.full_name:
            continue
        for dtype in [getattr(torch, name) for name in args.dtypes.split(",")]:
            if dtype in record.dtypes:
                rows += compare(record, dtype, ours, peer, args.rounds)
    # A slow sample may have met a busy moment: once more, when others have run in between.
    for _ in range(AGAIN):
        for row in rows:
            if row.request and not row.reason and row.ratio < LEAST:
                row.measure(ours, peer)
    unexplained = show(rows)
    if unexplained:
        print(f"below {LEAST} without a cause: {' '.join(unexplained)}")
    return 1 if unexplained else 0


if __name__ == "__main__":
    raise SystemExit(main())
