"""Random valid and invalid calls over every bound callable. A call may return or raise; it may not
end the process, and it may not go on for ten seconds without answering a signal. The calls run in
child processes with a memory limit, each in a folder of its own that goes when it ends, since some
calls write files; each failure is printed as one line that runs it again:

    python tools/fuzz/ops.py --n 100000 --seed 1 --jobs 2
    python tools/fuzz/ops.py --replay "torch.add(T((2, 3), 'int8'), None)"

The sequence depends on the seed and the package alone; call number i needs none of the others.
Under the address sanitizer, which reserves terabytes of address space, no limit can be set on it:
there the sanitizer itself refuses single requests of more than 2 GB, unless ASAN_OPTIONS says
otherwise.
"""

from __future__ import annotations

import argparse
import collections
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from targets import all_targets, call_text, full_name
from values import Values, namespace
from worker import HEADER, OUTCOMES, PAGE, PLANTED_FILE, Log, limit_resources, quiet, work

HARD_LIMIT = 10.0
CANARIES = {20: "plant('file')", 50: "plant('crash')", 100: "plant('hang')"}


class Sequence:
    """The calls of a seed. Targets that need a process of their own are drawn less often."""

    def __init__(self, seed: int, only: str | None, canaries: bool = False) -> None:
        self.seed, self.canaries = seed, canaries
        self.targets = all_targets(only)
        if not self.targets:
            raise SystemExit(f"no callable matches {only!r}")

    def __call__(self, index: int) -> tuple[str, bool]:
        if self.canaries and index in CANARIES:
            return CANARIES[index], False
        values = Values(self.seed * 1_000_003 + index)
        target = values.rng.choice(self.targets)
        if target.isolated and values.rng.random() < 0.9:
            target = values.rng.choice(self.targets)
        return call_text(target, values), target.isolated


class Child:
    """A worker process and the part of the sequence it still has to do."""

    def __init__(self, options, begin: int, end: int) -> None:
        self.options, self.end = options, end
        self.folder = tempfile.TemporaryDirectory(prefix="fuzz-", ignore_cleanup_errors=True)
        self.path = os.path.join(self.folder.name, "log")
        self.current = os.path.join(self.folder.name, "current")
        os.mkdir(self.current)
        with open(self.path, "wb") as file:
            file.truncate(PAGE)
        self.log = Log(self.path)
        self.counts = collections.Counter()
        self.start(begin)

    def start(self, begin: int) -> None:
        self.begin = begin
        HEADER.pack_into(self.log.page, 0, begin - 1, time.monotonic() + 120, 0, 0, 0, 0)
        o = self.options
        command = [sys.executable, os.path.abspath(__file__), "--worker", self.path]
        command += ["--seed", str(o.seed), "--begin", str(begin), "--end", str(self.end)]
        command += ["--memory", str(o.memory)] + (["--only", o.only] if o.only else [])
        command += ["--canaries"] if o.canaries else []
        with open(self.path + ".err", "wb") as noise:
            self.process = subprocess.Popen(
                command, stderr=noise, env=environment(), cwd=self.current
            )

    def poll(self) -> tuple[str, int, str] | None:
        """None while running; else (kind, index, text) of what ended it, kind "" for done."""
        index, start, counts, text = self.log.read()
        code = self.process.poll()
        if code is None:
            # A record that is being written begins with zeros.
            if start == 0 or time.monotonic() - start < self.options.hang_after:
                return None
            time.sleep(0.05)  # the record may have been read while it was being written
            if self.log.read()[:2] != (index, start):
                return None
            self.process.kill()
            self.process.wait()
            kind = "hang"
        elif code == 0:
            kind = ""
        else:
            kind = signal.Signals(-code).name if code < 0 else f"exit {code}"
        index, _, counts, text = self.log.read()
        if kind.startswith("exit") and index < self.begin:
            raise SystemExit(f"the worker did not start: {self.noise()}")
        self.counts.update(dict(zip(OUTCOMES, counts, strict=True)))
        return kind, index, text

    def noise(self) -> str:
        """What the last process wrote on stderr: a sanitizer's report, a message of abort."""
        with open(self.path + ".err", errors="replace") as file:
            return file.read()

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        self.folder.cleanup()


def replay(text: str, options) -> None:
    """Makes one call here and shows what it gives."""
    limit_resources(options.memory)
    names = namespace()
    with tempfile.TemporaryDirectory(prefix="fuzz-") as folder:
        os.chdir(folder)
        try:
            print(eval(text, names))
        except Exception as error:
            print(f"{type(error).__name__}: {error}")
        os.chdir("/")


def confirmed(text: str, options) -> str:
    """How the call ends in a fresh process: a signal's name, "hang", or "" when it is fine."""
    command = [sys.executable, os.path.abspath(__file__), "--memory", str(options.memory)]
    command += ["--replay", text]
    try:
        done = subprocess.run(
            command,
            capture_output=True,
            timeout=options.hang_after + 5,
            check=False,
            env=environment(),
        )
    except subprocess.TimeoutExpired:
        return "hang"
    return signal.Signals(-done.returncode).name if done.returncode < 0 else ""


def report(kind, index, text, child, options) -> None:
    again = "" if options.canaries else confirmed(text, options)
    where = "" if again else f"   # alone it is fine; --seed {options.seed} --begin {index - 200}"
    print(f'FAILURE {kind} #{index}: python tools/fuzz/ops.py --replay "{text}"{where}', flush=True)
    if options.verbose:
        print(
            "    " + "\n    ".join(child.noise().strip().splitlines()[: options.verbose]),
            flush=True,
        )


def shares(options) -> Iterator[tuple[int, int]]:
    size = (options.end - options.begin + options.jobs - 1) // options.jobs
    for begin in range(options.begin, options.end, size):
        yield begin, min(begin + size, options.end)


def run(options) -> list:
    """Runs the sequence in `jobs` children; returns the failures as (kind, index, text)."""
    began, failures = time.monotonic(), []
    running = [Child(options, b, e) for b, e in shares(options)]
    counts = collections.Counter()
    shown = began
    try:
        while running:
            time.sleep(0.02)
            for child in list(running):
                ended = child.poll()
                if ended is None:
                    continue
                kind, index, text = ended
                if kind:
                    failures.append(ended)
                    report(kind, index, text, child, options)
                if kind and index + 1 < child.end and len(failures) < options.max_failures:
                    child.start(index + 1)
                    continue
                counts.update(child.counts)
                running.remove(child)
                child.close()
            if time.monotonic() - shown > 30:
                shown = time.monotonic()
                places = [c.log.read()[0] for c in running]
                print(
                    f"at {places} after {shown - began:.0f} s, {len(failures)} failures", flush=True
                )
    finally:
        for child in running:
            child.close()
    seconds = time.monotonic() - began
    made = sum(counts.values()) + len(failures)
    kinds = collections.Counter(kind for kind, _, _ in failures)
    signals = sum(n for kind, n in kinds.items() if kind != "hang")
    print(
        f"{made} calls, seed {options.seed}: {counts['returned']} returned, "
        f"{counts['raised']} raised, {counts['interrupted']} stopped by the alarm, "
        f"{signals} signals, {kinds['hang']} hangs; {seconds:.0f} s, {made / seconds:.0f} calls/s"
    )
    return failures


def self_test(options) -> int:
    """A planted crash and a planted hang have to be found, and nothing else; what a call writes
    into its current folder does not end up in this one."""
    options.canaries, options.begin, options.end, options.jobs = True, 0, 200, 1
    options.hang_after, options.only = 4.0, r"torch\.ops\.aten\.(add|mul)\."
    found = [(kind, text) for kind, _, text in run(options)]
    expected = [("SIGSEGV", CANARIES[50]), ("hang", CANARIES[100])]
    left = os.path.exists(PLANTED_FILE)
    print("self-test:", "ok" if found == expected and not left else f"FAILED: {found}, {left}")
    return 0 if found == expected and not left else 1


def parse(arguments) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--n", "--calls", type=int, default=10000, help="how many calls")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=2, help="child processes at a time")
    parser.add_argument("--only", help="a regular expression; callables whose name it matches")
    parser.add_argument(
        "--memory", type=float, default=default_memory(), help="limit in GB, 0: none"
    )
    parser.add_argument("--replay", metavar="CALL", help="make this one call, in this process")
    parser.add_argument("--list", action="store_true", help="print the names of what is called")
    parser.add_argument("--self-test", action="store_true", help="check that failures are noticed")
    parser.add_argument("--max-failures", type=int, default=200)
    parser.add_argument(
        "--verbose", type=int, default=0, metavar="LINES", help="of the child's stderr"
    )
    parser.add_argument("--begin", type=int, default=0, help="number of the first call")
    for hidden in ("--worker", "--end"):
        parser.add_argument(hidden, help=argparse.SUPPRESS)
    parser.add_argument("--canaries", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    options.end = int(options.end) if options.end else options.begin + options.n
    options.hang_after = HARD_LIMIT
    return options


def sanitized() -> bool:
    return "asan" in os.environ.get("LD_PRELOAD", "")


def default_memory() -> float:
    return 0 if sanitized() else 4


def environment() -> dict:
    """For the children: huge requests fail under the sanitizer as they do under the limit."""
    result = dict(os.environ)
    if sanitized():
        ours = "allocator_may_return_null=1:max_allocation_size_mb=2048"
        given = result.get("ASAN_OPTIONS")
        result["ASAN_OPTIONS"] = f"{ours}:{given}" if given else ours  # the last one counts
    return result


def main(arguments=None) -> int:
    options = parse(arguments)
    if options.worker:
        sequence = Sequence(options.seed, options.only, options.canaries)
        limit_resources(options.memory)
        quiet()
        work(Log(options.worker), sequence, options.begin, options.end, [0, 0, 0])
        return 0
    if options.replay is not None:
        replay(options.replay, options)
        return 0
    if options.list:
        for target in all_targets(options.only):
            print(full_name(target))
        return 0
    if options.self_test:
        return self_test(options)
    return 1 if run(options) else 0


if __name__ == "__main__":
    sys.exit(main())
