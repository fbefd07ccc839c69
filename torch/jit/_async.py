"""fork and wait. A forked call runs at once, on the calling thread; its future is done."""

from __future__ import annotations

import torch


def done_future(value: object) -> torch.futures.Future:
    """A future that has its value."""
    future = torch.futures.Future()
    future.set_result(value)
    return future


def fork(func, *args, **kwargs) -> torch.futures.Future:
    """Calls func and returns a future that is done."""
    return done_future(func(*args, **kwargs))


def wait(future):
    """The result of a future."""
    if future is None:
        raise RuntimeError("Future can't be None")
    return future.wait()
