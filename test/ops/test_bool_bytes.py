"""Bools whose bytes are neither 0 nor 1. Memory from elsewhere (frombuffer, view(torch.bool),
files, what torch.empty recycles) may hold any byte, and any but 0 means true: every operator of the
op records gives for such bools what it gives for the same truths written as 0 and 1."""

import warnings

import numpy as np
import pytest

import torch
from torch.testing._internal.opinfo import records
from torch.testing._internal.opinfo.core import flat_tensors


def _loud(t):
    """The same truths in other bytes."""
    if t.dtype is not torch.bool or t.layout is not torch.strided or t.numel() == 0:
        return t
    numbers = np.asarray([2, 255, 1, 128, 3, 7, 16], np.uint8)
    places = np.arange(t.numel()).reshape(t.shape) % len(numbers)
    bytes_of = np.where(t.detach().numpy(), numbers[places], 0).astype(np.uint8)
    return torch.from_numpy(bytes_of.reshape(-1)).view(torch.bool).view(t.shape)


def _quiet(t):
    return t.detach().clone()


def _run(record, sample):
    torch.manual_seed(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return flat_tensors(record.apply(sample))


def _plain(t):
    if t.layout is not torch.strided:
        t = t.to_dense()
    t = t.detach().resolve_conj().resolve_neg()
    return t.view(torch.uint8).numpy() != 0 if t.dtype is torch.bool else t.double().numpy()


def _samples(record):
    """Samples with a bool among the arguments: of dtype bool, and with masks of the first other."""
    others = [d for d in record.dtypes if d is not torch.bool][:1]
    for dtype in [d for d in record.dtypes if d is torch.bool] + others:
        for sample in record.sample_inputs("cpu", dtype):
            if any(t.dtype is torch.bool and t.numel() for t in sample.tensors()):
                yield sample


RECORDS = [r for r in records() if "empty" not in r.full_name]


@pytest.mark.parametrize("record", RECORDS, ids=lambda r: r.full_name)
def test_result_depends_on_the_truth_of_bools_only(record):
    for sample in _samples(record):
        try:
            expected = _run(record, sample.transform(_quiet))
        except (RuntimeError, NotImplementedError):
            continue
        found = _run(record, sample.transform(_loud))
        assert len(found) == len(expected), sample
        for a, b in zip(found, expected, strict=True):
            assert (a.shape, a.dtype) == (b.shape, b.dtype), sample
            if a.is_complex():
                a, b = torch.view_as_real(a.resolve_conj()), torch.view_as_real(b.resolve_conj())
            np.testing.assert_array_equal(_plain(a), _plain(b), str(sample))


@pytest.mark.parametrize("n", [7, 600, 300_000])
def test_unique_of_any_bytes_has_at_most_two_elements(n):
    data = np.random.default_rng(0).integers(0, 256, n).astype(np.uint8) * (np.arange(n) % 3 > 0)
    b = torch.from_numpy(data).view(torch.bool)
    truth = data != 0
    values, inverse, counts = torch.unique(b, return_inverse=True, return_counts=True)
    assert values.tolist() == [False, True]
    np.testing.assert_array_equal(inverse.numpy(), truth)
    assert counts.tolist() == [n - truth.sum(), truth.sum()]
    runs = torch.unique_consecutive(b)
    np.testing.assert_array_equal(
        runs.view(torch.uint8).numpy() != 0,
        truth[np.concatenate([[True], truth[1:] != truth[:-1]])],
    )
