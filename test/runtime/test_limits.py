"""The generated page of limits: what it lists raises, and what raises is listed."""

import importlib
import importlib.util
import pathlib
import re

import pytest

import torch
from torch.testing._internal import opinfo

yaml = pytest.importorskip("yaml")
from torchgen import derivatives, emit_limits, model  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def tables():
    loaded = model.load(str(ROOT / "aten/src/ATen/native/native_functions.yaml"))
    return loaded, derivatives.load(str(ROOT / "tools/autograd/derivatives.yaml"), loaded)


@pytest.fixture(scope="module")
def page(tables):
    return emit_limits.emit(*tables)["docs/limits.md"]


@pytest.fixture(scope="module")
def limits():
    spec = importlib.util.spec_from_file_location("limits", ROOT / "tools" / "limits.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def section(page, title):
    return re.search(rf"^## {title}\n(.*?)(?=^## |\Z)", page, re.S | re.M).group(1)


def test_page_has_its_sections(page):
    for title in ("No derivative", "No second derivative", "No CUDA kernel", "Sparse and nested"):
        assert f"## {title}" in page
    assert all(len(line) < 20_000 for line in page.splitlines())


def test_every_refused_formula_is_listed(tables, page):
    text = (ROOT / "tools/autograd/derivatives.yaml").read_text()
    refused = section(page, "No derivative")
    for entry in re.split(r"^- ", text, flags=re.M)[1:]:
        if "not_implemented(" in entry and entry.startswith("name: "):
            name = entry.split("\n")[0].removeprefix("name: ").split("(")[0].strip()
            if not name.partition(".")[0].endswith("_"):
                assert f"`{name}`" in refused, name


def test_listed_derivatives_raise(page):
    assert "`igamma`" in section(page, "No derivative")
    x = torch.rand(3, requires_grad=True)
    with pytest.raises(NotImplementedError, match="igamma"):
        torch.igamma(x, torch.rand(3)).sum().backward()
    assert "`segment_reduce`" in section(page, "No second derivative")
    found = torch.segment_reduce(x, "sum", lengths=torch.tensor([1, 2]))
    (first,) = torch.autograd.grad(found.square().sum(), x, create_graph=True)
    with pytest.raises(NotImplementedError):
        first.sum().backward()


def test_what_has_a_second_derivative_is_not_listed(page):
    gaps = section(page, "No second derivative")
    for name in ("grid_sampler_2d", "gelu", "layer_norm", "scatter.src"):
        assert f"`{name}`" not in gaps


def test_cuda_section_follows_the_kernels(tables, page):
    text = section(page, "No CUDA kernel")
    loaded, _ = tables
    kernels = [op for op in loaded.ops if op.functional is None and op.alias_of is None]
    without = {op.base for op in kernels if emit_limits.lacks_cuda(op)}
    assert "add" not in without and "mm" not in without
    for base in without:
        assert f"`{base}`" in text


def test_measured_dtypes_are_those_of_the_kernels(limits):
    chosen = [r for r in opinfo.records() if r.name in ("add", "bitwise_and", "cholesky", "gcd")]
    found = limits.measure(chosen)
    assert "float16" in found["add"]["accepted"] and not found["add"]["refused"]
    assert "float32" in found["bitwise_and"]["refused"]
    assert {"int64", "bool"} <= set(found["cholesky"]["refused"] + found["cholesky"]["not meant"])
    for row in found.values():
        assert sorted(name for names in row.values() for name in names) == sorted(limits.DTYPES)
    text = limits.page(found)
    assert "| `add` | all | - | - |" in text
    assert limits.shortened(["float16", "bfloat16", "float32", "float64", "bool"]) == (
        "floating, bool"
    )


@pytest.mark.parametrize("name", ["bitwise_and", "gcd", "cholesky"])
def test_a_refusal_names_operator_and_dtype(limits, name):
    record = next(r for r in opinfo.records() if r.name == name)
    refused = limits.measure([record])[name]["refused"]
    for dtype in refused:
        with pytest.raises((NotImplementedError, RuntimeError), match=r"not implemented for '\w+'"):
            record.apply(record.sample_inputs("cpu", limits.DTYPES[dtype])[0])


def test_names_that_only_raise_are_listed(limits):
    found = limits.placeholders()
    text = limits.names_page(found)
    assert found and all(module.startswith("torch") for module in found)
    module, names = next(iter(sorted(found.items())))
    assert f"| `{module}` |" in text
    for name in names:
        member = getattr(importlib.import_module(module), name)
        with pytest.raises(NotImplementedError, match="not implemented"):
            member()
    assert "`scaled_dot_product_attention`" in text and "`pointwise`" not in text
