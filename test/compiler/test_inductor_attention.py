"""Attention written by hand inside of compiled functions: which forms become one operator, and
which are left as they are because the operator would compute something else."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import numpy as np
import pytest

import torch
from torch._dynamo.utils import counters
from torch._inductor import config
from torch.nn import functional as F

Attention = Callable[[torch.Tensor, torch.Tensor, torch.Tensor], torch.Tensor]


@pytest.fixture(autouse=True)
def _fresh() -> Iterator[None]:
    torch._dynamo.reset()
    counters.clear()
    yield
    torch._dynamo.reset()


def _plain(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    return (torch.matmul(q, k.transpose(-2, -1)) / math.sqrt(q.shape[-1])).softmax(dim=-1) @ v


def _turned(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    q, k, v = (t.permute(0, 2, 1, 3) for t in (q, k, v))
    scores = (q @ k.permute(0, 1, 3, 2)).mul(0.3).float()
    return torch.softmax(scores, dim=-1).to(q.dtype).clone().matmul(v)


def _other_key(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    return F.softmax(q @ (k @ k.transpose(-2, -1) @ k).transpose(2, 3), dim=-1) @ v


def _added(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    mask = torch.ones(q.shape[-2], k.shape[-2], dtype=torch.bool).tril()
    return ((q @ k.transpose(-2, -1)) / 3.0 + mask).softmax(-1) @ v


def _no_dropout(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    return F.dropout((q @ k.transpose(-2, -1)).softmax(-1), 0.4, training=False) @ v


def _masked(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    mask = torch.ones(q.shape[-2], k.shape[-2], dtype=torch.bool).tril(-1)
    return (q @ k.transpose(-2, -1)).masked_fill(~mask, -math.inf).softmax(-1) @ v


def _other_dim(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    return (q @ k.transpose(-2, -1)).softmax(dim=1) @ v


def _returned(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    weights = (q @ k.transpose(-2, -1)).softmax(-1)
    return torch.cat([weights @ v, weights], -1)


def _tensors() -> list[torch.Tensor]:
    torch.manual_seed(7)
    return [torch.randn(2, 3, 4, 8) for _ in range(3)]


@pytest.mark.parametrize("fn", [_plain, _turned, _other_key, _added, _no_dropout])
def test_attention_by_hand_is_one_operator_near_the_result_of_eager(fn: Attention) -> None:
    given = _tensors()
    got = torch.compile(fn, fullgraph=True)(*given)
    assert counters["inductor"]["fuse_attention"] == 1
    wanted = fn(*given)
    assert got.stride() == wanted.stride()
    np.testing.assert_allclose(got.numpy(), wanted.numpy(), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("fn", [_plain, _turned])
def test_gradients_of_attention_by_hand_are_near_those_of_eager(fn: Attention) -> None:
    given = [t.requires_grad_() for t in _tensors()]
    wanted = torch.autograd.grad(fn(*given).sin().sum(), given)
    got = torch.autograd.grad(torch.compile(fn)(*given).sin().sum(), given)
    assert counters["inductor"]["fuse_attention"] == 1
    for g, w in zip(got, wanted, strict=True):
        np.testing.assert_allclose(g.numpy(), w.numpy(), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("fn", [_masked, _other_dim, _returned])
def test_forms_that_the_operator_does_not_compute_keep_their_bits(fn: Attention) -> None:
    given = _tensors()
    got, wanted = torch.compile(fn)(*given), fn(*given)
    assert counters["inductor"]["fuse_attention"] == 0
    assert torch.equal(got.isnan(), wanted.isnan())
    assert torch.equal(got.nan_to_num(), wanted.nan_to_num())


def test_dropout_that_draws_keeps_its_numbers() -> None:
    def fn(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        return F.dropout((q @ k.transpose(-2, -1)).softmax(-1), 0.5) @ v

    given = _tensors()
    torch.manual_seed(1)
    wanted = fn(*given)
    torch.manual_seed(1)
    assert torch.equal(torch.compile(fn)(*given), wanted)


def test_patterns_can_be_switched_off() -> None:
    given = _tensors()
    with config.patch(pattern_matcher=False):
        assert torch.equal(torch.compile(_plain)(*given), _plain(*given))
    assert counters["inductor"]["fuse_attention"] == 0
