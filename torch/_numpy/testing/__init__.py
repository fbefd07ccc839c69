"""numpy.testing for arrays of `torch._numpy`: comparisons that say where values differ."""

from __future__ import annotations

import contextlib
import re
import sys
import unittest
import warnings
from collections.abc import Iterator

import torch
import torch._numpy as np
from torch._numpy._util import to_tensor

HAS_REFCOUNT = hasattr(sys, "getrefcount")
IS_WASM = False


def assert_(val: object, msg: object = "") -> None:
    if not val:
        raise AssertionError(msg() if callable(msg) else msg)


def _as_array(value: object) -> np.ndarray:
    return value if isinstance(value, np.ndarray) else np.asarray(value)


def _text(actual: object, desired: object, header: str, err_msg: object) -> str:
    return f"\n{header}\n{err_msg}\n ACTUAL: {actual!r}\n DESIRED: {desired!r}"


def _checked_shapes(actual: np.ndarray, desired: np.ndarray, header: str, err_msg: object) -> None:
    one = actual.shape == () or desired.shape == ()
    if actual.shape != desired.shape and not one:
        shapes = f"(shapes {actual.shape}, {desired.shape} mismatch)"
        raise AssertionError(_text(actual, desired, f"{header} {shapes}", err_msg))


def _with_equal_nan(actual: torch.Tensor, desired: torch.Tensor) -> torch.Tensor:
    same = actual == desired
    for t in (actual, desired):
        if not (t.is_floating_point() or t.is_complex()):
            return same
    return same | (torch.isnan(actual) & torch.isnan(desired))


def assert_array_equal(
    x: object, y: object, err_msg: object = "", verbose: bool = True, *, strict: bool = False
) -> None:
    """All elements are equal; NaN equals NaN."""
    first, second = _as_array(x), _as_array(y)
    if strict and (first.dtype != second.dtype or first.shape != second.shape):
        raise AssertionError(_text(first, second, "Arrays are not equal", err_msg))
    _checked_shapes(first, second, "Arrays are not equal", err_msg)
    if not bool(_with_equal_nan(first.tensor, second.tensor).all()):
        raise AssertionError(_text(first, second, "Arrays are not equal", err_msg))


def assert_equal(
    actual: object, desired: object, err_msg: object = "", verbose: bool = True
) -> None:
    """Equal values, in containers too; NaN equals NaN."""
    if isinstance(desired, dict):
        if not isinstance(actual, dict):
            raise AssertionError(repr(type(actual)))
        assert_equal(len(actual), len(desired), err_msg)
        for key, value in desired.items():
            if key not in actual:
                raise AssertionError(repr(key))
            assert_equal(actual[key], value, f"key={key!r}\n{err_msg}")
        return
    plain = (list, tuple)
    if isinstance(desired, plain) and isinstance(actual, plain):
        assert_equal(len(actual), len(desired), err_msg)
        for k, (a, d) in enumerate(zip(actual, desired, strict=True)):
            assert_equal(a, d, f"item={k!r}\n{err_msg}")
        return
    arrays = (np.ndarray, torch.Tensor)
    if isinstance(actual, (*arrays, *plain)) or isinstance(desired, (*arrays, *plain)):
        assert_array_equal(actual, desired, err_msg)
        return
    same = actual == desired or (actual != actual and desired != desired)
    if not same:
        raise AssertionError(_text(actual, desired, "Items are not equal:", err_msg))


def assert_allclose(
    actual: object,
    desired: object,
    rtol: float = 1e-07,
    atol: float = 0,
    equal_nan: bool = True,
    err_msg: object = "",
    verbose: bool = True,
    check_dtype: bool = False,
) -> None:
    """Values differ by at most atol + rtol * |desired|."""
    first, second = _as_array(actual), _as_array(desired)
    if check_dtype and first.dtype != second.dtype:
        raise AssertionError(f"dtypes differ: {first.dtype} and {second.dtype}")
    header = f"Not equal to tolerance rtol={rtol}, atol={atol}"
    _checked_shapes(first, second, header, err_msg)
    if not np.allclose(first, second, rtol=rtol, atol=atol, equal_nan=equal_nan):
        raise AssertionError(_text(first, second, header, err_msg))


def assert_array_almost_equal(
    x: object, y: object, decimal: int = 6, err_msg: object = "", verbose: bool = True
) -> None:
    """Values differ by less than 1.5 units of the given decimal."""
    first, second = _as_array(x), _as_array(y)
    header = f"Arrays are not almost equal to {decimal} decimals"
    _checked_shapes(first, second, header, err_msg)
    a, b = first.tensor, second.tensor
    kind = torch.complex128 if a.is_complex() or b.is_complex() else torch.float64
    a, b = torch.broadcast_tensors(a.to(kind), b.to(kind))
    close = (a - b).abs() < 1.5 * 10.0**-decimal
    if not bool((close | _with_equal_nan(a, b)).all()):
        raise AssertionError(_text(first, second, header, err_msg))


def assert_almost_equal(
    actual: object, desired: object, decimal: int = 7, err_msg: object = "", verbose: bool = True
) -> None:
    assert_array_almost_equal(actual, desired, decimal, err_msg)


def assert_array_less(x: object, y: object, err_msg: object = "", verbose: bool = True) -> None:
    first, second = _as_array(x), _as_array(y)
    _checked_shapes(first, second, "Arrays are not less-ordered", err_msg)
    if not bool((to_tensor(first) < to_tensor(second)).all()):
        raise AssertionError(_text(first, second, "Arrays are not less-ordered", err_msg))


class _Case(unittest.TestCase):
    def runTest(self) -> None:
        pass


def assert_raises_regex(exception: type, expected: str, *args: object, **kwargs: object) -> object:
    return _Case().assertRaisesRegex(exception, expected, *args, **kwargs)


@contextlib.contextmanager
def _warns(category: type[Warning]) -> Iterator[None]:
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        yield
    if not any(issubclass(w.category, category) for w in seen):
        raise AssertionError(f"{category} was not raised")


def assert_warns(category: type[Warning], *args: object, **kwargs: object) -> object:
    """A context, or a call, in which a warning of the category is given."""
    if not args:
        return _warns(category)
    with _warns(category):
        return args[0](*args[1:], **kwargs)  # type: ignore[operator]


class suppress_warnings:
    """A context that hides warnings, all or those of `filter` and `record`."""

    def __init__(self, forwarding_rule: str = "always") -> None:
        self._rules: list[tuple[type[Warning], str]] = []
        self.log: list[object] = []

    def filter(
        self, category: type[Warning] = Warning, message: str = "", module: object = None
    ) -> None:
        warnings.filterwarnings("ignore", re.escape(message), category)

    def record(
        self, category: type[Warning] = Warning, message: str = "", module: object = None
    ) -> list:
        warnings.filterwarnings("always", re.escape(message), category)
        return self.log

    def __enter__(self) -> suppress_warnings:
        self._caught = warnings.catch_warnings(record=True)
        self.log = self._caught.__enter__()  # type: ignore[assignment]
        return self

    def __exit__(self, *exc: object) -> None:
        self._caught.__exit__(*exc)


def _gen_alignment_data(
    dtype: object = np.float32, type: str = "binary", max_size: int = 24
) -> Iterator:
    """Operands of many lengths and offsets, with results apart or over an operand."""
    for o in range(3):
        for s in range(o + 2, max(o + 3, max_size)):

            def line(start: int, s: int = s) -> object:
                return np.arange(s, dtype=dtype)[start:]

            def empty(s: int = s, o: int = o) -> object:
                return np.empty((s,), dtype=dtype)[o:]

            if type == "unary":
                yield empty(), (lambda line=line, o=o: line(o)), f"{s} elements from {o}"
                held = line(o)
                yield held, (lambda held=held: held), f"{s} elements from {o} in place"
            else:
                yield (
                    empty(),
                    (lambda l=line, o=o: l(o)),
                    (lambda l=line, o=o: l(o)),
                    f"{s} from {o}",
                )
