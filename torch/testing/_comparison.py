"""assert_close: compares tensors, numbers and containers of them, and says where and by how much
they differ."""

from __future__ import annotations

import cmath
from collections.abc import Mapping, Sequence

import torch

_PRECISIONS = {
    torch.float16: (1e-3, 1e-5),
    torch.bfloat16: (1.6e-2, 1e-5),
    torch.float32: (1.3e-6, 1e-5),
    torch.float64: (1e-7, 1e-7),
    torch.complex32: (1e-3, 1e-5),
    torch.complex64: (1.3e-6, 1e-5),
    torch.complex128: (1e-7, 1e-7),
    torch.quint8: (1.3e-6, 1e-5),
    torch.qint8: (1.3e-6, 1e-5),
    torch.qint32: (1.3e-6, 1e-5),
}


def default_tolerances(*inputs, dtype_precisions=None) -> tuple[float, ...]:
    """The largest default (rtol, atol) of the dtypes of the inputs; zero for integers."""
    table = {**_PRECISIONS, **(dtype_precisions or {})}
    dtypes = [item.dtype if isinstance(item, torch.Tensor) else item for item in inputs]
    pairs = [table.get(dtype, (0.0, 0.0)) for dtype in dtypes]
    return max(p[0] for p in pairs), max(p[1] for p in pairs)


def get_tolerances(*inputs, rtol, atol, id=()) -> tuple[float, ...]:
    """The given tolerances, or the defaults when neither is given."""
    if (rtol is None) != (atol is None):
        missing = "rtol" if rtol is None else "atol"
        raise ValueError(
            f"Both 'rtol' and 'atol' must be either specified or omitted, but got no {missing}."
        )
    return (rtol, atol) if rtol is not None else default_tolerances(*inputs)


class _Comparison:
    """One assert_close call: its options and the path to the pair in hand."""

    def __init__(self, **options) -> None:
        self.__dict__.update(options)

    def fail(self, message, path, error=AssertionError):
        if path:
            message += "\n\nThe failure occurred for item " + "".join(f"[{key!r}]" for key in path)
        if error is AssertionError and self.msg is not None:
            message = self.msg(message) if callable(self.msg) else self.msg
        raise error(message)

    def compare(self, actual, expected, path=()):
        if isinstance(actual, torch.Tensor) and isinstance(expected, torch.Tensor):
            return self.tensors(actual, expected, path)
        if actual is None or expected is None:
            if actual is not expected:
                self.fail(f"None mismatch: {actual} is not {expected}", path)
            return None
        if isinstance(actual, bool) and isinstance(expected, bool):
            if actual is not expected:
                self.fail(f"Booleans mismatch: {actual} is not {expected}", path)
            return None
        numbers = (int, float, complex)
        if isinstance(actual, numbers) and isinstance(expected, numbers):
            return self.numbers(actual, expected, path)
        if isinstance(actual, Mapping) and isinstance(expected, Mapping):
            return self.mappings(actual, expected, path)
        sequences = isinstance(actual, Sequence) and isinstance(expected, Sequence)
        if sequences and not isinstance(actual, str) and not isinstance(expected, str):
            return self.sequences(actual, expected, path)
        if _is_array(actual) and _is_array(expected):
            return self.tensors(torch.as_tensor(actual), torch.as_tensor(expected), path)
        return self.fail(
            f"No comparison pair was able to handle inputs of type {type(actual)} and "
            f"{type(expected)}.",
            path,
            TypeError,
        )

    def mappings(self, actual, expected, path) -> None:
        if set(actual) != set(expected):
            message = "The keys of the mappings do not match:"
            missing, additional = set(expected) - set(actual), set(actual) - set(expected)
            message += f"\nMissing keys in the actual mapping: {sorted(missing)}"
            message += f"\nAdditional keys in the actual mapping: {sorted(additional)}"
            self.fail(message, path)
        for key in expected:
            self.compare(actual[key], expected[key], (*path, key))

    def sequences(self, actual, expected, path) -> None:
        if len(actual) != len(expected):
            self.fail(
                f"The length of the sequences mismatch: {len(actual)} != {len(expected)}", path
            )
        for i, (a, e) in enumerate(zip(actual, expected, strict=True)):
            self.compare(a, e, (*path, i))

    def numbers(self, actual, expected, path) -> None:
        if self.check_dtype and type(actual) is not type(expected):
            self.fail(f"The (d)types do not match: {type(actual)} != {type(expected)}.", path)
        kinds = {float: torch.float64, complex: torch.complex128}
        dtypes = [kinds.get(type(v), torch.int64) for v in (actual, expected)]
        rtol, atol = get_tolerances(*dtypes, rtol=self.rtol, atol=self.atol)
        if cmath.isnan(expected) and cmath.isnan(actual) and self.equal_nan:
            return
        difference = abs(actual - expected)
        if actual == expected or (
            cmath.isfinite(difference) and difference <= atol + rtol * abs(expected)
        ):
            return
        relative = difference / abs(expected) if expected != 0 else float("inf")
        self.fail(_scalar_message(actual, expected, difference, relative, rtol, atol), path)

    # ---- tensors

    def tensors(self, actual, expected, path) -> None:
        if not self.allow_subclasses and type(actual) is not type(expected):
            self.fail(
                f"No comparison pair was able to handle inputs of type {type(actual)} and "
                f"{type(expected)}.",
                path,
                TypeError,
            )
        self.attribute("shape", actual.shape, expected.shape, path)
        if self.check_device:
            self.attribute("device", actual.device, expected.device, path)
        if self.check_dtype:
            self.attribute("dtype", actual.dtype, expected.dtype, path)
        if self.check_layout:
            self.attribute("layout", actual.layout, expected.layout, path)
        if self.check_stride and actual.layout is torch.strided:
            self.attribute("stride()", actual.stride(), expected.stride(), path)
        if actual.is_meta or expected.is_meta:
            return
        rtol, atol = get_tolerances(actual, expected, rtol=self.rtol, atol=self.atol)
        with torch.no_grad():
            self.values(*_comparable(actual, expected), rtol, atol, path)

    def attribute(self, name, actual, expected, path) -> None:
        if actual != expected:
            self.fail(
                f"The values for attribute '{name}' do not match: {actual} != {expected}.", path
            )

    def values(self, actual, expected, rtol, atol, path) -> None:
        if rtol == 0 and atol == 0 and not self.equal_nan:
            close = actual == expected
        else:
            close = torch.isclose(actual, expected, rtol=rtol, atol=atol, equal_nan=self.equal_nan)
        if bool(close.all()):
            return
        if actual.dim() == 0:
            a, e = actual.item(), expected.item()
            difference = abs(a - e)
            relative = difference / abs(e) if e != 0 else float("inf")
            self.fail(_scalar_message(a, e, difference, relative, rtol, atol), path)
        self.fail(_tensor_message(actual, expected, close, rtol, atol), path)


def _is_array(value) -> bool:
    return hasattr(value, "__array_interface__")


def _comparable(actual, expected) -> tuple[torch.Tensor, torch.Tensor]:
    """Dense CPU tensors of one dtype in which differences can be taken."""
    if actual.layout is not torch.strided:
        actual, expected = actual.to_dense(), expected.to_dense()
    actual, expected = actual.detach().cpu(), expected.detach().cpu()
    common = torch.promote_types(actual.dtype, expected.dtype)
    if common.is_floating_point and common.itemsize == 1:
        common = torch.float32
    return actual.to(common), expected.to(common)


def _kind(rtol, atol) -> str:
    return "equal" if rtol == 0 and atol == 0 else "close"


def _allowed(tolerance, rtol, atol) -> str:
    return "" if _kind(rtol, atol) == "equal" else f" (up to {tolerance} allowed)"


def _scalar_message(actual, expected, difference, relative, rtol, atol) -> str:
    return (
        f"Scalars are not {_kind(rtol, atol)}!\n\nExpected {expected} but got {actual}.\n"
        f"Absolute difference: {difference}{_allowed(atol, rtol, atol)}\n"
        f"Relative difference: {relative}{_allowed(rtol, rtol, atol)}"
    )


def _worst(values, close) -> tuple[float, tuple[int, ...]]:
    """The largest value among the elements that differ, and its index. Elements that agree count as
    zero."""
    flat = values.masked_fill(close, 0).flatten()
    position = int(flat.argmax())
    value, index = flat[position].item(), []
    for length in reversed(values.shape):
        position, coordinate = divmod(position, length)
        index.append(coordinate)
    return value, tuple(reversed(index))


def _tensor_message(actual, expected, close, rtol, atol) -> str:
    if actual.dtype is torch.bool or not (actual.is_floating_point() or actual.is_complex()):
        actual, expected = actual.to(torch.int64), expected.to(torch.int64)
    absolute = (actual - expected).abs()
    relative = absolute / expected.abs()
    count, total = int((~close).sum()), close.numel()
    worst_absolute, at_absolute = _worst(absolute, close)
    worst_relative, at_relative = _worst(relative, close)
    return (
        f"Tensor-likes are not {_kind(rtol, atol)}!\n\n"
        f"Mismatched elements: {count} / {total} ({count / total:.1%})\n"
        f"Greatest absolute difference: {worst_absolute} at index "
        f"{at_absolute}{_allowed(atol, rtol, atol)}\n"
        f"Greatest relative difference: {worst_relative} at index "
        f"{at_relative}{_allowed(rtol, rtol, atol)}"
    )


def assert_close(
    actual,
    expected,
    *,
    allow_subclasses=True,
    rtol=None,
    atol=None,
    equal_nan=False,
    check_device=True,
    check_dtype=True,
    check_layout=True,
    check_stride=False,
    msg=None,
) -> None:
    """Raises AssertionError unless |actual - expected| <= atol + rtol * |expected| everywhere.

    Compares tensors, numbers, and sequences and mappings of them. Without tolerances those of
    the dtypes are used."""
    options = locals()
    del options["actual"], options["expected"]
    comparison = _Comparison(**options)
    if (rtol is None) != (atol is None):
        get_tolerances(rtol=rtol, atol=atol)
    comparison.compare(actual, expected)


def assert_allclose(actual, expected, rtol=None, atol=None, equal_nan=True, msg="") -> None:
    """The old form of assert_close: converts to tensors and ignores dtypes and devices."""
    is_tensor = torch.is_tensor
    found = actual if is_tensor(actual) else torch.tensor(actual)
    wanted = expected if is_tensor(expected) else torch.tensor(expected, dtype=found.dtype)
    given = (rtol, atol) != (None, None)
    rtol, atol = (rtol, atol) if given else default_tolerances(found, wanted)
    loose = {"equal_nan": equal_nan, "check_dtype": False}
    assert_close(found, wanted, rtol=rtol, atol=atol, msg=msg or None, **loose)
