"""python -m torch.distributed.plan --model gpt --params 70B --gpus 1024 --mesh 8x16x8"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

import torch
from torch.distributed.plan import MACHINES, GPTConfig, config_for, measure, plan

_UNITS = {"K": 1e3, "M": 1e6, "B": 1e9, "T": 1e12}


def _number(text: str) -> float:
    unit = _UNITS.get(text[-1:].upper())
    return float(text[:-1]) * unit if unit else float(text)


def _mesh(text: str) -> tuple[int, int, int]:
    sizes = tuple(int(part) for part in text.lower().split("x"))
    if len(sizes) > 3:
        raise ValueError("a mesh has at most three dimensions, pp x dp x tp")
    return (1,) * (3 - len(sizes)) + sizes


def main(args: Sequence[str] | None = None) -> int:
    """The command."""
    parser = argparse.ArgumentParser(prog="torch.distributed.plan", description=__doc__)
    parser.add_argument("--model", default="gpt", choices=["gpt"])
    parser.add_argument("--params", type=_number, default=7e9, help="such as 70B")
    parser.add_argument("--layers", type=int, help="with --hidden and --heads instead of --params")
    parser.add_argument("--hidden", type=int)
    parser.add_argument("--heads", type=int)
    parser.add_argument("--length", type=int, default=2048, help="tokens of a sequence")
    parser.add_argument("--vocabulary", type=int, default=32000)
    parser.add_argument("--gpus", type=int, help="checked against the mesh")
    parser.add_argument("--mesh", type=_mesh, default=(1, 8, 1), help="pp x dp x tp, 8x16x8")
    parser.add_argument("--batch", type=int, default=1, help="sequences of a microbatch")
    parser.add_argument("--microbatches", type=int, help="of a step; four times the stages")
    parser.add_argument("--dtype", default="bfloat16", choices=["bfloat16", "float16", "float32"])
    parser.add_argument("--recompute", action="store_true", help="activations twice, not kept")
    parser.add_argument("--machine", default="h100", choices=[*MACHINES, "this"])
    parser.add_argument("--width", type=int, default=96, help="columns of the picture")
    given = parser.parse_args(args)
    pp, dp, tp = given.mesh
    if given.gpus is not None and given.gpus != pp * dp * tp:
        parser.error(f"the mesh has {pp * dp * tp} ranks, --gpus says {given.gpus}")
    sizes = {"length": given.length, "vocabulary": given.vocabulary}
    if given.layers or given.hidden or given.heads:
        if not (given.layers and given.hidden and given.heads):
            parser.error("--layers, --hidden and --heads belong together")
        config = GPTConfig(given.layers, given.hidden, given.heads, **sizes)
    else:
        config = config_for(given.params, 128 * tp, **sizes)
    machine = measure() if given.machine == "this" else given.machine
    try:
        made = plan(
            config, pp, dp, tp, batch=given.batch, microbatches=given.microbatches,
            machine=machine, dtype=getattr(torch, given.dtype), recompute=given.recompute,
        )  # fmt: skip
    except ValueError as error:
        parser.error(str(error))
    print(made.report(given.width))
    return 0


if __name__ == "__main__":
    sys.exit(main())
