"""Float8 numbers: scaling, comparisons."""

import math

import pytest

import torch


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
