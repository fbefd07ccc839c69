"""numpy.random: draws from torch's generator, or from NumPy's where
`torch._dynamo.config.use_numpy_random_stream` is set. Without a size the result is a Python number.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable

import torch
from torch._numpy import _dtypes
from torch._numpy._ndarray import ndarray
from torch._numpy._util import to_array, to_tensor

__all__ = [
    "choice",
    "normal",
    "rand",
    "randint",
    "randn",
    "random",
    "random_sample",
    "sample",
    "seed",
    "shuffle",
    "uniform",
]


def use_numpy_random() -> bool:
    import torch._dynamo.config as config

    return config.use_numpy_random_stream


def _from_stream(function: Callable) -> Callable:
    """Takes the numbers from NumPy's generator where that was chosen."""

    @functools.wraps(function)
    def wrapper(*args: object, **kwargs: object) -> object:
        if not use_numpy_random():
            return function(*args, **kwargs)
        import numpy

        plain = [a.tensor.numpy() if isinstance(a, ndarray) else a for a in args]
        named = {k: v.tensor.numpy() if isinstance(v, ndarray) else v for k, v in kwargs.items()}
        found = getattr(numpy.random, function.__name__)(*plain, **named)
        return to_array(torch.from_numpy(found)) if isinstance(found, numpy.ndarray) else found

    return wrapper


def _given(values: torch.Tensor, size: object) -> object:
    return values.item() if size is None else to_array(values)


def _sizes(size: object) -> tuple[int, ...]:
    if size is None:
        return ()
    return (size,) if isinstance(size, int) else tuple(size)  # type: ignore[arg-type]


@_from_stream
def seed(seed: int | None = None) -> None:
    if seed is not None:
        torch.random.manual_seed(seed)


@_from_stream
def random_sample(size: object = None) -> object:
    return _given(torch.rand(_sizes(size), dtype=_dtypes.defaults.float), size)


@_from_stream
def random(size: object = None) -> object:
    return random_sample(size)


@_from_stream
def sample(size: object = None) -> object:
    return random_sample(size)


@_from_stream
def rand(*size: int) -> object:
    return random_sample(size or None)


@_from_stream
def uniform(low: float = 0.0, high: float = 1.0, size: object = None) -> object:
    draws = torch.rand(_sizes(size), dtype=_dtypes.defaults.float)
    return _given(low + draws * (high - low), size)


@_from_stream
def normal(loc: float = 0.0, scale: float = 1.0, size: object = None) -> object:
    draws = torch.randn(_sizes(size), dtype=_dtypes.defaults.float)
    return _given(loc + draws * scale, size)


@_from_stream
def randn(*size: int) -> object:
    return normal(size=size or None)


@_from_stream
def randint(low: int, high: int | None = None, size: object = None) -> object:
    if high is None:
        low, high = 0, low
    return _given(torch.randint(int(low), int(high), _sizes(size)), size)


@_from_stream
def shuffle(x: object) -> None:
    """Changes the order along the first axis, in place."""
    if not isinstance(x, (ndarray, torch.Tensor)):
        raise NotImplementedError("We do not random.shuffle lists in-place")
    target = to_tensor(x)
    target.copy_(target[torch.randperm(target.shape[0])])


@_from_stream
def choice(a: object, size: object = None, replace: bool = True, p: object = None) -> object:
    """Draws from a range or from an array, evenly or by the probabilities `p`."""
    values = to_tensor(a)
    if values.numel() == 1:
        values = torch.arange(int(values))
    count = values.shape[0]
    draws = math.prod(_sizes(size))
    if p is None:
        weights = torch.full((count,), 1 / count, dtype=torch.float64)
    else:
        weights = to_tensor(p).to(torch.float64)
        if weights.shape[0] != count:
            raise ValueError("'a' and 'p' must have the same size")
        if bool((weights < 0).any()):
            raise ValueError("probabilities are not non-negative")
        if abs(weights.sum().item() - 1) > math.sqrt(torch.finfo(torch.float64).eps):
            raise ValueError("probabilities do not sum to 1")
    if not replace and draws > count:
        raise ValueError("Cannot take a larger sample than population when replace=False")
    places = torch.multinomial(weights, draws, replacement=replace)
    return _given(values[places.reshape(_sizes(size))], size)
