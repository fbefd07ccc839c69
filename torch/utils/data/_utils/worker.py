"""What a dataset can ask about the process it is read in. The loop of a worker is in worker_loop,
which this process loads only when it starts workers."""

import dataclasses
import os

__all__ = ["WorkerInfo", "get_worker_info"]

_worker_info = None


class WorkerInfo:
    """The worker a process is: `id`, `num_workers`, `seed` and the copy of `dataset` it reads."""

    __initialized = False

    def __init__(self, **kwargs) -> None:
        self.__keys = tuple(kwargs)
        for name, value in kwargs.items():
            setattr(self, name, value)
        self.__initialized = True

    def __setattr__(self, name, value) -> None:
        if self.__initialized:
            raise RuntimeError(f"Cannot assign attributes to {type(self).__name__} objects")
        super().__setattr__(name, value)

    def __repr__(self) -> str:
        items = ", ".join(f"{name}={getattr(self, name)}" for name in self.__keys)
        return f"{type(self).__name__}({items})"


# ---- for loaders that run workers of their own


@dataclasses.dataclass(frozen=True)
class _IterableDatasetStopIteration:
    """A worker's answer when its dataset has ended."""

    worker_id: int


@dataclasses.dataclass(frozen=True)
class _ResumeIteration:
    """Tells workers that another pass begins, and how all of them shuffle."""

    seed: int | None = None


class ManagerWatchdog:
    """Tells a worker whether the process that started it still lives."""

    def __init__(self) -> None:
        self.manager_pid = os.getppid()

    def is_alive(self):
        """A process whose parent has ended is given to another."""
        return os.getppid() == self.manager_pid


def _generate_state(base_seed, worker_id):
    """The words with which a worker seeds NumPy, for loaders that start workers of their own."""
    import numpy

    from torch.utils.data._utils import rng

    return rng.numpy_words(numpy.random, base_seed, worker_id).tolist()


def get_worker_info():
    """The worker this process is, or None in the main process."""
    return _worker_info
