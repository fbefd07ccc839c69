"""Runs recorded operator calls with every tensor moved to CUDA.

    python tools/gpu/conformance.py FOLDER [options of FOLDER/run.py]
    python tools/gpu/conformance.py FOLDER --thin N [--shard I/COUNT]

FOLDER holds run.py, which runs the records of its data folder in one process per operator, and
codec.py, whose decode() makes the arguments and whose differs() compares a result. Only these two
are changed: arguments go to the device, results come back with their strides. Random operators
differ by nature, since the device has a generator of its own.

--thin runs N calls of each kind and operator in this one process, without a verdict on their
values: that is what a memory checker, which must not lose sight of forked children, can run.
"""

import argparse
import collections
import contextlib
import json
import pathlib
import re
import sys
import warnings


def moved(value, torch):
    """`value` with its tensors on the device."""
    if isinstance(value, torch.Tensor):
        there = value.detach().cuda()
        return there.requires_grad_() if value.requires_grad else there
    if isinstance(value, (list, tuple)):
        return type(value)(moved(v, torch) for v in value)
    if isinstance(value, dict):
        return {k: moved(v, torch) for k, v in value.items()}
    return value


def returned(value, torch):
    """`value` with its tensors back on the CPU, in the same order in memory."""
    if isinstance(value, torch.Tensor):
        plain = value.layout is torch.strided and not value.is_conj() and not value.is_neg()
        if not value.is_cuda or not plain:
            return value.detach().cpu()
        storage = value.untyped_storage().cpu()
        host = torch.empty(0, dtype=value.dtype)
        return host.set_(storage, value.storage_offset(), value.shape, value.stride())
    if isinstance(value, (list, tuple)):
        parts = [returned(v, torch) for v in value]
        return parts if isinstance(value, list) else tuple(parts)
    if isinstance(value, dict):
        return {k: returned(v, torch) for k, v in value.items()}
    return value


def run_thin(folder, run, codec, arguments) -> None:
    """N calls per operator and kind, here; counts how they ended."""
    import torch

    parser = argparse.ArgumentParser()
    parser.add_argument("--thin", type=int, required=True)
    parser.add_argument("--shard", default="0/1")
    options = parser.parse_args(arguments)
    index, count = map(int, options.shard.split("/"))
    warnings.simplefilter("ignore")
    ended = collections.Counter()
    for path in sorted(pathlib.Path(folder, "data").glob("*.npz"))[index::count]:
        arrays, samples = run.load(path)
        done = collections.Counter()
        for sample in samples:
            if done[sample["kind"]] >= options.thin:
                continue
            done[sample["kind"]] += 1
            used = set(re.findall(r'"i": (\d+)', json.dumps(sample)))
            try:
                why = run.run_sample(sample, {int(i): arrays[f"t{i}"] for i in used}, torch, codec)
                ended["same" if why is None else "different"] += 1
            except NotImplementedError:
                ended["not implemented"] += 1
            except Exception as error:
                ended[type(error).__name__] += 1
    with contextlib.suppress(IndexError):  # a call that must fail reported its index
        torch.cuda.synchronize()
    print(f"shard {options.shard}:", ", ".join(f"{n} {k}" for k, n in ended.items()))


def main() -> None:
    if len(sys.argv) < 2 or sys.argv[1] in ("-h", "--help"):
        sys.exit(__doc__)
    folder = sys.argv.pop(1)
    sys.path.insert(0, folder)
    import codec
    import run

    decode, differs = codec.decode, codec.differs
    codec.decode = lambda node, arrays, torch: moved(decode(node, arrays, torch), torch)
    codec.differs = lambda out, want, torch, *rest: differs(
        returned(out, torch), want, torch, *rest
    )
    if "--thin" in sys.argv:
        run_thin(folder, run, codec, sys.argv[1:])
    else:
        run.main()


if __name__ == "__main__":
    main()
