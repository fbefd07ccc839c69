"""Sobol sequences against SciPy's, points recorded from PyTorch for scrambled ones, and what may be
asked of an engine."""

import numpy as np
import pytest
from scipy.stats import qmc

import torch
from torch.quasirandom import SobolEngine


@pytest.mark.parametrize("dimension", [1, 2, 7, 40, 300, 1111])
def test_points_are_those_of_scipy(dimension):
    ours = SobolEngine(dimension).draw(64, dtype=torch.float64).numpy()
    theirs = qmc.Sobol(dimension, scramble=False, bits=30).random(64)
    np.testing.assert_array_equal(ours, theirs)


def test_last_dimension_is_that_of_scipy():
    engine = SobolEngine(SobolEngine.MAXDIM)
    ours = engine.draw(4, dtype=torch.float64).numpy()
    theirs = qmc.Sobol(SobolEngine.MAXDIM, scramble=False, bits=30).random(4)
    np.testing.assert_array_equal(ours, theirs)


def test_points_do_not_depend_on_how_they_are_drawn():
    whole = SobolEngine(3).draw(20)
    engine = SobolEngine(3)
    parts = [engine.draw(1), engine.draw(6), engine.draw(), engine.draw(12)]
    assert torch.equal(torch.cat(parts), whole)
    assert engine.num_generated == 20
    assert torch.equal(engine.reset().draw(20), whole)
    assert torch.equal(SobolEngine(3).fast_forward(5).draw(4), whole[5:9])


def test_scrambled_points_are_recorded_ones():
    engine = SobolEngine(3, scramble=True, seed=7)
    assert engine.shift.tolist() == [214182645, 183537049, 804615878]
    want = [[0.1995, 0.1709, 0.7494], [0.6922, 0.7115, 0.4898], [0.8505, 0.2963, 0.7880]]
    torch.testing.assert_close(engine.draw(3), torch.tensor(want), atol=1e-4, rtol=0)


def test_scrambled_points_have_one_in_each_interval():
    points = SobolEngine(5, scramble=True, seed=3).draw_base2(6)
    for column in points.T:
        assert (column * 64).long().unique().numel() == 64
    assert not torch.equal(points, SobolEngine(5, scramble=True, seed=4).draw(64))
    torch.manual_seed(11)
    first = SobolEngine(5, scramble=True).draw(4)
    torch.manual_seed(11)
    assert torch.equal(SobolEngine(5, scramble=True).draw(4), first)


def test_dtype_out_and_repr():
    engine = SobolEngine(2, scramble=True, seed=1)
    assert repr(engine) == "SobolEngine(dimension=2, scramble=True, seed=1)"
    assert repr(SobolEngine(4)) == "SobolEngine(dimension=4)"
    assert engine.draw(3, dtype=torch.float16).dtype == torch.float16
    out = torch.empty(0)
    assert engine.draw(3, out=out) is out and out.shape == (3, 2)
    assert engine.draw(0).shape == (0, 2)


@pytest.mark.parametrize(
    ("call", "kind", "text"),
    [
        (lambda: SobolEngine(0), ValueError, r"is \[1, 21201\]"),
        (lambda: SobolEngine(30000), ValueError, r"is \[1, 21201\]"),
        (lambda: SobolEngine(2).fast_forward(3).draw_base2(2), ValueError, "power of 2"),
        (lambda: SobolEngine(2).draw(-1), RuntimeError, "negative"),
        (lambda: SobolEngine(2).fast_forward(-1), ValueError, "negative"),
        (lambda: SobolEngine(2).draw(3, dtype=torch.int32), NotImplementedError, "int32"),
        (lambda: SobolEngine("a"), TypeError, "not supported"),
    ],
)
def test_wrong_requests_are_refused(call, kind, text):
    with pytest.raises(kind, match=text):
        call()


@pytest.mark.parametrize("scramble", [False, True])
def test_draws_of_any_sizes_join_to_the_points_of_one_draw(scramble):
    sizes = (0, 1, 1, 2, 3, 16, 100, 0, 5, 256, 300, 16)
    parts, whole = (SobolEngine(5, scramble=scramble, seed=3) for _ in range(2))
    drawn = torch.cat([parts.draw(n) for n in sizes])
    assert torch.equal(drawn, whole.draw(sum(sizes)))
    assert torch.equal(parts.quasi, whole.quasi)
    skipped = SobolEngine(5, scramble=scramble, seed=3).fast_forward(sum(sizes[:7]))
    assert torch.equal(skipped.draw(5), drawn[sum(sizes[:7]) :][:5])
