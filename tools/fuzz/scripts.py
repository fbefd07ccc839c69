"""Loads mutated TorchScript archives. An archive may load or raise RuntimeError. It may not end or
stop the process, raise anything else, import, execute, write, connect or start anything, use more
memory than a bound, or take long. What loads is looked at: its tensors against their storages, its
code and graph printed; and its forward is run, which may raise and may be stopped by a signal, but
not more.

    python tools/fuzz/scripts.py --n 50000 --seed 1
    python tools/fuzz/scripts.py --replay 1:4711      the archive of that seed and number, here
    python tools/fuzz/scripts.py --self-test          planted faults must be found
"""

from __future__ import annotations

import argparse
import ast
import collections
import gc
import json
import os
import signal
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import load
from worker import Log, limit_resources, on_alarm

SLOW = 2.0  # seconds of the processor for reading and compiling one archive
RUN_LIMIT = 1.0  # seconds until a run is asked to stop
ALLOWANCE = 96 << 20


# Reading text as a syntax tree is no execution, and the class of a tuple with names is made from
# names that were checked.
HARMLESS_CALLERS = (ast.parse.__code__, collections.namedtuple.__code__)


class ScriptWatch(load.Watch):
    """All that the base class forbids, but for two functions of Python that run no code given."""

    def _hook(self, event, args) -> None:
        if self.armed and event in ("compile", "exec"):
            if sys._getframe(1).f_code in HARMLESS_CALLERS:
                return
        super()._hook(event, args)


class ScriptLoader(load.Loader):
    """Loads one archive after another and says what was wrong with each."""

    watch_type = ScriptWatch

    def __init__(self, inputs) -> None:
        super().__init__()
        self.inputs = inputs

    def _call(self, kind, data, way):
        import io

        place = io.BytesIO(data)
        if way != "object":
            place = os.path.join(self.folder, "file")
            with open(place, "wb") as file:
                file.write(data)
        return lambda: self.torch.jit.load(place)

    def warm_up(self, samples) -> None:
        """Loads and runs right archives, so that what is imported on first use has been."""
        for kind, data in samples.items():
            self.load(kind, data, "object")
            self.load(kind, data[:-1], "object")
        for kind, data in samples.items():
            for way in ("object", "path"):
                result = self.load(kind, data, way)
                if result != ["accepted"]:
                    raise SystemExit(f"a right archive is refused: {kind} {result}")
        self.counts.clear()
        self.largest, self.slowest = 0, 0.0

    def load(self, kind, data, way):
        """["accepted" or "refused", fault, fault, ...]"""
        faults, module, outcome = [], None, "accepted"
        call = self._call(kind, data, way)
        self.watch.begin()
        try:
            module = call()
        except RuntimeError:
            outcome = "refused"
        except BaseException as error:
            outcome = "refused"
            faults.append(f"exception {type(error).__name__}: {error}"[:300])
        events, peak, seconds = self.watch.end()
        faults += [f"audit {event}" for event in events]
        if peak > 4 * len(data) + ALLOWANCE:
            faults.append(f"memory {peak >> 20} MiB for an archive of {len(data)} bytes")
        if seconds > SLOW:
            faults.append(f"slow {seconds:.2f} s for an archive of {len(data)} bytes")
        self.largest, self.slowest = max(self.largest, peak), max(self.slowest, seconds)
        self.counts[outcome] += 1
        if module is not None:
            faults += self._look_at([*module.parameters(), *module.buffers()])
            faults += self._run(kind, module)
        return [outcome, *faults]

    def _run(self, kind, module):
        """Prints and runs a module. Only what is no Exception, or an event, is a fault."""
        self.watch.events.clear()
        self.watch.armed = True
        try:
            signal.setitimer(signal.ITIMER_REAL, RUN_LIMIT)
            try:
                str(module.code), str(module.graph), repr(module)
                module(*self.inputs[kind])
            finally:
                signal.setitimer(signal.ITIMER_REAL, 0)
        except (Exception, KeyboardInterrupt):
            pass
        except BaseException as error:
            return [f"exception in a run {type(error).__name__}: {error}"[:300]]
        finally:
            self.watch.armed = False
        return [f"audit in a run {event}" for event in self.watch.events]


def make_loader(sequence):
    """A loader that has loaded the right archives."""
    from script_models import models

    signal.signal(signal.SIGALRM, on_alarm)
    loader = ScriptLoader({name: inputs for name, (_, inputs) in models().items()})
    loader.warm_up(sequence.files)
    return loader


def worker(options) -> None:
    """Loads the archives begin .. end - 1; faults go to a file as lines of JSON."""
    import warnings

    from script_archives import Sequence

    warnings.simplefilter("ignore")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    sequence, log = Sequence(options.seed), Log(options.worker)
    loader = make_loader(sequence)
    limit_resources(options.memory)
    if options.plant:
        plant(options.plant)
    gc.collect()
    gc.freeze()
    with open(options.worker + ".faults", "a") as faults:
        parent = os.getppid()
        for index in range(options.begin, options.end):
            if os.getppid() != parent:
                break
            kind, _, data = sequence(index)
            log.write(index, [loader.counts["accepted"], loader.counts["refused"], 0], b"")
            found = loader.load(kind, data, ("object", "path")[index % 2])[1:]
            faults.writelines(json.dumps([index, fault]) + "\n" for fault in found)
            faults.flush()
            if found and options.plant:
                break
            if index % 200 == 0:
                gc.collect()
        totals = [loader.counts["accepted"], loader.counts["refused"], 0]
        log.write(options.end, totals, json.dumps([loader.largest, loader.slowest]).encode())
    loader.close()


# name -> (the first word of the report, archives that suffice)
PLANTS = {
    "crash": ("crash", 60),
    "hang": ("hang", 60),
    "key error": ("exception", 60),
    "execution": ("audit", 60),
    "memory": ("memory", 60),
}


def plant(name: str) -> None:
    """Lets the reader of archives do something at the first class that it does not find."""
    import ctypes

    from torch.jit import _archive_code

    original = _archive_code.ArchiveCode.find
    actions = {
        "crash": lambda: ctypes.string_at(0),
        "hang": lambda: time.sleep(60),
        "key error": lambda: (_ for _ in ()).throw(ZeroDivisionError),
        "execution": lambda: exec("1"),
        "memory": lambda: bytearray(os.urandom(1)) * (200 << 20),
    }

    def find(self, name_):
        found = original(self, name_)
        if found is None:
            actions[name]()
        return found

    _archive_code.ArchiveCode.find = find


class ScriptRun(load.Run):
    """Child processes over a range of archives."""

    program = os.path.abspath(__file__)

    def arguments(self):
        """What a child is told beside the range."""
        o = self.options
        return ["--seed", str(o.seed), "--memory", str(o.memory), "--plant", o.plant]


def replay(options) -> int:
    """Loads one archive here and shows what comes of it."""
    from script_archives import Sequence

    seed, number = (int(part) for part in options.replay.split(":"))
    sequence = Sequence(seed)
    kind, level, data = sequence(number)
    print(f"{kind}, {level}, {len(data)} bytes")
    if options.keep:
        with open(options.keep, "wb") as file:
            file.write(data)
    result = make_loader(sequence).load(kind, data, ("object", "path")[number % 2])
    print(*result, sep="\n")
    return len(result) > 1


def self_test(options) -> int:
    """Each planted fault must be found, as what it is."""
    missed = 0
    options.limit = 5.0
    for name, (expected, files) in PLANTS.items():
        options.plant, options.n = name, files
        found = {fault.split()[0] for _, fault in ScriptRun(options).go()}
        print(f"{name:12s} expected {expected:10s} found {found}", flush=True)
        missed += expected not in found
    print(f"{len(PLANTS)} planted faults, {missed} missed")
    return missed


def main() -> int | None:
    """Runs the command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--n", type=int, default=50_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--begin", type=int, default=0)
    parser.add_argument("--end", type=int, default=0, help=argparse.SUPPRESS)
    parser.add_argument("--limit", type=float, default=60.0, help="seconds until one hangs")
    parser.add_argument("--memory", type=float, default=8.0, help="address space of a child, GiB")
    parser.add_argument("--replay", help="seed:number")
    parser.add_argument("--keep", help="with --replay: where to write the archive")
    parser.add_argument("--self-test", action="store_true")
    parser.add_argument("--plant", default="", help=argparse.SUPPRESS)
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        return worker(options)
    if options.replay:
        return replay(options)
    if options.self_test:
        return self_test(options)
    start, run = time.monotonic(), ScriptRun(options)
    faults = run.go()
    for number, fault in faults:
        print(f"tools/fuzz/scripts.py --replay {options.seed}:{number}   # {fault}")
    accepted, refused = run.counts
    print(
        f"{accepted + refused} archives in {time.monotonic() - start:.0f} s: {accepted} accepted, "
        f"{refused} refused, {len(faults)} faults; at most {run.largest >> 20} MiB and "
        f"{run.slowest:.3f} s of processor time"
    )
    return bool(faults)


if __name__ == "__main__":
    sys.exit(main())
