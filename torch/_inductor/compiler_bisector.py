"""Which part of the compiler breaks a program. The program is run with ever more of the compiler
switched on: first by backends (eager, aot_eager, aot_eager_decomp_partition, inductor), then by the
parts of the one that fails, and by halving the number of times that part may act.

In a process: CompilerBisector.do_bisect(fn), where fn says whether all is well. For a command:
`python -m torch._inductor.compiler_bisector run CMD...`, which is well if its exit status is 0."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import sys
from collections.abc import Callable, Iterator

__all__ = ["BisectionResult", "CompilerBisector"]

# The parts of each backend, in the order they are tried. A setting is tried at the value given.
BACKENDS: dict[str, list[tuple[str, object]]] = {
    "eager": [],
    "aot_eager": [],
    "aot_eager_decomp_partition": [("cse", False), ("decomposition", None)],
    "inductor": [
        ("pre_grad_passes", None),
        ("joint_graph_passes", None),
        ("post_grad_passes", None),
        ("emulate_precision_casts", True),
        ("lowerings", None),
    ],
}


@dataclasses.dataclass
class BisectionResult:
    """What was found: the backend, its part, and which time that part acts makes the difference."""

    backend: str
    subsystem: str | None = None
    bisect_number: int | None = None
    debug_info: str | None = None


@dataclasses.dataclass
class _State:
    backend: str
    subsystem: str | None = None
    limit: int | None = None
    acted: int = 0
    info: str | None = None


class CompilerBisector:
    """The search, and the questions that the compiler asks it."""

    _state: _State | None = None
    bisection_enabled = False

    # ---- questions of the compiler

    @classmethod
    def get_backend(cls) -> str | None:
        """The backend to be used instead of all others."""
        state = cls._current()
        return None if state is None else state.backend

    @classmethod
    def get_subsystem(cls) -> str | None:
        """The part that is looked at."""
        state = cls._current()
        return None if state is None else state.subsystem

    @classmethod
    def disable_subsystem(
        cls, backend: str, subsystem: str, debug_info: Callable[[], str] | None = None
    ) -> bool:
        """Whether a part shall not act this time."""
        state = cls._current()
        if state is None or state.backend != backend or state.subsystem != subsystem:
            return False
        state.acted += 1
        if state.limit is None:
            return False
        if state.acted == state.limit and debug_info is not None:
            state.info = debug_info()
            if os.environ.get("TORCH_BISECT_REPORT"):
                with open(os.environ["TORCH_BISECT_REPORT"], "w") as file:
                    file.write(state.info)
        return state.acted > state.limit

    @classmethod
    def _current(cls) -> _State | None:
        if cls._state is None and "TORCH_BISECT_BACKEND" in os.environ:
            limit = os.environ.get("TORCH_BISECT_MAX")
            cls._state = _State(
                os.environ["TORCH_BISECT_BACKEND"],
                os.environ.get("TORCH_BISECT_SUBSYSTEM"),
                int(limit) if limit else None,
            )
        return cls._state

    # ---- search

    @classmethod
    def do_bisect(
        cls, fn: Callable[[], bool], cli_interface: bool = False
    ) -> BisectionResult | None:
        """Runs fn, which says whether all is well, until the part is known. None: it is always
        well."""

        def attempt(backend: str, subsystem: str | None, limit: int | None) -> _Attempt:
            with cls._as(_State(backend, subsystem, limit)) as state, _settings(state):
                import torch

                torch._dynamo.reset()
                return _Attempt(bool(fn()), state.acted, state.info)

        return _search(attempt)

    @classmethod
    @contextlib.contextmanager
    def _as(cls, state: _State) -> Iterator[_State]:
        before, cls._state = cls._state, state
        cls.bisection_enabled = True
        try:
            yield state
        finally:
            cls._state = before
            cls.bisection_enabled = before is not None

    @classmethod
    def command(cls, command: list[str]) -> BisectionResult | None:
        """do_bisect for a program: well means exit status 0."""
        import subprocess
        import tempfile

        def attempt(backend: str, subsystem: str | None, limit: int | None) -> _Attempt:
            with tempfile.TemporaryDirectory() as folder:
                report = os.path.join(folder, "info")
                env = {**os.environ, "TORCH_BISECT_BACKEND": backend, "TORCH_BISECT_REPORT": report}
                if subsystem is not None:
                    env["TORCH_BISECT_SUBSYSTEM"] = subsystem
                if limit is not None:
                    env["TORCH_BISECT_MAX"] = str(limit)
                done = subprocess.run(command, env=env, check=False)
                info = None
                if os.path.exists(report):
                    with open(report) as file:
                        info = file.read()
            return _Attempt(done.returncode == 0, None, info)

        return _search(attempt)


@dataclasses.dataclass
class _Attempt:
    well: bool
    acted: int | None
    info: str | None


Try = Callable[[str, str | None, int | None], _Attempt]
_MOST = 1 << 12


def _search(attempt: Try) -> BisectionResult | None:
    for backend, parts in BACKENDS.items():
        if attempt(backend, None, None).well:
            continue
        for name, setting in parts:
            if not attempt(backend, name, 0).well:
                continue
            if setting is not None:
                return BisectionResult(backend, name)
            number, info = _first_bad(attempt, backend, name)
            return BisectionResult(backend, name, number, info)
        return BisectionResult(backend)
    return None


def _first_bad(attempt: Try, backend: str, name: str) -> tuple[int, str | None]:
    """The smallest number of times that a part acts with which it fails."""
    everything = attempt(backend, name, _MOST)
    low, high = 0, everything.acted if everything.acted is not None else _MOST
    while high - low > 1:
        middle = (low + high) // 2
        if attempt(backend, name, middle).well:
            low = middle
        else:
            high = middle
    return high, attempt(backend, name, high).info


@contextlib.contextmanager
def _settings(state: _State) -> Iterator[None]:
    """A part that is a setting is tried by setting it."""
    from torch._functorch import config as aot_config
    from torch._inductor import config

    setting = dict(BACKENDS[state.backend]).get(state.subsystem)
    if setting is None or state.limit is None:
        yield
    elif state.subsystem == "cse":
        with aot_config.patch(cse=setting):
            yield
    else:
        with config.patch({state.subsystem: setting}):
            yield


def main(argv: list[str]) -> int:
    """python -m torch._inductor.compiler_bisector run CMD..."""
    if len(argv) < 2 or argv[0] != "run":
        print("usage: python -m torch._inductor.compiler_bisector run CMD...", file=sys.stderr)
        return 2
    found = CompilerBisector.command(argv[1:])
    print(f"Bisection status: {found}" if found else "The command does not fail with any backend.")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
