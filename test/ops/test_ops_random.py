"""Random operators: frozen streams, distributions and errors. The recorded numbers are those
the same seeds give in PyTorch."""

import math

import numpy as np
import pytest

import torch


def test_streams_of_seed_zero_are_frozen():
    torch.manual_seed(0)
    np.testing.assert_array_equal(
        torch.rand(3).numpy(), np.array([0.4962565899, 0.7682217956, 0.0884774327], np.float32)
    )
    torch.manual_seed(0)
    np.testing.assert_allclose(
        torch.randn(3).numpy(),
        [1.5409960746765137, -0.293428897857666, -2.1787893772125244],
        rtol=1e-6,
    )
    torch.manual_seed(0)
    assert torch.randint(0, 10, (6,)).tolist() == [4, 9, 3, 0, 3, 9]
    torch.manual_seed(0)
    assert torch.randperm(5).tolist() == [4, 0, 1, 3, 2]


def test_state_restores_the_stream():
    torch.manual_seed(3)
    torch.randn(7)
    state = torch.get_rng_state()
    first = torch.rand(5)
    torch.set_rng_state(state)
    assert torch.equal(first, torch.rand(5))
    with pytest.raises((RuntimeError, TypeError)):
        torch.set_rng_state(state[:-1])


def test_generators_are_independent():
    g = torch.Generator().manual_seed(5)
    a = torch.rand(4, generator=g)
    torch.rand(100)
    g.manual_seed(5)
    assert torch.equal(a, torch.rand(4, generator=g))


def test_fills_follow_memory_order_not_logical_order():
    torch.manual_seed(1)
    plain = torch.empty(3, 4).uniform_()
    torch.manual_seed(1)
    transposed = torch.empty(4, 3).t().uniform_()
    assert torch.equal(plain.flatten(), transposed.t().flatten())


@pytest.mark.parametrize(
    "fill, mean, variance",
    [
        (lambda t: t.uniform_(-1, 3), 1, 16 / 12),
        (lambda t: t.normal_(2, 3), 2, 9),
        (lambda t: t.exponential_(2.0), 0.5, 0.25),
        (lambda t: t.geometric_(0.25), 4, 12),
        (lambda t: t.bernoulli_(0.3), 0.3, 0.21),
        (lambda t: t.log_normal_(0, 0.5), math.exp(0.125), math.exp(0.25) * (math.exp(0.25) - 1)),
    ],
)
def test_moments(fill, mean, variance):
    torch.manual_seed(0)
    values = fill(torch.empty(200_000, dtype=torch.float64)).numpy()
    assert abs(values.mean() - mean) < 6 * math.sqrt(variance / values.size)
    assert abs(values.var() / variance - 1) < 0.05


def test_multinomial_draws_without_replacement_are_distinct():
    torch.manual_seed(0)
    drawn = torch.multinomial(torch.tensor([0.0, 1.0, 2.0, 3.0]), 3)
    assert sorted(drawn.tolist()) == [1, 2, 3]
    with pytest.raises(RuntimeError, match="without replacement"):
        torch.multinomial(torch.ones(3), 4)


def test_dropout_scales_and_leaves_evaluation_alone():
    torch.manual_seed(0)
    x = torch.ones(10_000)
    y = torch.nn.functional.dropout(x, 0.25)
    assert set(y.unique().tolist() if hasattr(y, "unique") else y.tolist()) <= {0.0, y.max().item()}
    assert abs(y.mean().item() - 1) < 0.05
    assert torch.equal(torch.nn.functional.dropout(x, 0.25, training=False), x)


@pytest.mark.parametrize(
    "call, text",
    [
        (lambda: torch.empty(2).uniform_(3, 1), "from=3 > to=1"),
        (lambda: torch.empty(2).normal_(0, -1), "std >= 0.0"),
        (lambda: torch.empty(2).exponential_(-1), "lambda > 0.0"),
        (lambda: torch.empty(2).geometric_(1.5), "p to be in"),
        (lambda: torch.empty(2).bernoulli_(2), "p to be in"),
        (lambda: torch.randint(5, 5, (2,)), "from"),
        (lambda: torch.randperm(-1), "negative dimension"),
        (lambda: torch.randperm(300, dtype=torch.uint8), "without overflow"),
    ],
)
def test_bad_parameters_raise(call, text):
    with pytest.raises(RuntimeError, match=text):
        call()
