"""Masks that sparsifiers choose, schedules of their levels, and what becomes of them."""

import numpy as np
import pytest

import torch
from torch import nn
from torch.ao.pruning import (
    CubicSL,
    LambdaSL,
    NearlyDiagonalSparsifier,
    WeightNormSparsifier,
    module_to_fqn,
)


def model() -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(16, 8), nn.ReLU(), nn.Linear(8, 4))


def test_weight_norm_sparsifier_two_of_four_zeroes_the_smaller_half_of_each_four() -> None:
    net = model()
    before = net[0].weight.detach().numpy().copy()
    sparsifier = WeightNormSparsifier(1.0, (1, 4), 2)
    sparsifier.prepare(net, [{"tensor_fqn": "0.weight"}])
    sparsifier.step()
    sparsifier.squash_mask()
    groups = np.abs(before.reshape(-1, 4))
    keep = groups >= np.sort(groups, 1)[:, 2:3]
    expected = np.where(keep, before.reshape(-1, 4), 0).reshape(before.shape)
    assert np.array_equal(net[0].weight.detach().numpy(), expected)
    assert not hasattr(net[0], "parametrizations")


def test_weight_norm_sparsifier_half_of_the_blocks_with_the_least_norm_are_zero() -> None:
    net = model()
    before = net[0].weight.detach().numpy().copy()
    sparsifier = WeightNormSparsifier(0.5, (1, 4))
    sparsifier.prepare(net, [{"tensor_fqn": "0.weight"}])
    sparsifier.step()
    norms = (before.reshape(-1, 4) ** 2).sum(1)
    zero = np.zeros_like(norms, dtype=bool)
    zero[np.argsort(norms)[: len(norms) // 2]] = True
    got = net[0].weight.detach().numpy().reshape(-1, 4)
    assert np.array_equal((got == 0).all(1), zero)


def test_nearly_diagonal_sparsifier_keeps_a_band() -> None:
    net = nn.Sequential(nn.Linear(5, 5))
    sparsifier = NearlyDiagonalSparsifier(3)
    sparsifier.prepare(net, None)
    sparsifier.step()
    mask = net[0].parametrizations.weight[0].mask.numpy()
    expected = np.abs(np.subtract.outer(np.arange(5), np.arange(5))) <= 1
    assert np.array_equal(mask, expected.astype(np.float32))
    with pytest.raises(ValueError, match="odd"):
        sparsifier.update_mask(net[0], "weight", 2)


def test_squash_mask_keeps_the_settings_that_were_asked_for() -> None:
    net = model()
    sparsifier = WeightNormSparsifier(0.5, (1, 4))
    sparsifier.prepare(net, None)
    assert [group["tensor_fqn"] for group in sparsifier.groups] == ["0.weight", "2.weight"]
    sparsifier.squash_mask(("sparse_block_shape",), {"2": ("sparsity_level",)})
    assert net[0].sparse_params == {"sparse_block_shape": (1, 4)}
    assert net[2].sparse_params == {"sparse_block_shape": (1, 4), "sparsity_level": 0.5}
    assert module_to_fqn(net, net[2]) == "2"


def test_sparsifier_state_restores_masks_in_another_model() -> None:
    first, second = model(), model()
    one, two = WeightNormSparsifier(0.5), WeightNormSparsifier(0.5)
    one.prepare(first, None)
    one.step()
    two.prepare(second, None)
    two.load_state_dict(one.state_dict())
    assert torch.equal(second[0].weight, first[0].weight)


def test_schedulers_set_levels_by_step() -> None:
    sparsifier = WeightNormSparsifier(0.8)
    sparsifier.prepare(model(), None)
    halving = LambdaSL(sparsifier, lambda step: 0.5**step)
    sparsifier.step()
    halving.step()
    assert halving.get_last_sl() == [0.4, 0.4]
    other = WeightNormSparsifier(0.8)
    other.prepare(model(), None)
    cubic = CubicSL(other, init_sl=0.0, init_t=0, delta_t=1, total_t=4)
    levels = [cubic.get_last_sl()[0]]
    for _ in range(4):
        other.step()
        cubic.step()
        levels.append(cubic.get_last_sl()[0])
    expected = [0.8 * (1 - (1 - t / 4) ** 3) for t in range(5)]
    assert np.allclose(levels, expected)
