"""The op records themselves: every operator of native_functions.yaml has one or a written reason,
skips say why, and records promise enough (samples, errors, a reference)."""

import pathlib
import re

import pytest

import torch
from torch.testing._internal.opinfo import families, records
from torch.testing._internal.opinfo.uncovered import UNCOVERED, reason
from torch.testing._internal.opinfo.wrong_calls import WRONG_CALLS

ROOT = pathlib.Path(__file__).resolve().parents[2]
YAML = ROOT / "aten/src/ATen/native/native_functions.yaml"


def operators():
    """Name -> family of every entry; `each:` repeats the entry before it for its words."""
    family, pattern, found = "", "", {}
    with open(YAML) as file:
        for line in file:
            if match := re.match(r"# ==== family: (\w+)", line):
                family = match[1]
            elif match := re.match(r"- func: ([\w{}]+)", line):
                pattern = match[1]
                if "{op}" not in pattern:
                    found.setdefault(pattern, family)
            elif match := re.match(r"  each: \[(.*)\]", line):
                for word in match[1].split(", "):
                    found.setdefault(pattern.replace("{op}", word), family)
    return found


def test_families_of_entries_are_read():
    known = operators()
    assert known["_foreach_exp"] == known["_foreach_clamp_min"] == "foreach"
    assert known["add"] == "pointwise" and not any("{" in name for name in known)


def covered():
    names = set()
    for record in records():
        names |= {record.aten_name, *record.covers, *(a.replace(".", "_") for a in record.aliases)}
    return names


def test_every_operator_has_a_record_or_a_reason():
    have = covered()
    missing = [
        f"{family}: {name}"
        for name, family in operators().items()
        if name not in have and name.rstrip("_") not in have and not reason(name)
    ]
    assert not missing, (
        f"{len(missing)} operators without a record; add one (docs/testing.md) or a reason to "
        f"uncovered.py: {missing}"
    )


def test_reasons_are_still_needed():
    known, have = operators(), covered()
    stale = [name for name in UNCOVERED if name not in known or name in have]
    assert not stale, f"remove from uncovered.py: {stale}"


def test_names_are_unique_and_resolve():
    names = [r.full_name for r in records()]
    assert len(names) == len(set(names))
    assert all(callable(r.op) for r in records())


@pytest.mark.parametrize("family", sorted(families()))
def test_records_have_samples_reference_and_errors(family):
    for record in families()[family]:
        assert record.sample_inputs("cpu", record.dtypes[0]), f"{record.full_name}: no samples"
        assert record.ref or record.check, f"{record.full_name}: no reference and no check"
        for key, why in record.skips.items():
            assert why, f"{record.full_name}: skip {key!r} without a reason"


def test_every_record_has_three_error_inputs_or_a_reason():
    few = [
        r.full_name
        for r in records()
        if len(r.error_inputs()) < 3 and not r.skip_reason("errors_count")
    ]
    assert not few, f"fewer than three wrong calls and no reason: {few}"


def test_reasons_for_few_errors_are_still_needed():
    kept = [r.full_name for r in records() if r.skip_reason("errors_count")]
    stale = [r.full_name for r in records() if r.full_name in kept and len(r.error_inputs()) >= 3]
    unknown = set(WRONG_CALLS) - {r.full_name for r in records()}
    assert not stale and not unknown, f"stale: {stale}, without a record: {unknown}"


def test_error_inputs_say_what_they_expect():
    for record in records():
        for wrong in record.error_inputs():
            assert wrong.error_type is not Exception, record.full_name


def test_samples_do_not_depend_on_what_ran_before():
    for record in records()[::20]:
        first = record.sample_inputs("cpu", record.dtypes[0])[0]
        torch.rand(3)
        second = record.sample_inputs("cpu", record.dtypes[0])[0]
        for a, b in zip(first.tensors(), second.tensors(), strict=True):
            torch.testing.assert_close(a, b, rtol=0, atol=0, equal_nan=True)
