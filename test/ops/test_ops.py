"""Every operator, mechanically, from the op records of torch/testing/_internal/opinfo: values
against a double precision reference for each dtype, the meta device, out= and in-place forms,
layouts, errors and thread counts. One test is one record and one property; it tries every sample
and dtype and lists all that fail. test_ops_gradients.py checks derivatives, test_op_records.py the
records themselves."""

import re
import warnings

import numpy as np
import pytest

import torch
from torch.testing._internal.opinfo import records
from torch.testing._internal.opinfo.core import (
    SampleInput,
    flat_arrays,
    flat_tensors,
    resolve,
    to_numpy,
)

RECORDS = records()


def each(condition=lambda record: True, quick=3):
    """One test per record for which the condition holds. All but every quick-th are slow tests:
    make test-quick runs the same slice each time."""
    chosen = [r for r in RECORDS if condition(r)]
    return pytest.mark.parametrize(
        "record",
        [
            pytest.param(r, id=r.full_name, marks=[pytest.mark.slow] if i % quick else [])
            for i, r in enumerate(chosen)
        ],
    )


class Failures:
    """Collects what fails in one test, so that one sample does not hide another."""

    def __init__(self, record, test):
        self.record, self.test, self.found = record, test, []

    def attempt(self, sample, dtype, check):
        if self.record.skip_reason(self.test, dtype):
            return
        try:
            with warnings.catch_warnings(), np.errstate(all="ignore"):
                warnings.simplefilter("ignore")
                check()
        except Exception as error:
            text = str(error).strip()[:600]
            summary = sample.summary() if sample is not None else ""
            self.found.append(f"{dtype} ({summary}): {type(error).__name__}: {text}")

    def report(self):
        if self.found:
            shown = "\n".join(self.found[:6])
            pytest.fail(f"{self.record.full_name}: {len(self.found)} failures\n{shown}", False)


def clone(sample):
    """The sample with its own tensors, for calls that write into them."""
    return sample.transform(lambda t: t.detach().clone())


def compare(record, result, expected):
    """Values of the results against the reference's arrays, within the tolerance of each dtype."""
    results, arrays = flat_tensors(result), flat_arrays(expected)
    assert len(results) == len(arrays), f"{len(results)} results, reference has {len(arrays)}"
    for actual, array in zip(results, arrays, strict=True):
        assert tuple(actual.shape) == array.shape, f"shape {actual.shape}, expected {array.shape}"
        values = to_numpy(actual)
        if not (actual.is_floating_point() or actual.is_complex()):
            kind = bool if actual.dtype is torch.bool else str(actual.dtype)[6:]
            np.testing.assert_array_equal(values, array.astype(kind).astype(values.dtype))
            continue
        rtol, atol = record.tolerance(actual.dtype)
        np.testing.assert_allclose(values, array, rtol, atol, equal_nan=True)


@each(lambda r: r.ref or r.check)
def test_value_equals_reference(record):
    failures = Failures(record, "value")
    for dtype in record.dtypes:
        for sample in record.sample_inputs("cpu", dtype):

            def check(sample=sample, dtype=dtype):
                kept = clone(sample)
                result = record.apply(sample)
                if record.check:
                    return record.check(kept, result)
                compare(record, result, reference(record, kept))
                wanted = record.result_dtype(dtype)
                got = flat_tensors(result)[0].dtype
                # A number beside a bool tensor promotes it, which the rules leave out.
                if wanted and not (
                    dtype is torch.bool and wanted is torch.bool and _has_number(kept)
                ):
                    assert wanted is got, f"dtype {got}, expected {wanted}"
                return None

            failures.attempt(sample, dtype, check)
    failures.report()


def _has_number(sample):
    return any(isinstance(v, (int, float, complex)) for v in sample.args)


def reference(record, sample):
    """The record's reference on the sample. NumPy computes with bool in half precision."""
    plain = sample.numpy()
    if str(record.out_dtype).startswith("float"):
        arrays = [plain.input, *plain.args]
        widened = [a * 1.0 if getattr(a, "dtype", "") == "bool" else a for a in arrays]
        plain = SampleInput(widened[0], args=widened[1:], kwargs=plain.kwargs)
    return record.ref(*_arguments(plain), **plain.kwargs)


def _arguments(sample):
    return (sample.input, *sample.args) if sample.input is not None or sample.args else ()


def _layout(tensor):
    return tuple(tensor.shape), tensor.dtype, tensor.stride()


@each(lambda r: not r.skip_reason("meta"), quick=4)
def test_meta_equals_real(record):
    failures = Failures(record, "meta")
    for dtype in _some_dtypes(record):
        for sample in record.sample_inputs("cpu", dtype):

            def check(sample=sample):
                meta = sample.transform(lambda t: t.to("meta"))
                if "device" in sample.kwargs:
                    meta.kwargs["device"] = "meta"
                real = flat_tensors(record.apply(clone(sample)))
                got = flat_tensors(record.apply(meta))
                assert [_layout(g) for g in got] == [_layout(r) for r in real]
                assert all(g.is_meta for g in got), "result is not on the meta device"

            failures.attempt(sample, dtype, check)
    failures.report()


def _some_dtypes(record):
    """One dtype of each kind: the heavy sweeps leave the others to test_value."""
    wanted = (torch.float32, torch.int64, torch.complex64, torch.bool)
    return [d for d in wanted if d in record.dtypes] or record.dtypes[:1]


def _equal_bits(a, b):
    assert (a.dtype, a.shape) == (b.dtype, b.shape), f"{a.dtype}{a.shape} != {b.dtype}{b.shape}"
    a, b = a.resolve_conj().resolve_neg(), b.resolve_conj().resolve_neg()
    if a.numel():
        a, b = (t.contiguous().view(-1).view(torch.uint8) for t in (a, b))
        assert torch.equal(a, b), "bits differ"


def _seeded(record, sample, **kwargs):
    torch.manual_seed(0)
    return record.apply(sample, **kwargs)


@each(lambda r: r.supports_out, quick=4)
def test_out_equals_functional_resizes_and_refuses_wrong_dtype(record):
    failures = Failures(record, "out")
    for dtype in _some_dtypes(record):
        for sample in record.sample_inputs("cpu", dtype):
            failures.attempt(sample, dtype, lambda s=sample: _check_out(record, s))
    failures.report()


def _as_out(tensors, expected):
    return tensors[0] if isinstance(expected, torch.Tensor) else tuple(tensors)


def _check_out(record, sample):
    expected = _seeded(record, clone(sample))
    wanted = flat_tensors(expected)
    for make in (torch.empty_like, lambda t: torch.empty(0, dtype=t.dtype)):
        outs = [make(t.contiguous()) for t in wanted]
        out = _as_out(outs, expected)
        got = _seeded(record, clone(sample), out=out)
        for o, w, g in zip(outs, wanted, flat_tensors(got), strict=True):
            assert g is o, "out= is not what is returned"
            _equal_bits(o, w)
    _check_wrong_size(record, sample, expected, wanted)
    if not record.skip_reason("out_dtype"):
        _check_wrong_dtype(record, sample, expected, wanted)


def _check_wrong_size(record, sample, expected, wanted):
    if not wanted[0].numel():
        return
    outs = [torch.zeros((*w.shape, 2), dtype=w.dtype) for w in wanted]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        _seeded(record, clone(sample), out=_as_out(outs, expected))
    assert any("resized" in str(w.message) for w in caught), "no warning about the resized output"
    for o, w in zip(outs, wanted, strict=True):
        _equal_bits(o, w)


def _check_wrong_dtype(record, sample, expected, wanted):
    if not (wanted[0].is_floating_point() or wanted[0].is_complex()):
        return
    outs = [torch.empty(w.shape, dtype=torch.int8) for w in wanted]
    with pytest.raises((RuntimeError, TypeError)) as raised:
        _seeded(record, clone(sample), out=_as_out(outs, expected))
    pattern = "can't be cast|dtype|expect|Expected|type"
    assert re.search(pattern, str(raised.value)), f"message: {raised.value}"


@each(lambda r: r.inplace and not r.skip_reason("inplace"), quick=4)
def test_inplace_and_method_equal_functional(record):
    failures = Failures(record, "inplace")
    inplace, method = record.get_inplace(), record.get_method()
    for dtype in _some_dtypes(record):
        for sample in record.sample_inputs("cpu", dtype):
            failures.attempt(
                sample, dtype, lambda s=sample: _check_inplace(record, inplace, method, s)
            )
    failures.report()


def _check_inplace(record, inplace, method, sample):
    expected = _seeded(record, clone(sample))
    if method is not None:
        torch.manual_seed(0)
        other = clone(sample)
        _equal_bits(method(other.input, *other.args, **other.kwargs), expected)
    target = clone(sample)
    torch.manual_seed(0)
    # The real result of complex numbers (abs) is not written into them.
    fits = torch.can_cast(expected.dtype, target.input.dtype) and not (
        record.out_dtype == "real" and target.input.is_complex()
    )
    if not fits or expected.shape != target.input.shape:
        with pytest.raises(RuntimeError):
            inplace(target.input, *target.args, **target.kwargs)
        return
    version = target.input._version
    got = inplace(target.input, *target.args, **target.kwargs)
    assert got is target.input, "does not return its own tensor"
    assert got._version > version, "version counter did not move"
    _equal_bits(got, expected.to(got.dtype))


def _expanded(t):
    """The tensor's first row everywhere, by a stride of 0."""
    return t.detach()[:1].expand(t.shape) if t.dim() and t.shape[0] else t.detach().clone()


def _offset(t):
    """The same values at an offset in a larger storage."""
    store = torch.zeros(t.numel() + 3, dtype=t.dtype, device=t.device)
    view = store[3:].view(t.shape)
    view.copy_(t.detach())
    return view


LAYOUTS = {
    "gaps": lambda s: s.noncontiguous(),
    "expanded": lambda s: s.transform(_expanded),
    "offset": lambda s: s.transform(_offset),
    "transposed": lambda s: s.transform(lambda t: t.detach().mT.contiguous().mT if t.dim() > 1
                                        else t.detach().clone()),
}  # fmt: skip


@each(lambda r: not r.skip_reason("layouts"), quick=4)
def test_result_does_not_depend_on_layout(record):
    failures = Failures(record, "layouts")
    for dtype in _some_dtypes(record)[:2]:
        for sample in record.sample_inputs("cpu", dtype):
            for name, layout in LAYOUTS.items():
                if name == "expanded" and record.skip_reason("expanded"):
                    continue
                failures.attempt(
                    sample, dtype, lambda s=sample, f=layout: _check_layout(record, s, f)
                )
    failures.report()


def _check_layout(record, sample, layout):
    moved = layout(clone(sample))
    plain = moved.transform(lambda t: t.detach().contiguous().clone())
    expected = flat_tensors(_seeded(record, plain))
    got = flat_tensors(_seeded(record, moved))
    assert len(expected) == len(got)
    for e, g in zip(expected, got, strict=True):
        rtol, atol = record.tolerance(g.dtype)
        torch.testing.assert_close(g, e, rtol=rtol, atol=atol, equal_nan=True)


@each(lambda r: not r.skip_reason("errors"), quick=4)
def test_errors_have_type_and_message(record):
    failures = Failures(record, "errors")
    for wrong in record.error_inputs("cpu"):

        def check(wrong=wrong):
            try:
                record.apply(wrong.sample_input)
            except wrong.error_type as raised:
                assert re.search(wrong.error_regex, str(raised)), (
                    f"message {raised!s:.300} does not match {wrong.error_regex!r}"
                )
                return
            raise AssertionError(f"no {wrong.error_type} raised")

        failures.attempt(wrong.sample_input, None, check)
    failures.report()


@each(lambda r: not r.skip_reason("threads"), quick=8)
def test_bits_do_not_depend_on_the_number_of_threads(record):
    failures = Failures(record, "threads")
    wanted = (torch.float32, torch.int64) if torch.float32 in record.dtypes else record.dtypes[:1]
    for dtype in [d for d in wanted if d in record.dtypes]:
        for sample in record.large_inputs("cpu", dtype):
            failures.attempt(sample, dtype, lambda s=sample: _check_threads(record, s))
    failures.report()


def _check_threads(record, sample):
    before = torch.get_num_threads()
    results = []
    try:
        for threads in (1, 2, 4):
            torch.set_num_threads(threads)
            results.append(flat_tensors(_seeded(record, clone(sample))))
    finally:
        torch.set_num_threads(before)
    for other in results[1:]:
        for first, second in zip(results[0], other, strict=True):
            _equal_bits(first, second)


@each(lambda r: r.aliases, quick=1)
def test_aliases_are_the_same_operator(record):
    sample = record.sample_inputs("cpu", record.dtypes[-1])[0]
    expected = flat_tensors(_seeded(record, clone(sample)))
    for alias in record.aliases:
        other = SampleInput(sample.input, args=sample.args, kwargs=sample.kwargs)
        function = resolve(alias)
        torch.manual_seed(0)
        got = flat_tensors(function(other.input, *other.args, **other.kwargs))
        for g, e in zip(got, expected, strict=True):
            _equal_bits(g, e)


# ---- infinities, NaN, zeros, subnormal numbers ---------------------------------------------------

EXTREMES = (0.0, -0.0, 1.0, -1.0, float("inf"), float("-inf"), float("nan"), 1e-310, -1e-40, 1e38,
            -1e300, 0.5, 2.0, -2.5, 100.0, -700.0)  # fmt: skip
_CAST = "NumPy and C leave the conversion of what does not fit open"
_LIMIT = "SciPy has NaN where the limit exists, or another one"
# Records whose results at some of these values are not the reference's, and why.
EXTREMES_DIFFER = {
    **dict.fromkeys("bfloat16 half float cfloat byte char short int long".split(), _CAST),
    **dict.fromkeys(("i0", "igamma", "igammac", "lgamma"), _LIMIT),
    **dict.fromkeys(("sign", "sgn", "heaviside"), "PyTorch gives 0 for NaN"),
    "angle": "PyTorch gives 0 for -0.0",
    "signbit": "the reference asks x < 0, which is false for -0.0",
    "ldexp": "2 ** -700 is 0 in float32",
    "sinc": "pi is rounded to float32 before the sine",
    "nn.functional.hardshrink": "the reference compares NaN as smaller",
    "nn.functional.hardswish": "x * 6 overflows float32, as in PyTorch",
    "nn.functional.gelu": "the tail left of -9 is 1e-10 instead of 0 in float32",
}  # fmt: skip


@each(
    lambda r: (
        r.family in ("pointwise", "activation")
        and r.kind in ("unary", "binary")
        and r.ref is not None
        and torch.float32 in r.dtypes
        and r.full_name not in EXTREMES_DIFFER
    ),
    quick=4,
)
def test_extreme_values_equal_reference(record):
    failures = Failures(record, "extremes")
    for dtype in (torch.float32, torch.float64):
        x = torch.tensor(EXTREMES, dtype=torch.float64).to(dtype)
        n = len(EXTREMES)
        inputs = (x,) if record.kind == "unary" else (x.repeat_interleave(n), x.repeat(n))
        sample = SampleInput(inputs[0], args=inputs[1:])
        failures.attempt(sample, dtype, lambda s=sample: _check_extremes(record, s))
    failures.report()


def _check_extremes(record, sample):
    pairs = zip(
        flat_tensors(record.apply(sample)), flat_arrays(reference(record, sample)), strict=True
    )
    for got, expected in pairs:
        kind = np.float32 if got.dtype is torch.float32 else np.float64
        tiny = 1e-37 if kind is np.float32 else 1e-300
        np.testing.assert_allclose(
            to_numpy(got).astype(kind), expected.astype(kind), rtol=1e-4, atol=tiny, equal_nan=True
        )
