"""Compiles hot kernels in the background. A tile program that ran over some million elements asks
for a compiled form (torch/csrc/inductor/tier.h); a thread hands its text to the system's C++
compiler, keeps what comes back in the store, and gives it to the program, which compares it with
its own loops before it trusts it. Without a compiler programs stay as they are."""

from __future__ import annotations

import atexit
import contextlib
import functools
import itertools
import os
import queue
import shutil
import subprocess
import tempfile
import threading
from collections.abc import Sequence

import torch
from torch._dynamo.utils import counters
from torch._inductor import config
from torch._inductor.cache_keys import (
    FxGraphCachePickler,
    FxGraphHashDetails,
    TensorMetadata,
    TensorMetadataAndValues,
)
from torch._inductor.cache_store import store
from torch._inductor.graph_cache import FxGraphCache
from torch._inductor.graph_codec import Bypass as BypassFxGraphCache

__all__ = [
    "BypassFxGraphCache",
    "FxGraphCache",
    "FxGraphCachePickler",
    "FxGraphHashDetails",
    "PyCodeCache",
    "TensorMetadata",
    "TensorMetadataAndValues",
    "compile_waiting",
    "compiler_command",
    "wait_for_kernels",
]

_ISA_FLAGS = {
    "base": (),
    "avx2": ("-mavx2", "-mfma", "-mf16c"),
    "avx512": ("-march=x86-64-v4", "-mfma", "-mf16c", "-mprefer-vector-width=512"),
}
# Seconds after which a compiler is given up, and an idle thread ends.
_PATIENCE = 120
_IDLE = 5


def _candidates() -> list[str]:
    chosen = config.cpp.cxx
    listed = chosen if isinstance(chosen, (list, tuple)) else (chosen,)
    found = [os.environ.get("CXX"), *listed, "g++", "c++", "clang++"]
    return [name for name in found if name]


@functools.cache
def _compiler_of(names: tuple[str, ...], path: str) -> tuple[str, str] | None:
    for name in names:
        found = shutil.which(name, path=path or None)
        if found is None:
            continue
        try:
            shown = subprocess.run(
                [found, "--version"], capture_output=True, timeout=_PATIENCE, check=True
            )
        except (OSError, subprocess.SubprocessError):
            continue
        return found, shown.stdout.decode("utf-8", "replace")
    return None


def compiler_command() -> tuple[list[str], str] | None:
    """The command that compiles text from its input, without the name of its output, and the words
    that identify it; None without a compiler."""
    found = _compiler_of(tuple(_candidates()), os.environ.get("PATH", ""))
    if found is None:
        return None
    path, version = found
    isa = torch._C._inductor.isa()
    flags = ["-std=c++17", "-O2", "-g0", "-w", "-fPIC", "-shared", "-ffp-contract=off"]
    flags += [*_ISA_FLAGS[isa], f"-DCRESSET_ISA={isa}", "-DCRESSET_KERNEL_TU="]
    include = os.path.join(os.path.dirname(torch.__file__), "include")
    command = [path, *flags, "-x", "c++", "-I", include, "-"]
    return command, "\n".join([version, *flags])


@functools.cache
def _library_identity() -> str:
    """What the headers belong to: a kernel for one build of the library fits no other."""
    found = os.stat(torch._C.__file__)
    return f"{torch.__version__} {found.st_size} {found.st_mtime_ns}"


def _library_for(text: str) -> tuple[bytes, str] | None:
    """The machine code of a kernel, from the store or compiled, and the name of its function."""
    command = compiler_command()
    if command is None:
        return None
    words, identity = command
    kept = store()
    key = kept.key(text.encode(), identity.encode(), _library_identity().encode())
    symbol = f"cpp_fused_{key[:32]}"
    caches = config.fx_graph_cache and not config.force_disable_caches
    found = kept.get("kernel", key) if caches else None
    counters["inductor"]["kernel_cache_hit" if found else "kernel_cache_miss"] += 1
    if found is None:
        found = _compile([*words, f"-DCPP_FUSED={symbol}"], text)
        if found is not None and caches:
            kept.put("kernel", key, found)
    return None if found is None else (found, symbol)


def _compile(command: Sequence[str], text: str) -> bytes | None:
    with tempfile.TemporaryDirectory(prefix="cresset-kernel-") as folder:
        out = os.path.join(folder, "kernel.so")
        with subprocess.Popen(
            [*command, "-o", out],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        ) as running:
            _worker.running = running
            try:
                running.communicate(text.encode(), timeout=_PATIENCE)
            finally:
                _worker.running = None
                if running.poll() is None:
                    running.kill()
        if running.returncode != 0:
            return None
        with open(out, "rb") as file:
            return file.read()


_loaded = itertools.count()


def _install(kernel: object, library: bytes, symbol: str) -> None:
    """Loads a library from memory: what was checked is what is run. The loader takes two libraries
    under one name for one, so each gets another spelling of the path."""
    spelling = "".join("/." if bit == "1" else "/" for bit in f"{next(_loaded):b}")
    handle = os.memfd_create("kernel", os.MFD_CLOEXEC)
    try:
        with open(os.dup(handle), "wb") as file:
            file.write(library)
        torch._C._inductor.install(kernel, f"/proc/self/fd{spelling}/{handle}", symbol)
    finally:
        os.close(handle)


class _Worker:
    """The thread and what it is to do. After a fork the child has a thread of its own."""

    def __init__(self) -> None:
        self.waiting: queue.Queue = queue.Queue()
        self.thread: threading.Thread | None = None
        self.lock = threading.Lock()
        self.process = os.getpid()
        self.running: subprocess.Popen | None = None
        self.ends = False

    def add(self, kernels: list) -> None:
        with self.lock:
            for kernel in kernels:
                self.waiting.put(kernel)
            if self.thread is None or not self.thread.is_alive():
                self.thread = threading.Thread(
                    target=self._run, name="cresset-kernels", daemon=True
                )
                self.thread.start()

    def _run(self) -> None:
        while True:
            try:
                kernel, text = self.waiting.get(timeout=_IDLE)
            except queue.Empty:
                with self.lock:
                    if not self.waiting.empty():
                        continue
                    self.thread = None
                    return
            if kernel is None:
                return
            try:
                if not self.ends:
                    self._one(kernel, text)
            finally:
                self.waiting.task_done()

    def end(self) -> None:
        """At the end of the process: no compiler and no temporary folder stays behind."""
        self.ends = True
        thread, running = self.thread, self.running
        if self.process != os.getpid() or thread is None:
            return
        if running is not None:
            with contextlib.suppress(OSError):
                running.kill()
        self.waiting.put((None, ""))
        thread.join(timeout=2)

    @staticmethod
    def _one(kernel: object, text: str) -> None:
        """A kernel that cannot be compiled, kept or loaded stays as it is."""
        with contextlib.suppress(OSError, subprocess.SubprocessError):
            found = _library_for(text)
            if found is None:
                counters["inductor"]["kernels_not_compiled"] += 1
                return
            _install(kernel, *found)
            counters["inductor"]["kernels_compiled"] += 1


_worker = _Worker()
atexit.register(lambda: _worker.end())


def compile_waiting() -> None:
    """Compiles the kernels that wait, in the background."""
    global _worker
    if _worker.process != os.getpid():
        _worker = _Worker()
    _worker.add(torch._C._inductor.take_waiting())


def wait_for_kernels() -> None:
    """Returns when no kernel is waiting for the compiler."""
    compile_waiting()
    _worker.waiting.join()


class PyCodeCache:
    """Generated Python modules. Plans are no text, so there are none to forget."""

    @staticmethod
    def cache_clear(purge: bool = False) -> None:
        """Forgets modules that were loaded; `purge` also removes their files."""


def extract_tensor_metadata_for_cache_key(t: torch.Tensor) -> tuple:
    """What of a tensor decides which code is generated for it."""
    return (t.dtype, tuple(t.shape), tuple(t.stride()), t.device, t.layout, t.requires_grad)
