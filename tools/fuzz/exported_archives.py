"""Damaged and hostile `.pt2` archives for torch.export.load to refuse. Bytes of a file are changed
and cut off blindly; bytes of a record, in an archive that is whole otherwise; and values, keys and
types in the JSON of the program, which then reaches the reader. What is loaded after all is called.
A failure is an error of a kind that does not say what is wrong, or anything that reaches outside:
processes, sockets, files written. Archive number i of a seed depends on these two numbers alone.

    python tools/fuzz/exported_archives.py --count 20000 --seed 0
"""

from __future__ import annotations

import argparse
import collections
import copy
import io
import json
import random
import sys
import warnings
import zipfile

import torch
from torch import nn
from torch._export.verifier import SpecViolationError
from torch.export import Dim, export, load, save

# Errors that say what is wrong with a file or with a call.
CLEAR = (RuntimeError, ValueError, AssertionError, TypeError, MemoryError, SpecViolationError)
FORBIDDEN = ("os.system", "subprocess.Popen", "os.exec", "os.posix_spawn", "os.fork", "socket.")
VALUES = [
    None, True, False, 0, 1, -1, 2, 7, 64, 2**31, 2**63, -(2**63), 10**30, 0.5, -0.0, 1e308,
    float("nan"), float("inf"), "", "x", "aten.add.Tensor", "torch.ops.aten.add.Tensor",
    "torch.ops.aten.set_.source_Storage", "torch.ops.aten.from_file.default", "os.system",
    "__import__('os').system('true')", "builtins.eval", "torch.load", "s0 + 1", "s77", "u0",
    "Mod(s0, 0)", "9**9**9", "().__class__", "as_tensor", "as_int", "as_sym_int", [], {}, [[]],
    [None] * 40, {"": None}, {"as_int": 2**70}, {"as_tensor": {"name": "nothing"}}, "weight_0",
    "../../etc/passwd", "/dev/zero",
]  # fmt: skip


class Net(nn.Module):
    """Parameters, a written buffer, a constant, a branch and sizes that vary."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(4, 3)
        self.register_buffer("calls", torch.zeros(1))
        self.shift = torch.ones(3)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        self.calls.add_(1)
        y = self.linear(x) + self.shift
        z = torch.cond(y.sum() > 0, lambda t: t.sin(), lambda t: t.cos(), (y,))
        return z.reshape(-1, x.shape[0]), y.nonzero()


def archives() -> list[bytes]:
    """Whole archives."""
    made = []
    for shapes in (None, {"x": {0: Dim("rows", max=64)}}):
        file = io.BytesIO()
        save(export(Net(), (torch.randn(5, 4),), dynamic_shapes=shapes), file)
        made.append(file.getvalue())
    return made


def changed_bytes(data: bytes, rng: random.Random) -> bytes:
    """Some bytes changed, taken out or put in, or the end cut off."""
    out = bytearray(data)
    for _ in range(rng.choice((1, 1, 2, 8))):
        place = rng.randrange(len(out))
        kind = rng.randrange(4)
        if kind == 0:
            out[place] ^= 1 << rng.randrange(8)
        elif kind == 1:
            out[place] = rng.choice((0, 255, rng.randrange(256)))
        elif kind == 2:
            del out[place : place + rng.randrange(1, 9)]
        else:
            out[place:place] = rng.randbytes(rng.randrange(1, 9))
        if not out:
            return b""
    return bytes(out[: rng.randrange(len(out))] if rng.random() < 0.1 else out)


def _places(value: object, found: list) -> list:
    """(container, key) of everything in a tree."""
    items = value.items() if isinstance(value, dict) else enumerate(value)
    for key, inner in list(items):
        found.append((value, key))
        if isinstance(inner, (dict, list)):
            _places(inner, found)
    return found


def changed_json(data: bytes, rng: random.Random) -> bytes:
    """The text of a tree with values exchanged, copied, dropped and keys renamed."""
    tree = json.loads(data)
    if not isinstance(tree, (dict, list)) or not tree:
        return json.dumps(rng.choice(VALUES)).encode()
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        places = _places(tree, [])
        if not places:
            break
        holder, key = rng.choice(places)
        other, other_key = rng.choice(places)
        kind = rng.randrange(5)
        if kind < 2:
            holder[key] = copy.deepcopy(rng.choice(VALUES))
        elif kind == 2:
            holder[key] = copy.deepcopy(other[other_key])
        elif kind == 3:
            del holder[key]
        elif isinstance(holder, dict):
            holder[str(rng.choice(VALUES))] = holder.pop(key)
        else:
            holder.insert(key, copy.deepcopy(holder[key]))
    return json.dumps(tree).encode()


def changed_record(data: bytes, rng: random.Random) -> bytes:
    """A whole zip file with one record changed, renamed or dropped."""
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as old, zipfile.ZipFile(out, "w") as new:
        names = old.namelist()
        texts = [n for n in names if n.endswith(".json")]
        victim = rng.choice(texts if rng.random() < 0.8 else names)
        for name in names:
            held = old.read(name)
            if name == victim:
                kind = rng.randrange(10)
                if kind == 0:
                    continue
                if kind == 1:
                    name = rng.choice((name + "x", "../" + name, name.replace("/", "//"), "x"))
                elif kind > 3 and name.endswith(".json"):
                    held = changed_json(held, rng)
                elif held:
                    held = changed_bytes(held, rng)
            new.writestr(name, held)
    return out.getvalue()


def mutation(whole: list[bytes], seed: int, number: int) -> bytes:
    """Archive `number` of a seed."""
    rng = random.Random(f"{seed}:{number}")
    data = rng.choice(whole)
    return changed_bytes(data, rng) if rng.random() < 0.25 else changed_record(data, rng)


class Watch:
    """Notes what reaches outside while an archive is read."""

    def __init__(self) -> None:
        self.on = False
        self.seen: list[str] = []
        sys.addaudithook(self._hook)

    def _hook(self, event: str, args: tuple) -> None:
        if self.on and event.startswith(FORBIDDEN):
            self.seen.append(f"{event}{args!r:.200}")
        if self.on and event == "open" and isinstance(args[1], str) and set(args[1]) & set("wax+"):
            self.seen.append(f"{event}{args!r:.200}")


def tried(data: bytes, watch: Watch) -> tuple[str, BaseException | None]:
    """What happens to an archive: its error, or "loaded"."""
    watch.seen.clear()
    watch.on = True
    clear: tuple[type[BaseException], ...] = CLEAR
    try:
        module = load(io.BytesIO(data)).module()
        clear = (*CLEAR, IndexError)  # a program may ask for a result that a branch does not have
        module(torch.randn(5, 4))
        return "loaded", None
    except Exception as error:
        if isinstance(error, clear) and str(error):
            return type(error).__name__, None
        return f"unclear {type(error).__name__}", error
    finally:
        watch.on = False


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=2000)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    whole, watch = archives(), Watch()
    tried(whole[0], watch)  # what is imported at the first use
    outcomes: collections.Counter[str] = collections.Counter()
    failures = 0
    for number in range(given.first, given.first + given.count):
        name, error = tried(mutation(whole, given.seed, number), watch)
        outcomes[name] += 1
        if error is not None or watch.seen:
            failures += 1
            print(f"archive {number}: {name}: {error!r:.300} {watch.seen}", flush=True)
    print(f"{given.count} archives, {failures} failures: {dict(outcomes.most_common())}")
    return int(failures > 0)


if __name__ == "__main__":
    sys.exit(main())
