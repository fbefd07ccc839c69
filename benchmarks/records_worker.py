"""One side of benchmarks/records.py: runs operators by their public names and times them.

Started with either interpreter, and free of this tree: it imports torch and nothing else of ours.
Requests are pickled dictionaries of plain Python values on standard input, each after its length;
tensors travel as bytes. Time is that of the processor, so that a busy machine does not count."""

from __future__ import annotations

import pickle
import struct
import sys
import time
from collections.abc import Callable

import torch

ROUND_SECONDS = 0.004


def resolve(name: str) -> Callable[..., object]:
    """torch.<name>, or the method of Tensor of that name."""
    value: object = torch
    for part in name.split("."):
        value = getattr(value, part, None)
        if value is None:
            return getattr(torch.Tensor, name)
    assert callable(value)
    return value


def decode(value: object) -> object:
    """What records.encode made of an argument."""
    if isinstance(value, list):
        return [decode(v) for v in value]
    if isinstance(value, dict):
        return {k: decode(v) for k, v in value.items()}
    if not isinstance(value, tuple):
        return value
    kind, *rest = value
    if kind == "tuple":
        return tuple(decode(v) for v in rest)
    if kind == "torch":
        return getattr(torch, rest[0])
    if kind == "slice":
        return slice(*rest)
    dtype, shape, data = rest
    if not data:
        return torch.empty(shape, dtype=getattr(torch, dtype))
    flat = torch.frombuffer(bytearray(data), dtype=torch.uint8)
    return flat.view(getattr(torch, dtype)).reshape(shape)


def seconds(function: Callable[[], object], rounds: int) -> float:
    """Processor seconds of one call, the best of some rounds."""
    function()
    start = time.process_time()
    function()
    once = max(time.process_time() - start, 1e-7)
    count = max(1, min(1000, int(ROUND_SECONDS / once)))
    best = float("inf")
    for _ in range(rounds if once < 0.2 else 1):
        start = time.process_time()
        for _ in range(count):
            function()
        best = min(best, (time.process_time() - start) / count)
    return best


def answer(request: dict) -> dict:
    """The time of one call, or why there is none."""
    try:
        function = resolve(request["name"])
        args, kwargs = decode(request["args"]), decode(request["kwargs"])
        assert isinstance(args, list) and isinstance(kwargs, dict)
        torch.manual_seed(0)
        return {"seconds": seconds(lambda: function(*args, **kwargs), request["rounds"])}
    except Exception as error:
        text = str(error).splitlines()
        return {"error": f"{type(error).__name__}: {text[0] if text else ''}"}


def main() -> None:
    source, sink = sys.stdin.buffer, sys.stdout.buffer
    torch.set_num_threads(1)
    while header := source.read(8):
        request = pickle.loads(source.read(struct.unpack("<q", header)[0]))
        reply = pickle.dumps(answer(request))
        sink.write(struct.pack("<q", len(reply)) + reply)
        sink.flush()


if __name__ == "__main__":
    main()
