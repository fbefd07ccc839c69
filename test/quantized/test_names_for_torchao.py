"""Names outside of the quantization packages that torchao asks for when it is imported."""

import warnings

import pytest

import torch
from torch.sparse import _triton_ops_meta as tuned


def test_warn_once_shows_a_message_once_with_the_line_of_the_caller():
    from torch._dynamo.utils import warn_once

    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        for _ in range(3):
            warn_once("only once, for this test")
    assert [w.filename for w in seen] == [__file__]


def test_tuned_parameters_are_found_by_device_version_and_key():
    version = (0, torch.float16, 0.5)
    tuned.update("bsr_dense_addmm", "some device", version, (1, 2), (3, 4, 5, 6))
    found = tuned.get_meta("bsr_dense_addmm", (1, 2), device_name="some device", version=version)
    assert found == {"GROUP_SIZE_ROW": 3, "SPLIT_N": 4, "num_stages": 5, "num_warps": 6}
    ask = {"device_name": "another", "version": version}
    assert tuned.get_meta("bsr_dense_addmm", (1, 2), **ask) == found
    assert tuned.get_meta("bsr_dense_addmm", (1, 2), **ask, exact=True) is None
    assert tuned.get_meta("bsr_dense_addmm", (1, "*"), **ask) == {(1, 2): found}
    assert tuned.get_meta("bsr_dense_addmm", (1, 3), **ask) is None


def test_minimize_descends_to_the_lowest_neighbour():
    best, gain, value, text = tuned.minimize(
        lambda p: (p["a"] - 5) ** 2 + abs(p["b"] - 3) + 1.0,
        {"a": 1, "b": 1},
        {"a": 2, "b": 2},
        lambda name, value, direction, parameters: value + direction,
    )
    assert best == {"a": 5, "b": 3} and value == 1.0
    assert gain == pytest.approx(100 * (11 - 1) / 11) and "a=5" in text


def test_processor_is_described_by_name():
    found = torch.cpu.get_capabilities()
    assert found["num_logical_cores"] >= found["num_physical_cores"] >= 1
    assert found["avx512_vnni"] == torch.cpu._is_vnni_supported()
    assert found["avx2"] or not found["avx512_f"]


def test_shallow_copy_question_asks_the_subclass():
    class Asked(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return func.__name__

    plain = torch.zeros(2)
    assert torch._has_compatible_shallow_copy_type(plain, torch.ones(3)) is True
    answer = torch._has_compatible_shallow_copy_type(plain.as_subclass(Asked), plain)
    assert answer == "_has_compatible_shallow_copy_type"


def test_operators_of_process_groups_are_found_without_an_import():
    assert torch.ops.c10d.scatter_.default._schema.name == "c10d::scatter_"
    assert torch._C.Tag.pointwise is torch.Tag.pointwise


def test_semi_structured_tensors_live_on_cuda():
    dense = torch.tensor([0.0, 1.0, 0.0, 2.0]).repeat(64, 16).half()
    with pytest.raises(RuntimeError, match="Only CUDA tensors"):
        torch.sparse.to_sparse_semi_structured(dense)
