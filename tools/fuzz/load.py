"""Loads mutated checkpoints and safetensors files. A file may load or raise CheckpointError. It may
not end or stop the process, raise anything else, import, execute, write, connect or start anything,
use more memory than twice its size and 64 MiB, or take a second; and what it gives must be sound:
each tensor is checked against its storage, cloned, summed, printed and indexed.

    python tools/fuzz/load.py --n 200000 --seed 1
    python tools/fuzz/load.py --replay 1:4711      the file of that seed and number, loaded here
    python tools/fuzz/load.py --self-test          planted faults must be found

Files are loaded in child processes. Each failure is printed as a line that runs it again and is
added to test/serialization/load_corpus.txt, whose files the tests load for ever after.
"""

from __future__ import annotations

import argparse
import base64
import collections
import json
import os
import subprocess
import sys
import tempfile
import time
import zlib

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from worker import HEADER, PAGE, Log, limit_resources

CORPUS = os.path.join(
    os.path.dirname(os.path.abspath(__file__)),
    "..",
    "..",
    "test",
    "serialization",
    "load_corpus.txt",
)
WAYS = ("object", "object", "path", "mapped")
FORMATS = "zip,legacy,safetensors"
SLOW = 1.0
ALLOWANCE = 64 << 20
# Events of the interpreter's audit hook that a load must not cause.
FORBIDDEN = ("import", "exec", "compile", "marshal.", "pickle.", "socket.", "subprocess.", "os.")
FORBIDDEN += ("shutil.", "ctypes.dlopen", "ctypes.dlsym", "ctypes.call_function", "urllib.", "pty.")
HARMLESS = ("os.listdir", "os.scandir")


# ---- in the child -------------------------------------------------------------------------------


class Watch:
    """Counts audit events, memory and time of what runs between `begin` and `end`."""

    def __init__(self) -> None:
        self.events, self.armed = [], False
        self._clear = os.open("/proc/self/clear_refs", os.O_WRONLY)
        self._status = os.open("/proc/self/status", os.O_RDONLY)
        sys.addaudithook(self._hook)

    def _hook(self, event, args) -> None:
        if not self.armed:
            return
        if event == "open":
            mode, flags = args[1], args[2]
            writes = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
            if (isinstance(mode, str) and set(mode) & set("wax+")) or (flags or 0) & writes:
                self.events.append(f"open {args[0]!r} for writing")
        elif event.startswith(FORBIDDEN) and event not in HARMLESS:
            self.events.append(f"{event} {args!r}"[:200])

    def _peak(self):
        text = os.pread(self._status, 4096, 0)
        start = text.index(b"VmHWM:")
        return int(text[start + 6 : text.index(b"kB", start)]) << 10

    def begin(self) -> None:
        """Forgets what was and starts to count."""
        self.events.clear()
        os.write(self._clear, b"5")
        self._before, self._start = self._peak(), time.process_time()
        self.armed = True

    def end(self):
        """(events, bytes at the peak, seconds of the processor)."""
        self.armed = False
        seconds = time.process_time() - self._start
        return list(self.events), self._peak() - self._before, seconds


def unsound(tensor, torch) -> str | None:
    """Why a tensor reaches out of its storage, or None."""
    if tensor.layout is not torch.strided or tensor.device.type == "meta" or not tensor.numel():
        return None
    last = tensor.storage_offset() + sum(
        (n - 1) * s for n, s in zip(tensor.shape, tensor.stride(), strict=True)
    )
    room = tensor.untyped_storage().nbytes()
    if tensor.storage_offset() < 0 or (last + 1) * tensor.itemsize > room:
        return f"element {last} of {tensor.dtype} in {room} bytes"
    return None


def tensors_in(value, torch):
    """Every tensor that can be reached through containers and attributes."""
    found, pending, seen = [], [value], set()
    while pending:
        item = pending.pop()
        if id(item) in seen:
            continue
        seen.add(id(item))
        if isinstance(item, torch.Tensor):
            found.append(item)
        elif isinstance(item, dict):
            pending.extend(item.values())
        elif isinstance(item, (list, tuple, set, frozenset)):
            pending.extend(item)
        if getattr(item, "__dict__", None):
            pending.extend(vars(item).values())
    return found


def exercise(tensor, torch) -> None:
    """Reads a tensor in several ways; a dtype without that operation is no fault."""
    actions = [lambda: repr(tensor)]
    if tensor.layout is not torch.strided:
        actions.append(lambda: tensor.to_dense().sum() if tensor.numel() < 100_000 else None)
    elif tensor.numel() <= 100_000:
        actions += [tensor.clone, tensor.sum, tensor.tolist]
        if tensor.device.type == "meta":
            actions.pop()
    if tensor.layout is torch.strided and tensor.dim() and tensor.size(0):
        actions += [lambda: tensor[0].shape, lambda: tensor[-1].clone().shape]
    for action in actions:
        try:
            action()
        except (NotImplementedError, RuntimeError) as error:
            if "out of bounds" in str(error):
                raise


class Loader:
    """Loads one file after another and says what was wrong with each."""

    watch_type = Watch

    def __init__(self) -> None:
        import torch

        self.torch, self.watch = torch, self.watch_type()
        self.folder = tempfile.mkdtemp(prefix="load-fuzz-")
        self.counts = collections.Counter()
        self.largest, self.slowest = 0, 0.0

    def close(self) -> None:
        """Removes the folder of the files."""
        for entry in os.listdir(self.folder):
            os.unlink(os.path.join(self.folder, entry))
        os.rmdir(self.folder)

    def _call(self, kind, data, way):
        import io

        s = self.torch.serialization
        if way == "object":
            place = io.BytesIO(data)
        else:
            place = os.path.join(self.folder, "file")
            with open(place, "wb") as file:
                file.write(data)
        if kind == "safetensors":
            return lambda: s.load_safetensors(place)
        if way == "mapped" and data[:4] == b"PK\x03\x04":
            return lambda: self.torch.load(place, mmap=True)
        return lambda: self.torch.load(place)

    def warm_up(self, samples) -> None:
        """Loads right files, so that what is imported on first use has been."""
        for kind, files in samples.items():
            for data in files:
                for way in WAYS:
                    for fault in self.load(kind, data, way)[1:]:
                        raise SystemExit(f"a right {kind} file is refused: {fault}")
                    with_error = self._call(kind, data[:-1], way)
                    try:
                        with_error()
                    except self.torch.serialization.CheckpointError:
                        continue
        self.counts.clear()
        self.largest, self.slowest = 0, 0.0

    def load(self, kind, data, way):
        """["accepted" or "refused", fault, fault, ...]"""
        faults, value, outcome = [], None, "accepted"
        call = self._call(kind, data, way)
        self.watch.begin()
        try:
            value = call()
        except self.torch.serialization.CheckpointError:
            outcome = "refused"
        except BaseException as error:
            outcome = "refused"
            faults.append(f"exception {type(error).__name__}: {error}"[:300])
        events, peak, seconds = self.watch.end()
        faults += [f"audit {event}" for event in events]
        if peak > 2 * len(data) + ALLOWANCE:
            faults.append(f"memory {peak >> 20} MiB for a file of {len(data)} bytes")
        if seconds > SLOW:
            faults.append(f"slow {seconds:.2f} s for a file of {len(data)} bytes")
        self.largest, self.slowest = max(self.largest, peak), max(self.slowest, seconds)
        self.counts[outcome] += 1
        if outcome == "accepted":
            faults += self._look_at(value)
        return [outcome, *faults]

    def _look_at(self, value):
        for tensor in tensors_in(value, self.torch):
            reason = unsound(tensor, self.torch)
            if reason:
                return [f"unsound {reason}"]
            try:
                exercise(tensor, self.torch)
            except Exception as error:
                return [f"unsound {type(error).__name__}: {error}"[:300]]
        return []


def worker(options) -> None:
    """Loads the files begin .. end - 1; faults go to a file as lines of JSON."""
    import gc
    import resource
    import warnings

    from checkpoints import Sequence

    warnings.simplefilter("ignore")
    limit_resources(0)
    if options.memory:
        cap = int(options.memory * (1 << 30))
        resource.setrlimit(resource.RLIMIT_AS, (cap, cap))
    sequence, log = Sequence(options.seed, options.formats.split(",")), Log(options.worker)
    loader = Loader()
    loader.warm_up(sequence.samples.files)
    if options.plant:
        from load_plants import plant

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
            found = loader.load(kind, data, WAYS[index % len(WAYS)])[1:]
            faults.writelines(json.dumps([index, fault]) + "\n" for fault in found)
            faults.flush()
            if found and options.plant:
                break
        totals = [loader.counts["accepted"], loader.counts["refused"], 0]
        log.write(options.end, totals, json.dumps([loader.largest, loader.slowest]).encode())
    loader.close()


# ---- in the parent ------------------------------------------------------------------------------


class Run:
    """Child processes over a range of numbers, one after another as they die."""

    program = os.path.abspath(__file__)

    def arguments(self):
        """What a child is told beside the range."""
        o = self.options
        told = ["--seed", str(o.seed), "--formats", o.formats, "--memory", str(o.memory)]
        return [*told, "--plant", o.plant]

    def __init__(self, options) -> None:
        self.options = options
        self.counts, self.faults = [0, 0], []
        self.largest, self.slowest = 0, 0.0
        handle, self.path = tempfile.mkstemp(prefix="load-fuzz-")
        os.truncate(handle, PAGE)
        os.close(handle)
        self.log = Log(self.path)

    def go(self):
        """Runs all numbers; returns the faults as (number, text)."""
        begin, end = self.options.begin, self.options.begin + self.options.n
        while begin < end:
            kind, index = self._child(begin, end)
            if kind:
                self.faults.append((index, kind))
            begin = index + 1 if kind and not self.options.plant else end
        if os.path.exists(self.path + ".faults"):
            with open(self.path + ".faults") as file:
                self.faults += [tuple(json.loads(line)) for line in file]
        for ending in ("", ".faults", ".err"):
            if os.path.exists(self.path + ending):
                os.unlink(self.path + ending)
        return sorted(self.faults)

    def _child(self, begin, end):
        HEADER.pack_into(self.log.page, 0, begin - 1, time.monotonic() + 60, 0, 0, 0, 0)
        command = [sys.executable, self.program, "--worker", self.path]
        command += ["--begin", str(begin), "--end", str(end), *self.arguments()]
        with open(self.path + ".err", "wb") as noise:
            process = subprocess.Popen(command, stderr=noise)
        kind = ""
        while process.poll() is None:
            time.sleep(0.02)
            if self._stands() and not time.sleep(0.1) and self._stands():
                kind = "hang"
                process.kill()
                process.wait()
        index, _, counts, text = self.log.read()
        if process.returncode and not kind:
            with open(self.path + ".err", errors="replace") as file:
                noise = file.read()
            if index < begin:
                raise SystemExit(f"the child did not start: {noise}")
            kind = f"crash {process.returncode}: {noise[-2000:]}"
        self.counts = [a + b for a, b in zip(self.counts, counts, strict=False)]
        if text:
            largest, slowest = json.loads(text)
            self.largest = max(self.largest, largest)
            self.slowest = max(self.slowest, slowest)
        return kind, index

    def _stands(self):
        """Whether the file of the record took too long. The record may have been read while it was
        being written, so this is asked twice."""
        return time.monotonic() - self.log.read()[1] > self.options.limit


def corpus_line(kind, way, data) -> str:
    """A file as one line of the corpus."""
    return f"{kind} {way} {base64.b64encode(zlib.compress(data, 9)).decode()}\n"


def corpus_entry(line):
    """(format, way, bytes) of a line."""
    kind, way, coded = line.split()
    return kind, way, zlib.decompress(base64.b64decode(coded))


def remember(number, options) -> None:
    """Adds a file to the corpus unless it is there."""
    from checkpoints import Sequence

    kind, _, data = Sequence(options.seed, options.formats.split(","))(number)
    line = corpus_line(kind, WAYS[number % len(WAYS)], data)
    with open(CORPUS, "a+") as file:
        file.seek(0)
        if line not in file:
            file.write(line)


def replay(options):
    """Loads one file here and shows what comes of it."""
    from checkpoints import Sequence

    seed, number = (int(part) for part in options.replay.split(":"))
    kind, level, data = Sequence(seed, options.formats.split(","))(number)
    way = WAYS[number % len(WAYS)]
    print(f"{kind}, {level}, {len(data)} bytes, {way}")
    if options.keep:
        with open(options.keep, "wb") as file:
            file.write(data)
    result = Loader().load(kind, data, way)
    print(*result, sep="\n")
    return len(result) > 1


def self_test(options):
    """Each planted fault must be found, as what it is."""
    from load_plants import EXPECTED

    missed = 0
    options.limit = 5.0
    for name, (expected, formats, files) in EXPECTED.items():
        options.plant, options.formats, options.n = name, formats, files
        kinds = collections.Counter(fault.split()[0] for _, fault in Run(options).go())
        print(f"{name:12s} expected {expected:10s} found {dict(kinds)}", flush=True)
        # On a busy machine what is slow may count as standing still.
        missed += not (kinds[expected] or (expected == "slow" and kinds["hang"]))
    print(f"{len(EXPECTED)} planted faults, {missed} missed")
    return missed


def main():
    """Runs the command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--n", type=int, default=200_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--begin", type=int, default=0)
    parser.add_argument("--end", type=int, default=0, help=argparse.SUPPRESS)
    parser.add_argument("--formats", default=FORMATS)
    parser.add_argument("--limit", type=float, default=10.0, help="seconds until a file hangs")
    parser.add_argument("--memory", type=float, default=8.0, help="address space of a child, GiB")
    parser.add_argument("--replay", help="seed:number")
    parser.add_argument("--keep", help="with --replay: where to write the file")
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
    start, run = time.monotonic(), Run(options)
    faults = run.go()
    for number, fault in faults:
        formats = "" if options.formats == FORMATS else f" --formats {options.formats}"
        print(f"tools/fuzz/load.py --replay {options.seed}:{number}{formats}   # {fault}")
        remember(number, options)
    accepted, refused = run.counts
    print(
        f"{accepted + refused} files in {time.monotonic() - start:.0f} s: {accepted} accepted, "
        f"{refused} refused, {len(faults)} faults; at most {run.largest >> 20} MiB and "
        f"{run.slowest:.3f} s of processor time"
    )
    return bool(faults)


if __name__ == "__main__":
    sys.exit(main())
