"""Shows how far a Ninja build is and how long it will take: reads Ninja's output from standard
input, keeps compiler messages, and turns the status lines into one line that is rewritten on a
terminal and repeated every 20 seconds in a log."""

import re
import sys
import time
from collections.abc import Iterable
from typing import TextIO

STATUS = re.compile(r"\[(\d+)/(\d+)\] ")
# The first results come from small files; an estimate from fewer would jump about.
ENOUGH = 20


def spoken(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest:02d} s" if minutes else f"{rest} s"


def status_line(done: int, total: int, elapsed: float) -> str:
    text = f"build: {done} of {total} files, {spoken(elapsed)}"
    if ENOUGH <= done < total:
        text += f", about {spoken(elapsed / done * (total - done))} left"
    return text


def show(lines: Iterable[str], out: TextIO, every: float = 20.0) -> None:
    terminal = out.isatty()
    start = last = time.monotonic()
    for line in lines:
        match = STATUS.match(line)
        now = time.monotonic()
        if not match:
            out.write(("\r\x1b[K" if terminal else "") + line)
        elif terminal:
            out.write("\r\x1b[K" + status_line(int(match[1]), int(match[2]), now - start))
        elif now - last >= every or match[1] == match[2]:
            out.write(status_line(int(match[1]), int(match[2]), now - start) + "\n")
            last = now
        out.flush()
    if terminal:
        out.write("\n")


if __name__ == "__main__":
    show(sys.stdin, sys.stdout)
