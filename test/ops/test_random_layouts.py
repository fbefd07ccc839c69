"""Random streams of unusual layouts: repeated rows, permuted probabilities."""

import pytest

import torch
import torch.nn.functional as F
from torch.testing import assert_close

t = torch.tensor


class TestStreams:
    """The numbers are those of PyTorch's CPU generator."""

    def test_bernoulli_of_probabilities_draws_in_memory_order(self):
        torch.manual_seed(3)
        p = torch.rand(2, 3)
        torch.manual_seed(5)
        plain = torch.zeros(3, 2).bernoulli_(p.t())
        torch.manual_seed(5)
        turned = torch.zeros(2, 3).t().bernoulli_(p.t())
        torch.manual_seed(5)
        assert torch.equal(turned.t(), torch.zeros(2, 3).bernoulli_(p))
        assert plain.shape == turned.shape

    def test_multinomial_of_turned_weights_draws_in_memory_order(self):
        weights = torch.rand(50, 4).t()
        torch.manual_seed(2)
        clocks = torch.empty_like(weights).exponential_()
        torch.manual_seed(2)
        drawn = torch.multinomial(weights, 5)
        assert clocks.stride() == (1, 4)
        assert torch.equal(drawn, (weights / clocks).topk(5).indices)

    def test_rrelu_bounds_are_not_rounded_to_bfloat16(self):
        torch.manual_seed(1)
        slopes = -F.rrelu(torch.full((4,), -1.0, dtype=torch.bfloat16), 0.1, 0.4, training=True)
        torch.manual_seed(1)
        wide = -F.rrelu(torch.full((4,), -1.0), 0.1, 0.4, training=True)
        assert torch.equal(slopes, wide.to(torch.bfloat16))
        torch.manual_seed(1)
        steep = F.rrelu(torch.full((4,), -1.828125, dtype=torch.bfloat16), 0.1, 0.4, training=True)
        assert torch.equal(steep, (wide * -1.828125).to(torch.bfloat16))

    def test_normal_takes_the_dtype_of_the_means(self):
        mean, std = torch.zeros(3, dtype=torch.float16), torch.ones(3, dtype=torch.float64)
        assert torch.normal(mean, std).dtype == torch.float16
        assert torch.normal(mean.double(), std.float()).dtype == torch.float64

    def test_sizes_of_permutations(self):
        assert torch.randperm(300, dtype=torch.bfloat16).shape == (300,)
        with pytest.raises(RuntimeError, match="n cannot be greater than 2049 for Half type"):
            torch.randperm(2050, dtype=torch.float16)
        with pytest.raises(RuntimeError, match="value cannot be converted to type uint8_t"):
            torch.randperm(300, dtype=torch.uint8)
        with pytest.raises(RuntimeError, match="negative dimension -1"):
            torch.randperm(-1)

    def test_dropout3d_of_other_shapes_is_one_sample(self):
        x = torch.ones(4, 6)
        with pytest.warns(UserWarning, match="dropout3d: Received a 2-D input"):
            out = F.dropout3d(x, 0.5)
        assert all(row.unique().numel() == 1 for row in out)

    def test_one_ratio_for_three_dimensions(self):
        x = torch.randn(1, 1, 6, 8, 10)
        assert F.fractional_max_pool3d(x, 2, output_ratio=0.5).shape == (1, 1, 3, 4, 5)

    def test_ctc_gradient_of_an_impossible_target(self):
        x = torch.randn(4, 1, 3).log_softmax(2).requires_grad_()
        lengths = t([2]), t([3])
        F.ctc_loss(x, t([[1, 1, 1]]), *lengths, reduction="sum").backward()
        assert x.grad[:2].isnan().all()
        assert not x.grad[2:].any()
        x.grad = None
        F.ctc_loss(x, t([[1, 1, 1]]), *lengths, zero_infinity=True).backward()
        assert not x.grad.any()


def test_bernoulli_of_a_permuted_tensor_is_contiguous():
    assert torch.bernoulli(torch.rand(2, 3, 4).permute(2, 0, 1)).is_contiguous()


def test_mean_of_complex_normal_numbers_is_that_of_both_parts():
    z = torch.empty(4000, dtype=torch.complex64).normal_(3.0, 0.1)
    assert abs(z.real.mean() - 3) < 0.02 and abs(z.imag.mean() - 3) < 0.02


def wavy():
    return torch.sin(torch.arange(48.0).view(12, 4) ** 2)


@pytest.mark.parametrize(
    ("factor", "values"),
    [
        (lambda a: torch.svd_lowrank(a, q=2, niter=0), [2.9676783, 2.2495885]),
        (lambda a: torch.svd_lowrank(a.T, q=2, niter=1), [3.0618069, 2.4356124]),
        (lambda a: torch.pca_lowrank(a, q=2, niter=1), [3.0172799, 2.0671189]),
    ],
)
def test_low_rank_factorisations_draw_vectors_as_long_as_the_smaller_side(factor, values):
    torch.manual_seed(3)
    assert_close(factor(wavy())[1], torch.tensor(values), rtol=1e-5, atol=1e-6)
    assert torch.rand(1).item() == 0.17560523748397827


def test_draws_from_rows_that_are_repeated_follow_the_stream():
    third = torch.full((1, 3), 1 / 3)
    torch.manual_seed(8)
    assert torch.multinomial(third.expand(4, 3), 1).T.tolist() == [[2, 0, 1, 1]]
    torch.manual_seed(8)
    found = torch.distributions.Categorical(torch.ones(3)).expand((4,)).sample()
    assert found.tolist() == [2, 0, 1, 1]
    assert torch.rand(1).item() == 0.7892667055130005
    torch.manual_seed(8)
    without = torch.multinomial(torch.full((1, 5), 0.2).expand(4, 5), 3)
    assert without.tolist() == [[2, 3, 1], [2, 0, 3], [4, 2, 0], [1, 4, 2]]
