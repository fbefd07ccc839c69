"""What a dataset can ask about the process it is read in. The loop of a worker is in worker_loop,
which this process loads only when it starts workers."""

__all__ = ["WorkerInfo", "get_worker_info"]

_worker_info = None


class WorkerInfo:
    """The worker a process is: `id`, `num_workers`, `seed` and the copy of `dataset` it reads."""

    __initialized = False

    def __init__(self, **kwargs):
        self.__keys = tuple(kwargs)
        for name, value in kwargs.items():
            setattr(self, name, value)
        self.__initialized = True

    def __setattr__(self, name, value):
        if self.__initialized:
            raise RuntimeError(f"Cannot assign attributes to {type(self).__name__} objects")
        super().__setattr__(name, value)

    def __repr__(self):
        items = ", ".join(f"{name}={getattr(self, name)}" for name in self.__keys)
        return f"{type(self).__name__}({items})"


def _generate_state(base_seed, worker_id):
    """The words with which a worker seeds NumPy, for loaders that start workers of their own."""
    import numpy

    from torch.utils.data._utils import rng

    return rng.numpy_words(numpy.random, base_seed, worker_id).tolist()


def get_worker_info():
    """The worker this process is, or None in the main process."""
    return _worker_info
