"""Indexing with masks, against NumPy and PyTorch's recorded results."""

import pytest

import torch

t = torch.tensor


class TestMasks:
    mask = t([[True, False, True], [False, True, True]])

    def test_a_mask_of_two_dimensions_before_a_number(self):
        x = torch.arange(24).view(2, 3, 4)
        assert x[self.mask, 1].tolist() == [1, 9, 17, 21]
        assert x[self.mask, ::2].tolist() == [[0, 2], [8, 10], [16, 18], [20, 22]]
        assert x[self.mask, None].shape == (4, 1, 4)

    def test_a_mask_of_two_dimensions_between_others(self):
        y = torch.arange(120).view(2, 3, 4, 5)
        expected = torch.stack([y[i, j, :, -1] for i, j in self.mask.nonzero().tolist()])
        assert torch.equal(y[self.mask, :, -1], expected)
        z = y.permute(2, 0, 1, 3)
        expected = torch.stack([z[:, i, j, 2] for i, j in self.mask.nonzero().tolist()], 1)
        assert torch.equal(z[:, self.mask, 2], expected)

    def test_assigning_behind_such_a_mask(self):
        x = torch.zeros(2, 3, 4)
        x[self.mask, 1] = 5
        assert x.sum() == 20
        assert x[..., 1].bool().equal(self.mask)

    @pytest.mark.parametrize("value", [t(3.5), t([3.5]), t([[3.5]]), t(3.5, requires_grad=True)])
    def test_one_value_takes_the_dtype_of_what_is_masked(self, value):
        for key in (t([True, False]), (slice(None), t([True, False, True])), [True, False]):
            x = torch.arange(6).view(2, 3)
            reference = x.clone()
            x[key] = value
            reference[key] = 3
            assert torch.equal(x, reference)
        whole = torch.zeros(2, 3)
        whole[whole < 1] = t(2.5, dtype=torch.float64)
        assert torch.equal(whole, torch.full((2, 3), 2.5))

    def test_what_the_dtype_does_not_hold(self):
        with pytest.raises(RuntimeError, match="value cannot be converted to type int64_t"):
            torch.arange(3)[t([True, False, True])] = t(1j)
        with pytest.raises(RuntimeError, match="Index put requires the source and destination"):
            torch.arange(3)[t([0])] = t(1.5)

    def test_indices_are_checked_before_dtypes(self):
        x = torch.arange(6).view(2, 3)
        with pytest.raises(IndexError, match="The shape of the mask"):
            x[t([True, False, True])] = t([1.5])
        with pytest.raises(IndexError, match="must be long, int, byte or bool"):
            x[t([0.5])] = t([1.5, 2.5])
        with pytest.raises(RuntimeError, match="shape mismatch"):
            x[x > 2] = t([1.5, 2.5])
