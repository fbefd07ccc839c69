"""Print the slowest files to compile, from Ninja's own log, and hold the build to its budget.

Usage: slowest.py BUILD_FOLDER [--top 10] [--limit SECONDS]. Exits 1 when a file took longer than
the limit. Times are wall-clock seconds of the last time each file was built, so they mean most
after a clean build without a compiler cache.
"""

from __future__ import annotations

import argparse
import pathlib


def read_log(path: pathlib.Path) -> dict[str, float]:
    """Seconds per object file; a later line of the log replaces an earlier one."""
    seconds: dict[str, float] = {}
    for line in path.read_text().splitlines():
        fields = line.split("\t")
        if len(fields) >= 4 and fields[3].endswith(".o"):
            seconds[fields[3]] = (int(fields[1]) - int(fields[0])) / 1000
    return seconds


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--top", type=int, default=10)
    parser.add_argument("--limit", type=float)
    args = parser.parse_args()
    log = args.build / ".ninja_log"
    if not log.exists():
        print(f"slowest: no {log}; build first")
        return 1
    seconds = read_log(log)
    ranked = sorted(seconds.items(), key=lambda item: -item[1])
    print(f"---- the {args.top} slowest of {len(ranked)} files to compile")
    for name, taken in ranked[: args.top]:
        print(f"{taken:8.1f} s  {name.replace('CMakeFiles/', '').replace('.dir/', ': ')}")
    print(f"{sum(seconds.values()):8.1f} s  all files together")
    over = [name for name, taken in ranked if args.limit and taken > args.limit]
    if over:
        print(f"slowest: over the budget of {args.limit:.0f} s: {', '.join(over)}")
    return 1 if over else 0


if __name__ == "__main__":
    raise SystemExit(main())
