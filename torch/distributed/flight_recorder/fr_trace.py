"""python -m torch.distributed.flight_recorder.fr_trace PATH: prints who is to blame. PATH is a
folder of recordings or how their paths begin. The exit status is 0 where all ranks agree, 1 where a
culprit was found, 2 where there is nothing to read."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import Any

from torch.distributed.flight_recorder.analysis import _what, analyse
from torch.distributed.flight_recorder.loader import read_dumps

__all__ = ["main"]


def _table(dumps: dict[int, dict[str, Any]], last: int) -> str:
    """The last operations of every rank, one line each."""
    lines = []
    for rank, dump in sorted(dumps.items()):
        lines.append(f"rank {rank}: {dump.get('reason', '').splitlines()[:1] or ''}")
        for entry in dump.get("entries", [])[-last:]:
            lines.append(
                f"  {entry['process_group'][0]:>8} {entry['collective_seq_id']:>6} "
                f"{entry['state']:>9}  {_what(entry)}"
            )
    return "\n".join(lines)


def main(args: Sequence[str] | None = None) -> int:
    """The command."""
    parser = argparse.ArgumentParser(prog="fr_trace", description=__doc__)
    parser.add_argument("trace_dir", help="a folder of recordings, or how their paths begin")
    parser.add_argument("-p", "--prefix", default="", help="how the names in the folder begin")
    parser.add_argument("-n", "--world-size", type=int, help="how many ranks there were")
    parser.add_argument("-j", "--just_print_entries", action="store_true",
                        help="print the last operations and judge nothing")  # fmt: skip
    parser.add_argument("-l", "--last", type=int, default=10, help="how many to print of each rank")
    given = parser.parse_args(args)
    try:
        dumps = read_dumps(given.trace_dir, given.prefix)
    except ValueError as error:
        print(error, file=sys.stderr)
        return 2
    if not dumps:
        print(f"no recordings at {given.trace_dir}{given.prefix}", file=sys.stderr)
        return 2
    if given.just_print_entries:
        print(_table(dumps, given.last))
        return 0
    found = analyse(dumps, given.world_size)
    for finding in found:
        print(finding)
    if not found:
        print(f"{len(dumps)} ranks, no difference found")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
