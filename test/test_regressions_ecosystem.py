"""What the test suites of other projects (safetensors, pytorch_optimizer, linear_operator, skorch)
asked for and did not find. Each test states the behaviour, not the project."""

import math

import pytest

import torch


class TestStorageAsData:
    """torch.asarray and its kin take a storage as the bytes of a one-dimensional tensor."""

    def test_asarray_shares_the_memory_of_a_slice(self):
        storage = torch.UntypedStorage(16)
        for i in range(16):
            storage[i] = i
        t = torch.asarray(storage[4:8], dtype=torch.uint8)
        assert t.tolist() == [4, 5, 6, 7]
        t[0] = 99
        assert storage[4] == 99

    def test_asarray_reads_bytes_as_the_dtype(self):
        source = torch.tensor([1.5, -2.0])
        t = torch.asarray(source.untyped_storage(), dtype=torch.float32)
        assert t.tolist() == [1.5, -2.0] and t.data_ptr() == source.data_ptr()

    def test_tensor_copies(self):
        source = torch.tensor([1, 2], dtype=torch.int32)
        t = torch.tensor(source.untyped_storage(), dtype=torch.int32)
        assert t.tolist() == [1, 2] and t.data_ptr() != source.data_ptr()

    def test_typed_storage_keeps_its_dtype(self):
        typed = torch.TypedStorage([1.0, 2.0, 3.0])
        t = torch.asarray(typed)
        assert t.dtype == torch.float32 and t.tolist() == [1.0, 2.0, 3.0]
        assert t.data_ptr() == typed.data_ptr()

    def test_size_that_is_no_multiple_is_an_error(self):
        with pytest.raises(ValueError, match="7 bytes"):
            torch.asarray(torch.UntypedStorage(7), dtype=torch.int32)


class TestFloat8Scale:
    """float8_e8m0fnu: powers of two, no zero, no sign."""

    @pytest.mark.parametrize(
        "value, bits",
        [(1.0, 127), (3.0, 129), (0.3, 125), (-2.0, 128), (0.0, 0), (math.inf, 255), (1e30, 227)],
    )
    def test_encoding(self, value, bits):
        t = torch.tensor([value], dtype=torch.float8_e8m0fnu)
        assert t.view(torch.uint8).item() == bits
        assert torch.tensor([value]).to(torch.float8_e8m0fnu).view(torch.uint8).item() == bits
        full = torch.full((2,), value, dtype=torch.float8_e8m0fnu)
        assert full.view(torch.uint8).tolist() == [bits] * 2

    def test_values_come_back(self):
        t = torch.tensor([0.5, 4.0], dtype=torch.float8_e8m0fnu)
        assert t.tolist() == [0.5, 4.0] and t[0].item() == 0.5
        assert t.to(torch.float64).tolist() == [0.5, 4.0]
        assert torch.equal(t, t.clone())
        assert repr(t) == "tensor([0.5000, 4.0000], dtype=torch.float8_e8m0fnu)"


@pytest.mark.parametrize("name", ["float8_e4m3fn", "float8_e5m2", "float8_e8m0fnu"])
def test_float8_comparisons(name):
    t = torch.tensor([0.5, 1.0, 2.0]).to(getattr(torch, name))
    assert (t == t).tolist() == [True] * 3
    assert (t < 1).tolist() == [True, False, False]
    assert torch.isnan(t).tolist() == [False] * 3


def test_first_sparse_products():
    sparse, dense = torch.eye(3).to_sparse(), torch.arange(6.0).view(3, 2)
    assert torch.equal(torch.dsmm(sparse, dense), dense)
    assert torch.equal(torch.spmm(sparse, dense), dense)
    assert torch.equal(torch.hsmm(sparse, dense).to_dense(), dense)
    added = torch.saddmm(dense.to_sparse(), sparse, dense)
    assert added.is_sparse and torch.equal(added.to_dense(), 2 * dense)
