"""Every operator on fake tensors, from the op records: the result has the shape, strides, dtype and
device of the real one, and shares memory with the same arguments."""

import warnings

import pytest

import torch
from torch._subclasses.fake_tensor import (
    DataDependentOutputException,
    DynamicOutputShapeException,
    FakeTensorMode,
    UnsupportedFakeTensorException,
    UnsupportedOperatorException,
)
from torch.testing._internal.opinfo import records
from torch.testing._internal.opinfo.core import flat_tensors

# Results in sparse layouts have no fake form.
RECORDS = [r for r in records() if "number of elements" not in (r.skip_reason("meta") or "")]
# What only data can tell, and layouts whose operators have no Meta kernel.
UNKNOWABLE = (
    DataDependentOutputException,
    DynamicOutputShapeException,
    UnsupportedFakeTensorException,
    UnsupportedOperatorException,
)


def _storage(t):
    return t.untyped_storage()._cdata if t.layout is torch.strided else id(t)


def _form(t):
    return (
        tuple(t.shape),
        t.stride(),
        t.storage_offset(),
        t.dtype,
        t.device,
        t.is_conj(),
        t.is_neg(),
    )


def _sharing(arguments, results):
    """For each result the arguments whose memory it has, and the results it is equal to."""
    known = [_storage(t) for t in arguments]
    return [
        (
            [i for i, s in enumerate(known) if s == _storage(t)],
            [i for i, a in enumerate(arguments) if a is t],
            [j for j, other in enumerate(results) if _storage(other) == _storage(t)],
        )
        for t in results
    ]


def _arguments(sample):
    found = []
    sample.transform(lambda t: found.append(t) or t)
    return found


def _check(record, sample, dtype):
    real = sample.transform(lambda t: t.detach().clone())
    mode = FakeTensorMode(allow_fallback_kernels=False)
    try:
        fake = real.transform(mode.from_tensor)
        expected = flat_tensors(record.apply(real))
        with mode:
            got = flat_tensors(record.apply(fake))
    except UNKNOWABLE:
        return
    assert [_form(t) for t in got] == [_form(t) for t in expected]
    assert _sharing(_arguments(fake), got) == _sharing(_arguments(real), expected)
    assert all(torch._C._is_fake(t) for t in got), "a result is not fake"


def _dtypes(record):
    wanted = (torch.float32, torch.int64, torch.complex64, torch.bool)
    return [d for d in wanted if d in record.dtypes] or record.dtypes[:1]


@pytest.mark.parametrize(
    "record",
    [
        pytest.param(r, id=r.full_name, marks=[pytest.mark.slow] if i % 6 else [])
        for i, r in enumerate(RECORDS)
    ],
)
def test_fake_result_has_the_form_of_the_real_one(record):
    failures = []
    for dtype in _dtypes(record):
        for sample in record.sample_inputs("cpu", dtype):
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    _check(record, sample, dtype)
            except Exception as error:
                text = str(error).strip()[:400]
                failures.append(f"{dtype} ({sample.summary()}): {type(error).__name__}: {text}")
    assert not failures, f"{len(failures)} failures\n" + "\n".join(failures[:6])
