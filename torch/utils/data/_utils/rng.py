"""The random numbers of a process as one thing: Python's, NumPy's where it is loaded, and torch's.
NumPy is never imported for this; where a program imports it later, it is seeded then."""

from __future__ import annotations

import importlib.machinery
import random
import sys

import torch

__all__ = ["capture", "draw_seed", "portable", "restore", "same", "seed_all"]


def draw_seed(generator=None) -> int:
    """A number of 63 bits, from torch's random numbers."""
    return torch.empty((), dtype=torch.int64).random_(generator=generator).item()


def _numpy_random():
    return sys.modules.get("numpy.random")


def capture():
    """The states as they are."""
    numpy_random = _numpy_random()
    return {
        "python": random.getstate(),
        "torch": torch.get_rng_state(),
        "numpy": numpy_random.get_state() if numpy_random is not None else None,
    }


def same(one, other):
    """Whether two captures are of the same states."""
    if one is None or other is None or one["python"] != other["python"]:
        return False
    if not torch.equal(one["torch"], other["torch"]):
        return False
    first, second = one["numpy"], other["numpy"]
    if first is None or second is None:
        return first is second
    return first[2:] == second[2:] and bool((first[1] == second[1]).all())


def portable(state):
    """A capture in plain types, which torch.load(weights_only=True) reads."""
    if state is None or state["numpy"] is None or isinstance(state["numpy"][1], tuple):
        return state
    name, keys, *rest = state["numpy"]
    return {**state, "numpy": (str(name), tuple(keys.tolist()), *rest)}


def restore(state) -> None:
    """Puts a capture back."""
    version, keys, gauss = state["python"]
    random.setstate((version, tuple(keys), gauss))
    torch.set_rng_state(state["torch"])
    if state["numpy"] is not None:
        _with_numpy(lambda numpy_random: numpy_random.set_state(_legacy(numpy_random, state)))


def _legacy(numpy_random, state):
    name, keys, *rest = state["numpy"]
    import numpy

    return (name, numpy.array(keys, dtype=numpy.uint32), *rest)


def numpy_words(numpy_random, base_seed, worker_id):
    """The four words that NumPy's generator of a worker starts from."""
    words = [worker_id, base_seed & 0xFFFFFFFF, base_seed >> 32, 0]
    return numpy_random.SeedSequence(words).generate_state(4)


def seed_all(base_seed, worker_id) -> None:
    """Seeds for a worker: base_seed + worker_id for Python and torch; NumPy's from both numbers,
    because its generator takes four words."""
    random.seed(base_seed + worker_id)
    torch.manual_seed(base_seed + worker_id)

    def seed_numpy(numpy_random) -> None:
        numpy_random.seed(numpy_words(numpy_random, base_seed, worker_id))

    _with_numpy(seed_numpy)


class _SeedOnImport:
    """Acts on numpy.random right after it is imported, once."""

    def __init__(self, action) -> None:
        self.action = action

    def find_spec(self, name, path=None, target=None):
        """Finds numpy.random as without this, with a loader that calls the action."""
        if name != "numpy.random":
            return None
        sys.meta_path.remove(self)
        spec = importlib.machinery.PathFinder.find_spec(name, path, target)
        if spec is None or spec.loader is None:
            return spec
        loader, run, action = spec.loader, spec.loader.exec_module, self.action

        def exec_module(module) -> None:
            run(module)
            action(module)

        loader.exec_module = exec_module
        return spec


def _with_numpy(action) -> None:
    """Acts on numpy.random now or, where nothing has imported it, when something does."""
    for finder in [f for f in sys.meta_path if isinstance(f, _SeedOnImport)]:
        sys.meta_path.remove(finder)
    numpy_random = _numpy_random()
    if numpy_random is not None:
        action(numpy_random)
    else:
        sys.meta_path.insert(0, _SeedOnImport(action))
