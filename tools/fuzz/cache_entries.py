"""Mutated entries of the compiler's store, and mutated bundles of artifacts: an entry that is not
what was written must be as good as absent, whatever was done to it.

    python tools/fuzz/cache_entries.py --n 20000 --seed 1

The exit status is 1 when a changed entry was taken for a whole one, or raised something.
"""

from __future__ import annotations

import argparse
import os
import pathlib
import random
import sys
import tempfile

from torch._inductor import cache_store


def mutated(raw: bytes, rng: random.Random) -> bytes:
    """Something else: bytes changed, cut, added, moved, repeated or replaced."""
    data = bytearray(raw)
    for _ in range(rng.randint(1, 4)):
        kind = rng.randrange(7)
        place = rng.randrange(len(data) + 1)
        if kind == 0 and data:
            data[place % len(data)] ^= 1 << rng.randrange(8)
        elif kind == 1:
            del data[place:]
        elif kind == 2:
            data[place:place] = rng.randbytes(rng.randint(1, 40))
        elif kind == 3:
            end = min(len(data), place + rng.randint(1, 60))
            del data[place:end]
        elif kind == 4 and len(data) > 40:
            data[place:] = data[: len(data) - place][::-1]
        elif kind == 5:
            data = bytearray(rng.randbytes(rng.randint(0, 200)))
        else:
            data += bytes(data[:place])
    return bytes(data)


def entry_is_refused(rng: random.Random) -> bool:
    """One entry of one store: written, mutated, read."""
    kept = cache_store.store()
    content = rng.randbytes(rng.randint(0, 300))
    key = kept.key(content, rng.randbytes(8))
    if not kept.put("kernel", key, content):
        raise OSError("the store takes no entries")
    path = pathlib.Path(kept.root, "kernel", key[:2], key)
    raw = path.read_bytes()
    changed = mutated(raw, rng)
    kind = rng.randrange(12)
    if kind == 0:
        path.unlink()
        path.symlink_to("/dev/zero")
    elif kind == 1:
        path.unlink()
        os.mkfifo(path)
    elif kind == 2:
        other = kept.key(content, rng.randbytes(8))
        kept.put("kernel", other, rng.randbytes(50))
        path.write_bytes(pathlib.Path(kept.root, "kernel", other[:2], other).read_bytes())
    else:
        path.write_bytes(changed)
        if changed == raw:
            return kept.get("kernel", key) == content
    return kept.get("kernel", key) is None


def bundle_is_refused(rng: random.Random) -> bool:
    """The artifacts of a few entries: mutated and loaded."""
    kept = cache_store.store()
    kept.used.clear()
    for _ in range(rng.randint(1, 3)):
        kept.used["kernel", kept.key(rng.randbytes(8))] = rng.randbytes(rng.randint(0, 100))
    raw, _ = cache_store.save_artifacts()
    changed = mutated(raw, rng)
    return changed == raw or cache_store.load_artifacts(changed) is None


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--n", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    bad = 0
    with tempfile.TemporaryDirectory() as folder:
        os.environ["TORCHINDUCTOR_CACHE_DIR"] = folder
        for i in range(options.n):
            rng = random.Random(f"{options.seed} {i}")
            check = bundle_is_refused if rng.random() < 0.2 else entry_is_refused
            try:
                fine = check(rng)
            except Exception as error:
                print(f"{i}: {type(error).__name__}: {error}")
                fine = False
            if not fine:
                bad += 1
                print(f"{i}: {check.__name__} failed")
    print(f"{options.n} mutations, {bad} taken for whole entries")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
